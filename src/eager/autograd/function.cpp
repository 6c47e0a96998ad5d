#include "eager/autograd/function.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "base/function_scope.h"
#include "base/module_path.h"
#include "eager/autograd/op_node.h"
#include "eager/call/batch.h"
#include "eager/call/call.h"
#include "eager/ops/functions.h"

namespace ingot::autograd {

namespace {

/// The number that a saved value holds, or nothing.
std::optional<Scalar> number_of(const std::any& value) {
  std::optional<Scalar> number;
  auto take = [&](auto of_type) {
    if (const auto* held = std::any_cast<decltype(of_type)>(&value)) number = *held;
  };
  take(bool()), take(int()), take(int64_t()), take(size_t()), take(float()), take(double()), take(Size());
  return number;
}

[[noreturn]] void fail_saved(const char* method, const char* expected, Location location) {
  eager::fail("saved_data", method, "a value of another type", expected, location);
}

}  // namespace

double SavedValue::toDouble(Location location) const {
  if (const auto number = number_of(*this)) return number->to<double>();
  fail_saved("toDouble", "a number", location);
}
int64_t SavedValue::toInt(Location location) const {
  if (const auto number = number_of(*this)) return number->to<int64_t>();
  fail_saved("toInt", "a number", location);
}
bool SavedValue::toBool(Location location) const {
  if (const auto number = number_of(*this)) return number->to<bool>();
  fail_saved("toBool", "a number", location);
}
Tensor SavedValue::toTensor(Location location) const {
  if (const auto* tensor = std::any_cast<Tensor>(this)) return *tensor;
  fail_saved("toTensor", "a tensor", location);
}

struct FunctionNode final : Node {
  std::string function;
  CalledFunction called;  // the library's that it is a part of; of a user's own, none
  detail::Backward backward = nullptr;
  AutogradContext context;
  std::vector<bool> wanted;  // by argument; an edge for each that is
  std::vector<SavedTensor> saved;
  std::vector<int> saved_results;  // of each saved tensor: the result that it is, or -1
  bool released = false;
  Location used = Location::none();  // the backward() that let go of them

  std::string name() const override { return function + "Backward"; }
  void release() override {
    if (!saved.empty()) released = true, used = BackwardLine::current();
    saved.clear();
  }
  std::vector<Tensor> apply(const std::vector<Tensor>& cotangents, bool keep) override;
  void part_from(const Tensor& base) override {
    for (SavedTensor& t : saved) t.part_from(base);
  }

  /// What forward saved. Results are kept as other handles, as the tensors themselves hold this node.
  void save(const tensor_list& results) {
    for (const Tensor& t : context.to_save_) {
      auto found = std::find_if(results.begin(), results.end(), [&](const Tensor& r) { return r.is_same(t); });
      saved_results.push_back(found == results.end() ? -1 : static_cast<int>(found - results.begin()));
      saved.push_back(!t.defined() ? SavedTensor() : SavedTensor(saved_results.back() < 0 ? t : t.detach(location)));
    }
    context.to_save_.clear();
    context.node_ = this;
  }
  tensor_list unpack() {
    if (released) fail_used(*this, used);
    tensor_list tensors;
    for (size_t i = 0; i < saved.size(); ++i) {
      Tensor& t = tensors.emplace_back();
      if (!saved[i].defined()) continue;
      Tensor room;
      t = saved[i].get(*this, "saved tensor " + std::to_string(i), room);
      if (saved_results[i] < 0 || !GradMode::is_enabled()) continue;
      t = t.detach(location);
      t.impl()->requires_grad = true;
      set_node(t, NodePtr(this), static_cast<uint32_t>(saved_results[i]));
    }
    return tensors;
  }
  void run(const tensor_list& arguments, const detail::Forward& forward, tensor_list* results);
};

namespace {

/// A gradient as an argument takes it: summed over what the argument was broadcast to, and of its dtype.
Tensor fitted(const std::string& function, Tensor gradient, const Node::Output& like, Location location) {
  const Ints given = gradient.impl()->sizes;
  if (given != like.sizes) {
    if (given.size() < like.sizes.size()) check_gradient(function.c_str(), gradient, like, location);
    const size_t lead = given.size() - like.sizes.size();
    std::vector<int64_t> summed;
    for (size_t d = 0; d < given.size(); ++d) {
      if (d >= lead && given[d] == like.sizes[d - lead]) continue;
      if (d >= lead && like.sizes[d - lead] != 1) check_gradient(function.c_str(), gradient, like, location);
      summed.push_back(static_cast<int64_t>(d));
    }
    gradient = gradient.sum(summed, true, {}, location)
                   .reshape(std::vector<int64_t>(like.sizes.begin(), like.sizes.end()), location);
  }
  return gradient.impl()->dtype == like.dtype ? gradient : gradient.to(like.dtype, location);
}

}  // namespace

std::vector<Tensor> FunctionNode::apply(const std::vector<Tensor>& cotangents, bool keep) {
  if (!backward)
    throw Error("backward: " + function + ": a gradient reaches its result, and it has no backward" + lines_of(*this));
  tensor_list given = cotangents;
  if (context.materialize_)
    for (size_t i = 0; i < given.size(); ++i)
      if (!given[i].defined())
        given[i] = zeros(std::vector<int64_t>(outputs[i].sizes.begin(), outputs[i].sizes.end()), outputs[i].dtype);
  const ModulePathScope path(*module);
  tensor_list gradients;
  {
    const FunctionScope scope(called);
    std::optional<CallerLine> own;
    if (!called.name) own.emplace(CallerLine::Own());
    gradients = backward(&context, given);
  }
  // Undefined ones beyond the arguments are for those that were left out.
  while (gradients.size() > wanted.size() && !gradients.back().defined()) gradients.pop_back();
  if (gradients.size() != wanted.size())
    throw Error("backward: " + function + ": got " + std::to_string(gradients.size()) + " gradients, expected " +
                std::to_string(wanted.size()) +
                ", one for each argument of its forward (each tensor of a list is one)" + lines_of(*this));
  std::vector<Tensor> result;
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i]) result.push_back(std::move(gradients[i]));
  for (size_t i = 0; i < result.size(); ++i)
    if (result[i].defined() && edges[i].valid())
      result[i] = fitted(function, std::move(result[i]), output_of(edges[i]), location);
  if (!keep)
    release();
  else
    for (const SavedTensor& t : saved) t.let_go();
  return result;
}

