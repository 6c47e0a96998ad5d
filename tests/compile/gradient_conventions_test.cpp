// Gradients at kinks, ties, bounds and edges, eager and compiled: what PyTorch gives there.
#include <cmath>
#include <limits>

#include "interpreted.h"
#include "support.h"

namespace ingot {
namespace {

namespace F = nn::functional;

constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();
using Numbers = std::vector<double>;
using Function = Tensor (*)(const std::vector<Tensor>&);

struct Convention {
  const char* name;
  Function f;
  std::vector<Numbers> at, expected;  // gradients of the sum
};
#define OF(name, ...) name, [](const std::vector<Tensor>& x) -> Tensor { return __VA_ARGS__; }

// PyTorch 2.15's, looked up there, but for what is said.
const std::vector<Convention>& conventions() {
  static const std::vector<Convention> all = {
      {OF("abs", x[0].abs()), {{-1, 0, kNaN, -kInfinity}}, {{-1, 0, 0, -1}}},
      {OF("relu", F::relu(x[0])), {{-1, 0, -0.0, kNaN, kInfinity}}, {{0, 0, 0, 1, 1}}},
      {OF("relu6", F::relu6(x[0])), {{0, 6, 3, kNaN}}, {{0, 0, 1, 1}}},
      {OF("hardtanh", F::hardtanh(x[0])), {{-1, 1, 0, kNaN}}, {{0, 0, 1, 1}}},
      {OF("hardtanh, wide", F::hardtanh(x[0], -2, 3)), {{-2, 3, -1, 4}}, {{0, 0, 1, 0}}},
      {OF("leaky_relu", F::leaky_relu(x[0], 0.5)), {{0, 1, -1, kNaN}}, {{0.5, 1, 0.5, 0.5}}},
      {OF("leaky_relu, negative", F::leaky_relu(x[0], -0.5)), {{0, 1, -1, kNaN}}, {{-0.5, 1, -0.5, -0.5}}},
      {OF("prelu", F::prelu(x[0], x[1])), {{0, 1, -1, -0.0}, {0.5}}, {{0.5, 1, 0.5, 0.5}, {-1}}},
      {OF("prelu of NaN", F::prelu(x[0], x[1])), {{kNaN}, {0.5}}, {{0.5}, {kNaN}}},
      {OF("threshold", F::threshold(x[0], 1, 5)), {{0, 1, 2, kNaN}}, {{0, 0, 1, 1}}},
      {OF("elu", F::elu(x[0])), {{0, -kInfinity, kInfinity, kNaN}}, {{1, 0, 1, 1}}},
      {OF("elu 2", F::elu(x[0], 2)), {{0, -0.0, 1}}, {{2, 2, 1}}},
      {OF("celu 2", F::celu(x[0], 2)), {{0, -kInfinity, kInfinity, kNaN}}, {{1, 0, 1, 1}}},
      {OF("selu", F::selu(x[0])), {{-kInfinity}}, {{0}}},
      {OF("softplus", F::softplus(x[0])), {{-kInfinity, kInfinity, kNaN}}, {{0, 1, kNaN}}},
      {OF("sigmoid", x[0].sigmoid()), {{-kInfinity, kInfinity, kNaN}}, {{0, 0, kNaN}}},
      {OF("tanh", x[0].tanh()), {{-kInfinity, kInfinity, kNaN}}, {{0, 0, kNaN}}},
      {OF("hardswish", F::hardswish(x[0])), {{-3, 3, 0, kNaN, kInfinity}}, {{0, 1, 0.5, 1, 1}}},
      {OF("hardsigmoid", F::hardsigmoid(x[0]) * 6), {{-3, 3, 0, kNaN, kInfinity}}, {{0, 0, 1, 0, 0}}},
      {OF("hardshrink", F::hardshrink(x[0])), {{0.5, -0.5, 1, kNaN}}, {{0, 0, 1, 1}}},
      {OF("softshrink", F::softshrink(x[0])), {{0.5, -0.5, 1, kNaN}}, {{0, 0, 1, 1}}},
      {OF("hardshrink 0", F::hardshrink(x[0], 0)), {{0, -0.0, 1}}, {{0, 0, 1}}},
      {OF("softplus, threshold", F::softplus(x[0] * 0 + 2, 1, 2) - F::softplus(x[0], 1, 2)), {{3, kNaN}}, {{-1, kNaN}}},
      {OF("clamp", x[0].clamp(-1, 1)), {{-2, -1, 0, 1, 2, kNaN}}, {{0, 0, 1, 0, 0, 0}}},
      {OF("clamp, min", x[0].clamp(-1)), {{-2, -1, 0, kNaN}}, {{0, 0, 1, 0}}},
      {OF("clamp, max", x[0].clamp(std::nullopt, 1)), {{0, 1, 2, kNaN}}, {{1, 0, 0, 0}}},
      {OF("clamp_min", x[0].clamp_min(0)), {{-0.0, 0, 1, kNaN}}, {{0, 0, 1, 0}}},
      {OF("clamp_max", x[0].clamp_max(0)), {{-1, -0.0, 0, kNaN}}, {{1, 0, 0, 0}}},
      {OF("clamp, equal bounds", x[0].clamp(1, 1)), {{0, 1, 2}}, {{0, 0, 0}}},
      {OF("clamp, crossed bounds", x[0].clamp(1, -1)), {{-1, 0, 1}}, {{0, 0, 0}}},
      {OF("clamp, infinite bounds", x[0].clamp(-kInfinity, kInfinity)), {{-kInfinity, 0, kInfinity}}, {{0, 1, 0}}},
      {OF("clamp, NaN for a bound", x[0].clamp(kNaN, 1)), {{0, 1, kNaN}}, {{0, 0, 0}}},
      // A tensor that is a constant of the graph is still one.
      {OF("clamp, tensors of constants", x[0].clamp(zeros({}), ones({}))), {{-1, 0, 0.5, 1}}, {{0, 0.5, 1, 0.5}}},
      {OF("clamp_min, tensor of a constant", clamp_min(x[0], zeros({}))), {{-1, 0, 1}}, {{0, 0.5, 1}}},
      {OF("clamp_min, tensor", clamp_min(x[0], x[1])),
       {{-2, -1, 0, kNaN, 1, -0.0}, {-1, -1, -1, -1, kNaN, 0}},
       {{0, 0.5, 1, 1, 1, 0.5}, {1, 0.5, 0, 1, 1, 0.5}}},
      {OF("clamp_max, tensor", clamp_max(x[0], x[1])),
       {{0, 1, 2, kNaN, 1}, {1, 1, 1, 1, kNaN}},
       {{1, 0.5, 0, 1, 1}, {0, 0.5, 1, 1, 1}}},
      {OF("clamp, tensor for min", x[0].clamp(x[1])), {{-2, -1, 0}, {-1, -1, -1}}, {{0, 0.5, 1}, {1, 0.5, 0}}},
      {OF("clamp, tensor for max", x[0].clamp(std::nullopt, x[1])), {{0, 1, 2}, {1, 1, 1}}, {{1, 0.5, 0}, {0, 0.5, 1}}},
      {OF("clamp, tensors", x[0].clamp(x[1], x[2])),
       {{-1, 0, 1, 2, 3}, {0, 0, 0, 0, 0}, {2, 2, 2, 2, 2}},
       {{0, 0.5, 1, 0.5, 0}, {1, 0.5, 0, 0, 0}, {0, 0, 0, 0.5, 1}}},
      {OF("clamp, equal tensors", x[0].clamp(x[1], x[2])),
       {{0, 1, 2}, {1, 1, 1}, {1, 1, 1}},
       {{0, 1, 0}, {1, 0, 0}, {0, 0, 1}}},
      {OF("clamp, crossed tensors", x[0].clamp(x[1], x[2])),
       {{0, 1, 2, 3}, {2, 2, 2, 2}, {1, 1, 1, 1}},
       {{0, 0, 0, 0}, {0, 0, 0, 0}, {1, 1, 1, 1}}},
      {OF("clamp, tensors and NaN", x[0].clamp(x[1], x[2])),
       {{kNaN, kNaN, 1, 1, 0, 2, 2, 0}, {0, 2, 1, kNaN, 1, kNaN, 1, kNaN}, {1, 0, kNaN, 1, kNaN, 1, kNaN, kNaN}},
       {{1, 1, 1, 1, 0, 0, 1, 1}, {0, 0, 0, 0, 0, 0, 0, 0}, {0, 1, 0, 0, 0, 0, 0, 0}}},
      {OF("sqrt", x[0].sqrt()), {{0, -0.0, -1, kInfinity}}, {{kInfinity, -kInfinity, kNaN, 0}}},
      {OF("rsqrt", x[0].rsqrt()), {{0, kInfinity, -1}}, {{-kInfinity, 0, kNaN}}},
      {OF("reciprocal", x[0].reciprocal()), {{0, kInfinity}}, {{-kInfinity, 0}}},
      {OF("log", x[0].log()), {{0, -1, kInfinity}}, {{kInfinity, -1, 0}}},
      {OF("log1p", x[0].log1p()), {{-1, kInfinity}}, {{kInfinity, 0}}},
      {OF("pow 0", x[0].pow(0)), {{0, kNaN, kInfinity}}, {{0, 0, 0}}},
      {OF("pow 1/2", x[0].pow(0.5)), {{0, -1}}, {{kInfinity, kNaN}}},
      {OF("pow 1", x[0].pow(1)), {{0, kNaN}}, {{1, 1}}},
      {OF("pow 2", x[0].pow(2)), {{0, kInfinity}}, {{0, kInfinity}}},
      {OF("pow 3", x[0].pow(3)), {{0, -kInfinity}}, {{0, kInfinity}}},
      {OF("pow -1", x[0].pow(-1)), {{0, kInfinity}}, {{-kInfinity, 0}}},
      {OF("pow", pow(x[0], x[1])),
       {{0, 0, 0, -1, 1, kNaN}, {0, 2, -1, 2, kNaN, 0}},
       {{0, 0, -kInfinity, -2, kNaN, 0}, {0, 0, -kInfinity, kNaN, 0, kNaN}}},
      {OF("0^x", pow(0.0, x[0])), {{0, 1, -1}}, {{0, 0, -kInfinity}}},
      {OF("xlogy", xlogy(x[0], x[1])),
       {{0, 0, 1, 1}, {0, kNaN, 0, -1}},
       {{0, kNaN, -kInfinity, kNaN}, {kNaN, kNaN, kInfinity, -1}}},
      {OF("div", x[0] / x[1]), {{1, 0, 1}, {0, 0, kInfinity}}, {{kInfinity, kInfinity, 0}, {-kInfinity, kNaN, 0}}},
      {OF("remainder", remainder(x[0], x[1])),
       {{5, -5, 5, 2}, {3, 3, kInfinity, -kInfinity}},
       {{1, 1, 1, 1}, {-1, 2, 0, 1}}},
      {OF("fmod", fmod(x[0], x[1])), {{5, -5, 5}, {3, 3, kInfinity}}, {{1, 1, 1}, {-1, 1, 0}}},
      {OF("maximum", maximum(x[0], x[1])),
       {{1, kNaN, -0.0, kInfinity}, {1, 0, 0, kInfinity}},
       {{0.5, 1, 0.5, 0.5}, {0.5, 1, 0.5, 0.5}}},
      {OF("minimum", minimum(x[0], x[1])),
       {{1, kNaN, -0.0, kInfinity}, {1, 0, 0, kInfinity}},
       {{0.5, 1, 0.5, 0.5}, {0.5, 1, 0.5, 0.5}}},
      {OF("fmax", fmax(x[0], x[1])),
       {{1, 1, 2, kNaN, 1, kNaN, -0.0, kInfinity}, {1, 2, 1, 1, kNaN, kNaN, 0, kInfinity}},
       {{0.5, 0, 1, 0, 1, 1, 0.5, 0.5}, {0.5, 1, 0, 1, 0, 0, 0.5, 0.5}}},
      {OF("fmin", fmin(x[0], x[1])),
       {{1, 1, 2, kNaN, 1, kNaN, -0.0, kInfinity}, {1, 2, 1, 1, kNaN, kNaN, 0, kInfinity}},
       {{0.5, 1, 0, 0, 1, 1, 0.5, 0.5}, {0.5, 0, 1, 1, 0, 0, 0.5, 0.5}}},
      {OF("fmax, numbers", fmax(x[0], 1) + fmin(x[0], kNaN)), {{0, 1, 2, kNaN}}, {{1, 1.5, 2, 1}}},
      {OF("nextafter", nextafter(x[0], x[1])),
       {{1, 1, kNaN, 1, -0.0, kInfinity}, {1, 2, 1, kNaN, 0, kInfinity}},
       {{0, 1, 1, 1, 0, 0}, {0, 0, 0, 0, 0, 0}}},
      {OF("copysign", copysign(x[0], x[1])), {{0, -0.0, 2, 2}, {1, 1, -0.0, kNaN}}, {{0, 0, -1, 1}, {0, 0, 0, 0}}},
      {OF("amax", x[0].amax()), {{2, 1, 2}}, {{0.5, 0, 0.5}}},
      {OF("amax of NaN", x[0].amax()), {{2, kNaN, 2}}, {{kNaN, kNaN, kNaN}}},
      // In PyTorch NaNs share the gradient of the largest of all.
      {OF("max of all, NaN", max(x[0])), {{2, kNaN, kNaN}}, {{kNaN, kNaN, kNaN}}},
      {OF("amin", x[0].amin()), {{-kInfinity, -kInfinity, 0}}, {{0.5, 0.5, 0}}},
      {OF("max", std::get<0>(max(x[0], 0))), {{2, 1, 2}}, {{1, 0, 0}}},
      {OF("max of NaN", std::get<0>(max(x[0], 0))), {{2, kNaN, kNaN}}, {{0, 1, 0}}},
      {OF("cummax", std::get<0>(cummax(x[0], 0))), {{1, 1, 0, kNaN, 2}}, {{1, 2, 0, 2, 0}}},
      {OF("norm 1/2", vector_norm(x[0], 0.5)), {{0, 0}}, {{0, 0}}},
      {OF("norm 1", vector_norm(x[0], 1)), {{0, 0}}, {{0, 0}}},
      {OF("norm 2", vector_norm(x[0], 2)), {{0, 0}}, {{0, 0}}},
      {OF("norm 3", vector_norm(x[0], 3)), {{0, 0}}, {{0, 0}}},
      {OF("norm inf", vector_norm(x[0], kInfinity)), {{0, 0}}, {{0, 0}}},
      {OF("norm -inf", vector_norm(x[0], -kInfinity)), {{0, 0}}, {{0, 0}}},
      {OF("norm inf, ties", vector_norm(x[0], kInfinity)), {{-2, 1, 2}}, {{-0.5, 0, 0.5}}},
      {OF("norm of infinity", vector_norm(x[0], 2)), {{kInfinity, 1}}, {{kNaN, 0}}},
      {OF("norm of NaN", vector_norm(x[0], 2)), {{kNaN, 1}}, {{kNaN, kNaN}}},
      {OF("prod, a zero", x[0].prod()), {{2, 0, 4}}, {{0, 8, 0}}},
      {OF("prod, two zeros", x[0].prod()), {{0, 0, 4}}, {{0, 0, 0}}},
      {OF("prod, zero and infinity", x[0].prod()), {{0, kInfinity}}, {{kInfinity, 0}}},
      {OF("prod, zero, infinity and 2", x[0].prod()), {{0, kInfinity, 2}}, {{kInfinity, 0, kNaN}}},
      {OF("prod, zero and two infinities", x[0].prod()), {{0, kInfinity, kInfinity}}, {{kInfinity, kNaN, kNaN}}},
      {OF("prod, two zeros and infinity", x[0].prod()), {{0, 0, kInfinity}}, {{0, 0, 0}}},
      {OF("prod, zero and NaN", x[0].prod()), {{0, kNaN, 2}}, {{kNaN, 0, kNaN}}},
      {OF("prod, infinity", x[0].prod()), {{kInfinity, 2}}, {{kNaN, kInfinity}}},
      {OF("cumprod, zero and infinity", x[0].cumprod(0)), {{0, kInfinity, 2}}, {{kInfinity, 0, 0}}},
      {OF("cumprod", x[0].cumprod(0)), {{2, 0, 4, 0, 5}}, {{1, 10, 0, 0, 0}}},
      {OF("logsumexp", x[0].logsumexp(0)), {{-kInfinity, -kInfinity}}, {{kNaN, kNaN}}},
      {OF("logsumexp, inf", x[0].logsumexp(0)), {{kInfinity, 1}}, {{kNaN, 0}}},
      {OF("softmax", x[0].softmax(0)[0]), {{-kInfinity, -kInfinity}}, {{kNaN, kNaN}}},
      {OF("softmax, one -inf", x[0].softmax(0)[0]), {{-kInfinity, 1}}, {{0, 0}}},
      {OF("log_softmax", x[0].log_softmax(0)[0]), {{-kInfinity, -kInfinity}}, {{kNaN, kNaN}}},
      {OF("logcumsumexp", x[0].logcumsumexp(0)), {{-kInfinity, -kInfinity, 1}}, {{kNaN, kNaN, 1}}},
      {OF("logaddexp", logaddexp(x[0], x[1])),
       {{-kInfinity, kInfinity, -kInfinity}, {-kInfinity, kInfinity, 1}},
       {{kNaN, kNaN, 0}, {kNaN, kNaN, 1}}},
      {OF("var of one", x[0].var()), {{3}}, {{kNaN}}},
      {OF("std of one", x[0].std()), {{3}}, {{kNaN}}},
      {OF("var of equals", x[0].var()), {{3, 3}}, {{0, 0}}},
      {OF("var without a degree of freedom", x[0].var({}, 3)), {{1, 2, 3}}, {{kInfinity, kNaN, kInfinity}}},
      {OF("std without a degree of freedom", x[0].std({}, 4)), {{1, 2, 3}}, {{kNaN, kNaN, kNaN}}},
      {OF("std of equals", x[0].std()), {{3, 3, 3}}, {{0, 0, 0}}},
      {OF("atan2", atan2(x[0], x[1])),
       {{0, -0.0, 0, 1, kInfinity}, {0, 0, -1, 0, kInfinity}},
       {{0, 0, -1, 0, kNaN}, {0, 0, 0, -1, kNaN}}},
      {OF("hypot", hypot(x[0], x[1])), {{0, kInfinity}, {0, 1}}, {{kNaN, kNaN}, {kNaN, 0}}},
      {OF("sinc", sinc(x[0])), {{0, kInfinity}}, {{0, kNaN}}},
      {OF("asin", x[0].asin()), {{1, -1, 2}}, {{kInfinity, kInfinity, kNaN}}},
      {OF("acos", x[0].acos()), {{1, -1}}, {{-kInfinity, -kInfinity}}},
      {OF("atanh", x[0].atanh()), {{1, -1}}, {{kInfinity, kInfinity}}},
      {OF("acosh", x[0].acosh()), {{1, 0}}, {{kInfinity, kNaN}}},
      {OF("erfinv", x[0].erfinv()), {{1, -1, 2}}, {{kInfinity, kInfinity, kNaN}}},
      {OF("logit", logit(x[0])), {{0, 1, 2, kNaN}}, {{kInfinity, kInfinity, kNaN, kNaN}}},
      {OF("logit, eps", logit(x[0], 0.25)), {{0, 1, kNaN}}, {{0, 0, kNaN}}},
      {OF("lgamma", x[0].lgamma()), {{0, kInfinity}}, {{-kInfinity, kInfinity}}},
      {OF("digamma", x[0].digamma()), {{0}}, {{kInfinity}}},
      {OF("atan", x[0].atan()), {{kInfinity, kNaN}}, {{0, kNaN}}},
      {OF("where", where(x[2] > 0, x[0], x[1])), {{kNaN, 1}, {1, kInfinity}, {0, 1}}, {{0, 1}, {1, 0}, {}}},
      // What is masked before a function stays hidden, what is masked behind it does not: 0 times NaN.
      {OF("sqrt of where", where(x[0] > 0, x[0], 0.0).sqrt() * (x[0] > 0)), {{-1, 4}}, {{0, 0.25}}},
      {OF("where of sqrt", where(x[0] > 0, x[0].sqrt(), 0.0)), {{-1, 4}}, {{kNaN, 0.25}}},
      {OF("masked_fill", x[0].masked_fill(x[0].isnan(), 0)), {{kNaN, 1}}, {{0, 1}}},
      {OF("nan_to_num", x[0].nan_to_num()), {{kNaN, kInfinity, 1}}, {{0, 0, 1}}},
      // Where PyTorch's rule divides infinities, ours has the limit.
      {OF("softsign", F::softsign(x[0])), {{kInfinity, -kInfinity, kNaN}}, {{0, 0, kNaN}}},
      {OF("copysign of infinity", copysign(x[0], x[1])), {{kInfinity}, {-1}}, {{-1}, {0}}},
      {OF("soft_margin_loss", F::soft_margin_loss(x[0], x[1], "sum")), {{kInfinity, -kInfinity}, {1, 1}}, {{0, -1}}},
      {OF("frac", x[0].frac()), {{0.5, kNaN}}, {{1, 1}}},
      {OF("max_pool", F::max_pool1d(x[0].reshape({1, 1, -1}), 3, 1, 1)), {{7, 7, 7, 1, 7}}, {{2, 1, 1, 0, 1}}},
      {OF("max_pool of -inf", F::max_pool1d(x[0].reshape({1, 1, -1}), 3, 1, 1)),
       {{-kInfinity, -kInfinity, -kInfinity, -kInfinity}},
       {{2, 1, 1, 0}}},
      {OF("max_pool of NaN", F::max_pool1d(x[0].reshape({1, 1, -1}), 4)), {{kNaN, 1, kNaN, 2}}, {{0, 0, 1, 0}}},
      {OF("adaptive_max_pool", F::adaptive_max_pool1d(x[0].reshape({1, 1, -1}), {1})), {{1, 2, 2, 0}}, {{0, 1, 0, 0}}},
      // PyTorch's is the last NaN, as in max_pool.
      {OF("adaptive_max_pool of NaN", F::adaptive_max_pool1d(x[0].reshape({1, 1, -1}), {1})),
       {{kNaN, 1, kNaN, 2}},
       {{1, 0, 0, 0}}},
      {OF("smooth_l1_loss", F::smooth_l1_loss(x[0], x[1])),
       {{kInfinity, 1}, {kInfinity, 2}},
       {{kNaN, -0.5}, {kNaN, 0.5}}},
      {OF("smooth_l1_loss, beta", F::smooth_l1_loss(x[0], x[1], "sum", 0.5)),
       {{0, 0.5, -0.5}, {0, 0, 0}},
       {{0, 1, -1}, {0, -1, 1}}},
      {OF("smooth_l1_loss, 0", F::smooth_l1_loss(x[0], x[1], "sum", 0)),
       {{1, 1, kNaN}, {1, 0, 1}},
       {{0, 1, 0}, {0, -1, 0}}},
      {OF("huber_loss, delta", F::huber_loss(x[0], x[1], "sum", 0.5)),
       {{0, 0.5, -0.5}, {0, 0, 0}},
       {{0, 0.5, -0.5}, {0, -0.5, 0.5}}},
      {OF("huber_loss", F::huber_loss(x[0], x[1])), {{kInfinity, 1}, {kInfinity, 2}}, {{kNaN, -0.5}, {kNaN, 0.5}}},
      {OF("l1_loss", F::l1_loss(x[0], x[1])), {{1, kNaN}, {1, 0}}, {{0, 0}, {0, 0}}},
      {OF("cross_entropy", F::cross_entropy(x[0].reshape({1, 3}), zeros({1}, kInt64))),
       {{-kInfinity, 1, 1}},
       {{-1, 0.5, 0.5}}},
      {OF("cdist", cdist(x[0].reshape({1, 2}), x[1].reshape({1, 2}))), {{1, 2}, {1, 2}}, {{0, 0}, {0, 0}}},
      {OF("cdist of NaN", cdist(x[0].reshape({1, 2}), x[1].reshape({1, 2}))),
       {{1, 2}, {kNaN, 4}},
       {{kNaN, kNaN}, {kNaN, kNaN}}},
      {OF("cdist 1", cdist(x[0].reshape({1, 3}), x[1].reshape({1, 3}), 1)),
       {{1, 2, 3}, {1, 4, kNaN}},
       {{0, -1, kNaN}, {0, 1, kNaN}}},
      {OF("cdist inf", cdist(x[0].reshape({1, 2}), x[1].reshape({1, 2}), kInfinity)),
       {{1, 2}, {1, 4}},
       {{0, -1}, {0, 1}}},
      // In PyTorch each has all of it.
      {OF("cdist inf, ties", cdist(x[0].reshape({1, 2}), x[1].reshape({1, 2}), kInfinity)),
       {{1, 2}, {3, 4}},
       {{-0.5, -0.5}, {0.5, 0.5}}},
      // Ours is NaN where PyTorch's is the largest of the others, which has a gradient.
      {OF("cdist inf of NaN", cdist(x[0].reshape({1, 2}), x[1].reshape({1, 2}), kInfinity)),
       {{1, 2}, {kNaN, 4}},
       {{kNaN, 0}, {kNaN, 0}}},
      {OF("pairwise_distance 1", F::pairwise_distance(x[0].reshape({1, 2}), x[1].reshape({1, 2}), 1, 0)),
       {{1, 2}, {3, kNaN}},
       {{-1, 0}, {1, 0}}},
      {OF("cosine_similarity", F::cosine_similarity(x[0], x[1], 0, 1)), {{1, 0}, {0, 1}}, {{0, 1}, {1, 0}}},
      {OF("normalize", F::normalize(x[0], 2, 0, 1)[0]), {{1, 0}}, {{1, 0}}},
      {OF("binary_cross_entropy", F::binary_cross_entropy(x[0], x[1], {}, "sum")),
       {{0, 1, 0.5}, {0, 1, 0.5}},
       {{0, 0, 0}, {kInfinity, -kInfinity, 0}}},
      {OF("binary_cross_entropy_with_logits", F::binary_cross_entropy_with_logits(x[0], x[1], {}, {}, "sum")),
       {{0, -0.0, kInfinity, -kInfinity}, {0, 1, 1, 0}},
       {{0.5, -0.5, 0, 0}, {0, 0, -kInfinity, kInfinity}}},
      {OF("kl_div", F::kl_div(x[0], x[1], "sum")), {{0, 1, kNaN}, {0, 1, 0}}, {{0, -1, 0}, {kNaN, 0, kNaN}}},
      {OF("attention, a row of scores of -infinity",
          F::scaled_dot_product_attention(x[0].reshape({1, 1, 2, 1}), x[1].reshape({1, 1, 2, 1}),
                                          x[2].reshape({1, 1, 2, 1}))),
       {{1, 1}, {-kInfinity, -kInfinity}, {2, 3}},
       {{kNaN, kNaN}, {0, 0}, {0, 0}}},
      {OF("attention, a score of -infinity",
          F::scaled_dot_product_attention(x[0].reshape({1, 1, 2, 1}), x[1].reshape({1, 1, 2, 1}),
                                          x[2].reshape({1, 1, 2, 1}))),
       {{1, 1}, {-kInfinity, 1}, {2, 3}},
       {{kNaN, kNaN}, {0, 0}, {0, 2}}},
      {OF("sub", x[0] - x[1]), {{kNaN, kInfinity}, {1, kInfinity}}, {{1, 1}, {-1, -1}}},
  };
  return all;
}

TEST(Gradients, AtKinksAndEdges) {
  for (const Convention& c : conventions()) {
    SCOPED_TRACE(c.name);
    std::vector<Tensor> at;
    for (const Numbers& numbers : c.at) at.push_back(tensor(numbers).to(kFloat32));
    auto eager = [f = c.f](const std::vector<Tensor>& given) {
      std::vector<Tensor> leaves;
      for (const Tensor& t : given) leaves.push_back(t.detach().requires_grad_());
      std::vector<Tensor> found = autograd::grad({f(leaves).sum()}, leaves, {}, {}, false, true);
      for (Tensor& t : found)
        if (!t.defined()) t = empty({0});
      return found;
    };
    auto fast = compile(eager);
    for (const std::vector<Tensor>& got : {eager(at), fast(at), fast(at)})
      for (size_t i = 0; i < c.expected.size(); ++i) {
        const ir::ReferenceTensor values = test::reference(got[i]);
        ASSERT_EQ(values.real.size(), c.expected[i].size());
        for (size_t j = 0; j < values.real.size(); ++j)
          EXPECT_TRUE(values.real[j] == c.expected[i][j] ||
                      (std::isnan(values.real[j]) && std::isnan(c.expected[i][j])))
              << "gradient " << i << "\n"
              << got[i];
      }
  }
}

}  // namespace
}  // namespace ingot
