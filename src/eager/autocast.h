// Mixed precision: parameters stay f32, products are computed in 16 bits.
//
//   {
//     const AutocastGuard autocast;               // kBFloat16
//     loss = F::cross_entropy(model(x), y);       // forward and loss; the backward pass follows their dtypes
//   }
//   loss.backward();
//   opt.step();
//
// Which op is computed in which dtype stands in its row of the op table (docs/operators.md): products, convolutions,
// recurrent layers and attention take 16 bits; exponentials, logarithms, norms, sums, softmax and losses f32; all
// others the dtype in which their operands come. f64, integers and in-place forms are left alone. The casts are ops as
// others: they are on the tape, so the gradient of an f32 parameter is f32, and a compiled function casts a weight
// once.
#pragma once
#include "eager/tensor.h"

namespace ingot {

namespace eager {
class Interceptor;
}

/// Autocast to kBFloat16 or kFloat16, or none, while it lives, on this thread. Regions may be nested: the innermost
/// counts. Throws Error for another dtype.
class INGOT_API AutocastGuard {
 public:
  explicit AutocastGuard(DType dtype = DType::bf16, bool enabled = true, Location location = Location());
  explicit AutocastGuard(bool enabled, Location location = Location())
      : AutocastGuard(DType::bf16, enabled, location) {}
  ~AutocastGuard();
  AutocastGuard(const AutocastGuard&) = delete;

 private:
  eager::Interceptor* outer_;
};

/// Whether this thread is in a region of autocast.
INGOT_API bool is_autocast_enabled();
/// The dtype of its 16-bit ops; outside of a region kBFloat16.
INGOT_API DType get_autocast_dtype();

}  // namespace ingot
