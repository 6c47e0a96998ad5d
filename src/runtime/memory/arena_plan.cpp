#include "runtime/memory/arena_plan.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/error.h"

namespace ingot::runtime {
namespace {

constexpr int64_t kPage = 4096;
constexpr int64_t kStaggerFrom = 8 * kPage;
constexpr int64_t kMaximum = int64_t{1} << 46;
constexpr int64_t kLarge = 16 << 20;

int64_t round_up(int64_t x, int64_t multiple) { return (x + multiple - 1) / multiple * multiple; }

// What a buffer takes: large ones whole pages, with room to start anywhere in the first (see allocator.cpp for the
// reason).
int64_t room(int64_t bytes) { return bytes < kStaggerFrom ? round_up(bytes, 64) : round_up(bytes + kPage, kPage); }
int64_t stagger(int64_t bytes, size_t number) {
  return bytes < kStaggerFrom ? 0 : 512 * static_cast<int64_t>(number * 3 % 8);
}
int64_t aligned(int64_t offset, int64_t bytes) { return round_up(offset, bytes < kStaggerFrom ? 64 : kPage); }

/// Each request in this order, at the lowest offset that is free during its life.
ArenaPlan place(std::span<const ArenaRequest> requests, std::span<const size_t> order) {
  ArenaPlan plan;
  plan.offsets.resize(requests.size());
  std::vector<size_t> placed;  // by offset
  for (size_t i : order) {
    const ArenaRequest& r = requests[i];
    INGOT_CHECK(r.bytes >= 0);
    if (r.bytes > kMaximum - plan.bytes)
      throw OutOfMemory("the intermediate results need more than " + std::to_string(kMaximum) + " bytes");
    int64_t offset = 0;
    for (size_t j : placed) {
      const ArenaRequest& other = requests[j];
      if (other.last_step < r.first_step || r.last_step < other.first_step) continue;
      if (plan.offsets[j] >= offset + room(r.bytes)) break;
      offset = std::max(offset, aligned(plan.offsets[j] + room(other.bytes), r.bytes));
    }
    plan.offsets[i] = offset;
    plan.bytes = std::max(plan.bytes, offset + room(r.bytes));
    auto at = std::find_if(placed.begin(), placed.end(), [&](size_t j) { return plan.offsets[j] > offset; });
    placed.insert(at, i);
  }
  return plan;
}

}  // namespace

int64_t arena_room(int64_t bytes) {
  if (bytes <= 0 || bytes > kMaximum) return bytes;  // plan_arena says what is wrong
  if (bytes >= kStaggerFrom) return round_up(bytes, kPage);
  return round_up(bytes, std::max<int64_t>(64, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(bytes))) / 8));
}

// Greedy by size (Pisarchyk and Lee, "Efficient memory management for deep neural net inference", 2020): the largest
// first. Where much is at stake, also by size times life, and the better of both.
ArenaPlan plan_arena(std::span<const ArenaRequest> requests) {
  std::vector<size_t> order(requests.size());
  std::iota(order.begin(), order.end(), size_t{0});
  auto place_by = [&](auto key) {
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key(a) > key(b); });
    return place(requests, order);
  };
  ArenaPlan plan = place_by([&](size_t i) { return static_cast<double>(requests[i].bytes); });
  if (plan.bytes > kLarge) {
    ArenaPlan other = place_by([&](size_t i) {
      return static_cast<double>(requests[i].bytes) * (requests[i].last_step - requests[i].first_step + 1);
    });
    if (other.bytes < plan.bytes) plan = std::move(other);
  }
  for (size_t i = 0; i < requests.size(); ++i) plan.offsets[i] += stagger(requests[i].bytes, i);
  return plan;
}

}  // namespace ingot::runtime
