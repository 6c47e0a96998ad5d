// An op that is refused and caught inside a frozen callable leaves nothing to the ops after it.
#include <string>

#include "support.h"

namespace ingot {
namespace {

using test::same_bits;

template <class Refused>
void judge(const char* name, Refused refused) {
  auto f = [&](const Tensor& x) {
    std::string text;
    try {
      refused(x);
    } catch (const Error& e) {
      text = e.what();
    }
    return std::pair(x.clone().select(0, 0).slice(0, 1, x.size(1)) + 1, text);
  };
  auto fast = compile(f, {.mode = CompileMode::frozen});
  for (int64_t n : {3, 3, 3, 4, 4, 5, 6}) {
    const Tensor x = randn({2, n});
    auto [got, text] = fast(x);
    auto [expected, expected_text] = f(x);
    EXPECT_TRUE(same_bits(got, expected)) << name << " " << n;
    EXPECT_EQ(text, expected_text) << name;
    EXPECT_FALSE(text.empty()) << name;
  }
}

TEST(FrozenCaughtErrors, LeaveNoNotesBehind) {
  judge("a position of a size", [](const Tensor& x) { return x.select(0, x.size(1)); });
  judge("a window of a size", [](const Tensor& x) { return x.narrow(0, 0, x.size(1) + 1); });
  judge("a shape of sizes", [](const Tensor& x) { return x.view({x.size(1), x.size(1) + 1}); });
  judge("a dim", [](const Tensor& x) { return x.slice(2, 0, x.size(1)); });
  judge("shapes", [](const Tensor& x) { return x.matmul(x.slice(1, 0, x.size(1))); });
}

// What is refused at the sizes that were seen first is taken at others.
template <class Taken>
void judge_taken(const char* name, Taken taken) {
  auto f = [&](const Tensor& x) {
    Tensor y = x + 1;
    try {
      y = taken(y);
    } catch (const Error&) {
    }
    return y * 2;
  };
  auto fast = compile(f, {.mode = CompileMode::frozen});
  for (int64_t n : {3, 3, 3, 4, 4, 1, 5, 5, 6, 7}) {
    const Tensor x = randn({n, 5});
    EXPECT_TRUE(same_bits(fast(x), f(x))) << name << " " << n;
  }
}

TEST(FrozenCaughtErrors, OtherSizesAreTakenWhereTheyFit) {
  const Tensor w = randn({5, 2});
  judge_taken("a product", [&](const Tensor& y) { return y.t().matmul(w); });
  judge_taken("a position", [](const Tensor& y) { return y.select(0, 4); });
  judge_taken("a window", [](const Tensor& y) { return y.narrow(0, 2, 3); });
  judge_taken("a shape", [](const Tensor& y) { return y.reshape({6, -1}); });
  judge_taken("a row chosen", [](const Tensor& y) { return y.index({5}); });
  judge_taken("pieces", [](const Tensor& y) { return y.split({2, 3})[1]; });
  judge_taken("a sum", [&](const Tensor& y) { return y + w.select(1, 0).unsqueeze(1); });
}

}  // namespace
}  // namespace ingot
