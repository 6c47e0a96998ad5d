// Gradients that are taken inside a recorded call: what is saved, written and seen through views, custom functions,
// errors.
#include "support.h"

namespace ingot {
namespace {

using test::batch;
using test::error_of;
using test::same_bits;
namespace F = nn::functional;

TEST(Recorded, DerivativesInsideACall) {
  auto f = [](const Tensor& from) {
    Tensor x = from.detach().requires_grad_();
    Tensor first = autograd::grad({(x.sin() * x).sum()}, {x}, {}, {}, true)[0];
    return autograd::grad({first.square().sum()}, {x})[0];
  };
  auto fast = compile(f);
  for (int s = 0; s < 3; ++s) EXPECT_TRUE(same_bits(f(batch(4, s)), fast(batch(4, s))));
  EXPECT_EQ(fast.stats().graph_breaks, 0);
}

TEST(Recorded, ASavedTensorThatIsWrittenIsAnError) {
  auto pending = [](const Tensor& from) {
    Tensor x = from.detach().requires_grad_(), y = x.exp();
    y.add_(1);
    y.sum().backward();
    return x.grad();
  };
  auto outside = [](const Tensor& from) {
    Tensor x = from.detach().requires_grad_(), w = ones({8}), y = x * w;
    {
      NoGradGuard guard;
      w[0].mul_(3);
    }
    y.sum().backward();
    return x.grad();
  };
  Tensor weight = ones({8});
  auto captured = [&](const Tensor& from) {
    Tensor x = from.detach().requires_grad_(), y = x * weight, part = weight.slice(0, 2, 4);
    part.add_(1);
    y.sum().backward();
    return x.grad();
  };
  auto expect_refused = [](auto f) {
    auto fast = compile(f);
    for (int s = 0; s < 3; ++s) {
      const std::string eager = error_of([&] { f(batch(4, s)); }), compiled = error_of([&] { fast(batch(4, s)); });
      EXPECT_NE(eager.find("modified by an in-place operation"), std::string::npos) << eager;
      EXPECT_NE(compiled.find("modified by an in-place operation"), std::string::npos) << compiled;
    }
  };
  expect_refused(pending);
  expect_refused(outside);
  expect_refused(captured);
}

// Sizes from 16 on are symbols of an op's program, but a kernel's are not, nor are those of what becomes a kernel.
TEST(Recorded, ConvolutionsOfAnySize) {
  auto by_convolution = [](const Tensor& x, const Tensor& w, int64_t stride) { return conv2d(x, w, {}, stride, 1); };
  auto by_windows = [](const Tensor& x, const Tensor& w, int64_t stride) {
    Tensor windows = F::unfold(x, {w.size(2), w.size(3)}, 1, 1, stride);
    return matmul(w.flatten(1), windows);
  };
  auto gradients_of = [](auto f) {
    return [f](const Tensor& image, const Tensor& kernel, int64_t stride) {
      Tensor x = image.detach().requires_grad_(), w = kernel.detach().requires_grad_();
      Tensor y = f(x, w, stride).flatten(2);
      return autograd::grad({(y * y.detach().sin()).sum()}, {x, w});
    };
  };
  auto f = gradients_of(by_convolution);
  auto expected = gradients_of(by_windows);
  auto fast = compile(f);
  manual_seed(3);
  for (int64_t stride : {1, 2})
    for (auto [image, kernel] : {std::pair{20, 3}, {36, 3}, {36, 17}, {40, 17}, {40, 19}, {20, 17}}) {
      const Tensor x = randn({2, 2, image, image}, kFloat64), w = randn({3, 2, kernel, kernel}, kFloat64);
      const auto a = f(x, w, stride), b = expected(x, w, stride), c = fast(x, w, stride);
      for (int i : {0, 1}) {
        EXPECT_TRUE(allclose(a[i], b[i], 1e-9, 1e-9))
            << image << " by " << kernel << ", stride " << stride << ": " << i;
        EXPECT_TRUE(same_bits(a[i], c[i]));
      }
    }
}

// A view of a tensor from outside has no memory of its own while it is recorded: it is known by that of the tensor.
TEST(Recorded, AViewOfWhatWasWrittenBeforeIsSaved) {
  Tensor weight = ones({3, 8, 8});
  for (int i = 0; i < 5; ++i) weight.mul_(1.25);
  auto f = [&](const Tensor& x) { return x.matmul(weight[1]).tanh().matmul(weight.select(0, 2).t()); };
  auto whole = [&](const Tensor& x) { return autograd::grad({f(x).sum()}, {x})[0]; };
  auto alone = compile(f);
  auto fast = compile(whole);
  for (int s = 0; s < 3; ++s) {
    const Tensor x = (batch(4, s) * 0.1).requires_grad_();
    const Tensor expected = whole(x);
    EXPECT_TRUE(same_bits(autograd::grad({alone(x).sum()}, {x})[0], expected));
    EXPECT_TRUE(same_bits(fast(x), expected));
    const Tensor y = alone(x);
    weight.mul_(1);
    const std::string error = error_of([&] { y.sum().backward(); });
    EXPECT_NE(error.find("modified by an in-place operation"), std::string::npos) << error;
  }
}

// Saved in a recording, written before or after its end.
TEST(Recorded, VersionsGoOnBehindTheEndOfACall) {
  auto f = compile([](const Tensor& x) {
    Tensor y = (x * 2).add_(1).mul_(2);
    return std::vector<Tensor>{y, y.exp()};
  });
  for (int s = 0; s < 3; ++s) {
    Tensor x = batch(2, s).requires_grad_();
    auto fine = f(x);
    fine[1].sum().backward();
    EXPECT_TRUE(allclose(x.grad(), 4 * fine[1].detach()));
    auto written = f(x);
    {
      NoGradGuard guard;
      written[1].add_(1);
    }
    EXPECT_NE(error_of([&] { written[1].sum().backward(); }).find("in-place"), std::string::npos);
  }
}

// Refused only where the recording ends: the tensor was not written, so its gradient is that of before, and so is what
// was saved of it.
TEST(Recorded, AWriteThatIsRefusedLateIsNotOnTheTape) {
  const Tensor good = tensor({1, 0}), bad = tensor({1, 7});
  for (const bool of_view : {false, true})
    for (const bool later_one : {false, true})
      for (const Tensor& at : {good, bad, good}) {
        SCOPED_TRACE(std::to_string(of_view) + std::to_string(later_one));
        auto f = [&](const Tensor& x) {
          Tensor y = x * 3, square = y * y, z = x * 5;
          Tensor to = of_view ? y.narrow(0, 0, 2) : y;
          try {
            (void)x.sum().item<double>();
            to.index_put_({at}, 0.25);
            if (later_one) z.mul_(x);
            (void)x.sum().item<double>();
          } catch (const Error&) {
          }
          std::vector<Tensor> results{y, z, y.narrow(0, 1, 2)};
          if (at.is_same(bad)) results.push_back(square);
          for (Tensor r : std::vector<Tensor>(results)) results.push_back(autograd::grad({r.sum()}, {x}, {}, true)[0]);
          return results;
        };
        auto fast = compile(f);
        for (int call = 0; call < 3; ++call) {
          const Tensor x = batch(4, call).requires_grad_();
          const std::vector<Tensor> expected = f(x), got = fast(x);
          ASSERT_EQ(got.size(), expected.size());
          for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(same_bits(got[i], expected[i])) << i;
        }
      }
}

TEST(Recorded, WritesToViewsAreOnTheTape) {
  auto f = [](const Tensor& from) {
    Tensor x = from.detach().requires_grad_(), y = x * 1, row = y[1];
    row.mul_(row.detach().clone());
    y.narrow(1, 2, 3).mul_(2);
    (y * y).sum().backward();
    return x.grad();
  };
  auto fast = compile(f);
  for (int s = 0; s < 3; ++s) EXPECT_TRUE(same_bits(f(batch(4, s)), fast(batch(4, s))));
}

TEST(Recorded, AResultOfAWriteToAViewIsDerivedTwice) {
  auto f = [](const Tensor& from) {
    Tensor x = from.detach().requires_grad_(), y = x.clone();
    y.slice(0, 0, 3)[1].exp_();
    Tensor first = autograd::grad({y.sin().sum()}, {x}, {}, {}, true)[0];
    return autograd::grad({first.square().sum()}, {x})[0];
  };
  auto fast = compile(f);
  for (int s = 0; s < 3; ++s) EXPECT_TRUE(same_bits(f(batch(4, s)), fast(batch(4, s))));
  EXPECT_EQ(fast.stats().graph_breaks, 0);
}

// A gradient that reaches a leaf as it came from outside, or as another's view, is another's memory.
TEST(Recorded, AGradientIsTheLeafsOwn) {
  using Made = Tensor (*)(const Tensor&, const Tensor&);
  const std::vector<std::pair<const char*, Made>> ways{
      {"add", [](const Tensor& a, const Tensor& b) { return a + b; }},
      {"sub", [](const Tensor& a, const Tensor& b) { return a - b; }},
      {"clone", [](const Tensor& a, const Tensor&) { return a.clone(); }},
      {"cat", [](const Tensor& a, const Tensor&) { return cat({a}); }},
      {"pad",
       [](const Tensor& a, const Tensor&) {
         return F::pad(a, {0, 0});
       }},
      {"expand",
       [](const Tensor& a, const Tensor&) {
         return a.expand({2, 3, 2, 2});
       }},
      {"add_",
       [](const Tensor& a, const Tensor&) {
         return zeros({2, 3, 2, 2}).add_(a);
       }},
      {"copy_",
       [](const Tensor& a, const Tensor&) {
         return zeros({2, 3, 2, 2}).copy_(a);
       }},
      {"views",
       [](const Tensor& a, const Tensor& b) {
         return a.reshape({4, 6}).reshape({2, 3, 2, 2}) + (b + 1);
       }},
      {"hook", [](const Tensor& a, const Tensor& b) { return a * b; }},
  };
  const Tensor values = rand({2, 3, 2, 2});
  for (const auto& [name, made] : ways)
    for (const Tensor& given : {values, full({1, 1, 1, 1}, 2.0).expand({2, 3, 2, 2}),
                                values.permute({0, 2, 3, 1}).contiguous().permute({0, 3, 1, 2})}) {
      const Tensor before = given.clone();
      const bool hooked = std::string(name) == "hook";
      auto train = [&](auto f) {
        Tensor a = ones({2, 3, 2, 2}).requires_grad_(), b = ones({2, 3, 2, 2}).requires_grad_();
        if (hooked) a.register_hook([&](const Tensor&) { return given; });
        std::vector<Tensor> gradients;
        for (int i = 0; i < 3; ++i) {
          f(a, b, given);
          for (const Tensor& t : {a, b}) {
            if (!t.grad().defined()) continue;
            EXPECT_TRUE(t.grad().is_contiguous()) << name;
            EXPECT_FALSE(t.grad().shares_storage(given)) << name;
            gradients.push_back(t.grad().clone());
          }
          if (b.grad().defined()) {
            EXPECT_FALSE(a.grad().shares_storage(b.grad())) << name;
          }
          if (i == 1) a.set_grad({}), b.set_grad({});
        }
        return gradients;
      };
      auto f = [made = made](const Tensor& a, const Tensor& b, const Tensor& go) { made(a, b).backward(go); };
      const std::vector<Tensor> eager = train(f), compiled = train(compile(f));
      ASSERT_EQ(eager.size(), compiled.size()) << name;
      for (size_t i = 0; i < eager.size(); ++i) EXPECT_TRUE(same_bits(eager[i], compiled[i])) << name;
      EXPECT_TRUE(same_bits(given, before)) << name;
    }
}

TEST(Recorded, GradientsThatAreOneMemoryPart) {
  auto f = [](const Tensor& a, const Tensor& b, const Tensor& c) {
    const Tensor viewed = a.reshape({2, 2}), rest = b + c;
    (viewed + rest).square().sum().backward();
  };
  auto train = [](auto step) {
    const Tensor a = ones({4}).requires_grad_(), b = ones({2, 2}).requires_grad_(), c = ones({2, 2}).requires_grad_();
    step(a, b, c);
    b.mutable_grad().add_(1), c.mutable_grad().add_(2);
    for (const Tensor& t : {a, b, c}) EXPECT_TRUE(t.grad().is_contiguous());
    return cat({a.grad(), b.grad().reshape({4}), c.grad().reshape({4})});
  };
  auto fast = compile(f);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(same_bits(train(f), train(fast)));
}

// Whether the gradient of a view is the cotangent as it is hangs on which sizes are equal.
TEST(Recorded, ViewsWithEqualAndUnequalSizes) {
  auto f = [](const Tensor& from, int64_t n) {
    Tensor x = from.detach().requires_grad_();
    Tensor viewed = x.view({n, -1}), shaped = (x * 2).reshape({-1, n}), part = x.slice(1, 0, n);
    Tensor loss = (viewed * viewed).sum() + (shaped.cumsum(0) * shaped).sum() + (part * part.detach().cos()).sum();
    loss.backward();
    return x.grad();
  };
  auto fast = compile(f);
  for (int64_t n : {40, 60, 40, 30, 80, 60, 40}) {
    const Tensor x = randn({40, 60});
    EXPECT_TRUE(same_bits(f(x, n), fast(x, n))) << n;
  }
}

// The mask of a dropout is drawn once: forward and backward have the same one.
TEST(Recorded, DrawsAndScalarsAreShared) {
  auto f = [](const Tensor& from, double p, double scale) {
    Tensor x = from.detach().requires_grad_();
    Tensor y = dropout(x * scale, p);
    (y * y).sum().backward();
    return std::vector<Tensor>{y.detach(), x.grad()};
  };
  auto fast = compile(f);
  for (int s = 0; s < 5; ++s) {
    const Tensor x = batch(16, s);
    manual_seed(3);
    const auto a = f(x, 0.1 * s, 1.0 + s);
    manual_seed(3);
    const auto b = fast(x, 0.1 * s, 1.0 + s);
    EXPECT_TRUE(same_bits(a[0], b[0]));
    EXPECT_TRUE(same_bits(a[1], b[1]));
    EXPECT_TRUE(same_bits(a[1], 2 * a[0] * ((a[0] == 0).logical_not() * ((1.0 + s) / (1 - 0.1 * s)))) || s > 0);
  }
  EXPECT_LE(fast.explain().programs.size(), 2u);
}

TEST(Recorded, NothingIsKeptOfACallThatDropsItsTape) {
  auto f = compile([](const Tensor& from) {
    Tensor x = from.detach().requires_grad_();
    Tensor unused = (x.exp() * x.tanh()).sum();  // a tape that nobody walks
    return from * 2;
  });
  for (int s = 0; s < 3; ++s) f(batch(4, s));
  // Only what is returned is computed.
  ASSERT_FALSE(f.explain().programs.empty());
  const auto explanation = f.explain();
  for (const auto& op : explanation.programs.back().ops) EXPECT_EQ(op.op, "mul");
}

// What a node keeps of its own result is another handle of it: not an op, and there when the result is not held.
TEST(Recorded, AKeptResultOutlivesItsTensor) {
  auto f = [](const Tensor& x) {
    Tensor first = x.tanh(), second = first.sigmoid().exp();
    return std::vector<Tensor>{first * 3, second.softmax(1) + first.sqrt().nan_to_num()};
  };
  auto gradient = [](const std::vector<Tensor>& results, const Tensor& x) {
    return autograd::grad({(results[0] * results[1]).sum()}, {x})[0];
  };
  auto fast = compile(f);
  std::vector<std::pair<Tensor, std::vector<Tensor>>> kept;  // calls of other sizes come between
  for (int s = 0; s < 6; ++s) {
    Tensor x = batch(s % 2 ? 5 : 4, s).requires_grad_();
    kept.emplace_back(x, fast(x));
  }
  while (!kept.empty()) {
    const auto [x, results] = kept.back();
    kept.pop_back();
    EXPECT_TRUE(same_bits(gradient(results, x), gradient(f(x), x)));
  }
  const auto explanation = fast.explain();
  for (const auto& program : explanation.programs)
    for (const auto& op : program.ops) EXPECT_NE(op.op, "detach");
}

TEST(Recorded, AKeptResultIsThatOfItsOwnCall) {
  auto f = compile([](const Tensor& x) { return x.exp(); });
  Tensor x = batch(3, 0).requires_grad_(), other = batch(3, 1).requires_grad_();
  const Tensor y = f(x), z = f(other), shared = y.detach();
  EXPECT_TRUE(same_bits(autograd::grad({y.sum()}, {x}, {}, true)[0], x.detach().exp()));
  EXPECT_TRUE(same_bits(autograd::grad({z.sum()}, {other})[0], other.detach().exp()));
  shared.mul_(2);  // the memory of y, and of what is kept of it
  EXPECT_NE(error_of([&] { y.sum().backward(); }).find("modified by an in-place operation"), std::string::npos);
}

TEST(Recorded, AKeptResultThroughBreaksAndErrors) {
  Tensor escaped;
  auto f = [&](const Tensor& x, const Tensor& rows) {
    escaped = x.tanh().exp() * 2;
    if (escaped.sum().item<float>() < 0) return x;
    escaped = escaped.tanh().sigmoid() * 3;
    return escaped.index_select(0, rows);
  };
  auto fast = compile(f);
  for (int s = 0; s < 4; ++s) {
    const Tensor rows = tensor({1, s % 2 ? 9 : 0});
    Tensor gradients[2];
    for (const bool compiled : {false, true}) {
      Tensor x = batch(4, s).requires_grad_();
      const std::string error = error_of([&] { compiled ? fast(x, rows) : f(x, rows); });
      EXPECT_EQ(error.empty(), s % 2 == 0) << error;
      gradients[compiled] = autograd::grad({escaped.sum()}, {x})[0];
    }
    EXPECT_TRUE(same_bits(gradients[0], gradients[1]));
  }
}

TEST(Recorded, CustomFunctions) {
  struct Cube : autograd::Function<Cube> {
    static Tensor forward(autograd::AutogradContext* context, const Tensor& x) {
      Tensor result = x * x * x;
      context->save_for_backward({x, result});
      return result;
    }
    static std::vector<Tensor> backward(autograd::AutogradContext* context, const std::vector<Tensor>& gradients) {
      const auto saved = context->get_saved_variables();
      EXPECT_TRUE(saved[1].defined());
      return {3 * saved[0] * saved[0] * gradients[0]};
    }
  };
  auto f = [](const Tensor& from) {
    Tensor x = from.detach().requires_grad_();
    Tensor first = autograd::grad({Cube::apply(x).sum()}, {x}, {}, {}, true)[0];
    return std::vector<Tensor>{first.detach(), autograd::grad({first.sum()}, {x})[0]};
  };
  auto fast = compile(f);
  for (int s = 0; s < 3; ++s) {
    const Tensor x = batch(3, s);
    const auto a = f(x), b = fast(x);
    EXPECT_TRUE(same_bits(a[0], b[0]));
    EXPECT_TRUE(same_bits(a[1], b[1]));
    EXPECT_TRUE(allclose(a[1], 6 * x));
  }
}

TEST(Recorded, ACustomOpHasNoDerivative) {
  auto opaque = custom_op("twice", [](const Tensor& x) {
    Tensor result = empty_like(x.detach());
    const float* from = x.data_ptr<float>();
    float* to = result.mutable_data_ptr<float>();
    for (int64_t i = 0; i < x.numel(); ++i) to[i] = 2 * from[i];
    return result;
  });
  auto f = [&](const Tensor& from) {
    Tensor x = from.detach().requires_grad_();
    (opaque(x) + x).sum().backward();
    return x.grad();
  };
  auto fast = compile(f);
  for (int s = 0; s < 2; ++s) {
    EXPECT_NE(error_of([&] { f(batch(2, s)); }).find("twice: a gradient reaches its result"), std::string::npos);
    EXPECT_NE(error_of([&] { fast(batch(2, s)); }).find("twice: a gradient reaches its result"), std::string::npos);
  }
  NoGradGuard guard;
  opaque(batch(2, 1).requires_grad_());
}

}  // namespace
}  // namespace ingot
