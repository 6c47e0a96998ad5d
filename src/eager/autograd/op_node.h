// Nodes of the tape that derive ops of the table.
#pragma once
#include "eager/autograd/node.h"
#include "eager/call/dispatch.h"

namespace ingot::autograd {

/// A tensor kept for the backward pass, which must not be written to until then.
class SavedTensor {
 public:
  SavedTensor() = default;
  explicit SavedTensor(const Tensor& tensor);
  bool defined() const { return tensor_.defined(); }
  /// Throws Error where it was written to. `node`: whose it is, `what`: which of its operands, or "its result".
  const Tensor& get(const Node& node, const std::string& what) const;
  void part_from(const Tensor& base);

 private:
  Tensor tensor_;
  uint64_t version_ = 0;
};

/// The derivative of one call, as a derived call of it (ir::Derivative).
class OpNode final : public Node {
 public:
  /// Of a call that is about to be done: the edges of its operands as they are now. `also_first`: the gradient of
  /// operand 0 is wanted whether or not it leads anywhere.
  explicit OpNode(const eager::OpCall& call, bool also_first = false);
  /// Of a write: what the derivative reads of the tensor that is written is kept as a copy.
  void copy_overwritten(const eager::OpCall& call, const Tensor& base);
  /// It is done: keeps what the derivative reads.
  void save(const eager::OpCall& call, std::span<const Tensor> results);

  std::string name() const override;
  std::vector<Tensor> apply(const std::vector<Tensor>& cotangents, bool keep) override;
  void release() override;
  void part_from(const Tensor& base) override;

 private:
  struct Argument {
    eager::Operand scalar;  // where it is one
    SavedTensor tensor;
  };
  OpId op_;
  const ir::Derivative* of_;  // of the call itself
  std::vector<bool> wanted_;  // operands whose gradient goes on, one edge each
  std::vector<Argument> operands_;
  std::vector<SavedTensor> results_;
  std::vector<ir::Attr> attrs_;                 // of the call, then the shapes of what is not kept
  const ir::Derivative* derivative_ = nullptr;  // the derived call's: without gradients that are cotangents as they are
  std::vector<int> copies_;                     // of each edge: the cotangent that it is given as it is, or -1
  bool released_ = false;
};

/// Whether what as_strided looks at in the memory of a tensor are elements of it, counted in their order.
bool is_of_elements(const eager::OpCall& as_strided, const Tensor& tensor);
/// The node of a view as its parent is now.
NodePtr view_node(const Tensor& view);
/// A write through a view: what the tensor behind it is made by from then on. `inner`: the write, as if the view were a
/// tensor of its own.
NodePtr view_write_node(const Tensor& view, NodePtr inner);

}  // namespace ingot::autograd
