// Writing to positions along one dim of a copy of self. Elements that meet at one place are combined in the order of
// their index, whatever the threads: a share has lines or columns of its own, never a part of the elements of a line.
// Where there are fewer lines than threads, places are copied by all threads first: few of them may be written to.
#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "runtime/steps/host_steps.h"
#include "runtime/steps/lines.h"

namespace ingot::runtime {
namespace {

/// x if `first`, else y: without a branch, which could not be guessed.
template <class T>
T chosen(bool first, T x, T y) {
  const T both[] = {y, x};
  return both[first];
}

// How what is written meets what is there. Integers wrap; NaN wins in an extreme.
struct Replace {
  template <class T>
  static T join(T, T x) {
    return x;
  }
};
struct Add {
  static constexpr double identity = 0;
  template <class T>
  static T join(T a, T x) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(x));
    else
      return a + x;
  }
};
struct Multiply {
  static constexpr double identity = 1;
  template <class T>
  static T join(T a, T x) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(x));
    else
      return a * x;
  }
};
struct Largest {
  static constexpr double identity = -std::numeric_limits<double>::infinity();
  template <class T>
  static T join(T a, T x) {
    return chosen((x > a) | (x != x), x, a);
  }
};
struct Smallest {
  static constexpr double identity = std::numeric_limits<double>::infinity();
  template <class T>
  static T join(T a, T x) {
    return chosen((x < a) | (x != x), x, a);
  }
};

template <class T, class Op>
T identity() {
  if constexpr (std::is_integral_v<T>) {
    if (Op::identity > 1) return std::numeric_limits<T>::max();
    if (Op::identity < 0) return std::numeric_limits<T>::lowest();
  }
  return static_cast<T>(Op::identity);
}

/// The operands of a step: result and self, index and src. Columns are the elements of the last dim, lines all others.
template <class T, class Op>
class ScatterDriver final : public StepDriver {
 public:
  ScatterDriver(const HostStep& step, const BindContext& context, bool mean, bool include_self)
      : out_(step.results[0], context),
        self_(step.operand("self"), context),
        index_(step.operand("index"), context),
        src_(step.operand("src"), context),
        dim_(context.value(step.attribute("dim"))),
        column_(column_dim(out_.sizes, dim_)),
        places_(out_.sizes[dim_]),
        columns_(column_ < 0 ? 1 : out_.sizes[column_]),
        lines_(out_.sizes, {dim_, column_}),
        mean_(mean),
        include_self_(include_self) {
    const int64_t work = saturating_product(index_.elements(), 4) + out_.elements();
    const int pay = threads_for(out_.elements() * 2 * static_cast<int64_t>(sizeof(T)), work);
    by_lines_ = lines_.count >= std::min(pay, context.threads);
    by_columns_ = !by_lines_ && columns_ >= 64;
    phases = by_lines_ ? 1 : 2;
    const int64_t units = by_lines_ ? lines_.count : places_;
    useful_threads = static_cast<int>(std::min<int64_t>(pay, std::max<int64_t>(units, 1)));
  }

  void run(const StepState& state, int phase, int share, int shares) const override {
    const bool copies = phase == 0 && !in_place(state), writes = phase == phases - 1;
    const Range lines = by_lines_ ? runtime::share(lines_.count, share, shares) : Range{0, lines_.count};
    const Range places = by_lines_ ? Range{0, places_} : runtime::share(places_, share, shares);
    const Range columns = by_lines_     ? Range{0, columns_}
                          : by_columns_ ? runtime::share(columns_, share, shares, 32)
                                        : Range{0, share == 0 ? columns_ : 0};
    for (int64_t line = lines.begin; line < lines.end; ++line) {
      if (copies) copy(state, line, places);
      if (writes && columns.begin < columns.end && lines_.inside(line, index_.sizes)) scatter(state, line, columns);
    }
  }
  bool idle(const StepState& state, int phase) const override { return phase < phases - 1 && in_place(state); }

 private:
  static int64_t stride(const BoundTensor& t, int64_t dim) { return dim < 0 ? 0 : t.place.strides[dim]; }
  char* at(const StepState& state, const BoundTensor& t, int64_t line) const {
    return t.place.at(state) + lines_.offset(line, t.place.strides);
  }

  bool in_place(const StepState& state) const { return out_.place.at(state) == self_.place.at(state); }

  void copy(const StepState& state, int64_t line, Range places) const {
    if (places.begin >= places.end || columns_ == 0) return;
    constexpr int64_t bytes = sizeof(T);
    const int64_t to_place = stride(out_, dim_), from_place = stride(self_, dim_);
    const int64_t to_column = stride(out_, column_), from_column = stride(self_, column_);
    char* to = at(state, out_, line) + places.begin * to_place;
    const char* from = at(state, self_, line) + places.begin * from_place;
    const bool dense = column_ < 0 || (from_column == bytes && to_column == bytes);
    int64_t rows = places.end - places.begin, row = dense ? columns_ * bytes : 0;  // bytes that lie together
    if (dense && from_place == row && to_place == row) row *= std::exchange(rows, 1);
    for (int64_t i = 0; i < rows; ++i, to += to_place, from += from_place) {
      if (dense) {
        std::memcpy(to, from, static_cast<size_t>(row));
        continue;
      }
      for (int64_t k = 0; k < columns_; ++k) std::memcpy(to + k * to_column, from + k * from_column, bytes);
    }
  }

