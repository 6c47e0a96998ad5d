// Sorting along one dim: keys with their positions, by radix from the lowest digit that is needed (short lines: by
// comparison), always stable. A line that is long and alone is sorted in pieces, which are then merged pair by pair,
// each merge divided among the threads by where the halves of its result begin. The largest or smallest k: candidates
// better than the worst of the best k so far collect in a buffer, which is cut back to k when it is full. The k-th
// smallest: of long lines only those are ordered whose keys begin as its own does, which the counts of all beginnings
// tell.
#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "runtime/steps/host_steps.h"
#include "runtime/steps/lines.h"
#include "runtime/steps/one_of_each_line.h"
#include "runtime/steps/sort_keys.h"

namespace ingot::runtime {
namespace {

constexpr int64_t kShortLine = 48, kShortWideLine = 128;  // lines that are sorted by comparison
constexpr int64_t kMediumLine = 1 << 12;                  // longer lines are sorted by digits of 11 bits rather than 8
constexpr int64_t kShared = 1 << 15;                      // lines that several threads sort
constexpr int64_t kSortPieces = 16;
constexpr int64_t kLinesTogether = 16;  // neighbouring lines that are copied at once

/// Sorts items by their keys, of digits of so many bits; `spare` has room for as many. They end in `items`.
template <class K, int kDigit>
void sort_by_digits(typename K::Item* items, typename K::Item* spare, int64_t n) {
  using Item = typename K::Item;
  constexpr int kDigits = (K::kBits + kDigit - 1) / kDigit;
  constexpr uint64_t kMask = (1u << kDigit) - 1;
  std::vector<uint32_t> counts(static_cast<size_t>(kDigits) << kDigit);
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t key = K::key_of(items[i]);
    for (int d = 0; d < kDigits; ++d) ++counts[(d << kDigit) + (key >> (d * kDigit) & kMask)];
  }
  // Of long keys the upper digits tell nearly all elements apart, if they are spread: what they leave is compared.
  int lowest = 0;
  if constexpr (K::kWide) {
    constexpr double kApart = 16;
    lowest = kDigits;
    for (double places = 1; lowest > 0 && places < kApart * static_cast<double>(n);) {
      const uint32_t* count = &counts[--lowest << kDigit];
      places *= static_cast<double>(n) / *std::max_element(count, count + kMask + 1);
    }
  }
  Item *from = items, *to = spare;
  for (int d = lowest; d < kDigits; ++d) {
    uint32_t* count = &counts[d << kDigit];
    const uint64_t first = K::key_of(from[0]);
    if (count[first >> (d * kDigit) & kMask] == n) continue;  // all alike in this digit
    uint32_t begin = 0;
    for (uint64_t v = 0; v <= kMask; ++v) begin += std::exchange(count[v], begin);
    for (int64_t i = 0; i < n; ++i) to[count[uint64_t{K::key_of(from[i])} >> (d * kDigit) & kMask]++] = from[i];
    std::swap(from, to);
  }
  if (from != items) std::copy(from, from + n, items);
  if (lowest == 0) return;
  const auto upper = [&](int64_t i) { return uint64_t{K::key_of(items[i])} >> (lowest * kDigit); };
  for (int64_t i = 0, end; i < n; i = end) {
    for (end = i + 1; end < n && upper(end) == upper(i);) ++end;
    if (end - i > 1) std::sort(items + i, items + end);
  }
}

/// The same in the way that fits their number.
template <class K>
void sort_items(typename K::Item* items, typename K::Item* spare, int64_t n) {
  if (n <= (K::kWide ? kShortWideLine : kShortLine)) return std::sort(items, items + n);
  // Fewer digits are fewer passes, and more counts to be set to 0 and added.
  if constexpr (K::kBits >= 32)
    if (n > kMediumLine) return sort_by_digits<K, 11>(items, spare, n);
  sort_by_digits<K, 8>(items, spare, n);
}

/// How many of the first `count` items of the merged halves come from the left one.
template <class Item>
int64_t split_merge(const Item* left, int64_t lefts, const Item* right, int64_t rights, int64_t count) {
  int64_t low = std::max<int64_t>(0, count - rights), high = std::min(count, lefts);
  while (low < high) {
    const int64_t mid = low + (high - low) / 2;
    if (right[count - mid - 1] < left[mid])
      high = mid;
    else
      low = mid + 1;
  }
  return low;
}

/// The lines of the input along one dim, and where values and positions go.
template <class K>
class OrderDriver : public StepDriver {
 protected:
  using Element = typename K::Element;
  /// `descending`: the attribute that says so; `cost`: operations an element.
  OrderDriver(const HostStep& step, const char* descending, int64_t cost, const BindContext& context)
      : values_(step.results[0], context),
        indices_(step.results[1], context),
        in_(step.operand("self"), context),
        dim_(context.value(step.attribute("dim"))),
        flip_(context.value(step.attribute(descending)) ? static_cast<Element>(~Element{0}) : Element{0}),
        n_(in_.sizes[dim_]),
        lines_(in_.sizes, {dim_}),
        pay_(threads_for(0, saturating_product(in_.elements(), cost))) {
    if (n_ > std::numeric_limits<uint32_t>::max())
      throw Error(step.op + ": got a dim of " + std::to_string(n_) + " elements, expected fewer than 2^32");
    useful_threads = static_cast<int>(std::min<int64_t>(pay_, std::max<int64_t>(lines_.count, 1)));
  }

