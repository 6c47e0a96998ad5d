// Reductions. Sums are kept in extended precision, so that they can judge f64 too.
#include <algorithm>

#include "ir/reference/elementwise.h"

namespace ingot::ir::reference {
namespace {

const ReferenceTensor& input_of(const ReferenceContext& c) { return *c.operands[0].tensor; }
/// The input in the dtype that the call asks for: it is cast before it is reduced.
ReferenceTensor cast_input(const ReferenceContext& c) {
  return c.has("dtype") ? cast_to(c, input_of(c), c.out().dtype) : input_of(c);
}

/// Calls f(output position, positions of what is reduced) for every output element.
template <class F>
void for_each_group(ReferenceContext& c, F f) {
  const ReferenceTensor& x = input_of(c);
  Split split(x.shape, c.reduced_dims("dim", static_cast<int64_t>(x.shape.size())));
  std::vector<int64_t> group(split.walked.size());
  for (size_t o = 0; o < split.kept.size(); ++o) {
    for (size_t i = 0; i < group.size(); ++i) group[i] = split.kept[o] + split.walked[i];
    f(static_cast<int64_t>(o), group);
  }
}

using Group = std::vector<int64_t>;

/// The empty sum is +0, but a sum of negative zeros is one.
long double sum_of(const ReferenceTensor& x, const Group& group) {
  long double sum = group.size() ? -0.0L : 0.0L;
  for (int64_t p : group) sum += x.at(p);
  return sum;
}
int64_t integer_sum_of(const ReferenceTensor& x, const Group& group) {
  int64_t sum = 0;
  for (int64_t p : group) sum = plus(sum, x.integer[p]);
  return sum;
}

/// The first position that holds the extreme; NaN is the extreme wherever it occurs.
template <class Less>
int64_t extreme_position(const ReferenceTensor& x, const Group& group, Less better) {
  int64_t best = group[0];
  for (int64_t p : group) {
    if (x.floating() ? std::isnan(x.real[p]) && !std::isnan(x.real[best]) : false)
      best = p;
    else if (x.floating() ? better(x.real[p], x.real[best]) : better(x.integer[p], x.integer[best]))
      best = p;
  }
  return best;
}
// -0 < +0 decides the value of an extreme, not its index.
constexpr auto kGreater = [](auto a, auto b) { return a > b; };
constexpr auto kLess = [](auto a, auto b) { return a < b; };

template <class Better>
void extreme_values(ReferenceContext& c, ReferenceTensor& out, Better better, bool least_wins) {
  const ReferenceTensor& x = input_of(c);
  for_each_group(c, [&](int64_t o, const Group& group) {
    if (group.empty()) c.refuse("dim", "an empty dim", "at least one element to choose from");
    if (!x.floating()) {
      out.integer[o] = x.integer[extreme_position(x, group, better)];
      return;
    }
    double best = x.real[group[0]];
    for (int64_t p : group) best = least_wins ? least(best, x.real[p]) : greatest(best, x.real[p]);
    out.real[o] = best;
  });
}

template <class Better>
void extreme_index(ReferenceContext& c, Better better) {
  const ReferenceTensor& x = input_of(c);
  Ints walked;
  if (c.has("dim")) {
    if (!x.shape.empty()) walked.push_back(c.integer("dim"));
  } else {
    for (size_t d = 0; d < x.shape.size(); ++d) walked.push_back(static_cast<int64_t>(d));
  }
  Split split(x.shape, walked);
  for (size_t o = 0; o < split.kept.size(); ++o) {
    Group group;
    for (int64_t w : split.walked) group.push_back(split.kept[o] + w);
    int64_t best = extreme_position(x, group, better);
    c.out().integer[o] = std::find(group.begin(), group.end(), best) - group.begin();
  }
}

/// max and min along a dim: values and the first index that holds them.
template <class Better>
void extreme_with_index(ReferenceContext& c, Better better) {
  const ReferenceTensor& x = input_of(c);
  for_each_line(x.shape, c.integer("dim"), [&](int64_t o, const Group& line) {
    int64_t best = extreme_position(x, line, better);
    assign(c.outputs[0], o, x, best);
    c.outputs[1].integer[o] = std::find(line.begin(), line.end(), best) - line.begin();
  });
}

struct Moments {
  double mean, variance;
};
/// Two passes: the mean, then the squares of the differences, over n - correction.
Moments moments_of(const ReferenceTensor& x, const Group& group, double correction) {
  long double n = static_cast<long double>(group.size());
  long double mean = sum_of(x, group) / n, squares = 0;
  for (int64_t p : group) squares += (x.at(p) - mean) * (x.at(p) - mean);
  long double divisor = std::max<long double>(n - correction, 0);
  return {static_cast<double>(mean), static_cast<double>(squares / divisor)};
}

double logsumexp_of(const ReferenceTensor& x, const Group& group) {
  double top = -kInfinity;
  for (int64_t p : group) top = greatest(top, x.at(p));
  if (!std::isfinite(top)) return top;
  long double sum = 0;
  for (int64_t p : group) sum += std::exp(static_cast<long double>(x.at(p)) - top);
  return static_cast<double>(top + std::log(sum));
}

double norm_of(const ReferenceTensor& x, const Group& group, double order) {
  if (std::isinf(order)) {
    double best = order > 0 ? 0 : kInfinity;
    for (int64_t p : group) best = order > 0 ? greatest(best, std::fabs(x.at(p))) : least(best, std::fabs(x.at(p)));
    return best;
  }
  long double sum = 0;
  for (int64_t p : group) {
    long double size = std::fabs(static_cast<long double>(x.at(p)));
    sum += order == 0   ? (size != 0)
           : order == 1 ? size
           : order == 2 ? size * size
                        : std::pow(size, static_cast<long double>(order));
  }
  if (order == 0 || order == 1) return static_cast<double>(sum);
  return static_cast<double>(order == 2 ? std::sqrt(sum) : std::pow(sum, 1 / static_cast<long double>(order)));
}

}  // namespace

void sum(ReferenceContext& c) {
  ReferenceTensor x = cast_input(c);
  for_each_group(c, [&](int64_t o, const Group& group) {
    if (x.floating())
      put(c.out(), o, static_cast<double>(sum_of(x, group)));
    else
      put(c.out(), o, integer_sum_of(x, group));
  });
}
void mean(ReferenceContext& c) {
  ReferenceTensor x = cast_input(c);
  for_each_group(c, [&](int64_t o, const Group& group) {
    c.out().real[o] = static_cast<double>(sum_of(x, group) / static_cast<long double>(group.size()));
  });
}
void prod(ReferenceContext& c) {
  ReferenceTensor x = cast_input(c);
  for_each_group(c, [&](int64_t o, const Group& group) {
    long double real = 1;
    int64_t whole = 1;
    for (int64_t p : group) {
      real *= x.at(p);
      if (!x.floating()) whole = times(whole, x.integer[p]);
    }
    if (x.floating())
      put(c.out(), o, static_cast<double>(real));
    else
      put(c.out(), o, whole);
  });
}
void amax(ReferenceContext& c) { extreme_values(c, c.out(), kGreater, false); }
void amin(ReferenceContext& c) { extreme_values(c, c.out(), kLess, true); }
void argmax(ReferenceContext& c) { extreme_index(c, kGreater); }
void argmin(ReferenceContext& c) { extreme_index(c, kLess); }
void max(ReferenceContext& c) { extreme_with_index(c, kGreater); }
void min(ReferenceContext& c) { extreme_with_index(c, kLess); }

void all(ReferenceContext& c) {
  const ReferenceTensor& x = input_of(c);
  for_each_group(c, [&](int64_t o, const Group& group) {
    put(c.out(), o, std::all_of(group.begin(), group.end(), [&](int64_t p) { return x.at(p) != 0; }));
  });
}
void any(ReferenceContext& c) {
  const ReferenceTensor& x = input_of(c);
  for_each_group(c, [&](int64_t o, const Group& group) {
    put(c.out(), o, std::any_of(group.begin(), group.end(), [&](int64_t p) { return x.at(p) != 0; }));
  });
}
void aminmax(ReferenceContext& c) {
  Ints walked;
  if (c.has("dim") && !input_of(c).shape.empty()) walked.push_back(c.integer("dim"));
  if (!c.has("dim"))
    for (size_t d = 0; d < input_of(c).shape.size(); ++d) walked.push_back(static_cast<int64_t>(d));
  const ReferenceTensor& x = input_of(c);
  Split split(x.shape, walked);
  for (size_t o = 0; o < split.kept.size(); ++o)
    for (size_t i = 0; i < split.walked.size(); ++i) {
      int64_t p = split.kept[o] + split.walked[i];
      if (i == 0) assign(c.outputs[0], o, x, p), assign(c.outputs[1], o, x, p);
      if (x.floating()) {
        c.outputs[0].real[o] = least(c.outputs[0].real[o], x.real[p]);
        c.outputs[1].real[o] = greatest(c.outputs[1].real[o], x.real[p]);
      } else {
        c.outputs[0].integer[o] = least(c.outputs[0].integer[o], x.integer[p]);
        c.outputs[1].integer[o] = greatest(c.outputs[1].integer[o], x.integer[p]);
      }
    }
}

void nansum(ReferenceContext& c) {
  ReferenceTensor x = cast_input(c);
  for (double& v : x.real) v = std::isnan(v) ? 0 : v;
  for_each_group(c, [&](int64_t o, const Group& group) {
    if (x.floating())
      put(c.out(), o, static_cast<double>(sum_of(x, group)));
    else
      put(c.out(), o, integer_sum_of(x, group));
  });
}
void nanmean(ReferenceContext& c) {
  ReferenceTensor x = cast_input(c);
  for_each_group(c, [&](int64_t o, const Group& group) {
    long double sum = 0, count = 0;
    for (int64_t p : group)
      if (!std::isnan(x.real[p])) sum += x.real[p], ++count;
    c.out().real[o] = static_cast<double>(sum / count);
  });
}
void count_nonzero(ReferenceContext& c) {
  for_each_group(c, [&](int64_t o, const Group& group) {
    c.out().integer[o] = std::count_if(group.begin(), group.end(), [&](int64_t p) { return input_of(c).at(p) != 0; });
  });
}

void var(ReferenceContext& c) {
  double correction = c.number("correction");
  for_each_group(
      c, [&](int64_t o, const Group& group) { c.out().real[o] = moments_of(input_of(c), group, correction).variance; });
}
void std(ReferenceContext& c) {
  double correction = c.number("correction");
  for_each_group(c, [&](int64_t o, const Group& group) {
    c.out().real[o] = ::std::sqrt(moments_of(input_of(c), group, correction).variance);
  });
}
void var_mean(ReferenceContext& c) {
  double correction = c.number("correction");
  for_each_group(c, [&](int64_t o, const Group& group) {
    Moments moments = moments_of(input_of(c), group, correction);
    c.outputs[0].real[o] = moments.variance;
    c.outputs[1].real[o] = moments.mean;
  });
}
void std_mean(ReferenceContext& c) {
  var_mean(c);
  for (double& x : c.outputs[0].real) x = ::std::sqrt(x);
}
void logsumexp(ReferenceContext& c) {
  for_each_group(c, [&](int64_t o, const Group& group) { c.out().real[o] = logsumexp_of(input_of(c), group); });
}
void norm(ReferenceContext& c) {
  double order = c.number("p");
  ReferenceTensor x = cast_to(c, input_of(c), c.out().dtype);
  for_each_group(c, [&](int64_t o, const Group& group) { c.out().real[o] = norm_of(x, group, order); });
}
void vector_norm(ReferenceContext& c) {
  double order = c.number("ord");
  ReferenceTensor x = cast_to(c, input_of(c), c.out().dtype);
  for_each_group(c, [&](int64_t o, const Group& group) { c.out().real[o] = norm_of(x, group, order); });
}

namespace {

/// Calls f(position in the result, elements of the first, of the second) for the lines along a dim of both together.
template <class F>
void for_each_pair(ReferenceContext& c, int64_t dim, F f) {
  const ReferenceTensor &a = *c.operands[0].tensor, &b = *c.operands[1].tensor;
  Ints shape(std::max(a.shape.size(), b.shape.size()), 1);
  for (const ReferenceTensor* t : {&a, &b})
    for (size_t d = 0; d < t->shape.size(); ++d)
      if (t->shape[d] != 1) shape[shape.size() - t->shape.size() + d] = t->shape[d];
  std::vector<int64_t> in_a = broadcast_positions(a.shape, shape), in_b = broadcast_positions(b.shape, shape);
  for_each_line(shape, dim < 0 ? dim + static_cast<int64_t>(shape.size()) : dim, [&](int64_t o, const Group& line) {
    std::vector<long double> x, y;
    for (int64_t p : line) {
      x.push_back(a.at(in_a[p]));
      y.push_back(b.at(in_b[p]));
    }
    f(o, x, y);
  });
}

}  // namespace

void vecdot(ReferenceContext& c) {
  for_each_pair(c, c.integer("dim"), [&](int64_t o, const auto& x, const auto& y) {
    long double dot = 0;
    for (size_t i = 0; i < x.size(); ++i) dot += x[i] * y[i];
    put(c.out(), o, static_cast<double>(dot));
  });
}
void cosine_similarity(ReferenceContext& c) {
  long double eps = c.number("eps", c.out().dtype);
  for_each_pair(c, c.integer("dim"), [&](int64_t o, const auto& x, const auto& y) {
    long double dot = 0, xx = 0, yy = 0;
    for (size_t i = 0; i < x.size(); ++i) dot += x[i] * y[i], xx += x[i] * x[i], yy += y[i] * y[i];
    c.out().real[o] = static_cast<double>(dot / std::max(::std::sqrt(xx), eps) / std::max(::std::sqrt(yy), eps));
  });
}
void pairwise_distance(ReferenceContext& c) {
  long double eps = c.number("eps", c.out().dtype);
  DType dtype = c.meeting_dtype({"x1", "x2"});
  for_each_pair(c, -1, [&](int64_t o, const auto& x, const auto& y) {
    ReferenceTensor apart(DType::f64, {static_cast<int64_t>(x.size())});
    Group all;
    for (size_t i = 0; i < x.size(); ++i) {
      long double difference = x[i] - y[i];
      // Integers wrap, before eps makes them floats.
      if (!is_floating(dtype)) difference = static_cast<long double>(wrap_to(dtype, static_cast<int64_t>(difference)));
      apart.real[i] = static_cast<double>(difference + eps);
      all.push_back(static_cast<int64_t>(i));
    }
    c.out().real[o] = norm_of(apart, all, c.number("p"));
  });
}

void cdist(ReferenceContext& c) {
  const ReferenceTensor &a = c.tensor("x1"), &b = c.tensor("x2");
  Ints batch(c.out().shape.begin(), c.out().shape.end() - 2), a_batch(a.shape.begin(), a.shape.end() - 2),
      b_batch(b.shape.begin(), b.shape.end() - 2);
  std::vector<int64_t> in_a = broadcast_positions(a_batch, batch), in_b = broadcast_positions(b_batch, batch);
  int64_t rows = c.out().shape[batch.size()], columns = c.out().shape[batch.size() + 1], width = a.shape.back();
  for (int64_t o = 0; o < c.out().size(); ++o) {
    int64_t from_a = (in_a[o / (rows * columns)] * rows + o / columns % rows) * width;
    int64_t from_b = (in_b[o / (rows * columns)] * columns + o % columns) * width;
    ReferenceTensor apart(DType::f64, {width});
    Group all;
    for (int64_t i = 0; i < width; ++i) {
      apart.real[i] = a.at(from_a + i) - b.at(from_b + i);
      all.push_back(i);
    }
    c.out().real[o] = norm_of(apart, all, c.number("p"));
  }
}

}  // namespace ingot::ir::reference
