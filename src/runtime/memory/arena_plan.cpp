#include "runtime/memory/arena_plan.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/error.h"
#include "base/pieces.h"
#include "base/work_count.h"

namespace ingot::runtime {
namespace {

constexpr int64_t kArenaPage = 4096;
constexpr int64_t kStaggerFrom = 8 * kArenaPage;
constexpr int64_t kMostBytes = int64_t{1} << 46;
constexpr int64_t kLarge = 16 << 20;
constexpr size_t kFew = 64;  // all of so many are looked at as fast as some are found

// What a buffer takes: large ones whole pages, with room to start anywhere in the first (see allocator.cpp for the
// reason).
int64_t room(int64_t bytes) {
  return bytes < kStaggerFrom ? round_up(bytes, 64) : round_up(bytes + kArenaPage, kArenaPage);
}
int64_t stagger(int64_t bytes, size_t number) {
  return bytes < kStaggerFrom ? 0 : 512 * static_cast<int64_t>(number * 3 % 8);
}
int64_t aligned(int64_t offset, int64_t bytes) { return round_up(offset, bytes < kStaggerFrom ? 64 : kArenaPage); }

/// Requests by when they live, to find those that live at the same time as another without looking at the others: lists
/// of those that live for less than 2^q steps, and no less than half as long, and begin in the same 2^q steps.
class Lives {
 public:
  explicit Lives(std::span<const ArenaRequest> requests) : requests_(requests), next_(requests.size()) {}

  void add(uint32_t i) {
    const ArenaRequest& r = requests_[i];
    const auto q = static_cast<size_t>(std::bit_width(r.last_step - r.first_step));
    if (q >= lists_.size()) lists_.resize(q + 1);
    const uint32_t list = r.first_step >> q;
    if (list >= lists_[q].size()) lists_[q].resize(list + 1, kEnd);
    next_[i] = lists_[q][list];
    lists_[q][list] = i;
  }
  /// Those that meet the life of r, unless they are more than `most`; returns whether they are not.
  bool find(const ArenaRequest& r, size_t most, std::vector<uint32_t>& found, uint64_t& work) const {
    found.clear();
    for (size_t q = 0; q < lists_.size(); ++q) {
      const uint32_t first = r.first_step >> q, last = r.last_step >> q;
      for (uint32_t list = first ? first - 1 : 0; list <= last && list < lists_[q].size(); ++list, ++work)
        for (uint32_t i = lists_[q][list]; i != kEnd; i = next_[i], ++work) {
          if (!meet(requests_[i], r)) continue;
          if (found.size() == most) return false;
          found.push_back(i);
        }
    }
    return true;
  }
  static bool meet(const ArenaRequest& a, const ArenaRequest& b) {
    return a.first_step <= b.last_step && b.first_step <= a.last_step;
  }

 private:
  static constexpr uint32_t kEnd = ~0u;
  std::span<const ArenaRequest> requests_;
  std::vector<uint32_t> next_;                // in the list of each
  std::vector<std::vector<uint32_t>> lists_;  // by q and first_step >> q: the latest that was added
};

/// Each request in this order, at the lowest offset that is free during its life.
ArenaPlan place(std::span<const ArenaRequest> requests, std::span<const uint32_t> order) {
  ArenaPlan plan;
  plan.offsets.resize(requests.size());
  std::vector<uint32_t> placed, found;  // placed: by offset
  Lives lives(requests);
  uint64_t work = 0;
  auto lower = [&](uint32_t a, uint32_t b) { return plan.offsets[a] < plan.offsets[b]; };
  for (uint32_t i : order) {
    const ArenaRequest& r = requests[i];
    INGOT_CHECK(r.bytes >= 0);
    if (r.bytes > kMostBytes - plan.bytes)
      throw OutOfMemory("the intermediate results need more than " + std::to_string(kMostBytes) + " bytes");
    // Where few of many live at the same time, only they are looked at.
    const bool few = placed.size() > kFew && lives.find(r, placed.size() / 8, found, work);
    if (few) std::sort(found.begin(), found.end(), lower);
    int64_t offset = 0;
    for (uint32_t j : few ? found : placed) {
      ++work;
      const ArenaRequest& other = requests[j];
      if (!Lives::meet(other, r)) continue;
      if (plan.offsets[j] >= offset + room(r.bytes)) break;
      offset = std::max(offset, aligned(plan.offsets[j] + room(other.bytes), r.bytes));
    }
    plan.offsets[i] = offset;
    plan.bytes = std::max(plan.bytes, offset + room(r.bytes));
    placed.insert(std::upper_bound(placed.begin(), placed.end(), i, lower), i);
    lives.add(i);
  }
  detail::count_work(work);
  return plan;
}

}  // namespace

int64_t arena_room(int64_t bytes) {
  if (bytes <= 0 || bytes > kMostBytes) return bytes;  // plan_arena says what is wrong
  if (bytes >= kStaggerFrom) return round_up(bytes, kArenaPage);
  return round_up(bytes, std::max<int64_t>(64, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(bytes))) / 8));
}

// Greedy by size (Pisarchyk and Lee, "Efficient memory management for deep neural net inference", 2020): the largest
// first. Where much is at stake, also by size times life, and the better of both.
ArenaPlan plan_arena(std::span<const ArenaRequest> requests) {
  std::vector<uint32_t> order(requests.size());
  std::iota(order.begin(), order.end(), 0);
  auto place_by = [&](auto key) {
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return key(a) > key(b); });
    return place(requests, order);
  };
  ArenaPlan plan = place_by([&](uint32_t i) { return static_cast<double>(requests[i].bytes); });
  if (plan.bytes > kLarge) {
    ArenaPlan other = place_by([&](uint32_t i) {
      return static_cast<double>(requests[i].bytes) * (requests[i].last_step - requests[i].first_step + 1);
    });
    if (other.bytes < plan.bytes) plan = std::move(other);
  }
  for (size_t i = 0; i < requests.size(); ++i) plan.offsets[i] += stagger(requests[i].bytes, i);
  return plan;
}

}  // namespace ingot::runtime