  /// A line and where its results go.
  struct Job {
    Line<K> from;
    char *value, *index;
    int64_t value_stride, index_stride;
  };
  Job line_of(const StepState& state, int64_t line) const {
    return {{in_.place.at(state) + lines_.offset(line, in_.place.strides), in_.place.strides[dim_], n_},
            values_.place.at(state) + lines_.offset(line, values_.place.strides),
            indices_.place.at(state) + lines_.offset(line, indices_.place.strides),
            values_.place.strides[dim_],
            indices_.place.strides[dim_]};
  }
  void store(const Job& job, const typename K::Item* items, int64_t begin, int64_t end) const {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t position = K::index_of(items[i]);
      const Element x = K::kInvertible ? K::key(K::key_of(items[i]), flip_) : job.from.at(position);
      std::memcpy(job.value + i * job.value_stride, &x, sizeof x);
      std::memcpy(job.index + i * job.index_stride, &position, sizeof position);
    }
  }

  BoundTensor values_, indices_, in_;
  int64_t dim_;
  Element flip_;
  int64_t n_;
  Lines lines_;
  int pay_;  // threads that pay
};

template <class K>
class SortDriver final : public OrderDriver<K> {
  using Base = OrderDriver<K>;
  using typename Base::Element, typename Base::Job;
  using Item = typename K::Item;
  using Base::dim_, Base::flip_, Base::in_, Base::lines_, Base::n_, Base::line_of, Base::store, Base::shared,
      Base::useful_threads;

 public:
  SortDriver(const HostStep& step, const BindContext& context) : Base(step, "descending", 30, context) {
    if (n_ < kShared || lines_.count >= std::min(this->pay_, context.threads)) return;
    // Pieces depend on the number of threads; the sorted line does not.
    while (pieces_ < std::min<int64_t>(kSortPieces, context.threads)) pieces_ *= 2, ++merges_;
    useful_threads = std::min<int>(this->pay_, static_cast<int>(pieces_));
    this->phases = 2 + merges_;
    this->shared_bytes = lines_.count * 2 * n_ * static_cast<int64_t>(sizeof(Item));
  }

  void run(const StepState& state, int phase, int share, int shares) const override {
    if (pieces_ > 1) return run_pieces(state, phase, share, shares);
    Range range = runtime::share(lines_.count, share, shares);
    if (range.begin == range.end || n_ == 0) return;
    const int64_t width = neighbours() ? kLinesTogether : 0;
    char* memory = thread_scratch(scratch_bytes(state));
    Item* items = reinterpret_cast<Item*>(memory);
    for (int64_t line = range.begin; line < range.end;) {
      if (!width) {
        sort_line(line_of(state, line++), items);
        continue;
      }
      const int64_t columns = in_.sizes.back();
      const int64_t end = std::min({range.end, (line / columns + 1) * columns, line + width});
      sort_together(line_of(state, line), end - line, items, memory + item_bytes());
      line = end;
    }
  }
  int64_t scratch_bytes(const StepState&) const override {
    const int64_t width = neighbours() ? kLinesTogether : 0;
    return pieces_ > 1 ? 0 : item_bytes() + width * n_ * (8 + 2 * static_cast<int64_t>(sizeof(Element)));
  }

