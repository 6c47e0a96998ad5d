// Random numbers of the process's generator (eager/ops/generator.h), beside the random ops of the table.
#pragma once
#include <cstdint>

#include "eager/ops/functions.h"

namespace ingot {

/// Starts the random numbers of this process anew.
INGOT_API void manual_seed(uint64_t seed);
/// Uniform integers in [0, high).
INGOT_API Tensor randint(int64_t high, const IntList& size, TensorOptions options = {},
                         const std::optional<Generator>& generator = {}, Location location = Location());
/// In [low, high): two numbers and {} are a scalar between them, not a high and a size.
template <PlainInteger Low, PlainInteger High>
Tensor randint(Low low, High high, const IntList& size, TensorOptions options = {},
               const std::optional<Generator>& generator = {}, Location location = Location()) {
  return randint(ScalarArg(low, location), ScalarArg(high, location), size, options, generator);
}
/// With the sizes, and unless told otherwise the dtype, of another tensor: uniform in [0, 1), normal, uniform integers.
INGOT_API Tensor rand_like(const TensorArg& self, TensorOptions options = {},
                           const std::optional<Generator>& generator = {});
INGOT_API Tensor randn_like(const TensorArg& self, TensorOptions options = {},
                            const std::optional<Generator>& generator = {});
INGOT_API Tensor randint_like(const TensorArg& self, int64_t low, int64_t high, TensorOptions options = {},
                              const std::optional<Generator>& generator = {});
INGOT_API Tensor randint_like(const TensorArg& self, int64_t high, TensorOptions options = {},
                              const std::optional<Generator>& generator = {});

}  // namespace ingot