void FunctionNode::run(const tensor_list& arguments, const detail::Forward& forward, tensor_list* results) {
  bool tracked = false;
  for (const Tensor& t : arguments) {
    if (GradMode::is_enabled() && t.defined() && eager::is_slice(*t.impl()) && t.requires_grad())
      eager::fail(function, "", "a tensor inside of a vmap that requires grad",
                  "a function made of the library's ops, or to be called outside of the vmap", location);
    wanted.push_back(GradMode::is_enabled() && t.defined() && is_floating(t.impl()->dtype) && is_tracked(t));
    tracked |= wanted.back();
    if (wanted.back()) edges.push_back(edge_of(t));
  }
  context.wanted_ = wanted;
  const auto is_one_of = [](const tensor_list& list, const Tensor& t) {
    return std::any_of(list.begin(), list.end(), [&](const Tensor& other) { return other.is_same(t); });
  };
  {
    const NoGradGuard off;
    *results = forward(&context);
    for (Tensor& t : *results) {
      if (!t.defined()) eager::fail(function, "result", "an undefined tensor", "tensors", location);
      // An argument that is given back as it is: the result is another tensor.
      if (is_one_of(arguments, t) && !is_one_of(context.dirty_, t)) t = t.detach(location);
    }
  }
  if (!tracked) return;
  save(*results);
  for (size_t i = 0; i < results->size(); ++i) {
    const Tensor& t = (*results)[i];
    outputs.push_back({t.impl()->dtype, t.impl()->sizes});
    if (!is_floating(t.impl()->dtype) || is_one_of(context.constant_, t)) continue;
    const bool written = is_one_of(context.dirty_, t);
    if (written && t.impl()->autograd && t.impl()->autograd->parent.defined())
      eager::fail(function, "result", "a view that forward writes to", "a tensor of its own", location);
    set_node(t, NodePtr(this), static_cast<uint32_t>(i));
    if (written) ++meta_of(t).history;
    t.impl()->requires_grad = true;
  }
}

tensor_list AutogradContext::get_saved_variables() const { return node_ ? node_->unpack() : to_save_; }

std::string detail::type_name(const char* mangled) {
  int status = 0;
  char* whole = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
  std::string name = whole ? whole : mangled;
  std::free(whole);
  // Without namespaces, and without what a local class stands in.
  if (const size_t at = name.rfind("::"); at != std::string::npos) name = name.substr(at + 2);
  return name;
}

void detail::apply_function(const std::string& name, const tensor_list& arguments, Backward backward,
                            const Forward& forward, tensor_list* results, Location location) {
  auto* node = new FunctionNode;
  const NodePtr made = NodePtr::take(node);
  node->function = name;
  node->called = called_function();
  node->backward = backward;
  node->location = caller_line(location);
  node->run(arguments, forward, results);
}

}  // namespace ingot::autograd
