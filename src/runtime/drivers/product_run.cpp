#include "runtime/drivers/product_run.h"

namespace ingot::runtime {

ProductRun::ProductRun(const Product& product, const StepState& state, int64_t batch, const ProductRooms& rooms)
    : product(product),
      state(state),
      scratch(lay_out(product, rooms)),
      walk(product.sizes.batch, product.operands, state, scratch.at, batch) {}

ProductRun::Offsets ProductRun::offsets_of(const Product& product, const ProductRooms& rooms) {
  const int64_t wide_bytes =
      product.calls->widen ? Product::kBlock * Product::kVector * product.max_vectors * product.c_element : 0;
  int64_t sizes[] = {rooms.panels,
                     wide_bytes,
                     rooms.a,
                     product.b_room,
                     rooms.c,
                     rooms.addresses,
                     product.calls->epilogue_scratch,
                     rooms.prologue,
                     2 * static_cast<int64_t>((product.operands.size() + 1) * sizeof(char*))};
  Offsets offsets;
  int64_t total = 0;
  for (size_t i = 0; i < std::size(sizes); ++i) {
    offsets[i] = total;
    total += round_up(sizes[i], 64) + (sizes[i] > 4096 ? 512 : 0);  // see allocator.cpp for the stagger
  }
  offsets.back() = total;
  return offsets;
}

int64_t ProductRun::scratch_bytes(const Product& product, const ProductRooms& rooms) {
  return offsets_of(product, rooms).back();
}

ProductRun::Scratch ProductRun::lay_out(const Product& product, const ProductRooms& rooms) {
  const Offsets offsets = offsets_of(product, rooms);
  char* memory = thread_scratch(offsets.back());
  return {memory + offsets[0],
          memory + offsets[1],
          memory + offsets[2],
          memory + offsets[3],
          memory + offsets[4],
          memory + offsets[6],
          memory + offsets[7],
          reinterpret_cast<const char**>(memory + offsets[5]),
          reinterpret_cast<char**>(memory + offsets[8])};
}

}  // namespace ingot::runtime
