// Gradients of a user's function against finite differences of it.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "eager/autograd/autograd.h"
#include "eager/autograd/node.h"
#include "eager/call/call.h"
#include "eager/ops/factories.h"
#include "eager/ops/functions.h"
#include "eager/ops/random.h"

namespace ingot::autograd {
namespace {

using Tensors = std::vector<Tensor>;
using TensorFunction = std::function<Tensors(const Tensors&)>;

/// The inputs as tensors of nobody else, row-major; those that require grad are leaves.
Tensors copies_of(const char* op, const Tensors& inputs, Location location) {
  Tensors copies;
  bool any = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& t = inputs[i];
    ingot::detail::checked_impl(t.impl(), op, location);
    copies.push_back(t.detach().clone().contiguous());
    if (!t.requires_grad()) continue;
    if (t.dtype() != kFloat64)
      eager::fail(
          op, "inputs",
          "number " + std::to_string(i) + ", " + type_text(t.impl()->dtype, t.impl()->sizes) + ", which requires grad",
          "f64: a difference of f32 is too coarse to judge by", location);
    copies.back().requires_grad_();
    any = true;
  }
  if (!any) eager::fail(op, "inputs", "none that requires grad", "at least one", location);
  return copies;
}

/// The numbers of a tensor, row-major.
std::vector<double> numbers_of(const Tensor& t) {
  const Tensor flat = t.detach().to(kFloat64).contiguous();
  const auto* data = static_cast<const double*>(flat.data_ptr());
  return {data, data + flat.numel()};
}

std::string text(double number) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.9g", number);
  return digits;
}

class Check {
 public:
  Check(const char* op, const TensorFunction& function, const Tensors& inputs, double eps, double atol, double rtol,
        Location location)
      : op_(op),
        function_(function),
        inputs_(copies_of(op, inputs, location)),
        eps_(eps),
        atol_(atol),
        rtol_(rtol),
        location_(location) {}

  /// Empty where all agree.
  std::string difference() {
    const EnableGradGuard on;
    const Tensors outputs = function_(inputs_);
    for (size_t o = 0; o < outputs.size(); ++o) {
      ingot::detail::checked_impl(outputs[o].impl(), op_, location_);
      // A result without a gradient is judged only where none has one: then nothing may hang on the inputs.
      const bool tracked = outputs[o].requires_grad();
      if (tracked || std::none_of(outputs.begin(), outputs.end(), [](const Tensor& t) { return t.requires_grad(); }))
        if (std::string found = difference_of(outputs[o], o, tracked); !found.empty()) return found;
    }
    return {};
  }

 private:
  std::string difference_of(const Tensor& output, size_t o, bool tracked) {
    if (!is_floating(output.dtype())) return {};
    if (tracked && output.dtype() != kFloat64)
      eager::fail(op_, "function",
                  type_text(output.impl()->dtype, output.impl()->sizes) + " as output " + std::to_string(o),
                  "f64: a difference of f32 is too coarse to judge by", location_);
    std::vector<Tensors> rows;  // of each element of the output, the gradients
    Tensors wanted;
    for (const Tensor& t : inputs_)
      if (t.requires_grad()) wanted.push_back(t);
    for (int64_t k = 0; tracked && k < output.numel(); ++k) {
      const Tensor one = zeros({output.numel()}, kFloat64);
      static_cast<double*>(one.mutable_data_ptr())[k] = 1;
      rows.push_back(grad({output}, wanted, {one.view(output.sizes())}, true, false, true, location_));
    }
    size_t w = 0;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!inputs_[i].requires_grad()) continue;
      std::vector<std::vector<double>> analytic;
      for (const Tensors& row : rows)
        analytic.push_back(row[w].defined() ? numbers_of(row[w])
                                            : std::vector<double>(static_cast<size_t>(inputs_[i].numel())));
      ++w;
      for (int64_t j = 0; j < inputs_[i].numel(); ++j) {
        const std::vector<double> above = at(i, j, eps_, o), below = at(i, j, -eps_, o);
        for (size_t k = 0; k < above.size(); ++k) {
          const double got = tracked ? analytic[k][static_cast<size_t>(j)] : 0;
          const double expected = (above[k] - below[k]) / (2 * eps_);
          if (std::abs(got - expected) <= atol_ + rtol_ * std::abs(expected)) continue;
          return "element " + std::to_string(k) + " of output " + std::to_string(o) + " by element " +
                 std::to_string(j) + " of input " + std::to_string(i) + ": got " + text(got) +
                 (tracked ? "" : " (it does not require grad)") + " from backward, expected " + text(expected) +
                 " from finite differences";
        }
      }
    }
    return {};
  }

  /// Output `o` where element `j` of input `i` is moved.
  std::vector<double> at(size_t i, int64_t j, double by, size_t o) {
    Tensors moved;
    for (const Tensor& t : inputs_) moved.push_back(t.detach().clone().requires_grad_(t.requires_grad()));
    static_cast<double*>(moved[i].detach().mutable_data_ptr())[j] += by;
    return numbers_of(function_(moved).at(o));
  }

  const char* op_;
  const TensorFunction& function_;
  Tensors inputs_;
  double eps_, atol_, rtol_;
  Location location_;
};

bool judge(Check check, const char* op, bool raise_exception, Location location) {
  const std::string difference = check.difference();
  if (!difference.empty() && raise_exception) throw Error(std::string(op) + ": " + difference + place_of(location));
  return difference.empty();
}

Tensors with_gradient(const Tensors& all) {
  Tensors some;
  for (const Tensor& t : all)
    if (t.requires_grad()) some.push_back(t);
  return some;
}

}  // namespace

bool gradcheck(const TensorFunction& function, const Tensors& inputs, double eps, double atol, double rtol,
               bool raise_exception, Location location) {
  return judge(Check("gradcheck", function, inputs, eps, atol, rtol, location), "gradcheck", raise_exception, location);
}

bool gradgradcheck(const TensorFunction& function, const Tensors& inputs, const Tensors& grad_outputs, double eps,
                   double atol, double rtol, bool raise_exception, Location location) {
  Tensors all = inputs, weights = grad_outputs;
  if (weights.empty()) {
    const EnableGradGuard on;
    const Generator random(0);
    for (const Tensor& t : with_gradient(function(copies_of("gradgradcheck", inputs, location))))
      weights.push_back(randn(t.sizes(), t.dtype(), random).requires_grad_());
  }
  if (weights.empty())
    eager::fail("gradgradcheck", "function", "no output that requires grad", "at least one", location);
  all.insert(all.end(), weights.begin(), weights.end());
  const TensorFunction first = [&](const Tensors& given) {
    const auto behind = given.begin() + static_cast<std::ptrdiff_t>(inputs.size());
    const Tensors x(given.begin(), behind);
    Tensors gradients;
    for (Tensor& g :
         grad(with_gradient(function(x)), with_gradient(x), {behind, given.end()}, true, true, true, location))
      if (g.defined()) gradients.push_back(std::move(g));
    return gradients;
  };
  return judge(Check("gradgradcheck", first, all, eps, atol, rtol, location), "gradgradcheck", raise_exception,
               location);
}

}  // namespace ingot::autograd
