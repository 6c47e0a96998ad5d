#include "eager/autograd/functional.h"

#include <algorithm>
#include <string>

#include "eager/autograd/node.h"
#include "eager/call/batch.h"
#include "eager/call/call.h"
#include "eager/ops/factories.h"
#include "eager/ops/functions.h"

namespace ingot::autograd::functional {
namespace {

std::string text_of(const Tensor& t) { return type_text(t.impl()->dtype, t.impl()->sizes); }

/// What all of them share: a function at its inputs, on a tape of its own.
class Point {
 public:
  Point(const char* op, const Tensors& inputs, bool create_graph, bool strict, Location location)
      : op_(op), create_graph_(create_graph), strict_(strict), location_(location) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Tensor& t = inputs[i];
      ingot::detail::checked_impl(t.impl(), op, location);
      if (!is_floating(t.impl()->dtype))
        eager::fail(op, "inputs", "number " + std::to_string(i) + ", " + text_of(t), "tensors of floating-point dtypes",
                    location);
      // In a vmap each slice has a derivative of its own, by what is the same for all of them, too.
      const Tensor own = eager::sliced(t);
      inputs_.push_back(create_graph && own.requires_grad() ? own.view_as(own) : own.detach().requires_grad_());
    }
    if (inputs.empty()) eager::fail(op, "inputs", "none", "at least one", location);
  }
  const Tensors& inputs() const { return inputs_; }

  Tensors call(const TensorsFunction& function) const {
    Tensors outputs = function(inputs_);
    for (size_t i = 0; i < outputs.size(); ++i) {
      ingot::detail::checked_impl(outputs[i].impl(), op_, location_);
      if (!is_floating(outputs[i].impl()->dtype))
        eager::fail(op_, "function", text_of(outputs[i]) + " as output " + std::to_string(i),
                    "tensors of floating-point dtypes", location_);
    }
    return outputs;
  }
  Tensor call_scalar(const TensorOfTensors& function) const {
    const Tensor output = call([&](const Tensors& in) { return Tensors{function(in)}; })[0];
    if (output.numel() != 1) eager::fail(op_, "function", text_of(output), "a result of one element", location_);
    return output;
  }
  /// `v`, or ones in place of none, for tensors that are like these.
  Tensors vectors(const Tensors& v, const Tensors& like) const {
    if (v.empty() && std::all_of(like.begin(), like.end(), [](const Tensor& t) { return t.numel() == 1; })) {
      Tensors result;
      for (const Tensor& t : like) result.push_back(ones_like(t.detach()));
      return result;
    }
    if (v.size() != like.size())
      eager::fail(op_, "v", v.empty() ? "none" : std::to_string(v.size()) + " tensors",
                  std::to_string(like.size()) + ", the first like " + text_of(like[0]), location_);
    for (size_t i = 0; i < v.size(); ++i) {
      ingot::detail::checked_impl(v[i].impl(), op_, location_);
      if (text_of(v[i]) != text_of(like[i])) eager::fail(op_, "v", text_of(v[i]), text_of(like[i]), location_);
    }
    return v;
  }
  /// The gradients of `inputs`, of those outputs that have a tape; undefined where none leads there.
  Tensors gradients(const Tensors& outputs, const Tensors& inputs, const Tensors& weights, bool record) const {
    Tensors roots, given;
    for (size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i].defined() && outputs[i].requires_grad()) {
        roots.push_back(outputs[i]);
        given.push_back(weights[i]);
      }
    if (roots.empty()) return Tensors(inputs.size());
    return grad(roots, inputs, given, true, record, true, location_);
  }
  /// With zeros in place of what no tape led to.
  Tensors filled(Tensors derivatives, const Tensors& like, const char* of) const {
    for (size_t i = 0; i < derivatives.size(); ++i) {
      if (derivatives[i].defined()) continue;
      if (strict_)
        eager::fail(op_, "function", std::string("one whose ") + of + " number " + std::to_string(i) + " is constant",
                    "no such one, or strict = false", location_);
      derivatives[i] = zeros_like(like[i].detach());
    }
    return derivatives;
  }
  Tensor finished(const Tensor& t) const { return create_graph_ ? t : t.detach(); }
  Tensors finished(Tensors list) const {
    for (Tensor& t : list) t = finished(t);
    return list;
  }

  std::vector<Tensors> jacobian(const Tensors& outputs) const {
    std::vector<Tensors> result;
    for (const Tensor& output : outputs) {
      const int64_t elements = output.numel();
      std::vector<Tensors> rows(inputs_.size());
      for (int64_t k = 0; k < elements; ++k) {
        const Tensor one = zeros({elements}, output.dtype());
        one.select(0, k).fill_(1);
        const Tensors row =
            filled(gradients({output}, inputs_, {one.view_as(output)}, create_graph_), inputs_, "derivative by input");
        for (size_t i = 0; i < row.size(); ++i) rows[i].push_back(row[i]);
      }
      Tensors& derivatives = result.emplace_back();
      for (size_t i = 0; i < inputs_.size(); ++i) {
        std::vector<int64_t> sizes(output.sizes().begin(), output.sizes().end());
        sizes.insert(sizes.end(), inputs_[i].sizes().begin(), inputs_[i].sizes().end());
        derivatives.push_back(finished(elements ? stack(rows[i]).view(sizes) : zeros(sizes, inputs_[i].dtype())));
      }
    }
    return result;
  }

 private:
  const char* op_;
  const bool create_graph_, strict_;
  const Location location_;
  Tensors inputs_;
};

