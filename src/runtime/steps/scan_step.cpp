// Scans along one dim. Their canonical order, of sums and products: blocks of 4,096 elements; in a block, groups of
// four from the first element on. With z0 = x0, z1 = x1 + x0, z2 = (x2 + x1) + x0, z3 = (x3 + x2) + z1 in a group, c
// the sum of the block's groups so far (c = 0, then c + z3 of each) and t the total of the blocks before (t = 0, then t
// + the last c of each), the scan at element i of a group is t + (c + zi). It depends on the position in the line
// alone: never on threads, instruction set or layout. Long lines are shared: block totals first, then every block.
//
// Running extremes: NaN wins from where it occurs, and the index is that of the last element that is as large.
// logcumsumexp keeps the largest element m so far and the sum s of exp(x - m), in double: the result is m + log(s).
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "base/error.h"
#include "runtime/steps/host_steps.h"
#include "runtime/steps/lines.h"

namespace ingot::runtime {
namespace {

constexpr int64_t kScanBlock = 4096;
constexpr int64_t kStrip = 256;  // columns that are scanned side by side

// Integers wrap.
struct Added {
  static constexpr int identity = 0;
  template <class T>
  static T join(T a, T b) {
    return a + b;
  }
};
struct Multiplied {
  static constexpr int identity = 1;
  template <class T>
  static T join(T a, T b) {
    return a * b;
  }
};

template <class T>
using Accumulator = std::conditional_t<std::is_same_v<T, float>, double, T>;

/// One group of up to four elements; returns the last z.
template <class Op, class A>
A group(const A* x, int64_t n, A* z) {
  z[0] = x[0];
  if (n > 1) z[1] = Op::join(x[1], x[0]);
  if (n > 2) z[2] = Op::join(Op::join(x[2], x[1]), x[0]);
  if (n > 3) z[3] = Op::join(Op::join(x[3], x[2]), z[1]);
  return z[n - 1];
}

/// Scans a block of one line; `stride` in elements. Returns the block's total.
template <class Op, class T, class A = Accumulator<T>>
A scan_block(const T* x, int64_t stride, int64_t n, A before, T* out) {
  A sum = static_cast<A>(Op::identity);
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const A in[4] = {x[i * stride], x[(i + 1) * stride], x[(i + 2) * stride], x[(i + 3) * stride]};
    A z[4];
    group<Op>(in, 4, z);
    if (out)
      for (int64_t k = 0; k < 4; ++k) out[i + k] = static_cast<T>(Op::join(before, Op::join(sum, z[k])));
    sum = Op::join(sum, z[3]);
  }
  if (i < n) {
    A in[4], z[4];
    for (int64_t k = 0; i + k < n; ++k) in[k] = x[(i + k) * stride];
    group<Op>(in, n - i, z);
    if (out)
      for (int64_t k = 0; i + k < n; ++k) out[i + k] = static_cast<T>(Op::join(before, Op::join(sum, z[k])));
    sum = Op::join(sum, z[n - i - 1]);
  }
  return sum;
}

struct Common {
  Common(const HostStep& step, const BindContext& context)
      : out(step.results[0], context), in(step.operand("self"), context), dim(context.value(step.attribute("dim"))) {
    n = in.sizes[dim];
    column = column_dim(in.sizes, dim);
    columns = column < 0 ? 1 : in.sizes[column];
    strips = (columns + kStrip - 1) / kStrip;
    lines = Lines(in.sizes, {dim, column});
    items = lines.count * strips;
  }
  BoundTensor out, in;
  int64_t dim, n, column, columns, strips, items;
  Lines lines;
  int64_t stride(const BoundTensor& t) const { return t.place.strides[dim]; }
  int64_t column_stride(const BoundTensor& t) const { return column < 0 ? 0 : t.place.strides[column]; }
  /// First element of strip `item` of an operand.
  char* at(const StepState& state, const BoundTensor& t, int64_t item) const {
    return t.place.at(state) + lines.offset(item / strips, t.place.strides) + item % strips * kStrip * column_stride(t);
  }
  int64_t width(int64_t item) const { return std::min(kStrip, columns - item % strips * kStrip); }
};

template <class Op, class T>
class ScanDriver final : public StepDriver {
  using A = Accumulator<T>;

 public:
  ScanDriver(const HostStep& step, const BindContext& context) : c_(step, context) {
    int64_t elements = c_.in.elements(), pay = threads_for(elements * 2 * static_cast<int64_t>(sizeof(T)), elements);
    blocks_ = (c_.n + kScanBlock - 1) / kScanBlock;
    shared_lines_ = c_.column < 0 && c_.items < std::min<int64_t>(pay, context.threads) && blocks_ > 1;
    useful_threads = static_cast<int>(std::min(pay, shared_lines_ ? blocks_ : std::max<int64_t>(c_.items, 1)));
    if (!shared_lines_) return;
    phases = 2;
    shared_bytes = c_.items * blocks_ * static_cast<int64_t>(sizeof(A));
  }

