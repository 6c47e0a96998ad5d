#include "base/work_count.h"

#include <atomic>

namespace ingot::detail {
namespace {
std::atomic<uint64_t> count{0};
}

void count_work(uint64_t steps) { count.fetch_add(steps, std::memory_order_relaxed); }
uint64_t counted_work() { return count.load(std::memory_order_relaxed); }

}  // namespace ingot::detail
