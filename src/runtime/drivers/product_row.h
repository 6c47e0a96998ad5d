// A product with one row of A, whose B is used once: it is read as it lies.
#pragma once
#include "runtime/drivers/product_result.h"

namespace ingot::runtime {

/// Whether MatmulStep::one_row is followed at these sizes.
bool reads_b_as_it_lies(const Product& product);
/// What the thread's scratch holds for it.
ProductRooms rooms_of_row(const Product& product);
/// One batch's panels.
void multiply_row(const Product& product, const ProductResult& result, const StepState& state, int64_t batch,
                  Range panels);

}  // namespace ingot::runtime
