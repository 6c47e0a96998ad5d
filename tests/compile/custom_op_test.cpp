// Ops of the user's own: the same eager and compiled, counted as graph breaks under their names, with typed errors.
#include "compile/custom_op.h"

#include <atomic>
#include <thread>

#include "support.h"

namespace ingot {
namespace {

using test::same_bits;

// What no op of ours does: a running product, in place of a library that is called through its own C API.
Tensor running_product(const Tensor& x, double start) {
  Tensor in = x.contiguous(), out = empty_like(in);
  const float* from = in.data_ptr<float>();
  float* to = out.mutable_data_ptr<float>();
  float product = static_cast<float>(start);
  for (int64_t i = 0; i < in.numel(); ++i) to[i] = product *= from[i];
  return out;
}

auto running() {
  return custom_op("running_product", running_product, [](const Tensor& x, double) {
    if (x.dtype() != kFloat32) throw Error("running_product: x: got another dtype, expected f32");
    return ResultType{kFloat32, x.sizes()};
  });
}

TEST(CustomOp, IsTheSameEagerAndCompiled) {
  auto op = running();
  auto f = [&](const Tensor& x) { return op(x.exp() + 1, 0.5).sqrt() * x; };
  auto fast = compile(f);
  for (int64_t n : {5, 5, 7, 9}) {
    Tensor x = randn({n});
    EXPECT_TRUE(same_bits(fast(x), f(x)));
  }
  EXPECT_EQ(fast.stats().fallbacks, 0);
  EXPECT_EQ(fast.stats().graph_breaks, 4);
  EXPECT_EQ(fast.stats().compilations, 4) << "two parts, each at first for one size, then for any";
  Explanation e = fast.explain();
  ASSERT_EQ(e.breaks.size(), 1u);
  EXPECT_EQ(e.breaks[0].op, "running_product");
  EXPECT_EQ(e.breaks[0].count, 4);
  EXPECT_NE(e.breaks[0].location.find("custom_op_test.cpp"), std::string::npos);
}

TEST(CustomOp, AtTheStartOfACallItIsCountedToo) {
  auto op = running();
  auto fast = compile([&](const Tensor& x) { return op(x, 1.0) * 2; });
  Tensor x = randn({4});
  EXPECT_TRUE(same_bits(fast(x), running_product(x, 1.0) * 2));
  EXPECT_EQ(fast.stats().graph_breaks, 1);
  EXPECT_EQ(fast.explain().breaks.at(0).op, "running_product");
}

TEST(CustomOp, TakesAndGivesWhatFunctionsDo) {
  auto pair = custom_op("split_signs", [](const std::vector<Tensor>& list, std::string which) {
    Tensor x = list.at(0);
    return std::tuple<Tensor, Tensor, int64_t>(x.clamp_min(0), x.clamp_max(0), which == "count" ? x.numel() : 0);
  });
  auto f = [&](const Tensor& x) {
    auto [positive, negative, count] = pair({x * 2}, "count");
    return positive * static_cast<double>(count) - negative;
  };
  Tensor x = randn({6});
  EXPECT_TRUE(same_bits(compile(f)(x), f(x)));
  // Nothing to give: it writes to what it was given.
  auto fill = custom_op("fill_with_ramp", [](Tensor& x) {
    for (int64_t i = 0; i < x.numel(); ++i) x.mutable_data_ptr<float>()[i] = static_cast<float>(i);
  });
  auto g = [&](const Tensor& x) {
    Tensor y = x + 1;
    fill(y);
    return y * 3;
  };
  auto fast = compile(g);
  for (int call = 0; call < 3; ++call) EXPECT_TRUE(same_bits(fast(x), g(x)));
}

TEST(CustomOp, WhatItCallsIsNotRecorded) {
  auto op = custom_op("inner", [](const Tensor& x) { return x.tanh() + 1; });
  auto fast = compile([&](const Tensor& x) { return op(x * 2) * 3; });
  fast(ones({4}));
  for (const auto& program : fast.explain().programs) EXPECT_EQ(program.trace.find("tanh"), std::string::npos);
}

TEST(CustomOp, ErrorsNameTheOp) {
  auto message = [](auto&& action) -> std::string {
    try {
      action();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  auto identity = [](const Tensor& x) { return x; };
  EXPECT_NE(message([&] { custom_op("", identity); }).find("empty"), std::string::npos);
  EXPECT_NE(message([&] { custom_op("relu", identity); }).find("\"relu\""), std::string::npos);

  auto wrong = custom_op(
      "wrong", [](const Tensor& x) { return x + 1; },
      [](const Tensor&) {
        return ResultType{kFloat32, {3}};
      });
  Tensor x = ones({2});
  const std::string expected = "wrong: result: got f32[2], expected f32[3], as its rule states";
  EXPECT_EQ(message([&] { wrong(x); }).substr(0, expected.size()), expected);
  EXPECT_NE(message([&] { wrong(x); }).find("custom_op_test.cpp"), std::string::npos);
  auto fast = compile([&](const Tensor& x) { return wrong(x * 2); });
  EXPECT_EQ(message([&] { fast(x); }).substr(0, expected.size()), expected);
  auto nothing = custom_op("nothing", [](const Tensor&) { return Tensor(); });
  EXPECT_NE(message([&] { nothing(x); }).find("nothing: result: got an undefined tensor"), std::string::npos);
  // The rule refuses before anything runs, the same compiled.
  auto op = running();
  auto compiled = compile([&](const Tensor& x) { return op(x, 1.0); });
  Tensor wide = ones({2}, kFloat64);
  EXPECT_EQ(message([&] { compiled(wide); }), message([&] { op(wide, 1.0); }));
}

TEST(CustomOp, ExceptionsPassAndWhatRanBeforeHoldsAsInEager) {
  Tensor state = zeros({3});
  std::atomic<bool> fail = true;
  auto op = custom_op("fails", [&](const Tensor& x) {
    if (fail) throw std::runtime_error("mine");
    return x;
  });
  auto fast = compile([&](const Tensor& x) {
    state.add_(x);
    return op(x * 2) + state;
  });
  EXPECT_THROW(fast(ones({3})), std::runtime_error);
  EXPECT_TRUE(same_bits(state, ones({3})));
  fail = false;
  EXPECT_TRUE(same_bits(fast(ones({3})), full({3}, 4.0)));
}

TEST(CustomOp, InFrozenModeItIsRefusedAndStillRight) {
  auto op = running();
  auto f = [&](const Tensor& x) { return op(x + 1, 1.0); };
  auto fast = compile(f, {.mode = CompileMode::frozen});
  for (int call = 0; call < 4; ++call) {
    Tensor x = randn({3});
    EXPECT_TRUE(same_bits(fast(x), f(x)));
  }
  EXPECT_EQ(fast.explain().frozen.substr(0, 7), "refused");
}

TEST(CustomOp, ManyThreadsAtOnce) {
  auto op = running();
  auto f = [&](const Tensor& x) { return op(x.exp(), 1.0) + x; };
  auto fast = compile(f);
  std::vector<Tensor> inputs, outputs(8);
  for (int i = 0; i < 8; ++i) inputs.push_back(randn({5}));
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      for (int call = 0; call < 20; ++call) outputs[i] = fast(inputs[i]);
    });
  for (auto& t : threads) t.join();
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(same_bits(outputs[i], f(inputs[i])));
}

}  // namespace
}  // namespace ingot
