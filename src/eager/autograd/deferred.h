// Tensors that a compiled forward pass does not save, as they are cheap to compute when the backward pass comes.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "eager/autograd/rerun.h"
#include "ir/graph.h"

namespace ingot::autograd {

/// The ops of an ir::Recipe at the sizes of a call: dims are sizes, scalars are numbered as those of a Deferred.
using DeferredOps = std::vector<ir::Node>;

/// A tensor as the ops that make it from others, which nobody writes to. What saved it holds it.
class Deferred {
 public:
  /// `scalars`: as f64 bits or i64.
  Deferred(std::shared_ptr<const DeferredOps> ops, std::vector<Tensor> from, std::vector<uint64_t> scalars)
      : ops_(std::move(ops)), from_(std::move(from)), scalars_(std::move(scalars)) {}
  /// Computes it anew, off the tape. May be called from several threads.
  Tensor compute() const;

 private:
  const std::shared_ptr<const DeferredOps> ops_;
  const std::vector<Tensor> from_;
  const std::vector<uint64_t> scalars_;
};
using DeferredPtr = std::shared_ptr<const Deferred>;

/// In the place of a saved tensor.
class DeferredTensor final : public Recomputed {
 public:
  DeferredTensor(DeferredPtr deferred, Edge to) : Recomputed(std::move(to)), deferred_(std::move(deferred)) {}
  const Tensor* intact(Tensor& room) override;

 private:
  const DeferredPtr deferred_;
};

}  // namespace ingot::autograd
