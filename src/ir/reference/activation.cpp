// Activations.
#include "ir/reference/elementwise.h"

namespace ingot::ir::reference {
namespace {

template <class F>
void activation(ReferenceContext& c, F f) {
  map_real(c, {"self"}, f);
}
/// A parameter in the precision in which the op computes.
double parameter(const ReferenceContext& c, std::string_view name) {
  return to_working(c, floating_dtype(c.out().dtype), c.number(name));
}
double clamped(double x, double low, double high) { return least(greatest(x, low), high); }

double elu_of(double x, double alpha, double scale, double input_scale) {
  return x <= 0 ? std::expm1(x * input_scale) * alpha * scale : x * scale;
}

}  // namespace

void relu(ReferenceContext& c) {
  const std::string_view names[] = {"self"};
  map(
      c, names, c.out().dtype, [](double x) { return greatest(x, 0.0); }, [](int64_t x) { return x > 0 ? x : 0; });
}
void hardtanh(ReferenceContext& c) {
  double low = c.number("min_val"), high = c.number("max_val");
  const std::string_view names[] = {"self"};
  map(
      c, names, c.out().dtype,
      [=](double x) { return clamped(x, to_working(c, c.out().dtype, low), to_working(c, c.out().dtype, high)); },
      [=](int64_t x) { return std::min(std::max(x, saturate_to(DType::i64, low)), saturate_to(DType::i64, high)); });
}
void relu6(ReferenceContext& c) {
  const std::string_view names[] = {"self"};
  map(
      c, names, c.out().dtype, [](double x) { return clamped(x, 0, 6); },
      [](int64_t x) { return std::min<int64_t>(std::max<int64_t>(x, 0), 6); });
}
void gelu(ReferenceContext& c) {
  if (c.mode("approximate") == "tanh")
    activation(c, [](double x) {
      double inner = std::sqrt(2 / kPi) * (x + 0.044715 * x * x * x);
      return x / (1 + std::exp(-2 * inner));  // x (1 + tanh(inner)) / 2
    });
  else
    activation(c, [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); });
}
void silu(ReferenceContext& c) {
  activation(c, [](double x) { return x / (1 + std::exp(-x)); });
}
void mish(ReferenceContext& c) {
  activation(c, [](double x) { return x * std::tanh(softplus_of(x)); });
}
void hardsigmoid(ReferenceContext& c) {
  activation(c, [](double x) { return clamped(x + 3, 0, 6) / 6; });
}
void hardswish(ReferenceContext& c) {
  activation(c, [](double x) { return x * clamped(x + 3, 0, 6) / 6; });
}
void logsigmoid(ReferenceContext& c) {
  activation(c, [](double x) { return -softplus_of(-x); });
}
/// PyTorch's composition: on integers the denominator is an integer, and wraps.
void softsign(ReferenceContext& c) {
  DType compute = c.tensor("self").dtype;
  if (compute == DType::bool_) compute = c.out().dtype;
  const std::string_view names[] = {"self"};
  map(
      c, names, compute, [](double x) { return x / (1 + std::fabs(x)); },
      [=](int64_t x) {
        int64_t denominator = wrap_to(compute, plus(1, wrap_to(compute, x < 0 ? minus(0, x) : x)));
        return static_cast<double>(x) / static_cast<double>(denominator);
      });
}
void tanhshrink(ReferenceContext& c) {
  activation(c, [](double x) {
    if (std::fabs(x) < 0x1p-26) return 0.0;  // as PyTorch's difference of doubles
    if (!(std::fabs(x) < 0.02)) return x - std::tanh(x);
    const double z = x * x;  // where the difference cancels: its series
    return x * z * (1.0 / 3 - z * (2.0 / 15 - z * (17.0 / 315 - z * (62.0 / 2835 - z * (1382.0 / 155925)))));
  });
}

void leaky_relu(ReferenceContext& c) {
  double slope = parameter(c, "negative_slope");
  activation(c, [=](double x) { return x > 0 ? x : x * slope; });
}
void prelu(ReferenceContext& c) {
  ReferenceTensor& out = c.out();
  // A slope for each channel, the second dim; one slope for all otherwise.
  const ReferenceTensor& weight = c.tensor("weight");
  Ints shape(out.shape.size(), 1);
  if (weight.size() != 1 && out.shape.size() > 1) shape[1] = weight.size();
  if (weight.size() != 1 && out.shape.size() == 1) shape[0] = weight.size();
  std::vector<int64_t> at = broadcast_positions(shape, out.shape);
  const ReferenceTensor& x = *c.operands[0].tensor;
  for (int64_t i = 0; i < out.size(); ++i) out.real[i] = x.real[i] > 0 ? x.real[i] : x.real[i] * weight.real[at[i]];
}
void elu(ReferenceContext& c) {
  double alpha = parameter(c, "alpha");
  activation(c, [=](double x) { return elu_of(x, alpha, 1, 1); });
}
void celu(ReferenceContext& c) {
  double alpha = parameter(c, "alpha");
  activation(c, [=](double x) { return elu_of(x, alpha, 1, 1 / alpha); });
}
void selu(ReferenceContext& c) {
  activation(c, [](double x) { return elu_of(x, 1.6732632423543772, 1.0507009873554805, 1); });
}
void softplus(ReferenceContext& c) {
  double beta = parameter(c, "beta"), threshold = parameter(c, "threshold");
  activation(c, [=](double x) { return x * beta > threshold ? x : softplus_of(x * beta) / beta; });
}
void hardshrink(ReferenceContext& c) {
  double lambda = parameter(c, "lambd");
  activation(c, [=](double x) { return x >= -lambda && x <= lambda ? 0 : x; });
}
void softshrink(ReferenceContext& c) {
  double lambda = parameter(c, "lambd");
  activation(c, [=](double x) { return x > lambda ? x - lambda : x < -lambda ? x + lambda : x * 0; });
}
void threshold(ReferenceContext& c) {
  const std::string_view names[] = {"self"};
  double limit = c.number("threshold"), value = c.number("value");
  if (!is_floating(c.out().dtype)) limit = std::trunc(limit);
  map(
      c, names, c.out().dtype, [=](double x) { return x <= limit ? value : x; },
      [=](int64_t x) { return static_cast<double>(x) <= limit ? saturate_to(DType::i64, value) : x; });
}

/// The first half of a dim times the sigmoid of the second.
void glu(ReferenceContext& c) {
  const ReferenceTensor& x = c.tensor("input");
  int64_t dim = c.integer("dim"), half = c.out().shape[dim];
  Ints strides = strides_of(x.shape);
  std::vector<int64_t> from = positions(c.out().shape, strides);
  for (size_t i = 0; i < from.size(); ++i)
    c.out().real[i] = x.real[from[i]] * sigmoid_of(x.real[from[i] + half * strides[dim]]);
}

}  // namespace ingot::ir::reference
