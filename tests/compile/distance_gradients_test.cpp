// The gradients of cdist: PyTorch's numbers, and no memory for the differences of all pairs.
#include "support.h"

namespace ingot {
namespace {

using namespace test;

std::vector<Tensor> gradients(const Tensor& x, const Tensor& y, const Tensor& weight, double p) {
  const Tensor a = x.detach().requires_grad_(), b = y.detach().requires_grad_();
  return autograd::grad({(cdist(a, b, p) * weight).sum()}, {a, b});
}

TEST(DistanceGradients, ArePyTorchs) {
  const Tensor x = tensor({{1.0, 2.0}, {0.5, -1.0}}).to(kFloat64);
  const Tensor y = tensor({{1.0, 2.0}, {3.0, 0.25}, {-2.0, 1.0}}).to(kFloat64);  // the first is x's first
  const Tensor weight = arange(1, 7).view({2, 3}).to(kFloat64);
  struct Case {
    double p;
    std::vector<double> of_x, of_y;
  };
  const Case cases[] = {{2,
                         {1.3408965047377854, 2.26569251378755, -0.4445190475628271, -9.92981395815491},
                         {0.6575959492214292, 3.945575695328575, 5.977289344413335, 0.9190587617627537,
                          -7.531262750809723, 2.7994869872760315}},
                        {3,
                         {1.5072315825468905, 1.413231339920366, -0.17857993466598998, -8.05824663436091},
                         {0.11076949321506668, 3.9877017557424006, 6.043316278861254, 0.0677196024126081,
                          -7.482737419957221, 2.5895939362855342}},
                        {1.5,
                         {1.190502953640204, 3.1660787258986565, -1.1055448915183534, -11.592292693838068},
                         {1.5975520106383254, 3.913187263621221, 6.1586177204736, 1.6634462037607076,
                          -7.841127793233776, 2.849580500557482}},
                        {0, {0, 0, 0, 0}, {0, 0, 0, 0, 0, 0}}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.p);
    const std::vector<Tensor> eager = gradients(x, y, weight, c.p);
    EXPECT_TRUE(allclose(eager[0].flatten(), tensor(c.of_x), 1e-13));
    EXPECT_TRUE(allclose(eager[1].flatten(), tensor(c.of_y), 1e-13));
    for (const DType dtype : {kFloat32, kFloat64, kBFloat16}) {
      const Tensor a = x.to(dtype), b = y.to(dtype), w = weight.to(dtype);
      const std::vector<Tensor> expected = gradients(a, b, w, c.p);
      const std::vector<Tensor> got = compile([&] { return gradients(a, b, w, c.p); })();
      EXPECT_TRUE(same_bits(got[0], expected[0]) && same_bits(got[1], expected[1])) << dtype;
    }
  }
}

TEST(DistanceGradients, StoreNoDifferences) {
  const Tensor x = randn({300, 64}), y = randn({200, 64}), weight = randn({300, 200});
  auto peak = [](const auto& f) {
    f();
    const int64_t before = memory_stats().allocated_bytes;
    reset_peak_memory_stats();
    f();
    return memory_stats().peak_beyond_scratch_bytes - before;
  };
  for (const double p : {1.0, 2.0, 3.0}) {
    auto f = [&] { return gradients(x, y, weight, p); };
    // All differences are 15 million bytes, all distances 240,000.
    EXPECT_LT(peak(f), 2'000'000) << p;
    EXPECT_LT(peak(compile(f)), 2'000'000) << p;
  }
}

}  // namespace
}  // namespace ingot
