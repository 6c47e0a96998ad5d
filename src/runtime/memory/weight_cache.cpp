#include "runtime/memory/weight_cache.h"

#include <unistd.h>

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "base/first_use.h"
#include "base/hash.h"
#include "base/log.h"
#include "runtime/memory/allocator.h"

namespace ingot::runtime {
namespace {

constexpr uint32_t kGone = 1u << 31;
// A packing makes room when this many rounds of lookups (of as many as there are entries) have passed it by.
constexpr uint64_t kIdleRounds = 4;

int64_t default_limit() {
  const int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? pages / 4 * page : int64_t{1} << 30;
}

}  // namespace

std::string describe(WeightFate fate, int64_t bytes, SourceFate source) {
  static constexpr const char* kSource[] = {"", "; its file's pages given back",
                                            "; kept as it lies too: it is a part of a tensor",
                                            "; kept as it lies too: no file has it"};
  const std::string size = std::to_string((bytes + (1 << 10) - 1) >> 10) + " KB";
  switch (fate) {
    case WeightFate::none:
      break;
    case WeightFate::kept:
      return "packed, " + size + kSource[static_cast<size_t>(source)];
    case WeightFate::moves:
      return "not packed: it was written or replaced each time it was met";
    case WeightFate::unseen:
      return "not packed: its owner may write to it unseen (from_blob)";
    case WeightFate::no_room:
      return "not packed: no room for " + size + " beside what is used more";
    case WeightFate::elsewhere:
      return "not packed: another thread was packing it";
    case WeightFate::no_memory:
      return "not packed: no memory for " + size;
  }
  return {};
}

WeightFormat::WeightFormat(KernelPtr packer, std::vector<int64_t> numbers)
    : packer_(std::move(packer)), numbers_(std::move(numbers)), hash_(hash_ints(numbers_)) {}

bool WeightFormat::operator==(const WeightFormat& other) const {
  if (numbers_ != other.numbers_ || !packer_ != !other.packer_) return false;
  if (packer_ == other.packer_) return true;
  // Kernels without a key are their own.
  return !packer_->key.empty() && packer_->key == other.packer_->key;
}

PackedWeight::PackedWeight(const void* source, const InputIdentity& identity,
                           std::shared_ptr<const WeightFormat> format, int64_t bytes)
    : source_(source),
      storage_id_(identity.storage->id()),
      version_(identity.version),
      format_(std::move(format)),
      bytes_(bytes),
      data_(static_cast<char*>(allocate(bytes))) {}

PackedWeight::~PackedWeight() { free_data(); }

void PackedWeight::free_data() {
  if (char* data = data_.exchange(nullptr)) deallocate_lasting(data, bytes_);
}

bool PackedWeight::pin() {
  if (!(pins_.fetch_add(1, std::memory_order_acq_rel) & kGone)) return true;
  unpin();
  return false;
}

void PackedWeight::unpin() {
  if (pins_.fetch_sub(1, std::memory_order_acq_rel) == (kGone | 1)) free_data();
}

void PackedWeight::let_go() {
  if (pins_.fetch_or(kGone, std::memory_order_acq_rel) == 0) free_data();
}

std::atomic<uint64_t> WeightCache::time_{1};

struct WeightCache::State {
  /// A view of a storage in one format: its packing, or only the version in which it was met last.
  struct Entry {
    const void* source;
    std::shared_ptr<const WeightFormat> format;
    uint64_t version;
    std::shared_ptr<PackedWeight> weight;
    bool packing = false;  // some thread is at it; others do not wait
    uint64_t last_use;
    uint64_t used() const { return std::max(last_use, weight ? weight->last_use_.load(std::memory_order_relaxed) : 0); }
  };
  using Entries = std::unordered_multimap<uint64_t, Entry>;  // by source and format

  mutable Mutex mutex;
  std::unordered_map<uint64_t, Entries> storages;  // by id
  Statistics statistics;
  uint64_t next_scan = 0;

