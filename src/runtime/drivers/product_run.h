// One batch of a product on one thread: the addresses of its operands, and the thread's scratch.
#pragma once
#include <array>

#include "runtime/drivers/product.h"

namespace ingot::runtime {

/// Bytes of scratch that differ by the way in which a product is computed.
struct ProductRooms {
  int64_t panels = 0, a = 0, addresses = 0, c = 0, prologue = 0;
};

/// Valid until the thread's scratch is asked for again.
struct ProductRun {
  ProductRun(const Product& product, const StepState& state, int64_t batch, const ProductRooms& rooms);
  /// Of the thread's scratch.
  static int64_t scratch_bytes(const Product& product, const ProductRooms& rooms);

  const Product& product;
  const StepState& state;
  struct Scratch {
    char *panels, *wide, *a, *b, *c, *epilogue, *prologue;
    const char** addresses;
    char** at;  // of each operand, then as many that an epilogue is called with
  } scratch;
  PlaneWalk walk;

 private:
  using Offsets = std::array<int64_t, 10>;  // of the parts of the scratch; the last: where they end
  static Offsets offsets_of(const Product& product, const ProductRooms& rooms);
  static Scratch lay_out(const Product& product, const ProductRooms& rooms);
};

}  // namespace ingot::runtime
