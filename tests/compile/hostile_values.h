// Values that derivatives meet at edges: NaN, infinities, zeros of both signs, ties, subnormal and huge numbers, for
// any call of the op table.
#pragma once
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "eager/call/dispatch.h"
#include "eager/op_support.h"
#include "ingot.h"
#include "uniform.h"

namespace ingot::test {

enum class Hostile { special, ties, zeros, ones, minus_infinity, infinity, one_nan, subnormal, huge, kinks, calm };
inline constexpr int kHostileKinds = static_cast<int>(Hostile::calm) + 1;

/// An element of a tensor of this kind; `i` is its number.
inline double hostile(Hostile kind, DType dtype, int64_t i, std::mt19937& random) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();
  auto one_of = [&](std::initializer_list<double> values) { return values.begin()[random() % values.size()]; };
  const double least = dtype == DType::f64   ? 0x1p-1074
                       : dtype == DType::f16 ? 0x1p-24
                       : dtype == DType::f32 ? 0x1p-149
                                             : 0x1p-133;
  const double normal = dtype == DType::f64 ? 0x1p-1022 : dtype == DType::f16 ? 0x1p-14 : 0x1p-126;
  const double most = dtype == DType::f64 ? 0x1p1023 : dtype == DType::f16 ? 0x1p15 : 0x1p127;
  switch (kind) {
    case Hostile::special:
      return one_of({kNaN, kInfinity, -kInfinity, 0.0, -0.0, 1.0, -1.0, 0.5, 2.0});
    case Hostile::ties:
      return one_of({0.0, -0.0, 1.0, 1.0, -1.0});
    case Hostile::zeros:
      return i % 2 ? -0.0 : 0.0;
    case Hostile::ones:
      return 1;
    case Hostile::minus_infinity:
      return -kInfinity;
    case Hostile::infinity:
      return kInfinity;
    case Hostile::one_nan:
      return i == 1 ? kNaN : one_of({0.25, 0.75, -0.5});
    case Hostile::subnormal:
      return one_of({least, -least, 3 * least, normal - least, normal, -normal, 0.0, 1.0});
    case Hostile::huge:
      return one_of({most, -most, std::sqrt(most), 1.0, -2.0});
    case Hostile::kinks:  // of activations, roundings, bounds
      return one_of({0.5, -0.5, 1.0, -1.0, 2.0, 3.0, -3.0, 6.0, 20.0, -20.0, 0.0});
    case Hostile::calm:
      break;
  }
  return ingot::test::uniform<double>(random, -2, 2);
}

}  // namespace ingot::test
