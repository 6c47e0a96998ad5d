// What made a tensor, as a user asks for it.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/counted_ptr.h"
#include "base/export.h"

namespace ingot::autograd {

class Node;

/// What made a tensor, on the tape.
class INGOT_API GradFn {
 public:
  GradFn() = default;
  explicit GradFn(Node* node);
  explicit operator bool() const { return node_ != nullptr; }
  /// "MulBackward", of the op.
  std::string name() const;
  /// What made the operands that gradients go to; empty ones are leaves.
  std::vector<GradFn> next_functions() const;

 private:
  std::shared_ptr<CountedPtr<Node>> node_;
};

}  // namespace ingot::autograd
