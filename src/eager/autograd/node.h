// The tape: nodes that give the gradients of an op's operands from those of its results, and what a tensor knows of it.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/counted_ptr.h"
#include "base/inline_vector.h"
#include "base/mutex.h"
#include "eager/tensor.h"
#include "ir/op.h"

namespace ingot::autograd {

/// What goes when nobody holds it any more. One destroys another (a node its operands, they their nodes) along chains
/// as long as a program ran: they are taken apart one by one, without recursion.
class Discarded {
 public:
  Discarded() = default;
  Discarded(const Discarded&) = delete;
  virtual ~Discarded() = default;
  static void discard(Discarded* object);

 private:
  Discarded* next_ = nullptr;
};

class Deferred;
class Node;
class Stretch;

inline void add_reference(Node& node);
inline void drop_reference(Node& node);
void add_reference(Stretch& stretch);
void drop_reference(Stretch& stretch);
using NodePtr = CountedPtr<Node>;
using StretchPtr = CountedPtr<Stretch>;

/// Where the gradient of an operand goes: output `output` of a node, or a leaf; nowhere if it has neither.
struct Edge {
  NodePtr node;
  uint32_t output = 0;
  Tensor leaf;
  bool valid() const { return node || leaf.defined(); }
};

struct NumberedHook {
  int64_t id = 0;  // 0: keeps the gradient of a tensor that retains it
  uint32_t output = 0;
  Hook hook;
};

class Node : public Discarded {
 public:
  Node();
  /// "MulBackward", of the op that it derives.
  virtual std::string name() const = 0;
  /// The gradients of what the edges lead to; undefined: zero. `cotangents`: one for each output, undefined where zero.
  /// Unless `keep`, what was saved is let go of, and a second time is an Error.
  virtual std::vector<Tensor> apply(const std::vector<Tensor>& cotangents, bool keep) = 0;
  /// Lets go of what was saved, as if it had been applied.
  virtual void release() {}
  /// What it saved of this tensor, which is no view, is no longer what it was: it holds another handle from now on. So
  /// no tensor is held by its own past.
  virtual void part_from(const Tensor& /*base*/) {}
  /// Adds one to `counts[value]` for each handle of a pending tensor of this recording (TensorImpl::trace) that it
  /// keeps for its derivative as it is now, and shows to nobody.
  virtual void count_kept(uint64_t /*trace*/, std::vector<int32_t>& /*counts*/) const {}
  /// Such handles of values that have a Deferred go: it stands for them from now on.
  virtual void defer(uint64_t /*trace*/, std::span<const std::shared_ptr<const Deferred>> /*by_value*/) {}

  struct Output {
    DType dtype;
    Ints sizes;
  };
  InlineVector<Edge, 3> edges;
  InlineVector<Output, 1> outputs;  // what their gradients must be like
  std::vector<NumberedHook> hooks;
  uint64_t sequence;   // rises along the tape
  StretchPtr stretch;  // that it is part of
  Location location = Location::none();
  const std::string* module;  // that was called (kept_module_path)

 private:
  friend void add_reference(Node& node) { node.references_.add(); }
  friend void drop_reference(Node& node) {
    if (node.references_.drop()) discard(&node);
  }
  ReferenceCount references_;
};

/// The number that the next node has at least.
uint64_t next_sequence();

/// What a tensor has of the tape besides its node; most have nothing.
struct Meta : Discarded {
  Tensor grad;
  std::shared_ptr<Tensor> retained;  // of a tensor that is no leaf but keeps its gradient: shared with the node
  std::vector<NumberedHook> hooks;   // of a leaf
  std::vector<std::pair<int64_t, std::function<void(const Tensor&)>>> accumulated;  // hooks after it was added to grad
  // A view that gradients go through: what it is a view of, and how.
  Tensor parent;
  OpId view{};
  std::vector<ir::Attr> attrs;
  uint64_t seen = 0;     // `history` of the tensor behind all views, when the view's node was made
  uint64_t history = 0;  // writes that changed how the gradient goes, to this tensor or through views of it
  Tensor whole;          // of a slice in a vmap: the tensor of all slices (eager/call/batch.h)

  static void* operator new(size_t);
  static void operator delete(void* block);
};

Meta& meta_of(const Tensor& tensor);
/// Of Meta::grad of a leaf, to which several threads may add.
Mutex& gradient_lock(const Tensor& leaf);
/// Meta::grad. If what leads here is recorded and refused, it is what it was before.
void set_gradient(const Tensor& tensor, Tensor gradient);
/// The tensor is this output of the node, or a leaf. One that retains its gradient goes on to: that of what it is now.
void set_node(const Tensor& tensor, NodePtr node, uint32_t output = 0);
/// From now on the node of a tensor, which has one, keeps its gradient in Meta::retained.
void keep_gradient(const Tensor& tensor);
/// The tensor that is no view, behind a view.
const Tensor& base_of(const Tensor& tensor);
/// Brings the node of a view up to date with writes to what it is a view of.
void refresh(const Tensor& tensor);
/// Whether a gradient goes through this tensor now.
inline bool is_tracked(const Tensor& tensor) {
  if (tensor.impl()->autograd && tensor.impl()->autograd->parent.defined()) refresh(tensor);
  return tensor.impl()->requires_grad;
}
/// Of a tensor that is tracked.
inline Edge tracked_edge(const Tensor& tensor) {
  const ingot::detail::TensorImpl& impl = *tensor.impl();
  return impl.node ? Edge{NodePtr(impl.node), impl.output, {}} : Edge{{}, 0, tensor};
}
inline Edge edge_of(const Tensor& tensor) { return is_tracked(tensor) ? tracked_edge(tensor) : Edge(); }

/// What a gradient that goes along this edge, which leads somewhere, must be like.
inline Node::Output output_of(const Edge& edge) {
  if (edge.node) return edge.node->outputs[edge.output];
  return {edge.leaf.impl()->dtype, edge.leaf.impl()->sizes};
}

/// Where the backward() that this thread is in was called, while it lives.
class BackwardLine {
 public:
  explicit BackwardLine(Location line);
  ~BackwardLine();
  BackwardLine(const BackwardLine&) = delete;
  static Location current();

 private:
  const Location line_;
  const Location* const outer_;
};
/// How errors of a node end: " (FILE:LINE, in layer3.bn2; backward() at FILE:LINE)", the line of its op first.
std::string lines_of(const Node& node);
/// "f32[2, 3]".
std::string type_text(DType dtype, const Ints& sizes);
/// Throws the Error of a node whose saved tensors a backward() has let go of, at `used`.
[[noreturn]] void fail_used(const Node& node, Location used);

/// Throws Error unless the gradient is one for this output.
void check_gradient(const char* what, const Tensor& gradient, const Node::Output& output, Location location);
/// The gradient with these hooks done to it; `retain`: also those that keep it.
Tensor after_hooks(const std::vector<NumberedHook>& hooks, uint32_t output, Tensor gradient, const Node::Output& like,
                   bool retain);

}  // namespace ingot::autograd

namespace ingot::detail {
/// Takes a tensor off the tape, as if it were made anew.
void drop_autograd(TensorImpl& impl);
}  // namespace ingot::detail