  static uint64_t hash_of(const void* source, const WeightFormat& format) {
    return hash_combine(format.hash(), reinterpret_cast<uintptr_t>(source));
  }
  Entry* find(uint64_t storage, const void* source, const WeightFormat& format) {
    auto of_storage = storages.find(storage);
    if (of_storage == storages.end()) return nullptr;
    auto [begin, end] = of_storage->second.equal_range(hash_of(source, format));
    for (auto it = begin; it != end; ++it)
      if (it->second.source == source && *it->second.format == format) return &it->second;
    return nullptr;
  }
  void drop_weight(Entry& entry) {
    if (!entry.weight) return;
    statistics.bytes -= entry.weight->bytes();
    entry.weight->let_go();
    entry.weight.reset();
  }
  // Entries that were not used since `before`.
  void drop_older(uint64_t before) {
    for (auto of_storage = storages.begin(); of_storage != storages.end();) {
      Entries& entries = of_storage->second;
      for (auto it = entries.begin(); it != entries.end();) {
        if (it->second.packing || it->second.used() >= before) {
          ++it;
          continue;
        }
        statistics.evictions += it->second.weight != nullptr;
        drop_weight(it->second);
        it = entries.erase(it);
        --statistics.entries;
      }
      of_storage = entries.empty() ? storages.erase(of_storage) : std::next(of_storage);
    }
  }
  // The older half of all entries.
  void drop_half() {
    std::vector<uint64_t> used;
    for (const auto& [id, entries] : storages)
      for (const auto& [hash, entry] : entries) used.push_back(entry.used());
    auto middle = used.begin() + static_cast<std::ptrdiff_t>(used.size() / 2);
    std::nth_element(used.begin(), middle, used.end());
    drop_older(*middle + 1);
  }
  /// True if `bytes` more fit, after what has long been idle made room.
  bool has_room(int64_t bytes) {
    if (statistics.bytes + bytes <= statistics.limit_bytes) return true;
    const uint64_t now = time_.load(std::memory_order_relaxed);
    const uint64_t round = static_cast<uint64_t>(statistics.entries) + 1;
    if (now < next_scan || now < kIdleRounds * round) return false;
    next_scan = now + round;
    drop_older(now - kIdleRounds * round);
    return statistics.bytes + bytes <= statistics.limit_bytes;
  }
};

WeightCache::WeightCache() : state_(std::make_unique<State>()) { state_->statistics.limit_bytes = default_limit(); }

WeightCache& WeightCache::instance() {
  static constinit FirstUse<WeightCache> cache;
  return cache.get([] { return WeightCache(); });
}

std::shared_ptr<PackedWeight> WeightCache::find(const void* source, const InputIdentity& identity,
                                                const std::shared_ptr<const WeightFormat>& format, int64_t bytes,
                                                bool at_once, const std::function<void(char*)>& pack, WeightFate* fate,
                                                bool* fresh) {
  State& s = *state_;
  const uint64_t storage = identity.storage->id();
  const NoFork whole;  // in a child nobody would end a packing that was under way
  {
    std::lock_guard lock(s.mutex);
    const uint64_t now = time_.fetch_add(1, std::memory_order_relaxed) + 1;
    State::Entry* entry = s.find(storage, source, *format);
    bool wanted = true;
    if (!entry) {
      if (static_cast<size_t>(s.statistics.entries) >= kMostEntries) s.drop_half();
      identity.storage->mark_packed();
      entry = &s.storages[storage]
                   .emplace(State::hash_of(source, *format),
                            State::Entry{source, format, identity.version, nullptr, false, now})
                   ->second;
      ++s.statistics.entries;
      wanted = at_once;
    } else if (entry->version != identity.version) {
      wanted = entry->weight && entry->weight->reused_.load(std::memory_order_relaxed);
      s.drop_weight(*entry);
      entry->version = identity.version;
    } else if (entry->weight && entry->weight->pin()) {
      return entry->weight;  // who asked notes the use
    }
    entry->last_use = now;
    // (has_room keeps what was used just now.)
    if (!wanted || entry->packing || !s.has_room(bytes)) {
      *fate = !wanted ? WeightFate::moves : entry->packing ? WeightFate::elsewhere : WeightFate::no_room;
      ++s.statistics.refusals;
      return nullptr;
    }
    entry->packing = true;
  }
  struct Ended {
    State& s;
    uint64_t storage;
    const void* source;
    const WeightFormat& format;
    State::Entry* entry() { return s.find(storage, source, format); }
    ~Ended() {
      std::lock_guard lock(s.mutex);
      if (State::Entry* mine = entry()) mine->packing = false;
    }
  } ended{s, storage, source, *format};
  std::shared_ptr<PackedWeight> weight;
  try {
    weight = std::make_shared<PackedWeight>(source, identity, format, bytes);
  } catch (const OutOfMemory&) {
    *fate = WeightFate::no_memory;
    return nullptr;  // packed a panel at a time, it needs less
  }
  weight->pin();
  pack(weight->data());
  *fresh = true;
  std::lock_guard lock(s.mutex);
  ++s.statistics.packs;
  State::Entry* entry = ended.entry();
  if (entry && entry->version == identity.version && !entry->weight) {
    entry->weight = weight;
    s.statistics.bytes += bytes;
    weight->last_use_.store(time_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  } else {
    weight->let_go();  // only this run has it
  }
  return weight;
}

void WeightCache::forget(uint64_t storage_id) {
  State& s = *instance().state_;
  std::lock_guard lock(s.mutex);
  auto found = s.storages.find(storage_id);
  if (found == s.storages.end()) return;
  for (auto& [hash, entry] : found->second) s.drop_weight(entry);
  s.statistics.entries -= static_cast<int64_t>(found->second.size());
  s.storages.erase(found);
}

WeightCache::Statistics WeightCache::statistics() const {
  std::lock_guard lock(state_->mutex);
  return state_->statistics;
}

void WeightCache::set_limit(int64_t bytes) {
  std::lock_guard lock(state_->mutex);
  state_->statistics.limit_bytes = bytes;
  if (state_->statistics.bytes > bytes) state_->drop_older(UINT64_MAX);
}

void WeightCache::clear() {
  std::lock_guard lock(state_->mutex);
  state_->drop_older(UINT64_MAX);
}

void WeightCache::drop_unheld() {
  std::lock_guard lock(state_->mutex);
  for (auto& [id, entries] : state_->storages)
    for (auto& [hash, entry] : entries)
      if (entry.weight && entry.weight.use_count() == 1) state_->drop_weight(entry);
}

int64_t dense_bytes(std::initializer_list<int64_t> sizes, std::span<const int64_t> strides, int64_t element) {
  int64_t bytes = element;
  uint32_t met = 0;  // a bit a dim
  for (size_t round = 0; round < sizes.size(); ++round) {
    // The next dim outwards; those of one element lie anywhere.
    size_t d = 0;
    while (d < sizes.size() && ((met >> d & 1) || (sizes.begin()[d] != 1 && strides[d] != bytes))) ++d;
    if (d == sizes.size()) return 0;
    met |= 1u << d;
    bytes *= sizes.begin()[d];
  }
  return bytes;
}

void WeightUse::find(const void* source, int64_t source_bytes, const InputIdentity& identity,
                     const std::shared_ptr<const WeightFormat>& format, int64_t bytes, WeightSlot& slot,
                     const std::function<void(char*)>& pack) {
  release();
  if (!identity.storage) return note(WeightFate::unseen, bytes, identity, slot, false);
  auto met_again = [&] {
    if (!weight_->reused_.load(std::memory_order_relaxed)) weight_->reused_.store(true, std::memory_order_relaxed);
    weight_->last_use_.store(WeightCache::time_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    if (slot.trust.load(std::memory_order_relaxed) != WeightSlot::kTrust)
      slot.trust.store(WeightSlot::kTrust, std::memory_order_relaxed);
    data_ = weight_->data();
  };
  if (weight_ && weight_->holds(source, identity, format) && weight_->pin()) return met_again();
  bool fresh = false;
  WeightFate fate = WeightFate::kept;
  const bool at_once = slot.trust.load(std::memory_order_relaxed) > 0;
  weight_ = WeightCache::instance().find(source, identity, format, bytes, at_once, pack, &fate, &fresh);
  note(fate, bytes, identity, slot, fresh);
  if (!weight_) return;
  if (slot.gives_back) {
    Storage& storage = *identity.storage;
    const bool whole = source == storage.data() && source_bytes == storage.bytes();
    slot.source.store(!whole                      ? SourceFate::shared
                      : storage.give_back_pages() ? SourceFate::given_back
                                                  : SourceFate::no_file,
                      std::memory_order_relaxed);
  }
  if (!fresh) return met_again();
  data_ = weight_->data();
  slot.trust.fetch_sub(1, std::memory_order_relaxed);
  slot.packs.fetch_add(1, std::memory_order_relaxed);
}

void WeightUse::note(WeightFate fate, int64_t bytes, const InputIdentity& identity, WeightSlot& slot,
                     bool fresh) const {
  slot.bytes.store(bytes, std::memory_order_relaxed);
  const bool same = slot.fate.exchange(fate, std::memory_order_relaxed) == fate;
  if ((same && !fresh) || !log_enabled(Topic::cache)) return;
  log(Topic::cache, "a weight of " + std::to_string(bytes) + " bytes" +
                        (identity.storage ? ", storage " + std::to_string(identity.storage->id()) + " version " +
                                                std::to_string(identity.version)
                                          : std::string()) +
                        ": " + describe(fate, bytes));
}

void WeightUse::release() {
  if (data_) weight_->unpin();
  data_ = nullptr;
}

}  // namespace ingot::runtime