  void run(const StepState& state, int phase, int share, int shares) const override {
    if (shared_lines_ && shares > 1) return run_shared(state, phase, share, shares);
    if (phase + 1 < phases) return;  // one thread needs no totals beforehand
    Range range = runtime::share(c_.items, share, shares);
    for (int64_t item = range.begin; item < range.end; ++item) {
      const char* in = c_.at(state, c_.in, item);
      T* out = reinterpret_cast<T*>(c_.at(state, c_.out, item));
      if (c_.column < 0)
        scan_line(in, out);
      else
        scan_columns(in, out, c_.width(item));
    }
  }

 private:
  int64_t size_of_block(int64_t block) const { return std::min(kScanBlock, c_.n - block * kScanBlock); }
  A scan_one(const char* in, T* out, int64_t block, A before) const {
    const int64_t stride = c_.stride(c_.in) / static_cast<int64_t>(sizeof(T));
    const T* x = reinterpret_cast<const T*>(in) + block * kScanBlock * stride;
    T* to = out ? out + block * kScanBlock : nullptr;
    return stride == 1 ? scan_block<Op>(x, 1, size_of_block(block), before, to)
                       : scan_block<Op>(x, stride, size_of_block(block), before, to);
  }
  void scan_line(const char* in, T* out) const {
    A total = static_cast<A>(Op::identity);
    for (int64_t b = 0; b < blocks_; ++b) total = Op::join(total, scan_one(in, out, b, total));
  }

  // Phase 0: the total of every block. Phase 1: each share scans its blocks.
  void run_shared(const StepState& state, int phase, int share, int shares) const {
    A* totals = reinterpret_cast<A*>(shared(state));
    Range range = runtime::share(blocks_, share, shares);
    for (int64_t item = 0; item < c_.items; ++item, totals += blocks_) {
      const char* in = c_.at(state, c_.in, item);
      if (phase == 0) {
        for (int64_t b = range.begin; b < range.end; ++b) totals[b] = scan_one(in, nullptr, b, A());
        continue;
      }
      A total = static_cast<A>(Op::identity);
      for (int64_t b = 0; b < range.begin; ++b) total = Op::join(total, totals[b]);
      T* out = reinterpret_cast<T*>(c_.at(state, c_.out, item));
      for (int64_t b = range.begin; b < range.end; ++b) total = Op::join(total, scan_one(in, out, b, total));
    }
  }

  // Down `width` columns at once.
  void scan_columns(const char* in, T* out, int64_t width) const {
    constexpr int64_t bytes = sizeof(T);
    const int64_t row = c_.stride(c_.in) / bytes, to_row = c_.stride(c_.out) / bytes;
    const int64_t step = c_.column_stride(c_.in) / bytes;
    A total[kStrip], sum[kStrip];
    std::fill_n(total, width, static_cast<A>(Op::identity));
    for (int64_t b = 0; b < blocks_; ++b) {
      std::fill_n(sum, width, static_cast<A>(Op::identity));
      const int64_t end = b * kScanBlock + size_of_block(b);
      for (int64_t i = b * kScanBlock; i < end; i += 4) {
        const T* x = reinterpret_cast<const T*>(in) + i * row;
        T* y = out + i * to_row;
        if (end - i >= 4)
          columns_of_group<4>(x, row, step, y, to_row, width, total, sum);
        else if (end - i == 3)
          columns_of_group<3>(x, row, step, y, to_row, width, total, sum);
        else if (end - i == 2)
          columns_of_group<2>(x, row, step, y, to_row, width, total, sum);
        else
          columns_of_group<1>(x, row, step, y, to_row, width, total, sum);
      }
      for (int64_t k = 0; k < width; ++k) total[k] = Op::join(total[k], sum[k]);
    }
  }
  template <int kRows>
  static void columns_of_group(const T* __restrict x, int64_t row, int64_t step, T* __restrict y, int64_t to_row,
                               int64_t width, const A* __restrict total, A* __restrict sum) {
    auto columns = [&](auto stride) {
      for (int64_t k = 0; k < width; ++k) {
        A in[kRows], z[kRows];
        for (int r = 0; r < kRows; ++r) in[r] = x[r * row + k * stride];
        group<Op>(in, kRows, z);
        for (int r = 0; r < kRows; ++r) y[r * to_row + k] = static_cast<T>(Op::join(total[k], Op::join(sum[k], z[r])));
        sum[k] = Op::join(sum[k], z[kRows - 1]);
      }
    };
    if (step == 1)
      columns(std::integral_constant<int64_t, 1>());
    else
      columns(step);
  }

