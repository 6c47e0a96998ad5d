// Errors that a callable catches: what it does next must be what eager does, at any sizes, in any order of calls.
#include "support.h"

namespace ingot {
namespace {

/// Two errors at once, of which eager tells one: at sizes at which the call was not recorded too.
TEST(CaughtErrors, OfTwoErrorsEagersIsTold) {
  Tensor w = randn({4, 3}), positions = tensor({int64_t{0}, int64_t{2}, int64_t{3}});
  auto f = [&](const Tensor& x, int64_t size) {
    w.unfold(0, size, 1).index_put_({positions}, 0.25);
    return x * 2;
  };
  auto fast = compile(f);
  const Tensor x = randn({2});
  for (int round = 0; round < 3; ++round)
    for (int64_t size : {1, 3, 2, 1, 4}) {
      std::string expected, got;
      const Tensor before = w.clone();
      try {
        static_cast<void>(f(x, size));
      } catch (const Error& e) {
        expected = e.what();
      }
      w.copy_(before);
      try {
        static_cast<void>(fast(x, size));
      } catch (const Error& e) {
        got = e.what();
      }
      EXPECT_EQ(got, expected) << size;
    }
}

using test::same_bits;

/// Eager and compiled name the lines of their own calls.
template <class F>
std::string error_of(F&& f) {
  return test::without_line(test::error_of(f));
}

/// Calls f and its compiled form with the same arguments in turns and compares results and errors.
template <class F>
void check(F f, const std::vector<std::vector<Tensor>>& calls) {
  auto fast = compile(f);
  for (int round = 0; round < 3; ++round)
    for (const std::vector<Tensor>& arguments : calls) {
      Tensor got, expected;
      const std::string error = error_of([&] { got = fast(arguments); });
      ASSERT_EQ(error, error_of([&] { expected = f(arguments); }));
      if (error.empty()) ASSERT_TRUE(same_bits(got, expected)) << "round " << round;
    }
}

std::vector<std::vector<Tensor>> pairs() {
  std::vector<std::vector<Tensor>> calls;
  for (int64_t n : {3, 4, 3, 5, 1, 0, 3, 8, 4})
    for (int64_t m : {3, 4}) calls.push_back({randn({2, n}), randn({2, m})});
  return calls;
}

TEST(CaughtErrors, AnOpThatRefusesNewSizes) {
  check(
      [](const std::vector<Tensor>& a) {
        Tensor x = a[0] * 2;
        try {
          return x + a[1];  // of other sizes at some calls
        } catch (const Error&) {
          return x.sum() - a[1].sum();
        }
      },
      pairs());
}

TEST(CaughtErrors, BeforeMoreOfTheSameTensors) {
  check(
      [](const std::vector<Tensor>& a) {
        Tensor x = a[0].exp(), y;
        for (int i = 0; i < 3; ++i) {
          try {
            y = x.matmul(a[1].t()) + x.narrow(1, i, 2).sum();
          } catch (const Error&) {
            y = a[1] * 3 + i;
          }
          x = x + y.sum();
        }
        return x;
      },
      pairs());
}

TEST(CaughtErrors, AViewThatDoesNotFit) {
  check(
      [](const std::vector<Tensor>& a) {
        Tensor x = a[0] + 1;
        try {
          x = x.view({2, 2, 2});
        } catch (const Error&) {
          x = x.view({-1});
        }
        return x * 2;
      },
      pairs());
}

TEST(CaughtErrors, AWriteThatDoesNotFit) {
  check(
      [](const std::vector<Tensor>& a) {
        Tensor x = a[0].clone(), y = x * 1;
        try {
          x.add_(a[1]);
          y.narrow(1, 2, 2).copy_(a[1]);
        } catch (const Error&) {
          y.sub_(x.sum());
        }
        return y + x.mean();
      },
      pairs());
}

TEST(CaughtErrors, AroundAValueThatIsAskedFor) {
  Tensor table = randn({4, 3});
  check(
      [&](const std::vector<Tensor>& a) {
        Tensor sum = a[0].sum(), rows, other = a[0] * 2;
        try {
          rows = F::embedding(table, a[1]);
          if (rows.sum().item<float>() > 0) sum = sum + 1;
        } catch (const Error&) {
          sum = sum - 1;
        }
        return sum + other.sum();
      },
      {{randn({3}), tensor({0, 3})},
       {randn({3}), tensor({0, 9})},
       {randn({3}), tensor({1, 2})},
       {randn({5}), tensor({7, 2})},
       {randn({3}), tensor({0, 3})}});
}

TEST(CaughtErrors, AroundValuesAgainAndAgain) {
  Tensor table = randn({4, 3});
  check(
      [&](const std::vector<Tensor>& a) {
        Tensor total = zeros({3});
        for (int64_t i = 0; i < a[1].size(0); ++i) {
          Tensor row, kept = total * 2;
          try {
            row = table.index_select(0, a[1].narrow(0, i, 1));
            Tensor doubled = row * 2;
            if (doubled.sum().item<float>() > 0) total = total + 1;
            total = total + doubled.sum(0);
          } catch (const Error&) {
            total = kept + static_cast<double>(i);
          }
        }
        return total;
      },
      {{randn({1}), tensor({0, 3, 1})},
       {randn({1}), tensor({0, 9, 1})},
       {randn({1}), tensor({9, 9, 9})},
       {randn({1}), tensor({1, 2, -7})},
       {randn({1}), tensor({0, 3, 1})}});
}

TEST(CaughtErrors, PastTheRecompileLimit) {
  Tensor table = randn({4, 3});
  auto f = [&](const Tensor& x, int way, const Tensor& positions) {
    Tensor y = x * 2;
    for (int i = 0; i < way; ++i) y = y + i;
    try {
      Tensor rows = F::embedding(table, positions);
      y = y + rows.sum().item<float>();
    } catch (const Error&) {
      y = y - 1;
    }
    return y * 3;
  };
  CompileOptions options;
  options.recompile_limit = 2;
  auto fast = compile(f, options);
  for (int way = 0; way < 8; ++way)
    for (int64_t position : {3, 9, 0}) {
      Tensor x = randn({4}), p = tensor({int64_t{0}, position});
      Tensor expected, got;
      const std::string error = error_of([&] { got = fast(x, way, p); });
      ASSERT_EQ(error, error_of([&] { expected = f(x, way, p); })) << way << " " << position;
      if (error.empty()) ASSERT_TRUE(same_bits(got, expected)) << way << " " << position;
    }
}

// What eager refuses for its data is refused whether or not anybody looks at the result.
TEST(CaughtErrors, OfOpsWhoseResultsNobodyReads) {
  Tensor table = randn({4, 3});
  const std::vector<std::function<Tensor(const Tensor&, const Tensor&)>> ops{
      [&](const Tensor&, const Tensor& i) { return F::embedding(table, i); },
      [&](const Tensor&, const Tensor& i) { return table.index_select(0, i); },
      [&](const Tensor&, const Tensor& i) { return table.index({i}); },
      [&](const Tensor&, const Tensor& i) { return table.index({i * 1}); },
      [&](const Tensor& x, const Tensor& i) { return x.gather(0, i); },
      [&](const Tensor&, const Tensor& i) { return div(i + 7, i - 9, "floor"); },
      [&](const Tensor&, const Tensor& i) { return remainder(i, i - 9); },
  };
  for (size_t op = 0; op < ops.size(); ++op)
    for (bool others : {false, true}) {
      auto f = [&](const Tensor& x, const Tensor& i) {
        Tensor unused = ops[op](x, i), y = others ? x * 2 : x;
        unused = Tensor();
        return y;
      };
      auto fast = compile(f);
      for (int64_t position : {0, 3, 9, 2, 9, 9, 1}) {
        Tensor x = randn({4}), i = tensor({int64_t{1}, position}), got, expected;
        const std::string error = error_of([&] { got = fast(x, i); });
        ASSERT_EQ(error, error_of([&] { expected = f(x, i); })) << "op " << op << " at " << position;
        EXPECT_EQ(error.empty(), position != 9) << "op " << op;
        if (error.empty()) EXPECT_TRUE(same_bits(got, expected));
      }
    }
}

// Under guarded pages a read beyond the empty table would end the process.
TEST(CaughtErrors, OfPositionsInAnEmptyTable) {
  auto f = [](const Tensor& table, const Tensor& i) {
    return table.index({i}).sum(0) + table.index_select(0, i * 1).sum(0);
  };
  auto fast = compile(f);
  for (int64_t rows : {0, 4, 0, 3, 0, 1})
    for (int64_t count : {5, 0, 2}) {
      Tensor table = randn({rows, 2048}), i = zeros({count}, kInt64), got, expected;
      const std::string error = error_of([&] { got = fast(table, i); });
      ASSERT_EQ(error, error_of([&] { expected = f(table, i); })) << rows << " " << count;
      EXPECT_EQ(error.empty(), rows > 0 || count == 0);
      if (error.empty()) EXPECT_TRUE(same_bits(got, expected));
    }
}

TEST(CaughtErrors, OfTheCallItselfLeaveTheFunctionUsable) {
  auto f = [](const Tensor& x, const Tensor& y, bool fail) {
    Tensor z = x * y;
    if (fail) throw std::runtime_error("mine");
    return z + 1;
  };
  auto fast = compile(f);
  Tensor x = randn({3});
  for (int i = 0; i < 12; ++i) {
    Tensor y = randn({i % 4 == 3 ? 5 : 3});
    Tensor got, expected;
    bool mine = false, refused = false;
    try {
      got = fast(x, y, i % 3 == 2);
    } catch (const Error&) {
      refused = true;
    } catch (const std::runtime_error&) {
      mine = true;
    }
    EXPECT_EQ(refused, i % 4 == 3) << i;
    EXPECT_EQ(mine, !refused && i % 3 == 2) << i;
    if (!mine && !refused) EXPECT_TRUE(same_bits(got, f(x, y, false)));
  }
}

}  // namespace
}  // namespace ingot
