// Nodes of the tape that derive ops of the table.
#pragma once
#include <memory>
#include <vector>

#include "eager/autograd/deferred.h"
#include "eager/autograd/node.h"
#include "eager/call/dispatch.h"

namespace ingot::autograd {

/// A tensor kept for the backward pass, which must not be written to until then. In a region of checkpoint(), or where
/// a compiled function does not save it, it is not kept but computed again.
class SavedTensor {
 public:
  SavedTensor() = default;
  explicit SavedTensor(Tensor tensor);
  bool defined() const { return tensor_.defined() || recomputed_; }
  /// Throws Error where it was written to. `node`: whose it is, `what`: which of its operands, or "its result", `room`:
  /// where it may lie if it is not kept.
  const Tensor& get(const Node& node, const std::string& what, Tensor& room) const;
  /// The tensor, if it was not written to; else null.
  const Tensor* intact(Tensor& room) const;
  /// What was computed again goes; the next time it is once more. Where nothing was kept, nothing is written: another
  /// thread may be on its way back, too.
  void let_go() const {
    if (recomputed_ && recomputed_->tensor.defined()) recomputed_->tensor = {};
  }
  void part_from(const Tensor& base);
  void count(uint64_t trace, std::vector<int32_t>& counts) const;
  void defer(uint64_t trace, std::span<const DeferredPtr> by_value);

 private:
  Tensor tensor_;
  uint64_t version_ = 0;
  std::unique_ptr<Recomputed> recomputed_;
};

struct Plan;

/// The derivative of one call, as a derived call of it (ir::Derivative).
class OpNode final : public Node {
 public:
  /// Of a call whose results are like these: the edges of its operands as they are now, and what the derivative reads
  /// of them. `overwritten`: of a write that is about to be done, the tensor behind the one that it writes to. What is
  /// read of that is kept as a copy, and the gradient of a view is wanted whether or not it leads anywhere.
  OpNode(const eager::OpCall& call, std::span<const Tensor> results, const Tensor* overwritten = nullptr);
  ~OpNode() override;
  /// The call is done: keeps what the derivative reads of its results.
  void save(std::span<const Tensor> results);

  std::string name() const override;
  std::vector<Tensor> apply(const std::vector<Tensor>& cotangents, bool keep) override {
    return derive(cotangents, keep, nullptr);
  }
  /// `result`: where on the tape its only result is, if that is not this node's own.
  std::vector<Tensor> derive(const std::vector<Tensor>& cotangents, bool keep, const Edge* result);
  void release() override;
  void part_from(const Tensor& base) override;
  void count_kept(uint64_t trace, std::vector<int32_t>& counts) const override;
  void defer(uint64_t trace, std::span<const DeferredPtr> by_value) override;

  static void* operator new(size_t);
  static void operator delete(void* block);

 private:
  struct Scalar {
    size_t number;  // of the operand
    eager::Operand operand;
  };
  struct Shape {
    size_t number;
    ir::Attr attr;
  };
  /// Of the call.
  std::span<const ir::Attr> attributes() const;
  /// Adds the attributes of the derived call: those of the call, then the shapes of operands that are not kept.
  template <size_t N>
  void put_attributes(InlineVector<ir::Attr, N>& attrs) const;

  /// Of what was computed again.
  void let_go() const;

  std::shared_ptr<const Plan> plan_;
  InlineVector<SavedTensor, 3> operands_;  // none where all gradients are cotangents as they are
  InlineVector<SavedTensor, 1> results_;
  bool released_ = false;
  Location used_ = Location::none();            // the backward() that let go of them
  std::unique_ptr<std::vector<Shape>> shapes_;  // of operands that are neither kept nor told by an edge; rarely any
  InlineVector<Scalar, 1> scalars_;
  std::unique_ptr<std::vector<ir::Attr>> attrs_;  // of the call, where they are not those of the plan
};

/// Whether what as_strided looks at in the memory of a tensor are elements of it, counted in their order.
bool is_of_elements(const eager::OpCall& as_strided, const Tensor& tensor);
/// Throws Error for as_strided of a tensor that requires grad and has not these elements.
void check_elements(const eager::OpCall& call);
/// The node of a view as its parent is now.
NodePtr view_node(const Tensor& view);
/// A write through a view: what the tensor behind it is made by from then on. `inner`: the write, as if the view were a
/// tensor of its own.
NodePtr view_write_node(const Tensor& view, CountedPtr<OpNode> inner);

}  // namespace ingot::autograd
