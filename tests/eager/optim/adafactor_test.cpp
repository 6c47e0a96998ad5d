// Adafactor beside PyTorch's numbers, in double.
#include <gtest/gtest.h>

#include "eager/autograd/autograd.h"
#include "eager/ops/functions.h"
#include "eager/optim/optimizers.h"
#include "eager/support.h"

namespace ingot::optim {
namespace {

Tensor start(const IntList& sizes, DType dtype = kFloat64) {
  return (((arange(12) * 5).remainder(7)).to(dtype).view(sizes) / 4 - 0.7).requires_grad_();
}
void step(Optimizer& opt, const Tensor& p) {
  opt.zero_grad();
  (p * p * (arange(12).view(p.sizes()).remainder(5) + 1)).sum().backward();
  opt.step();
}
Tensor after_four_steps(const IntList& sizes, const AdafactorOptions& options) {
  const Tensor p = start(sizes);
  Adafactor opt({p}, options);
  for (int i = 0; i < 4; ++i) step(opt, p);
  return p.detach().flatten();
}

TEST(Adafactor, IsPyTorchs) {
  const auto is = [](const Tensor& got, const std::vector<double>& expected) {
    EXPECT_TRUE(allclose(got, tensor(expected), 0, 1e-9)) << got;
  };
  is(after_four_steps({4, 3}, {.lr = 0.05}),
     {-0.5547117723, 0.4540763239, 0.0295794188, -0.3412076035, 0.6948905804, 0.2857107222, -0.1640504889,
      -0.6196693278, 0.4111889544, 0.0182251671, -0.4176805516, 0.6121552627});
  is(after_four_steps(
         {4, 3},
         {.lr = 0.05, .beta2_decay = -0.6, .eps = {1e-6, 1e-2}, .d = 1.5, .weight_decay = 0.1, .maximize = true}),
     {-0.8625651191, 0.6599916482, 0.0794243388, -0.5804780271, 0.9143205503, 0.3095185363, -0.2386246347, -0.782154885,
      0.7150600722, 0.1110040373, -0.4773860382, 1.0120713704});
  is(after_four_steps({12}, {.lr = 0.5}),
     {-0.186756349, 0.0814859895, -0.0001336739, -0.0307716092, 0.268016479, 0.0004782873, 8.3884e-06, -0.186756349,
      0.0814859895, -0.0001336739, -0.0307716092, 0.268016479});
  is(after_four_steps({2, 2, 3}, {.lr = 0.01}),
     {-0.6740814969, 0.5310901769, 0.0241304883, -0.4302136526, 0.779461942, 0.2806629399, -0.1801198951, -0.6772734317,
      0.5312100842, 0.0302592214, -0.4410610067, 0.775009372});
}

TEST(Adafactor, KeepsARowAndAColumn) {
  const Tensor p = start({4, 3}, kFloat32), q = start({4, 3}, kFloat32);
  Adafactor a({p}), b({q}, {.lr = 1});
  step(a, p);
  const StateDict state = a.state_dict();
  EXPECT_EQ(state.at("state.0.row_var").numel(), 4);
  EXPECT_EQ(state.at("state.0.col_var").numel(), 3);
  EXPECT_FALSE(state.contains("state.0.variance"));
  b.load_state_dict(state);
  {
    const NoGradGuard no_grad;
    q.copy_(p);
  }
  step(a, p), step(b, q);
  EXPECT_TRUE(equal(p, q));
}

TEST(Adafactor, Errors) {
  const auto says = [](const std::function<void()>& f, const char* text) {
    const std::string message = test::message_of(f);
    EXPECT_NE(message.find(text), std::string::npos) << message;
  };
  says([] { Adafactor({start({12})}, {.d = 0.5}); }, "Adafactor: d: got 0.5, expected 1 or more");
  says([] { Adafactor({start({12})}, {.beta2_decay = 1}); }, "Adafactor: beta2_decay: got 1");
  says([] { Adafactor({start({12})}, {.eps = {0, -1}}); }, "Adafactor: eps: got -1");
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{0}, {0, 3}, {}}) {
    const Tensor p = zeros(sizes, kBFloat16).requires_grad_();
    Adafactor opt({p});
    p.sum().backward();
    EXPECT_NO_THROW(opt.step());
  }
}

}  // namespace
}  // namespace ingot::optim
