// Stretches of the tape whose derivatives are computed together.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "eager/autograd/node.h"

namespace ingot::autograd {

/// The nodes that one call of a compiled function left on the tape. They stand side by side there, so the engine comes
/// to them one after another.
class Stretch {
 public:
  virtual ~Stretch() = default;

  /// The engine's way through them, on one thread. What it calls meanwhile is recorded and computed at the end.
  class Pass {
   public:
    virtual ~Pass() = default;
    /// Computes what was recorded up to here, and goes on. Throws as finish().
    virtual void compute() = 0;
    /// Throws what eager would have thrown, where what is computed fails.
    virtual void finish() = 0;
    /// An error ends it: what was called before that is done op by op.
    virtual void abandon() = 0;
  };
  virtual std::unique_ptr<Pass> begin() = 0;

 private:
  friend void add_reference(Stretch& stretch);
  friend void drop_reference(Stretch& stretch);
  ReferenceCount references_;
};

/// A node and those behind it, as far as they have this number or a higher one, are of this stretch. Appends those that
/// were not.
void join(Node* node, uint64_t first, const StretchPtr& stretch, std::vector<Node*>& joined);

}  // namespace ingot::autograd
