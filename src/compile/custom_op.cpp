#include "compile/custom_op.h"

#include "eager/autograd/function.h"
#include "eager/call/call.h"
#include "ir/op.h"

namespace ingot {
namespace {

std::string text_of(DType dtype, const Ints& sizes) {
  std::string text = std::string(name_of(dtype)) + "[";
  for (size_t i = 0; i < sizes.size(); ++i) text += (i ? ", " : "") + std::to_string(sizes[i]);
  return text + "]";
}

}  // namespace

void detail::check_custom_name(const std::string& name) {
  if (name.empty()) throw Error("custom_op: name: got an empty one, expected one to show in errors and explain");
  if (ir::find_op(name))
    throw Error("custom_op: name: got \"" + name + "\", expected one that is not an op of Ingot's own");
}

void detail::check_custom_result(const std::string& name, const Tensor& result, const ResultType* stated,
                                 Location location) {
  if (!result.defined()) eager::fail(name, "result", "an undefined tensor", "a tensor", location);
  if (stated && (result.dtype() != stated->dtype || !(result.impl()->sizes == stated->sizes.items())))
    eager::fail(name, "result", text_of(result.dtype(), result.impl()->sizes),
                text_of(stated->dtype, stated->sizes.items()) + ", as its rule states", location);
}

std::vector<Tensor> detail::tracked_arguments(const LeafList& arguments) {
  std::vector<Tensor> tracked;
  for (const Leaf& leaf : arguments.items())
    if (GradMode::is_enabled() && leaf.kind == Leaf::Kind::tensor && leaf.tensor()->requires_grad())
      tracked.push_back(*leaf.tensor());
  return tracked;
}

void detail::end_tape(const std::string& name, const std::vector<Tensor>& tracked, const LeafList& result,
                      Location location) {
  std::vector<Tensor> ended;
  for (const Leaf& leaf : result.items())
    if (leaf.kind == Leaf::Kind::tensor && leaf.tensor()->defined() && !leaf.tensor()->requires_grad() &&
        is_floating(leaf.tensor()->dtype()))
      ended.push_back(*leaf.tensor());
  if (ended.empty()) return;
  std::vector<Tensor> results;
  autograd::detail::apply_function(
      name, tracked, nullptr, [&](autograd::AutogradContext*) { return ended; }, &results, location);
}

void detail::run_custom(const std::string& name, Location location, const std::function<std::vector<Tensor>()>& body) {
  static_cast<void>(eager::dispatch(eager::OpaqueCall{name, location, body}));
}

}  // namespace ingot