 private:
  int64_t item_bytes() const { return 2 * n_ * static_cast<int64_t>(sizeof(Item)); }
  void load(const Job& job, Item* items, int64_t begin, int64_t end) const {
    for (int64_t i = begin; i < end; ++i) items[i] = K::item(K::key(job.from.at(i), flip_), i);
  }
  void sort_line(const Job& job, Item* items) const {
    load(job, items, 0, n_);
    sort_items<K>(items, items + n_, n_);
    store(job, items, 0, n_);
  }

  /// Lines that lie side by side in memory share its cache lines: some are copied, sorted and put back together.
  bool neighbours() const {
    return dim_ + 1 < static_cast<int64_t>(in_.sizes.size()) && in_.sizes.back() > 1 &&
           in_.place.strides.back() == static_cast<int64_t>(sizeof(Element)) && n_ < kShared;
  }
  void sort_together(const Job& first, int64_t width, Item* items, char* memory) const {
    int64_t* index = reinterpret_cast<int64_t*>(memory);
    Element* value = reinterpret_cast<Element*>(index + width * n_);
    Element* copy = value + width * n_;
    for (int64_t i = 0; i < n_; ++i)
      for (int64_t c = 0; c < width; ++c)
        std::memcpy(copy + c * n_ + i, first.from.in + i * first.from.stride + c * sizeof(Element), sizeof(Element));
    for (int64_t c = 0; c < width; ++c)
      sort_line({{reinterpret_cast<char*>(copy + c * n_), sizeof(Element), n_},
                 reinterpret_cast<char*>(value + c * n_),
                 reinterpret_cast<char*>(index + c * n_),
                 sizeof(Element),
                 sizeof(int64_t)},
                items);
    for (int64_t i = 0; i < n_; ++i)
      for (int64_t c = 0; c < width; ++c) {
        std::memcpy(first.value + i * first.value_stride + c * sizeof(Element), value + c * n_ + i, sizeof(Element));
        std::memcpy(first.index + i * first.index_stride + c * sizeof(int64_t), index + c * n_ + i, sizeof(int64_t));
      }
  }

  // Phase 0 sorts the pieces, each further one merges pairs, the last writes.
  void run_pieces(const StepState& state, int phase, int share, int shares) const {
    for (int64_t line = 0; line < lines_.count; ++line) {
      Item* items = reinterpret_cast<Item*>(shared(state)) + line * 2 * n_;
      Item* spare = items + n_;
      if (phase == 0) {
        Range range = runtime::share(pieces_, share, shares);
        for (int64_t p = range.begin; p < range.end; ++p) {
          const int64_t begin = border(p), end = border(p + 1);
          load(line_of(state, line), items, begin, end);
          sort_items<K>(items + begin, spare + begin, end - begin);
        }
      } else if (phase <= merges_) {
        if (phase % 2 == 0) std::swap(items, spare);
        merge(items, spare, int64_t{1} << (phase - 1), share, shares);
      } else {
        Range range = runtime::share(n_, share, shares);
        store(line_of(state, line), merges_ % 2 ? spare : items, range.begin, range.end);
      }
    }
  }
  int64_t border(int64_t piece) const { return n_ * piece / pieces_; }
  // Merges neighbours of `width` pieces; each share makes its part of every result.
  void merge(const Item* from, Item* to, int64_t width, int share, int shares) const {
    for (int64_t p = 0; p < pieces_; p += 2 * width) {
      const Item *left = from + border(p), *right = from + border(p + width);
      const int64_t lefts = right - left, rights = border(p + 2 * width) - border(p + width);
      Range range = runtime::share(lefts + rights, share, shares);
      const int64_t l0 = split_merge(left, lefts, right, rights, range.begin);
      const int64_t l1 = split_merge(left, lefts, right, rights, range.end);
      std::merge(left + l0, left + l1, right + (range.begin - l0), right + (range.end - l1),
                 to + border(p) + range.begin);
    }
  }

