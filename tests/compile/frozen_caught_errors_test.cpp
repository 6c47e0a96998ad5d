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

}  // namespace
}  // namespace ingot