  // Calls f(place, source, column) for each element of the index in this share, in order.
  template <class F>
  void for_each(const StepState& state, int64_t line, Range columns, F f) const {
    const char *index = at(state, index_, line), *src = at(state, src_, line);
    const int64_t n = index_.sizes[dim_], index_row = stride(index_, dim_), src_row = stride(src_, dim_);
    const int64_t index_column = stride(index_, column_), src_column = stride(src_, column_);
    const int64_t end = column_ < 0 ? 1 : std::min(columns.end, index_.sizes[column_]);
    const auto places = static_cast<uint64_t>(places_);
    auto element = [&](const char* at, const char* x, int64_t k) {
      uint64_t place;
      std::memcpy(&place, at, sizeof place);
      if (place < places) f(static_cast<int64_t>(place), x, k);  // checked before; never written outside
    };
    if (end - columns.begin == 1) {  // no loop in a loop
      index += columns.begin * index_column, src += columns.begin * src_column;
      for (int64_t i = 0; i < n; ++i, index += index_row, src += src_row) element(index, src, columns.begin);
      return;
    }
    for (int64_t i = 0; i < n; ++i)
      for (int64_t k = columns.begin; k < end; ++k)
        element(index + i * index_row + k * index_column, src + i * src_row + k * src_column, k);
  }

  void scatter(const StepState& state, int64_t line, Range columns) const {
    char* to = at(state, out_, line);
    const int64_t to_place = stride(out_, dim_), to_column = stride(out_, column_);
    auto cell = [&](int64_t place, int64_t k) { return reinterpret_cast<T*>(to + place * to_place + k * to_column); };
    if constexpr (!std::is_same_v<Op, Replace>)
      if (!include_self_)
        for_each(state, line, columns,
                 [&](int64_t place, const char*, int64_t k) { *cell(place, k) = identity<T, Op>(); });
    if (rows_at_once(columns))
      scatter_rows(state, line, columns);
    else
      for_each(state, line, columns, [&](int64_t place, const char* x, int64_t k) {
        *cell(place, k) = Op::join(*cell(place, k), *reinterpret_cast<const T*>(x));
      });
    if constexpr (std::is_same_v<Op, Add>)
      if (mean_) divide(state, line, columns);
  }

  // One position for a whole row of columns, as index_add and index_copy have.
  bool rows_at_once(Range columns) const {
    return column_ >= 0 && stride(index_, column_) == 0 && stride(src_, column_) == sizeof(T) &&
           columns.end <= index_.sizes[column_];
  }
  void scatter_rows(const StepState& state, int64_t line, Range columns) const {
    char* to = at(state, out_, line);
    const int64_t width = columns.end - columns.begin;
    for_each(state, line, {columns.begin, columns.begin + (width > 0)},
             [&](int64_t place, const char* from, int64_t k) {
               T* __restrict y = reinterpret_cast<T*>(to + place * stride(out_, dim_)) + k;
               const T* __restrict x = reinterpret_cast<const T*>(from);
               for (int64_t j = 0; j < width; ++j) y[j] = Op::join(y[j], x[j]);
             });
  }

  // The mean of what was written to a place: integers round down.
  void divide(const StepState& state, int64_t line, Range columns) const {
    char* to = at(state, out_, line);
    const int64_t width = columns.end - columns.begin;
    std::vector<int64_t> counts(static_cast<size_t>(places_ * width), include_self_);
    auto count = [&](int64_t place, int64_t k) -> int64_t& {
      return counts[static_cast<size_t>(place * width + k - columns.begin)];
    };
    for_each(state, line, columns, [&](int64_t place, const char*, int64_t k) { ++count(place, k); });
    for (int64_t place = 0; place < places_; ++place)
      for (int64_t k = columns.begin; k < columns.end; ++k) {
        const int64_t n = std::max<int64_t>(count(place, k), 1);  // rather than a branch: counts cannot be guessed
        T& x = *reinterpret_cast<T*>(to + place * stride(out_, dim_) + k * stride(out_, column_));
        if constexpr (std::is_integral_v<T>)
          x = x / n - (x % n < 0);
        else
          x /= static_cast<T>(n);
      }
  }

  BoundTensor out_, self_, index_, src_;
  int64_t dim_, column_, places_, columns_;
  Lines lines_;
  bool mean_, include_self_, by_lines_ = false, by_columns_ = false;
};

template <class T>
StepDriver* bind_replace(const HostStep& step, const BindContext& context) {
  return context.make<ScatterDriver<T, Replace>>(step, context, false, true);
}

template <class T>
StepDriver* bind_combination(const HostStep& step, const BindContext& context) {
  enum Reduce : int64_t { sum, prod, mean, amax, amin };
  const int64_t reduce = context.value(step.attribute("reduce"));
  const bool include_self = context.value(step.attribute("include_self")) != 0;
  switch (reduce) {
    case sum:
    case mean:
      return context.make<ScatterDriver<T, Add>>(step, context, reduce == mean, include_self);
    case prod:
      return context.make<ScatterDriver<T, Multiply>>(step, context, false, include_self);
    case amax:
      return context.make<ScatterDriver<T, Largest>>(step, context, false, include_self);
    default:
      return context.make<ScatterDriver<T, Smallest>>(step, context, false, include_self);
  }
}

}  // namespace

StepDriver* bind_scatter(const HostStep& step, const BindContext& context) {
  switch (size_of(step.results[0].dtype)) {
    case 1:
      return bind_replace<uint8_t>(step, context);
    case 2:
      return bind_replace<uint16_t>(step, context);
    case 4:
      return bind_replace<uint32_t>(step, context);
    default:
      return bind_replace<uint64_t>(step, context);
  }
}
StepDriver* bind_scatter_reduce(const HostStep& step, const BindContext& context) {
  switch (step.results[0].dtype) {
    case DType::f32:
      return bind_combination<float>(step, context);
    case DType::f64:
      return bind_combination<double>(step, context);
    default:
      INGOT_CHECK(step.results[0].dtype == DType::i64, step.op);
      return bind_combination<int64_t>(step, context);
  }
}

}  // namespace ingot::runtime
