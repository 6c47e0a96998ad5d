// The transforms of Winograd's convolution F(4x4, 3x3) (Winograd, "Arithmetic Complexity of Computations", 1980; Lavin
// and Gray, "Fast Algorithms for Convolutional Neural Networks", 2016), each along one dim, side by side for all
// channels: six products give four results of three taps. The points 0, +-5/8, +-3/2 and infinity are numbers whose
// powers are exact, and err by half of what 0, +-1, +-2 do (Barabasz, Anderson, Soodhalter, Gregg, "Error Analysis and
// Improving the Accuracy of Winograd Convolution for Deep Neural Networks", 2020, on why points near 1 do).
#include "codegen/lower/winograd.h"

#include <array>
#include <span>
#include <string>

#include "codegen/builder.h"
#include "codegen/generate.h"
#include "codegen/lower/contraction.h"

namespace ingot::codegen::lowering {
namespace {

constexpr double kA = 0.625, kB = 1.5;
constexpr double kA2 = kA * kA, kB2 = kB * kB;

/// Six pixels to what is multiplied.
std::vector<Expr> of_pixels(std::span<const Expr> d) {
  const Expr even_a = fma(d[2], -kB2, d[4]), odd_a = fma(d[1], -kB2, d[3]), even_b = fma(d[2], -kA2, d[4]),
             odd_b = fma(d[1], -kA2, d[3]);
  return {fma(d[0], kA2 * kB2, fma(d[2], -(kA2 + kB2), d[4])),
          fma(odd_a, kA, even_a),
          fma(odd_a, -kA, even_a),
          fma(odd_b, kB, even_b),
          fma(odd_b, -kB, even_b),
          fma(d[1], kA2 * kB2, fma(d[3], -(kA2 + kB2), d[5]))};
}

/// Three taps to what they are multiplied with.
std::vector<Expr> of_taps(std::span<const Expr> g) {
  auto at = [&](double point, double square, double scale) {
    const Expr even = fma(g[2], square, g[0]) * scale, odd = g[1] * (point * scale);
    return std::array{even + odd, even - odd};
  };
  const auto a = at(kA, kA2, 1 / (2 * kA2 * (kA2 - kB2))), b = at(kB, kB2, 1 / (2 * kB2 * (kB2 - kA2)));
  return {g[0] * (1 / (kA2 * kB2)), a[0], a[1], b[0], b[1], g[2]};
}

/// Six products to four results.
std::vector<Expr> of_products(std::span<const Expr> m) {
  const Expr even_a = m[1] + m[2], odd_a = m[1] - m[2], even_b = m[3] + m[4], odd_b = m[3] - m[4];
  return {m[0] + even_a + even_b, fma(odd_b, kB, odd_a * kA), fma(even_b, kB2, even_a * kA2),
          fma(odd_b, kB * kB2, fma(odd_a, kA * kA2, m[5]))};
}

}  // namespace

Conv2dStep::Winograd winograd(StepWriter& w) {
  auto kernel = [&](uint32_t operands, std::vector<Expr> (*transform)(std::span<const Expr>), const char* name) {
    Kernel k;
    k.buffers.assign(operands, {DType::f32, Access::dense, false});
    Builder builder(k);
    std::vector<Expr> from;
    for (uint32_t i = 0; i < operands; ++i) from.push_back(builder.load(i));
    Phase phase;
    for (const Expr& e : transform(from)) {
      phase.stores.push_back({static_cast<uint32_t>(k.buffers.size()), e.value});
      k.buffers.push_back({DType::f32, Access::dense, true});
    }
    k.phases.push_back(std::move(phase));
    return w.made_once(kernel_key(print(k), w.target), [&] { return codegen::generate(k, w.target, name); });
  };
  return {product_kernels(w.target, {}), kernel(6, of_pixels, "winograd_pixels"), kernel(3, of_taps, "winograd_taps"),
          kernel(6, of_products, "winograd_products")};
}

}  // namespace ingot::codegen::lowering
