#include "runtime/touches.h"

#include <algorithm>

namespace ingot::runtime {

// What begins where another ends is one part with it: who meets the whole meets one of the two.
uint64_t Touches::Union::add(int64_t begin, int64_t end) {
  const auto first =
      std::lower_bound(parts_.begin(), parts_.end(), begin, [](const Part& p, int64_t b) { return p.end < b; });
  auto last = first;
  for (; last != parts_.end() && last->begin <= end; ++last)
    begin = std::min(begin, last->begin), end = std::max(end, last->end);
  const auto joined = static_cast<uint64_t>(last - first);
  if (first == last) {
    parts_.insert(first, {begin, end});
  } else {
    *first = {begin, end};
    parts_.erase(first + 1, last);
  }
  return joined + 1;
}

bool Touches::Union::meets(int64_t begin, int64_t end) const {
  const auto at =
      std::upper_bound(parts_.begin(), parts_.end(), begin, [](int64_t b, const Part& p) { return b < p.end; });
  return at != parts_.end() && at->begin < end;
}

void Touches::Numbers::add(uint32_t number) {
  if (number >= times_.size()) times_.resize(number + 1);
  times_[number] = time_;
  any_ = true;
}

void Touches::add(const Touched& piece) {
  ++work_;
  auto add_number = [&](Kinds<Numbers>& kinds) {
    kinds.touched.add(piece.number);
    if (!piece.read_only) kinds.written.add(piece.number);
  };
  switch (piece.place) {
    case Place::input:
      inputs_ = true;
      break;
    case Place::output:
      add_number(outputs_);
      break;
    case Place::kept:
      add_number(kept_);
      break;
    case Place::arena:
      if (piece.begin == piece.end) break;  // nothing is there
      work_ += arena_.touched.add(piece.begin, piece.end);
      if (!piece.read_only) work_ += arena_.written.add(piece.begin, piece.end);
      break;
  }
}

bool Touches::conflicts_with(const Touched& piece) const {
  switch (piece.place) {
    case Place::input:
      return outputs_.written.any();
    case Place::output:
      return outputs_.against(piece).has(piece.number) || (!piece.read_only && inputs_);
    case Place::kept:
      return kept_.against(piece).has(piece.number);
    case Place::arena:
      return piece.begin < piece.end && arena_.against(piece).meets(piece.begin, piece.end);
  }
  return true;
}

void Touches::clear() {
  arena_.clear();
  outputs_.clear();
  kept_.clear();
  inputs_ = false;
}

}  // namespace ingot::runtime
