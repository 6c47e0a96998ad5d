// A compiled function that is replaced or destroyed while its calls are in progress: they end with the function that
// they began with.
#include <future>
#include <thread>

#include "support.h"

namespace ingot {
namespace {

using test::same_bits;

/// An argument that has something done where the call reads it: nothing else of a frozen call is users' code.
struct Told {
  Tensor x;
  std::function<void()> read;
};
[[maybe_unused]] auto ingot_fields(Told& told) { return std::tie(told.x); }
auto ingot_fields(const Told& told) {
  if (told.read) told.read();
  return std::tie(told.x);
}

using Callable = std::function<Tensor(const Tensor&)>;
using Function = decltype(compile(Callable()));

/// Tells whether the callable that holds it still lives.
struct Held {
  std::shared_ptr<Tensor> offset = std::make_shared<Tensor>(full({16}, 0.25));
  std::weak_ptr<Tensor> watch() const { return offset; }
};

Callable second() {
  return [](const Tensor& x) { return x - 1; };
}

TEST(Lifetime, OfAFunctionThatWasMovedFrom) {
  auto f = compile([](const Tensor& x) { return x * 2; });
  auto g = std::move(f);
  const Tensor x = tensor({1.f, 2.f}), y = x * 2;
  EXPECT_TRUE(bitwise_equal(g(x), y));
  EXPECT_TRUE(bitwise_equal(f(x), y));  // NOLINT: of what was moved from
  EXPECT_EQ(f.stats().compilations, g.stats().compilations);
}

TEST(Lifetime, OfAFunctionThatReplacesItselfInItsCall) {
  const Tensor x = randn({4, 16});
  for (bool destroyed : {false, true})
    for (bool compiled_before : {false, true}) {
      std::optional<Function> fast;
      std::weak_ptr<Tensor> watch;
      bool replace = false;
      {
        Held held;
        watch = held.watch();
        fast.emplace(compile(Callable([&fast, &replace, destroyed, held, first = held.watch()](const Tensor& t) {
          Tensor y = exp(t);
          if (replace) destroyed ? fast.reset() : void(*fast = compile(second()));
          EXPECT_FALSE(first.expired());
          return y * 2 + *held.offset;
        })));
      }
      const Tensor expected = exp(x) * 2 + full({16}, 0.25);
      if (compiled_before) EXPECT_TRUE(same_bits((*fast)(x), expected));
      replace = true;
      EXPECT_TRUE(same_bits((*fast)(x), expected));
      EXPECT_TRUE(watch.expired());
      if (!destroyed) EXPECT_TRUE(same_bits((*fast)(x), x - 1));
    }
}

TEST(Lifetime, OfAFunctionThatAnotherThreadReplacesInACall) {
  const Tensor x = randn({4, 16}), expected = exp(x) * 2 + full({16}, 0.25);
  for (bool destroyed : {false, true}) {
    std::optional<Function> fast;
    std::weak_ptr<Tensor> watch;
    std::promise<void> entered, replaced;
    {
      Held held;
      watch = held.watch();
      fast.emplace(compile(Callable([&, held](const Tensor& t) {
        Tensor y = exp(t);
        entered.set_value();
        replaced.get_future().wait_for(std::chrono::seconds(60));
        return y * 2 + *held.offset;
      })));
    }
    Tensor result;
    std::thread caller([&] { result = (*fast)(x); });
    EXPECT_EQ(entered.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
    destroyed ? fast.reset() : void(*fast = compile(second()));
    EXPECT_FALSE(watch.expired());
    replaced.set_value();
    caller.join();
    EXPECT_TRUE(watch.expired());
    EXPECT_TRUE(same_bits(result, expected));
  }
}

// Also where it is frozen: the call itself holds what it runs, from before its arguments are read.
TEST(Lifetime, OfAFrozenFunctionThatIsLetGoOfInItsCall) {
  const Tensor x = randn({4, 16});
  for (bool destroyed : {false, true}) {
    using Frozen = decltype(compile(std::function<Tensor(const Told&)>()));
    auto make = [](double factor) {
      return compile(std::function<Tensor(const Told&)>([factor](const Told& told) { return exp(told.x) * factor; }),
                     {.mode = CompileMode::frozen});
    };
    std::optional<Frozen> fast(make(2));
    for (int call = 0; call < 3; ++call) (*fast)(Told{x, {}});
    EXPECT_GT(fast->stats().frozen_calls, 0);
    Told told{x, [&] { destroyed ? fast.reset() : void(*fast = make(3)); }};
    EXPECT_TRUE(same_bits((*fast)(told), exp(x) * 2));
    told.read = {};
    if (!destroyed) EXPECT_TRUE(same_bits((*fast)(told), exp(x) * 3));
  }
}

// A frozen call does not enter its callable: what it holds is its program and what it captured.
TEST(Lifetime, OfAFrozenFunctionThatIsDestroyedInsideItsProfile) {
  const Tensor x = randn({4, 16});
  std::optional<Function> fast(
      compile(Callable([w = randn({16, 16})](const Tensor& t) { return t.matmul(w); }), {.mode = CompileMode::frozen}));
  for (int call = 0; call < 3; ++call) (*fast)(x);
  Tensor result;
  Explanation explanation = fast->profile([&] {
    result = (*fast)(x);
    fast.reset();
  });
  EXPECT_EQ(explanation.programs.size(), 1u);
  EXPECT_EQ(result.size(1), 16);
}

}  // namespace
}  // namespace ingot
