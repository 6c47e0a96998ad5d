// The most frequent element of each line: keys sorted with their positions, then counted run by run. Of equally
// frequent ones it is the smallest, at its first position; a NaN equals no other.
#include <algorithm>

#include "runtime/steps/one_of_each_line.h"

namespace ingot::runtime {
namespace {

template <class K>
class ModeDriver final : public OneOfEachLine<K> {
  using Base = OneOfEachLine<K>;
  using Base::n_;
  using typename Base::Element;
  using typename Base::Item;

 public:
  ModeDriver(const HostStep& step, const BindContext& context)
      : Base(step, 30, context), floating_(is_floating(Base::in_.dtype)) {}

 private:
  int64_t choose(const Line<K>& from, Item* items) const override {
    for (int64_t i = 0; i < n_; ++i) items[i] = K::item(K::key(from.at(i), Element{0}), i);
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

  bool floating_;
};

}  // namespace

StepDriver* bind_mode(const HostStep& step, const BindContext& context) {
  return with_keys(step.operand("self").dtype,
                   [&](auto keys) -> StepDriver* { return context.make<ModeDriver<decltype(keys)>>(step, context); });
}

}  // namespace ingot::runtime
