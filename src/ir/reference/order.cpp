// Scans, sorting and search. Running sums are kept in extended precision, so that they can judge f64 too.
#include <algorithm>

#include "ir/reference/elementwise.h"

namespace ingot::ir::reference {
namespace {

using Line = std::vector<int64_t>;

const ReferenceTensor& self_of(const ReferenceContext& c) { return c.tensor("self"); }

/// Every element joined with those before it, in the dtype that the call asks for.
template <class Real, class Whole>
void accumulate(ReferenceContext& c, long double first_real, int64_t first_whole, Real real, Whole whole) {
  ReferenceTensor x = cast_to(c, self_of(c), c.out().dtype);
  for_each_line(x.shape, c.integer("dim"), [&](int64_t, const Line& line) {
    long double running = first_real;
    int64_t count = first_whole;
    for (int64_t p : line) {
      if (x.floating())
        c.out().real[p] = static_cast<double>(running = real(running, x.real[p]));
      else
        c.out().integer[p] = count = whole(count, x.integer[p]);
    }
  });
}

/// The extreme so far and the last position that holds it; NaN stays from where it occurs.
template <class Wins>
void running_extreme(ReferenceContext& c, Wins wins) {
  const ReferenceTensor& x = self_of(c);
  for_each_line(x.shape, c.integer("dim"), [&](int64_t, const Line& line) {
    size_t best = 0;
    for (size_t i = 0; i < line.size(); ++i) {
      bool nan = x.floating() && std::isnan(x.real[line[i]]);
      bool held = x.floating() && std::isnan(x.real[line[best]]);
      bool better =
          x.floating() ? wins(x.real[line[i]], x.real[line[best]]) : wins(x.integer[line[i]], x.integer[line[best]]);
      if (nan || (!held && better)) best = i;
      assign(c.outputs[0], line[i], x, line[best]);
      c.outputs[1].integer[line[i]] = static_cast<int64_t>(best);
    }
  });
}

/// True if element p stands before q: NaN is above all numbers.
bool before(const ReferenceTensor& x, int64_t p, int64_t q) {
  if (!x.floating()) return x.integer[p] < x.integer[q];
  if (std::isnan(x.real[p])) return false;
  return std::isnan(x.real[q]) || x.real[p] < x.real[q];
}

/// Positions of a line within it, in order; equal ones as they stand.
Line sorted(const ReferenceTensor& x, const Line& line, bool descending) {
  Line order(line.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return descending ? before(x, line[b], line[a]) : before(x, line[a], line[b]);
  });
  return order;
}

/// Element `first` and the next ones of each sorted line become the lines of the outputs; either may be null.
void put_sorted(const ReferenceTensor& x, int64_t dim, bool descending, size_t first, ReferenceTensor* values,
                ReferenceTensor* indices) {
  std::vector<Line> to;
  const ReferenceTensor& shaped = values ? *values : *indices;
  bool reduced = shaped.shape.size() != x.shape.size();
  if (!reduced) for_each_line(shaped.shape, dim, [&](int64_t, const Line& line) { to.push_back(line); });
  for_each_line(x.shape, dim, [&](int64_t number, const Line& line) {
    Line order = sorted(x, line, descending);
    Line places = reduced ? Line{number} : to[static_cast<size_t>(number)];
    for (size_t i = 0; i < places.size(); ++i) {
      if (values) assign(*values, places[i], x, line[order[first + i]]);
      if (indices) indices->integer[places[i]] = order[first + i];
    }
  });
}

/// Places of values in ascending sequences: how many elements are below (with `right`: not above) each.
void search(ReferenceContext& c, const ReferenceTensor& given, const ReferenceTensor* sorter, bool right) {
  const ReferenceTensor* values = c.argument("self").tensor ? &c.tensor("self") : nullptr;
  const DType common = values ? promote(given.dtype, values->dtype) : given.dtype;
  const ReferenceTensor sequence = cast_to(c, given, common), sought = values ? cast_to(c, *values, common) : given;
  int64_t n = sequence.shape.back(), width = values && !values->shape.empty() ? values->shape.back() : 1;
  for (int64_t i = 0; i < c.out().size(); ++i) {
    int64_t start = sequence.shape.size() > 1 ? i / width * n : 0;
    double x = values ? sought.at(i) : c.number("self");
    int64_t count = 0;
    for (int64_t k = 0; k < n; ++k) {
      double y = sequence.at(start + (sorter ? sorter->integer[start + k] : k));
      count += right ? !(y > x) : !(y >= x);
    }
    c.out().integer[i] = count;
  }
}

}  // namespace

