#include "codegen/lower/requests.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace ingot::codegen::lowering {

void Requests::add(ir::ValueId v, uint32_t group, IndexMap map) {
  for (const Request& r : requests_[v])
    if (!r.from_memory && groups_.find(r.group) == groups_.find(group) && r.map == map) return;
  requests_[v].push_back({group, false, std::move(map)});
}

void Requests::divide(std::span<const uint32_t> parts,
                      const std::function<IndexMap(const IndexMap&, size_t part)>& shifted) {
  for (std::vector<Request>& requests : requests_)
    for (size_t r = 0, count = requests.size(); r < count; ++r) {
      if (groups_.find(requests[r].group) != parts[0]) continue;
      for (size_t p = 1; p < parts.size(); ++p)
        requests.push_back({parts[p], requests[r].from_memory, shifted(requests[r].map, p)});
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

bool Requests::needed_before(ir::ValueId v, uint32_t group) const {
  return std::any_of(requests_[v].begin(), requests_[v].end(), [&](const Request& r) {
    uint32_t reader = groups_.find(r.group);
    return reader == group ? r.from_memory : groups_.has_path(reader, group);
  });
}

}  // namespace ingot::codegen::lowering
