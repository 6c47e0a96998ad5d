#include "codegen/lower/requests.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

namespace ingot::codegen::lowering {

// What a group has requested before is mostly among the latest; what is found here no more is left out by who asks.
void Requests::add(ir::ValueId v, uint32_t group, IndexMap map) {
  constexpr size_t kLatest = 32;
  std::vector<Request>& all = requests_[v];
  group = groups_.find(group);
  for (size_t i = all.size(), end = i - std::min(i, kLatest); i-- > end;)
    if (!all[i].from_memory && groups_.find(all[i].group) == group && all[i].map == map) return;
  push(v, {group, false, std::move(map)});
}

void Requests::push(ir::ValueId v, Request request) {
  if (requested_.size() < groups_.size()) requested_.resize(groups_.size());
  requested_[request.group].push_back(v);
  requests_[v].push_back(std::move(request));
}

void Requests::divide(std::span<const uint32_t> parts,
                      const std::function<IndexMap(const IndexMap&, size_t part)>& shifted) {
  std::set<ir::ValueId> values;
  for (uint32_t group : groups_.all_of(parts[0]))
    if (group < requested_.size()) values.insert(requested_[group].begin(), requested_[group].end());
  for (ir::ValueId v : values)
    for (size_t r = 0, count = requests_[v].size(); r < count; ++r) {
      if (groups_.find(requests_[v][r].group) != parts[0]) continue;
      for (size_t p = 1; p < parts.size(); ++p)
        push(v, {parts[p], requests_[v][r].from_memory, shifted(requests_[v][r].map, p)});
    }
}

bool Requests::from_memory(ir::ValueId v) const {
  return std::any_of(requests_[v].begin(), requests_[v].end(), [](const Request& r) { return r.from_memory; });
}

std::vector<ReaderMaps> Requests::reader_maps(ir::ValueId v) const {
  std::vector<ReaderMaps> readers;
  std::unordered_map<uint32_t, size_t> numbers;
  for (const Request& r : requests_[v]) {
    if (r.from_memory) continue;
    auto [at, added] = numbers.try_emplace(groups_.find(r.group), readers.size());
    if (added) readers.push_back({at->first, {}});
    std::vector<IndexMap>& maps = readers[at->second].maps;
    if (std::find(maps.begin(), maps.end(), r.map) == maps.end()) maps.push_back(r.map);
  }
  return readers;
}

std::vector<IndexMap> Requests::maps_in(ir::ValueId v, uint32_t group) const {
  std::vector<IndexMap> maps;
  for (const Request& r : requests_[v])
    if (!r.from_memory && groups_.find(r.group) == group && std::find(maps.begin(), maps.end(), r.map) == maps.end())
      maps.push_back(r.map);
  return maps;
}

std::vector<uint32_t> Requests::readers(ir::ValueId v, bool inlining_only) const {
  std::vector<uint32_t> groups;
  std::unordered_set<uint32_t> seen;
  for (const Request& r : requests_[v]) {
    if (inlining_only && r.from_memory) continue;
    uint32_t g = groups_.find(r.group);
    if (seen.insert(g).second) groups.push_back(g);
  }
  return groups;
}

void Requests::find_waiting(ir::ValueId v, std::vector<ReaderMaps>& readers) const {
  std::vector<uint32_t> groups;
  std::unordered_map<uint32_t, size_t> numbers;  // in `groups`
  std::vector<bool> from_memory;
  for (const Request& r : requests_[v]) {
    const uint32_t group = groups_.find(r.group);
    const auto [at, added] = numbers.try_emplace(group, groups.size());
    if (added) groups.push_back(group), from_memory.push_back(false);
    if (r.from_memory) from_memory[at->second] = true;
  }
  const std::vector<bool> follow = groups_.follow_others(groups);
  for (ReaderMaps& reader : readers) {
    const size_t number = numbers.at(reader.group);
    reader.waits = from_memory[number] || follow[number];
  }
}

}  // namespace ingot::codegen::lowering