TensorsFunction of_lists(const TensorFunction& function) {
  return [&function](const Tensors& inputs) { return Tensors{function(inputs[0])}; };
}
TensorOfTensors of_list(const TensorFunction& function) {
  return [&function](const Tensors& inputs) { return function(inputs[0]); };
}
Tensors list_of(const TensorArg& v) { return v.tensor && v.tensor->defined() ? Tensors{*v.tensor} : Tensors(); }

}  // namespace

std::vector<Tensors> jacobian(const TensorsFunction& function, const Tensors& inputs, bool create_graph, bool strict,
                              Location location) {
  const EnableGradGuard on;
  const Point point("jacobian", inputs, create_graph, strict, location);
  return point.jacobian(point.call(function));
}
Tensor jacobian(const TensorFunction& function, const TensorArg& input, bool create_graph, bool strict) {
  return jacobian(of_lists(function), {input.get()}, create_graph, strict, input.location)[0][0];
}

std::vector<Tensors> hessian(const TensorOfTensors& function, const Tensors& inputs, bool create_graph, bool strict,
                             Location location) {
  const EnableGradGuard on;
  const Point point("hessian", inputs, create_graph, strict, location);
  const Tensor output = point.call_scalar(function);
  return point.jacobian(point.filled(point.gradients({output}, point.inputs(), {ones_like(output.detach())}, true),
                                     point.inputs(), "derivative by input"));
}
Tensor hessian(const TensorFunction& function, const TensorArg& input, bool create_graph, bool strict) {
  return hessian(of_list(function), {input.get()}, create_graph, strict, input.location)[0][0];
}

std::pair<Tensors, Tensors> vjp(const TensorsFunction& function, const Tensors& inputs, const Tensors& v,
                                bool create_graph, bool strict, Location location) {
  const EnableGradGuard on;
  const Point point("vjp", inputs, create_graph, strict, location);
  const Tensors outputs = point.call(function);
  const Tensors product = point.gradients(outputs, point.inputs(), point.vectors(v, outputs), create_graph);
  return {point.finished(outputs), point.finished(point.filled(product, point.inputs(), "derivative by input"))};
}
std::pair<Tensor, Tensor> vjp(const TensorFunction& function, const TensorArg& input, const TensorArg& v,
                              bool create_graph, bool strict) {
  const auto [outputs, products] =
      vjp(of_lists(function), {input.get()}, list_of(v), create_graph, strict, input.location);
  return {outputs[0], products[0]};
}

// The gradient is linear in its weights, and its gradient by these is the jacobian times a vector.
std::pair<Tensors, Tensors> jvp(const TensorsFunction& function, const Tensors& inputs, const Tensors& v,
                                bool create_graph, bool strict, Location location) {
  const EnableGradGuard on;
  const Point point("jvp", inputs, create_graph, strict, location);
  const Tensors vectors = point.vectors(v, point.inputs()), outputs = point.call(function);
  Tensors weights;
  for (const Tensor& t : outputs) weights.push_back(zeros_like(t.detach()).requires_grad_());
  const Tensors gradients = point.gradients(outputs, point.inputs(), weights, true);
  const Tensors product = point.gradients(gradients, weights, vectors, create_graph);
  return {point.finished(outputs), point.finished(point.filled(product, outputs, "output"))};
}
std::pair<Tensor, Tensor> jvp(const TensorFunction& function, const TensorArg& input, const TensorArg& v,
                              bool create_graph, bool strict) {
  const auto [outputs, products] =
      jvp(of_lists(function), {input.get()}, list_of(v), create_graph, strict, input.location);
  return {outputs[0], products[0]};
}

std::pair<Tensor, Tensors> vhp(const TensorOfTensors& function, const Tensors& inputs, const Tensors& v,
                               bool create_graph, bool strict, Location location) {
  const EnableGradGuard on;
  const Point point("vhp", inputs, create_graph, strict, location);
  const Tensors vectors = point.vectors(v, point.inputs());
  const Tensor output = point.call_scalar(function);
  const Tensors gradients = point.gradients({output}, point.inputs(), {ones_like(output.detach())}, true);
  const Tensors product = point.gradients(gradients, point.inputs(), vectors, create_graph);
  return {point.finished(output), point.finished(point.filled(product, point.inputs(), "second derivative by input"))};
}
std::pair<Tensor, Tensor> vhp(const TensorFunction& function, const TensorArg& input, const TensorArg& v,
                              bool create_graph, bool strict) {
  const auto [output, products] =
      vhp(of_list(function), {input.get()}, list_of(v), create_graph, strict, input.location);
  return {output, products[0]};
}

std::pair<Tensor, Tensors> hvp(const TensorOfTensors& function, const Tensors& inputs, const Tensors& v,
                               bool create_graph, bool strict, Location location) {
  const EnableGradGuard on;
  const Point point("hvp", inputs, create_graph, strict, location);
  const Tensors vectors = point.vectors(v, point.inputs());
  const Tensor output = point.call_scalar(function);
  const Tensors gradients = point.gradients({output}, point.inputs(), {ones_like(output.detach())}, true);
  Tensors weights;
  for (const Tensor& t : point.inputs()) weights.push_back(zeros_like(t.detach()).requires_grad_());
  const Tensors second = point.gradients(gradients, point.inputs(), weights, true);
  const Tensors product = point.gradients(second, weights, vectors, create_graph);
  return {point.finished(output), point.finished(point.filled(product, point.inputs(), "second derivative by input"))};
}
std::pair<Tensor, Tensor> hvp(const TensorFunction& function, const TensorArg& input, const TensorArg& v,
                              bool create_graph, bool strict) {
  const auto [output, products] =
      hvp(of_list(function), {input.get()}, list_of(v), create_graph, strict, input.location);
  return {output, products[0]};
}

}  // namespace ingot::autograd::functional
