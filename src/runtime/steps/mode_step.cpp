// The most frequent element of each line: keys sorted with their positions, then counted run by run. Of equally
// frequent ones it is the smallest, at its first position; a NaN equals no other.
#include <algorithm>
#include <cstring>

#include "runtime/steps/host_steps.h"
#include "runtime/steps/lines.h"
#include "runtime/steps/sort_keys.h"

namespace ingot::runtime {
namespace {

template <class K>
class ModeDriver final : public StepDriver {
  using Item = typename K::Item;
  using Element = typename K::Element;

 public:
  ModeDriver(const HostStep& step, const BindContext& context)
      : values_(step.results[0], context),
        indices_(step.results[1], context),
        in_(step.operand("self"), context),
        dim_(context.value(step.attribute("dim"))),
        n_(in_.sizes[dim_]),
        floating_(is_floating(in_.dtype)),
        lines_(in_.sizes, {dim_}),
        results_(values_.sizes, {}) {
    constexpr int64_t kCost = 30;  // operations an element
    const int pay = threads_for(0, saturating_product(in_.elements(), kCost));
    useful_threads = static_cast<int>(std::min<int64_t>(pay, std::max<int64_t>(lines_.count, 1)));
  }

  void run(const StepState& state, int, int share, int shares) const override {
    const Range range = runtime::share(lines_.count, share, shares);
    if (range.begin == range.end) return;
    Item* items = reinterpret_cast<Item*>(thread_scratch(scratch_bytes(state)));
    for (int64_t line = range.begin; line < range.end; ++line) {
      const char* in = in_.place.at(state) + lines_.offset(line, in_.place.strides);
      const int64_t position = most_frequent(in, items), stride = in_.place.strides[dim_];
      std::memcpy(values_.place.at(state) + results_.offset(line, values_.place.strides), in + position * stride,
                  sizeof(Element));
      std::memcpy(indices_.place.at(state) + results_.offset(line, indices_.place.strides), &position, sizeof position);
    }
  }
  int64_t scratch_bytes(const StepState&) const override { return n_ * static_cast<int64_t>(sizeof(Item)); }

 private:
  int64_t most_frequent(const char* in, Item* items) const {
    for (int64_t i = 0; i < n_; ++i) {
      Element x;
      std::memcpy(&x, in + i * in_.place.strides[dim_], sizeof x);
      items[i] = K::item(K::key(x, Element{0}), i);
    }
    std::sort(items, items + n_);
    int64_t best = 0, most = 0;
    for (int64_t begin = 0, end; begin < n_; begin = end) {
      const Element key = K::key_of(items[begin]);
      end = begin + 1;
      if (!(floating_ && key == static_cast<Element>(~Element{0})))  // NaN
        while (end < n_ && K::key_of(items[end]) == key) ++end;
      if (end - begin <= most) continue;
      most = end - begin;
      best = K::index_of(items[begin]);
    }
    return best;
  }

  BoundTensor values_, indices_, in_;
  int64_t dim_, n_;
  bool floating_;
  Lines lines_, results_;  // in one order, whether the results keep the dim or not
};

}  // namespace

StepDriver* bind_mode(const HostStep& step, const BindContext& context) {
  return with_keys(step.operand("self").dtype,
                   [&](auto keys) -> StepDriver* { return context.make<ModeDriver<decltype(keys)>>(step, context); });
}

}  // namespace ingot::runtime
