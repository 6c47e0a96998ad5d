// Random numbers of tests.
#pragma once
#include <random>

namespace ingot::test {

/// Evenly in [low, high), of one draw's bits. (std::uniform_real_distribution of GCC 12 takes two logarithms in long
/// double for each number.)
template <class T, class Random>
T uniform(Random& random, T low, T high) {
  constexpr double kRange = static_cast<double>(Random::max()) + 1;
  static_assert(Random::min() == 0);
  return static_cast<T>(low + (high - low) * (static_cast<double>(random()) / kRange));
}

}  // namespace ingot::test
