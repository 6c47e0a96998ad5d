// Walks the tape backwards.
#pragma once
#include <vector>

#include "eager/autograd/node.h"

namespace ingot::autograd {

struct BackwardRequest {
  std::vector<Tensor> roots, gradients;  // a gradient each; undefined: one, of a root with one element
  bool keep = false;                     // the tape, for another time
  bool record = false;                   // what is done here, for derivatives of higher order
  bool accumulate = true;                // into .grad of the leaves, or of `inputs` alone where there are some
  std::vector<Tensor> inputs;
  Location location;
};
/// Nodes run in strictly descending order of their sequence numbers, on this thread. The contributions to a tensor are
/// added in the order in which they arise, ((a + b) + c): this order is part of what a gradient is, to the bit. Gives
/// the gradients of `inputs` (undefined where no tape leads there), unless they are accumulated.
std::vector<Tensor> run_backward(const BackwardRequest& request);

}  // namespace ingot::autograd