  Common c_;
  int64_t blocks_ = 0;
  bool shared_lines_ = false;
};

/// The state of a column: the extreme and where it is.
template <class T, bool kMax>
struct Extreme {
  T best;
  int64_t index;
  void start(T x) { best = x, index = 0; }
  void next(T x, int64_t i) {
    // Mostly foreseen: so the next element does not wait for this one.
    if (kMax ? x < best : x > best) [[likely]]
      return;
    // A NaN, which no number equals, wins for good.
    if (best == best || x != x) best = x, index = i;
  }
  void write(T* value, int64_t* position) const { *value = best, *position = index; }
};

template <class T>
struct LogSumExp {
  double top, sum;
  void start(T x) { top = x, sum = 1; }
  void next(T x, int64_t) {
    const double d = x;
    if (std::isnan(d) || std::isnan(top)) {
      top = sum = std::numeric_limits<double>::quiet_NaN();
    } else if (d > top) {
      sum = (top == -std::numeric_limits<double>::infinity() ? 0 : sum * std::exp(top - d)) + 1;
      top = d;
    } else if (std::isinf(top)) {
      return;
    } else {
      sum += std::exp(d - top);
    }
  }
  void write(T* value, int64_t*) const { *value = static_cast<T>(std::isinf(top) ? top : top + std::log(sum)); }
};

/// Scans that go from element to element; with a second output, the index.
template <class T, class State, int kOperations>
class SequentialScanDriver final : public StepDriver {
 public:
  SequentialScanDriver(const HostStep& step, const BindContext& context) : c_(step, context) {
    if (step.results.size() == 2) index_.emplace(step.results[1], context);
    int64_t elements = c_.in.elements();
    int pay = threads_for(elements * 2 * static_cast<int64_t>(sizeof(T)), saturating_product(elements, kOperations));
    useful_threads = static_cast<int>(std::min<int64_t>(pay, std::max<int64_t>(c_.items, 1)));
  }
  void run(const StepState& state, int, int share, int shares) const override {
    if (c_.n == 0) return;
    Range range = runtime::share(c_.items, share, shares);
    for (int64_t item = range.begin; item < range.end; ++item) {
      const char* in = c_.at(state, c_.in, item);
      char* out = c_.at(state, c_.out, item);
      char* index = index_ ? c_.at(state, *index_, item) : nullptr;
      if (c_.column < 0)
        scan(in, out, index, std::integral_constant<int64_t, 1>());
      else
        scan(in, out, index, c_.width(item));
    }
  }

 private:
  template <class Width>
  void scan(const char* in, char* out, char* index, Width width) const {
    const int64_t row = c_.stride(c_.in), column = c_.column_stride(c_.in);
    State states[kStrip];
    for (int64_t i = 0; i < c_.n; ++i) {
      T* values = reinterpret_cast<T*>(out + i * c_.stride(c_.out));
      int64_t* positions = index ? reinterpret_cast<int64_t*>(index + i * c_.stride(*index_)) : nullptr;
      for (int64_t k = 0; k < width; ++k) {
        T x;
        std::memcpy(&x, in + i * row + k * column, sizeof x);
        if (i == 0)
          states[k].start(x);
        else
          states[k].next(x, i);
        states[k].write(values + k, positions ? positions + k : nullptr);
      }
    }
  }
  Common c_;
  std::optional<BoundTensor> index_;
};

template <class Op>
StepDriver* bind_scan(const HostStep& step, const BindContext& context) {
  switch (step.results[0].dtype) {
    case DType::f32:
      return context.make<ScanDriver<Op, float>>(step, context);
    case DType::f64:
      return context.make<ScanDriver<Op, double>>(step, context);
    default:
      INGOT_CHECK(step.results[0].dtype == DType::i64, step.op);
      return context.make<ScanDriver<Op, uint64_t>>(step, context);
  }
}

template <bool kMax>
StepDriver* bind_extreme(const HostStep& step, const BindContext& context) {
  switch (step.results[0].dtype) {
    case DType::f32:
      return context.make<SequentialScanDriver<float, Extreme<float, kMax>, 4>>(step, context);
    case DType::f64:
      return context.make<SequentialScanDriver<double, Extreme<double, kMax>, 4>>(step, context);
    default:
      INGOT_CHECK(step.results[0].dtype == DType::i64, step.op);
      return context.make<SequentialScanDriver<int64_t, Extreme<int64_t, kMax>, 4>>(step, context);
  }
}

}  // namespace

StepDriver* bind_cumsum(const HostStep& step, const BindContext& context) { return bind_scan<Added>(step, context); }
StepDriver* bind_cumprod(const HostStep& step, const BindContext& context) {
  return bind_scan<Multiplied>(step, context);
}
StepDriver* bind_cummax(const HostStep& step, const BindContext& context) { return bind_extreme<true>(step, context); }
StepDriver* bind_cummin(const HostStep& step, const BindContext& context) { return bind_extreme<false>(step, context); }
StepDriver* bind_logcumsumexp(const HostStep& step, const BindContext& context) {
  if (step.results[0].dtype == DType::f64)
    return context.make<SequentialScanDriver<double, LogSumExp<double>, 40>>(step, context);
  INGOT_CHECK(step.results[0].dtype == DType::f32, step.op);
  return context.make<SequentialScanDriver<float, LogSumExp<float>, 40>>(step, context);
}

}  // namespace ingot::runtime
