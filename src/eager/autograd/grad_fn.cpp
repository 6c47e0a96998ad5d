#include "eager/autograd/grad_fn.h"

#include "eager/autograd/node.h"

namespace ingot::autograd {

GradFn::GradFn(Node* node) : node_(std::make_shared<NodePtr>(node)) {}
std::string GradFn::name() const {
  if (!node_) throw Error("GradFn: name: no op made this tensor: a leaf has an empty grad_fn()");
  return (*node_)->name();
}
std::vector<GradFn> GradFn::next_functions() const {
  if (!node_) throw Error("GradFn: next_functions: no op made this tensor: a leaf has an empty grad_fn()");
  std::vector<GradFn> next;
  for (const Edge& edge : (*node_)->edges) next.push_back(edge.node ? GradFn(edge.node.get()) : GradFn());
  return next;
}

}  // namespace ingot::autograd
