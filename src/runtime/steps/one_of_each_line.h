// Steps that find one element of each line along a dim, and give it with its position.
#pragma once
#include <cstring>
#include <limits>

#include "base/error.h"
#include "runtime/steps/host_steps.h"
#include "runtime/steps/lines.h"
#include "runtime/steps/sort_keys.h"

namespace ingot::runtime {

template <class K>
struct Line {
  using Element = typename K::Element;
  const char* in;
  int64_t stride, n;
  Element at(int64_t i) const {
    Element x;
    std::memcpy(&x, in + i * stride, sizeof x);
    return x;
  }
};

template <class K>
class OneOfEachLine : public StepDriver {
 public:
  using Item = typename K::Item;
  using Element = typename K::Element;

  /// `cost`: operations an element.
  OneOfEachLine(const HostStep& step, int64_t cost, const BindContext& context)
      : in_(step.operand("self"), context),
        dim_(context.value(step.attribute("dim"))),
        n_(in_.sizes[dim_]),
        values_(step.results[0], context),
        indices_(step.results[1], context),
        lines_(in_.sizes, {dim_}),
        results_(values_.sizes, {}) {
    if (n_ > std::numeric_limits<uint32_t>::max())
      throw Error(step.op + ": got a dim of " + std::to_string(n_) + " elements, expected fewer than 2^32");
    const int pay = threads_for(0, saturating_product(in_.elements(), cost));
    useful_threads = static_cast<int>(std::min<int64_t>(pay, std::max<int64_t>(lines_.count, 1)));
  }

  void run(const StepState& state, int, int share, int shares) const final {
    const Range range = runtime::share(lines_.count, share, shares);
    if (range.begin == range.end) return;
    Item* items = reinterpret_cast<Item*>(thread_scratch(scratch_bytes(state)));
    for (int64_t line = range.begin; line < range.end; ++line) {
      const Line<K> from{in_.place.at(state) + lines_.offset(line, in_.place.strides), in_.place.strides[dim_], n_};
      const int64_t position = choose(from, items);
      const Element x = from.at(position);
      std::memcpy(values_.place.at(state) + results_.offset(line, values_.place.strides), &x, sizeof x);
      std::memcpy(indices_.place.at(state) + results_.offset(line, indices_.place.strides), &position, sizeof position);
    }
  }
  int64_t scratch_bytes(const StepState&) const final { return n_ * static_cast<int64_t>(sizeof(Item)); }

 protected:
  /// The position of the element that is wanted; `items` has room for one an element.
  virtual int64_t choose(const Line<K>& from, Item* items) const = 0;

  const BoundTensor in_;
  const int64_t dim_, n_;

 private:
  const BoundTensor values_, indices_;
  const Lines lines_, results_;  // in one order, whether the results keep the dim or not
};

}  // namespace ingot::runtime
