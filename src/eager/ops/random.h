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

/// Normal numbers, each of a mean and a standard deviation of its own: tensors of a floating dtype, which broadcast, or
/// one of them and a number. Of mean's dtype if that is a tensor, else std's. No gradient. A `std`
/// that is negative or NaN is an Error.
INGOT_API Tensor normal(const OperandArg& mean, const OperandArg& std = 1,
                        const std::optional<Generator>& generator = {});
/// Of one mean and standard deviation.
INGOT_API Tensor normal(double mean, double std, const IntList& size, const std::optional<Generator>& generator = {},
                        TensorOptions options = {}, Location location = Location());

/// A number of a Poisson distribution for each rate, from 0 to 1e12; of self's dtype, a floating one. No gradient.
/// These two read values: a graph break in compiled code. By Kemp, A Modal Method for Generating Binomial Variables,
/// 1986.
INGOT_API Tensor poisson(const TensorArg& self, const std::optional<Generator>& generator = {});
/// How many of `count` trials (whole numbers up to 1e12), each of probability `prob`, succeed. Both have one floating
/// dtype, and broadcast. No gradient.
INGOT_API Tensor binomial(const TensorArg& count, const TensorArg& prob,
                          const std::optional<Generator>& generator = {});

}  // namespace ingot
