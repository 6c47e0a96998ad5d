// What is read backwards (flip, rot90), alone and among what it is fused with: the bits of a lookup at listed
// positions, eager and compiled, of all dtypes, of views and at small and odd sizes.
#include <gtest/gtest.h>

#include "support.h"

namespace ingot {
namespace {

using test::same_bits;
using Backwards = test::Inference;

constexpr DType kDTypes[] = {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i64,
                             DType::i32, DType::i16, DType::i8,   DType::u8,  DType::bool_};

/// x with a dim in the opposite order, by a list from outside, which is no affine coordinate.
Tensor turned(const Tensor& x, int64_t dim) {
  Ints places;
  for (int64_t i = x.sizes()[static_cast<size_t>(dim)]; i-- > 0;) places.push_back(i);
  const Tensor list = from_blob(places.data(), {static_cast<int64_t>(places.size())}, TensorOptions(kInt64)).clone();
  return x.index_select(dim, list);
}
Tensor turned(Tensor x, const std::vector<int64_t>& dims) {
  for (int64_t d : dims) x = turned(x, d);
  return x;
}

Tensor numbers(DType dtype, const std::vector<int64_t>& shape) {
  manual_seed(11);
  const Tensor x = randn(shape) * 100;
  return (dtype == DType::u8 ? x.abs() : x).to(dtype);
}

template <class F>
void expect(const char* what, const Tensor& x, const Tensor& expected, F f) {
  auto fast = compile(f);
  EXPECT_TRUE(same_bits(f(x), expected)) << what << ", eager";
  EXPECT_TRUE(same_bits(fast(x), expected)) << what << ", compiled";
  EXPECT_TRUE(same_bits(fast(x), expected)) << what << ", compiled before";
}

TEST_F(Backwards, HaveTheBitsOfLookups) {
  test::on_every_target({1, 2}, [] {
    for (DType dtype : kDTypes)
      for (const std::vector<int64_t>& shape :
           std::vector<std::vector<int64_t>>{{0, 3}, {1, 1}, {1, 40}, {17, 1}, {3, 16}, {33, 70}, {64, 300}}) {
        const Tensor whole = numbers(dtype, shape);
        for (const Tensor& x : {whole, whole.t(), whole.slice(1, 1, shape[1]), whole.slice(1, 0, shape[1], 2)}) {
          for (const std::vector<int64_t>& dims : std::vector<std::vector<int64_t>>{{0}, {1}, {0, 1}}) {
            SCOPED_TRACE(std::string(name_of(dtype)) + " of " + std::to_string(shape[0]) + " x " +
                         std::to_string(shape[1]));
            expect("flip", x, turned(x, dims), [&](const Tensor& a) { return a.flip(dims); });
            expect("flip of flip", x, x.contiguous(), [&](const Tensor& a) { return a.flip(dims).flip(dims); });
            expect("part", x, turned(x, dims).slice(1, 1, 60, 3).contiguous(),
                   [&](const Tensor& a) { return a.flip(dims).slice(1, 1, 60, 3).contiguous(); });
            expect("transposed", x, turned(x, dims).t().contiguous(),
                   [&](const Tensor& a) { return a.flip(dims).t().contiguous(); });
          }
          expect("rot90", x, turned(x, 1).t().contiguous(), [](const Tensor& a) { return a.rot90(1); });
          expect("rot90, 3", x, turned(x, 0).t().contiguous(), [](const Tensor& a) { return a.rot90(3); });
          expect("cat", x, turned(cat({x, turned(x, 1)}, 1), 1), [](const Tensor& a) {
            return cat({a, a.flip({1})}, 1).flip({1});
          });
          expect("roll", x, turned(x, 1).roll({1}, {1}), [](const Tensor& a) { return a.flip({1}).roll({1}, {1}); });
        }
      }
  });
}

TEST_F(Backwards, AmongWhatTheyAreFusedWith) {
  test::on_every_target({1, 2}, [] {
    for (DType dtype : {DType::f32, DType::bf16, DType::f64})
      for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{{5, 3}, {40, 40}, {33, 129}})
        for (const std::vector<int64_t>& dims : std::vector<std::vector<int64_t>>{{0}, {1}, {0, 1}}) {
          const Tensor x = numbers(dtype, shape), back = turned(x, dims);
          expect("sum of rows", x, back.sum({1}), [&](const Tensor& a) { return a.flip(dims).sum({1}); });
          expect("sum of columns", x, back.sum({0}), [&](const Tensor& a) { return a.flip(dims).sum({0}); });
          expect("argmax", x, back.argmax(0), [&](const Tensor& a) { return a.flip(dims).argmax(0); });
          expect("softmax before", x, turned(softmax(x, 1), dims),
                 [&](const Tensor& a) { return softmax(a, 1).flip(dims); });
          expect("softmax after", x, softmax(back, 0), [&](const Tensor& a) { return softmax(a.flip(dims), 0); });
          expect("chain", x, (back.exp() - x).tril() * 2,
                 [&](const Tensor& a) { return (a.flip(dims).exp() - a).tril() * 2; });
          expect("products", x, turned(matmul(back, x.t()).relu(), 1),
                 [&](const Tensor& a) { return matmul(a.flip(dims), a.t()).relu().flip({1}); });
          expect("repeated", x, turned(x.repeat_interleave(3, 1), 1),
                 [](const Tensor& a) { return a.repeat_interleave(3, 1).flip({1}); });
        }
  });
}

TEST_F(Backwards, WrittenOverWhatTheyRead) {
  for (int64_t dim : {0, 1}) {
    auto turn = [&](const Tensor& x) {
      x.copy_(x.flip({dim}));
      return x.flip({0, 1});
    };
    auto fast = compile(turn);
    for (int64_t n : {1, 7, 40, 300}) {
      const Tensor a = numbers(DType::f32, {n, 33}), b = a.clone(), result = turn(a);
      EXPECT_TRUE(same_bits(fast(b), result)) << n;
      EXPECT_TRUE(same_bits(a, b)) << n;
    }
  }
}

// A NaN keeps its bits where 16-bit floats are moved or change their sign only.
TEST_F(Backwards, SixteenBitFloatsThatAreOnlyMovedKeepTheirBits) {
  test::on_every_target({1}, [] {
    std::vector<uint16_t> bits(1 << 16);
    for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint16_t>(i);
    for (DType dtype : {DType::bf16, DType::f16}) {
      const Tensor x = from_blob(bits.data(), {256, 256}, TensorOptions(dtype)).clone();
      auto check = [&](const char* what, auto f, auto bit) {
        const Tensor eager = f(x), compiled = compile(f)(x);
        for (const Tensor& t : {eager, compiled}) {
          const auto* got = static_cast<const uint16_t*>(t.data_ptr());
          for (size_t i = 0; i < bits.size(); ++i)
            ASSERT_EQ(got[i], bit(i)) << what << " of " << std::hex << i << " in " << name_of(dtype);
        }
      };
      check(
          "flip",
          [](const Tensor& a) {
            return a.flip({0, 1});
          },
          [](size_t i) { return 0xffff - i; });
      check(
          "transpose", [](const Tensor& a) { return a.t().clone(); }, [](size_t i) { return i % 256 << 8 | i >> 8; });
      check(
          "neg", [](const Tensor& a) { return -a; }, [](size_t i) { return i ^ 0x8000; });
      check(
          "abs", [](const Tensor& a) { return a.abs(); }, [](size_t i) { return i & 0x7fff; });
      check(
          "copysign",
          [](const Tensor& a) {
            return copysign(a, a.flip({0, 1}));
          },
          [](size_t i) { return (i & 0x7fff) | (~i & 0x8000); });
      check(
          "roll", [](const Tensor& a) { return a.roll({5}); }, [](size_t i) { return (i + 0xfffb) & 0xffff; });
      check(
          "where",
          [](const Tensor& a) {
            return where(ones({256, 1}, kBool), a, -a);
          },
          [](size_t i) { return i; });
    }
  });
}

}  // namespace
}  // namespace ingot