void cumsum(ReferenceContext& c) {
  accumulate(
      c, 0, 0, [](long double a, double b) { return a + b; }, [](int64_t a, int64_t b) { return plus(a, b); });
}
void cumprod(ReferenceContext& c) {
  accumulate(
      c, 1, 1, [](long double a, double b) { return a * b; }, [](int64_t a, int64_t b) { return times(a, b); });
}
void cummax(ReferenceContext& c) {
  running_extreme(c, [](auto a, auto b) { return a >= b; });
}
void cummin(ReferenceContext& c) {
  running_extreme(c, [](auto a, auto b) { return a <= b; });
}
void logcumsumexp(ReferenceContext& c) {
  const ReferenceTensor& x = self_of(c);
  for_each_line(x.shape, c.integer("dim"), [&](int64_t, const Line& line) {
    double top = -kInfinity, shift = 0;  // the largest so far; what the sum is relative to
    long double sum = 0;
    for (int64_t at : line) {
      const double value = x.real[at];
      top = greatest(top, value);
      if (std::isfinite(top) && (sum == 0 || top > shift)) {
        if (sum != 0) sum *= std::exp(static_cast<long double>(shift) - top);
        shift = top;
      }
      sum += std::exp(static_cast<long double>(value) - shift);
      c.out().real[at] = std::isfinite(top) ? static_cast<double>(shift + std::log(sum)) : top;
    }
  });
}

void sort(ReferenceContext& c) {
  put_sorted(self_of(c), c.integer("dim"), c.flag("descending"), 0, &c.outputs[0], &c.outputs[1]);
}
void argsort(ReferenceContext& c) {
  put_sorted(self_of(c), c.integer("dim"), c.flag("descending"), 0, nullptr, &c.out());
}
void msort(ReferenceContext& c) { put_sorted(self_of(c), 0, false, 0, &c.out(), nullptr); }
void topk(ReferenceContext& c) {
  put_sorted(self_of(c), c.integer("dim"), c.flag("largest"), 0, &c.outputs[0], &c.outputs[1]);
}
void kthvalue(ReferenceContext& c) {
  put_sorted(self_of(c), c.integer("dim"), false, static_cast<size_t>(c.integer("k")) - 1, &c.outputs[0],
             &c.outputs[1]);
}

// The longest run of equal values in order: of runs as long the first, of a run what was seen first. No NaN equals one.
void mode(ReferenceContext& c) {
  const ReferenceTensor& x = self_of(c);
  auto equal = [&](int64_t p, int64_t q) {
    return x.floating() ? x.real[p] == x.real[q] : x.integer[p] == x.integer[q];
  };
  for_each_line(x.shape, c.integer("dim"), [&](int64_t number, const Line& line) {
    const Line order = sorted(x, line, false);
    int64_t best = order[0];
    size_t most = 0;
    for (size_t first = 0, end = 0; first < order.size(); first = end) {
      for (end = first + 1; end < order.size() && equal(line[order[first]], line[order[end]]);) ++end;
      if (end - first > most) best = order[first], most = end - first;
    }
    assign(c.outputs[0], number, x, line[best]);
    c.outputs[1].integer[number] = best;
  });
}

void searchsorted(ReferenceContext& c) {
  search(c, c.tensor("sorted_sequence"), c.optional("sorter"), c.flag("right") || c.mode("side") == "right");
}
void bucketize(ReferenceContext& c) { search(c, c.tensor("boundaries"), nullptr, c.flag("right")); }

/// Coordinates of what is not zero, a row each; rows that are left hold -1.
void nonzero_static(ReferenceContext& c) {
  const ReferenceTensor& x = self_of(c);
  Ints strides = strides_of(x.shape);
  int64_t rows = c.integer("size"), rank = static_cast<int64_t>(x.shape.size()), row = 0;
  std::fill(c.out().integer.begin(), c.out().integer.end(), -1);
  for (int64_t i = 0; i < x.size() && row < rows; ++i) {
    if (x.at(i) == 0) continue;
    for (int64_t d = 0; d < rank; ++d) c.out().integer[row * rank + d] = i / strides[d] % x.shape[d];
    ++row;
  }
}

}  // namespace ingot::ir::reference