  int64_t pieces_ = 1;
  int merges_ = 0;
};

template <class K>
class TopkDriver final : public OrderDriver<K> {
  using Base = OrderDriver<K>;
  using typename Base::Element;
  using Item = typename K::Item;
  using Base::flip_, Base::lines_, Base::n_;

 public:
  TopkDriver(const HostStep& step, const BindContext& context)
      : Base(step, "largest", 8, context), k_(context.value(step.attribute("k"))), room_(std::min(n_, 2 * k_ + 64)) {}

  void run(const StepState& state, int, int share, int shares) const override {
    Range range = runtime::share(lines_.count, share, shares);
    if (range.begin == range.end || k_ == 0) return;
    Item* best = reinterpret_cast<Item*>(thread_scratch(scratch_bytes(state)));
    for (int64_t line = range.begin; line < range.end; ++line) {
      const auto job = this->line_of(state, line);
      select(job.from, best);
      std::sort(best, best + k_);
      this->store(job, best, 0, k_);
    }
  }
  int64_t scratch_bytes(const StepState&) const override { return room_ * static_cast<int64_t>(sizeof(Item)); }

 private:
  // The k smallest items stand in front afterwards. Elements come in order: one that is equal to the worst of the best
  // comes too late.
  void select(const Line<K>& from, Item* best) const {
    for (int64_t i = 0; i < room_; ++i) best[i] = K::item(K::key(from.at(i), flip_), i);
    int64_t filled = room_;
    auto cut = [&] {
      if (filled > k_) std::nth_element(best, best + k_ - 1, best + filled);
      filled = k_;
      return K::key_of(*std::max_element(best, best + k_));
    };
    if (room_ == n_) return static_cast<void>(cut());
    Element limit = cut();
    for (int64_t i = room_; i < n_; ++i) {
      const Element key = K::key(from.at(i), flip_);
      if (key >= limit) continue;
      best[filled++] = K::item(key, i);
      if (filled == room_) limit = cut();
    }
    cut();
  }

  int64_t k_, room_;
};

template <class K>
class KthDriver final : public OneOfEachLine<K> {
  using Base = OneOfEachLine<K>;
  using Base::n_;
  using typename Base::Element;
  using typename Base::Item;

 public:
  KthDriver(const HostStep& step, const BindContext& context)
      : Base(step, 8, context), k_(context.value(step.attribute("k"))) {}

 private:
  static constexpr int kDigit = std::min(K::kBits, 11), kBelow = K::kBits - kDigit;

  int64_t choose(const Line<K>& from, Item* items) const override {
    int64_t before = 0, count = 0;
    if (n_ <= kShortWideLine) {
      for (; count < n_; ++count) items[count] = K::item(K::key(from.at(count), Element{0}), count);
    } else {
      uint32_t counts[1 << kDigit] = {};
      for (int64_t i = 0; i < n_; ++i) ++counts[K::key(from.at(i), Element{0}) >> kBelow];
      Element digit = 0;
      while (before + counts[digit] < k_) before += counts[digit++];
      for (int64_t i = 0; i < n_; ++i)
        if (const Element key = K::key(from.at(i), Element{0}); key >> kBelow == digit)
          items[count++] = K::item(key, i);
    }
    Item* const found = items + (k_ - before - 1);
    std::nth_element(items, found, items + count);
    return K::index_of(*found);
  }

  int64_t k_;
};

}  // namespace

StepDriver* bind_sort(const HostStep& step, const BindContext& context) {
  return with_keys(step.operand("self").dtype,
                   [&](auto keys) -> StepDriver* { return context.make<SortDriver<decltype(keys)>>(step, context); });
}
StepDriver* bind_topk(const HostStep& step, const BindContext& context) {
  return with_keys(step.operand("self").dtype,
                   [&](auto keys) -> StepDriver* { return context.make<TopkDriver<decltype(keys)>>(step, context); });
}

StepDriver* bind_kthvalue(const HostStep& step, const BindContext& context) {
  return with_keys(step.operand("self").dtype,
                   [&](auto keys) -> StepDriver* { return context.make<KthDriver<decltype(keys)>>(step, context); });
}

}  // namespace ingot::runtime
