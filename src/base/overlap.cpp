#include "base/overlap.h"

#include <numeric>

namespace ingot {
namespace {

// Two elements meet where the steps between them, fewer than `size` in each dim and not all none, add up to nothing.
class Search {
 public:
  explicit Search(std::span<const StridedDim> dims) : dims_(dims) {
    reach_.push_back(0);
    divisor_.push_back(0);
    for (const StridedDim& dim : dims) {
      reach_.push_back(reach_.back() + (dim.size - 1) * dim.stride);
      divisor_.push_back(std::gcd(divisor_.back(), dim.stride));
    }
  }

  /// True if steps in the first `count` dims undo `sum`; of two opposite ways only one is looked at.
  bool undone(size_t count, int64_t sum, bool moved) const {
    if (count == 0) return moved && sum == 0;
    if (sum % divisor_[count] != 0) return false;
    const auto [stride, size] = dims_[count - 1];
    const int64_t rest = reach_[count - 1];  // what the dims below can undo
    // -sum - rest <= steps * stride <= rest - sum; sum is not negative before the first step and small after it.
    int64_t first = moved ? std::max(1 - size, -((sum + rest) / stride)) : 0;
    for (int64_t steps = first; steps < size && sum + steps * stride <= rest; ++steps)
      if (sum + steps * stride >= -rest && undone(count - 1, sum + steps * stride, moved || steps != 0)) return true;
    return false;
  }

 private:
  std::span<const StridedDim> dims_;
  SmallVector<int64_t, 9> reach_, divisor_;  // of the dims before each
};

}  // namespace

bool some_elements_meet(std::span<const StridedDim> dims) {
  if (!dims.empty() && dims[0].stride == 0) return true;
  return Search(dims).undone(dims.size(), 0, false);
}

}  // namespace ingot
