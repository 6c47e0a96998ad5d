// Scalars that an integer dtype does not hold: eagerly, recorded and frozen.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "ingot.h"

namespace ingot {
namespace {

constexpr int64_t kPastIntegers = int64_t{1} << 40;

/// The same eagerly, recorded and frozen; of a frozen function the second call runs its program.
std::vector<std::string> outcomes(const std::function<Tensor(const Tensor&)>& f, const Tensor& x) {
  const CompileOptions modes[] = {{}, {.mode = CompileMode::frozen}};
  auto outcome = [&](const std::function<Tensor(const Tensor&)>& g) -> std::string {
    try {
      return g(x.clone()).str();
    } catch (const Error& e) {
      const std::string text = e.what();
      return text.substr(0, text.rfind(" ("));
    }
  };
  std::vector<std::string> all = {outcome(f)};
  for (const CompileOptions& mode : modes) {
    auto fast = compile([f](const Tensor& t) { return f(t); }, mode);
    for (int round = 0; round < 3; ++round) all.push_back(outcome(fast));
  }
  return all;
}

void expect_all(const std::function<Tensor(const Tensor&)>& f, const Tensor& x, const std::string& expected) {
  for (const std::string& one : outcomes(f, x)) EXPECT_EQ(one, expected);
}

TEST(HeldScalars, BoundsPastTheNumbersOfADtypeBoundNothing) {
  const Tensor i = tensor({-5, 7}).to(kInt32), u = tensor({5, 250}).to(kUInt8);
  const int64_t big = kPastIntegers;
  expect_all([=](const Tensor& x) { return x.clamp(-big, big); }, i, "[-5  7]");
  expect_all([=](const Tensor& x) { return clamp_max(x, big); }, i, "[-5  7]");
  expect_all([=](const Tensor& x) { return clamp_min(x, -big); }, i, "[-5  7]");
  expect_all([=](const Tensor& x) { return F::hardtanh(x, -big, 3); }, i, "[-5  3]");
  expect_all([](const Tensor& x) { return x.clamp(-1, 300); }, u, "[  5 250]");
  expect_all([=](const Tensor& x) { return clamp_max(x, tensor(big)); }, i, "[-5  7]");
  expect_all([](const Tensor& x) { return x.clamp(0.5, 1e12); }, i, "[0.5 7. ]");
  expect_all([](const Tensor& x) { return x.clamp_(-1, 300); }, u, "[  5 250]");
}

TEST(HeldScalars, BoundsPastAllResultsAreRefused) {
  const Tensor i = tensor({-5, 7}).to(kInt32), u = tensor({5, 250}).to(kUInt8);
  const int64_t big = kPastIntegers;
  const std::string i32 = " holds, from -2147483648 to 2147483647", u8 = " holds, from 0 to 255";
  expect_all([=](const Tensor& x) { return x.clamp(big); }, i,
             "clamp: min: got 1099511627776, expected a number that i32" + i32);
  expect_all([=](const Tensor& x) { return clamp_max(x, -big); }, i,
             "clamp_max: max: got -1099511627776, expected a number that i32" + i32);
  expect_all([](const Tensor& x) { return clamp_min(x, 256); }, u,
             "clamp_min: min: got 256, expected a number that u8" + u8);
  expect_all([](const Tensor& x) { return clamp_max(x, -1); }, u,
             "clamp_max: max: got -1, expected a number that u8" + u8);
}

TEST(HeldScalars, FillsCutFractionsAndRefuseWhatTheDtypeDoesNotHold) {
  const Tensor i = tensor({-5, 7}).to(kInt32), u = tensor({5, 250}).to(kUInt8), first = tensor({true, false});
  const std::string u8 = ", expected a number that u8 holds, from 0 to 255";
  for (double number : {300.0, 256.0, 1e30, -256.0, double{INFINITY}}) {
    const std::string got = "got " + std::to_string(number) + u8;
    expect_all([=](const Tensor& x) { return x.fill_(number); }, u, "fill: value: " + got);
    expect_all([=](const Tensor& x) { return x.masked_fill(first, number); }, u, "masked_fill: value: " + got);
    expect_all([=](const Tensor&) { return full({2}, number, kUInt8); }, u, "full: fill_value: " + got);
  }
  for (int64_t number : {int64_t{300}, int64_t{256}, int64_t{-256}, kPastIntegers}) {
    const std::string got = "got " + std::to_string(number) + u8;
    const Tensor at = tensor({0});
    expect_all([=](const Tensor& x) { return x.index_fill(0, at, number); }, u, "index_fill: value: " + got);
    expect_all([=](const Tensor& x) { return x.scatter(0, at, number); }, u, "scatter: src: " + got);
    expect_all([=](const Tensor& x) { return where(first, x, number); }, u, "where: other: " + got);
    expect_all([=](const Tensor& x) { return where(first, number, x); }, u, "where: self: " + got);
    expect_all(
        [=](const Tensor& x) {
          return F::pad(x, {1, 1}, "constant", number);
        },
        u, "pad, in constant_pad_nd: value: got " + std::to_string(number) + u8);
  }
  expect_all([](const Tensor& x) { return x.fill_(NAN); }, i,
             "fill: value: got nan, expected a number that i32 holds, from -2147483648 to 2147483647");
  expect_all([](const Tensor& x) { return x.fill_(255.9); }, u, "[255 255]");
  expect_all([](const Tensor& x) { return x.fill_(-1); }, u, "[255 255]");
  expect_all([](const Tensor& x) { return x.fill_(-2.7); }, i, "[-2 -2]");
  expect_all([=](const Tensor& x) { return x.masked_fill(first, 2.5); }, i, "[2 7]");
  expect_all([=](const Tensor& x) { return where(first, x, 2.5); }, i, "[-5.   2.5]");
  expect_all([=](const Tensor& x) { return where(first, x, 1e30); }, i, where(first, i, 1e30).str());
  // In i64 all integers are held, 2^63 is not.
  const Tensor l = tensor({1, 2});
  expect_all([](const Tensor& x) { return x.fill_(0x1p62); }, l, full({2}, int64_t{1} << 62).str());
  expect_all([](const Tensor& x) { return x.fill_(0x1p63); }, l,
             "fill: value: got 9223372036854775808.000000, expected a number that i64 holds, from "
             "-9223372036854775808 to 9223372036854775807");
  expect_all([](const Tensor&) { return linspace(0, 300, 4, kUInt8); }, l, "linspace: end: got 300" + u8);
  // Floating results take any number.
  expect_all([](const Tensor& x) { return x.to(kFloat32).fill_(1e300); }, l, "[inf inf]");
}

TEST(HeldScalars, WhatNothingIsDividedBy) {
  const Tensor x = tensor({1.f, -2.f});
  expect_all([](const Tensor& x) { return F::celu(x, 0); }, x, "celu: alpha: got a zero, expected another number");
  expect_all([](const Tensor& x) { return F::celu(x, -0.0); }, x, "celu: alpha: got a zero, expected another number");
  expect_all([](const Tensor& x) { return x.clamp(); }, x, "clamp: min: got no bound, expected one at least");
}

TEST(HeldScalars, RangesOfRandomIntegers) {
  expect_all([](const Tensor& x) { return randint(0, 300, x.sizes(), kUInt8); }, zeros({2}),
             "randint: high: got 300, expected a number from 1 to 256, for a result of u8");
}

// The number changes from call to call: the second one compiles it as an operand.
TEST(HeldScalars, NumbersThatChangeAreCheckedAtEachCall) {
  const Tensor u = tensor({5, 250}).to(kUInt8);
  for (const CompileOptions& mode : {CompileOptions{}, CompileOptions{.mode = CompileMode::frozen}}) {
    auto fast = compile([](const Tensor& x, int64_t n) { return x.masked_fill(x > 100, n) + 1; }, mode);
    for (int round = 0; round < 2; ++round)
      for (int64_t n : {3, 4, 300, 5, -256, 255, 256, -255, 7}) {
        if (n >= 256 || n <= -256)
          EXPECT_THROW(fast(u, n), Error) << n;
        else
          EXPECT_EQ(fast(u, n).str(), (u.masked_fill(u > 100, n) + 1).str()) << n;
      }
  }
}

}  // namespace
}  // namespace ingot
