#include "codegen/x86_harness.h"

namespace ingot::codegen::test {
namespace {

class X86Pointwise : public X86 {};
INGOT_X86_SUITE(X86Pointwise);

constexpr DType kAll[] = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64,
                          DType::i32, DType::i16, DType::i8,  DType::u8,   DType::bool_};

TEST_P(X86Pointwise, CopiesEveryTypeOfEverySizeWithinBounds) {
  for (DType d : kAll)
    for (int64_t n : kSizes) {
      KernelBuilder k;
      k.output(d, k.input(d));
      Trial{k.kernel, target(), 1, n}.run();
      if (HasFailure()) return;
    }
}

TEST_P(X86Pointwise, AddsRowsOfFloats) {
  for (int64_t n : kSizes) {
    KernelBuilder k;
    k.output(DType::f32, k.input(DType::f32) + k.input(DType::f32));
    Trial{k.kernel, target(), 3, n}.run();
    if (HasFailure()) return;
  }
}

TEST_P(X86Pointwise, ReadsAndWritesStridedAndUniformBuffers) {
  for (DType d : kAll)
    for (int64_t step : {2, 3, -1, -2})
      for (int64_t n : {1, 15, 16, 17, 40}) {
        KernelBuilder k;
        k.output(d, k.input(d, Access::strided));
        k.output(d, k.input(d, Access::uniform));
        k.output(d, k.input(d), Access::strided);
        Trial{k.kernel, target(), 3, n, {{step}, {1}, {0}, {1}, {1}, {step}}}.run();
        if (HasFailure()) return;
      }
}

TEST_P(X86Pointwise, ReadsElementsThatAreAKnownNumberApart) {
  for (DType d : kAll)
    for (int step = 2; step <= kMostKnownStride; ++step)
      for (int64_t n : {1, 15, 16, 17, 32, 47}) {
        KernelBuilder k;
        Expr x = k.input(d, Access::strided), y = k.input(d, Access::strided);
        k.kernel.buffers[0].stride = k.kernel.buffers[1].stride = static_cast<uint8_t>(step);
        k.output(d, x);
        k.output(d, y);
        Trial{k.kernel, target(), 3, n, {{step}, {step}, {1}, {1}}}.run();
        if (HasFailure()) return;
      }
}

TEST_P(X86Pointwise, LoadsByIndex) {
  for (DType d : kAll)
    for (Access access : {Access::dense, Access::uniform, Access::strided})
      for (int64_t n : {1, 16, 35}) {
        KernelBuilder k;
        Expr varying = k.input(DType::i64) & 7, fixed = k.input(DType::i64, Access::uniform) & 7;
        uint32_t table = k.table(d, access);
        k.output(d, k.b.load(table, varying));
        k.output(d, k.b.load(table, fixed));
        int64_t step = access == Access::dense ? 1 : access == Access::uniform ? 0 : 2;
        Trial{k.kernel, target(), 3, n, {{1}, {0}, {step, false, 8}, {1}, {1}}}.run();
        if (HasFailure()) return;
      }
}

// Numbers of 32 bits have a product of one instruction; one bit more, and they have not.
TEST_P(X86Pointwise, ProductsOfHalvesOfIntegers) {
  for (int bits : {31, 32, 33}) {
    KernelBuilder k;
    Expr x = k.input(DType::i64), y = k.input(DType::i64);
    Expr low = x & ((int64_t{1} << bits) - 1), high = shift_right_logical(y, 64 - bits);
    k.output(DType::i64, low * high);
    k.output(DType::i64, (low ^ high) * (high | (low & int64_t{0xFFFF})));
    k.output(DType::i64, low * int64_t{0xD2511F53});
    k.output(DType::i64, high * int64_t{0x1D2511F53});
    k.output(DType::i64, low * int64_t{-3});
    for (int64_t n : {1, 16, 35}) {
      Trial{k.kernel, target(), 3, n}.run();
      if (HasFailure()) return;
    }
  }
}

// By powers that are normal numbers, for which scaling is one product, or none: the same as for any power.
TEST_P(X86Pointwise, ScalesByNormalPowers) {
  for (DType d : {DType::f32, DType::f64}) {
    KernelBuilder k;
    const int most = d == DType::f32 ? 127 : 1023;
    Expr x = k.input(d), any = round_even(k.input(d) * 100.0);
    Expr power = max(min(select(eq(any, any), any, 0.0), most), 1 - most);
    auto equal = [&](Expr a, Expr b) { k.output(DType::bool_, eq(a, b) | (ne(a, a) & ne(b, b))); };
    k.output(d, scale_normal(x, power));
    k.output(d, scale_normal(lift(x, 1.0), power));
    k.output(d, scale_normal(lift(x, -1.0), power));
    equal(scale_normal(x, power), scale(x, power));
    equal(scale_normal(lift(x, 1.0), power), scale(lift(x, 1.0), power));
    equal(scale_normal(lift(x, -1.0), power), scale(lift(x, -1.0), power));
    Expr near = max(min(x, 2), 0.5), far = select(eq(any, any), max(min(any, 250), -250), 0.0);
    k.output(d, scale_near_one(near, far));
    equal(scale_near_one(near, far), scale(near, far));
    for (int64_t n : {1, 16, 35}) {
      Trial{k.kernel, target(), 3, n}.run();
      if (HasFailure()) return;
    }
  }
}

// Of a zero: the other value by the bits of the mask. A zero with a sign is a number like any other.
TEST_P(X86Pointwise, SelectsBesideAZero) {
  for (DType of : {DType::f32, DType::f64, DType::i64})
    for (DType d : {DType::f32, DType::f64, DType::i32, DType::i64})
      for (int64_t n : {1, 16, 35}) {
        KernelBuilder k;
        Expr less = k.input(of) < k.input(of), x = k.input(d), fixed = k.input(d, Access::uniform);
        k.output(d, select(less, lift(x, 0.0), x));
        k.output(d, select(less, x, lift(x, 0.0)));
        k.output(d, select(~less, x, lift(x, 0.0)));
        k.output(d, select(less, lift(x, -0.0), x));
        k.output(d, select(less, x, lift(x, -0.0)));
        k.output(d, select(fixed < lift(x, 0.0), lift(x, 0.0), fixed));
        k.output(d, select(fixed < lift(x, 0.0), lift(x, 0.0), x));
        Trial{k.kernel, target(), 3, n, {{1}, {1}, {1}, {0}, {1}, {1}, {1}, {1}, {1}, {1}, {1}}}.run();
        if (HasFailure()) return;
      }
}

TEST_P(X86Pointwise, ArithmeticOfEveryType) {
  for (DType d : {DType::f32, DType::f64, DType::i32, DType::i64})
    for (bool uniform : {false, true}) {
      KernelBuilder k;
      Access access = uniform ? Access::uniform : Access::dense;
      Expr x = k.input(d, access), y = k.input(d, access), z = k.input(d, access);
      auto out = [&](Expr e) { k.output(e.type() == Type::mask ? DType::bool_ : d, e); };
      out(x + y);
      out(x - y);
      out(x * y);
      out(x / y);
      out(min(x, y));
      out(max(x, y));
      out(eq(x, y));
      out(ne(x, y));
      out(x < y);
      out(x <= y);
      out(select(x < y, z, x));
      out(select((x < y) & (y < z), z, x));
      out(select((x < y) | ~(y < z), z, x));
      out((x < y) ^ (y < z));
      if (is_floating(d)) {
        out(fma(x, y, z));
        out(fma(x, x, x));
        out(sqrt(x));
        for (auto rounded : {round_even(x), floor(x), ceil(x), trunc(x)}) out(rounded);
        out(abs(x));
        out(-x);
        out(copysign(x, y));
        for (int p : {-2000, -300, -149, -130, -40, -1, 0, 5, 127, 130, 260, 1100, 2100, 100000}) out(scale(x, p));
        out(scale(x, select(ne(y, y), y, max(min(round_even(y), 1e30), -1e30))));
      } else {
        int64_t width = d == DType::i32 ? 31 : 63;
        Expr amount = y & width;
        for (Expr e :
             {x & y, x | y, x ^ y, ~x, -x, x << amount, shift_right_logical(x, amount),
              shift_right_arithmetic(x, amount), x << 3, shift_right_logical(x, 5), shift_right_arithmetic(x, 7)})
          out(e);
      }
      for (int64_t n : {1, 33, 300}) Trial{k.kernel, target(), 2, n, {}, {}, {}, static_cast<uint64_t>(n)}.run();
      if (HasFailure()) return;
    }
}

TEST_P(X86Pointwise, MinimaAndMaximaWithConstantsAndBySelection) {
  for (DType d : {DType::f32, DType::f64}) {
    KernelBuilder k;
    Expr x = k.input(d), y = k.input(d, Access::uniform), z = k.input(d);
    for (double c : {0.0, -0.0, 1.0, -2.5, static_cast<double>(INFINITY), static_cast<double>(-INFINITY),
                     static_cast<double>(NAN)}) {
      k.output(d, max(x, c));
      k.output(d, min(c, x));
    }
    k.output(d, select(x < y, x, y));
    k.output(d, select(x < y, y, x));
    k.output(d, select(z < x, x, z));
    k.output(DType::bool_, z < x);
    k.output(d, select(x <= z, x, z));
    k.output(d, select(y < x, k.b.constant(x.type(), 3), y));
    for (uint64_t seed = 0; seed < 10; ++seed) Trial{k.kernel, target(), 4, 100, {}, {}, {}, seed}.run();
  }
}

TEST_P(X86Pointwise, ConvertsBetweenAllRegisterTypes) {
  const Type types[] = {Type::f32, Type::f64, Type::i32, Type::i64};
  const DType dtypes[] = {DType::f32, DType::f64, DType::i32, DType::i64};
  for (int from = 0; from < 4; ++from)
    for (bool uniform : {false, true}) {
      KernelBuilder k;
      Expr x = k.input(dtypes[from], uniform ? Access::uniform : Access::dense);
      for (int to = 0; to < 4; ++to) {
        if (to == from) continue;
        k.output(dtypes[to], convert(x, types[to]));
        if (from < 2) k.output(dtypes[to], convert(scale(x, 60), types[to]));
        k.output(dtypes[to], convert(x < 3, types[to]));
      }
      if (from < 2) k.output(from ? DType::i64 : DType::i32, bitcast(x));
      for (int64_t n : {1, 33, 500}) Trial{k.kernel, target(), 2, n, {}, {}, {}, static_cast<uint64_t>(n)}.run();
      if (HasFailure()) return;
    }
}

TEST_P(X86Pointwise, RoundsToSixteenBitsAndWraps) {
  KernelBuilder k;
  Expr x = k.input(DType::f32), i = k.input(DType::i32);
  for (DType d : {DType::f16, DType::bf16}) {
    k.output(DType::f32, round_to(x, d));
    k.output(d, x * 1.0001);
  }
  for (DType d : {DType::i16, DType::i8, DType::u8}) {
    k.output(DType::i32, wrap(i, d));
    k.output(d, wrap(i, d));
  }
  for (uint64_t seed = 0; seed < 20; ++seed) Trial{k.kernel, target(), 1, 333, {}, {}, {}, seed}.run();
}

// Ties, denormals, the largest numbers, and NaN with each payload that rounding could carry into the sign.
TEST_P(X86Pointwise, RoundsToTheBitsOfBf16) {
  KernelBuilder k;
  k.output(DType::i32, bitcast(round_to(k.input(DType::f32), DType::bf16)));
  auto fill = [](size_t buffer, char* to, size_t bytes) {
    if (buffer != 0) return;
    const uint32_t low[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0x17fff, 0x18000, 0x18001, 0xffff};
    const uint32_t high[] = {0, 0x70000, 0x800000, 0x3f800000, 0x7f7f0000, 0x7f800000, 0x7fc00000, 0x7fff0000};
    for (size_t i = 0; i < bytes / 4; ++i) {
      const uint32_t x = high[i / std::size(low) % std::size(high)] + low[i % std::size(low)] + (i % 2 << 31);
      std::memcpy(to + 4 * i, &x, 4);
    }
  };
  for (int64_t n : {16, 149}) Trial{k.kernel, target(), 1, n, {}, {}, fill}.run();
}

TEST_P(X86Pointwise, StoresNumbersOfSixteenBitsAsTheyAre) {
  for (DType d : {DType::bf16, DType::f16})
    for (Access access : {Access::dense, Access::strided}) {
      KernelBuilder k;
      Expr x = k.input(d), y = k.input(d), z = k.input(DType::f32);
      k.output(d, max(round_to(z, d), x), access);
      k.output(d, select(z < 0, min(x, y), k.b.constant(Type::f32, 0.5)), access);
      k.output(d, select(z < 0, x, k.b.constant(Type::f32, 0.1)), access);  // which has to be rounded
      for (int64_t n : {1, 33, 200}) Trial{k.kernel, target(), 2, n}.run();
      if (HasFailure()) return;
    }
}

TEST_P(X86Pointwise, ScalarsIndicesAndConstants) {
  KernelBuilder k;
  Expr column = k.b.index(0), row = k.b.index(1), outer = k.b.index(2), next = k.b.index(3);
  k.kernel.scalars = 5;
  k.output(DType::i64, column + row * 1000 + outer * 1000000 + next);
  k.output(DType::f32, convert(column, Type::f32) * k.b.scalar(Type::f32, 0));
  k.output(DType::f64, convert(column, Type::f64) * k.b.scalar(Type::f64, 1));
  k.output(DType::i32, convert(column, Type::i32) + k.b.scalar(Type::i32, 2));
  k.output(DType::i64, column + k.b.scalar(Type::i64, 3));
  k.output(DType::bool_, (column <= row) & k.b.scalar(Type::mask, 4));
  k.output(DType::bool_, k.b.scalar(Type::mask, 4));
  k.output(DType::f32, select(k.b.scalar(Type::mask, 4), k.b.constant(Type::f32, 3), convert(row, Type::f32)));
  double d = 0.1;
  float f = 0.3f;
  std::vector<uint64_t> scalars(5);
  std::memcpy(&scalars[0], &f, 4);
  std::memcpy(&scalars[1], &d, 8);
  scalars[2] = 0xfffffff0u;
  scalars[3] = 1ull << 40;
  for (uint64_t truth : {0, 1}) {
    scalars[4] = truth;
    for (int64_t n : {1, 16, 200}) Trial{k.kernel, target(), 4, n, {}, scalars}.run();
  }
}

TEST_P(X86Pointwise, RareRegionsRunWhereALaneNeedsThem) {
  for (DType d : {DType::f32, DType::f64})
    for (double limit : {-1.0, 9.9, 1e9}) {
      KernelBuilder k;
      Expr x = k.input(d), y = k.input(d), z = k.input(d);
      Expr usual = x * y;
      Expr result = k.b.rare(abs(x) > limit, usual, [&] {
        Expr t = x + z;
        return select(t < 1, t * t + 3, sqrt(abs(t)) * usual);
      });
      Expr mask = k.b.rare(abs(y) > limit, x < y, [&] { return y < z * 0.7; });
      k.output(d, result + x + z);
      k.output(DType::bool_, mask);
      k.output(d, k.b.rare(k.input(d, Access::uniform) > limit, k.input(d, Access::uniform),
                           [&] { return k.b.constant(x.type(), 7.5); }));
      for (int64_t n : {1, 16, 100}) Trial{k.kernel, target(), 5, n}.run();
      if (HasFailure()) return;
    }
}

TEST_P(X86Pointwise, SpillsWhenManyValuesAreLive) {
  for (DType d : {DType::f32, DType::f64, DType::i64}) {
    KernelBuilder k;
    std::vector<Expr> live;
    Expr x = k.input(d), y = k.input(d);
    std::vector<Expr> masks;
    for (int i = 0; i < 60; ++i) {
      live.push_back(i % 3 == 0 ? x * (i + 2) : i % 3 == 1 ? y + i : x - y * i);
      if (i % 4 == 0) masks.push_back(x < live.back());
    }
    Expr sum = x;
    for (int i = 0; i < 60; ++i) {
      sum = is_floating(d) ? fma(sum, live[static_cast<size_t>(59 - i)], live[static_cast<size_t>(i)])
                           : sum * live[static_cast<size_t>(59 - i)] + live[static_cast<size_t>(i)];
      if (i % 4 == 0) sum = select(masks[static_cast<size_t>(i / 4)], sum, y);
      if (is_floating(d)) sum = sum * 0.001;
    }
    k.output(d, sum);
    for (int64_t n : {1, 16, 100}) Trial{k.kernel, target(), 2, n}.run();
    if (HasFailure()) return;
  }
}

TEST_P(X86Pointwise, MoreBuffersThanRegisters) {
  KernelBuilder k;
  Expr sum = k.input(DType::f32);
  for (int i = 0; i < 20; ++i) sum = sum + k.input(i % 2 ? DType::f32 : DType::bf16);
  k.output(DType::f32, sum);
  for (int i = 0; i < 5; ++i) k.output(DType::f16, sum * (i + 1));
  for (int64_t n : {1, 16, 100}) Trial{k.kernel, target(), 3, n}.run();
}

TEST_P(X86Pointwise, WorksInPlace) {
  KernelBuilder k;
  Expr x = k.input(DType::f32);
  Expr y = k.input(DType::f32);
  k.kernel.phases.emplace_back();
  k.kernel.buffers[0].written = k.kernel.buffers[1].written = true;
  k.kernel.phases[0].stores = {{0, (x + y).value}, {1, (x * y).value}};
  for (int64_t n : kSizes) Trial{k.kernel, target(), 2, n}.run();
}

TEST_P(X86Pointwise, EqualKernelsGiveEqualBytes) {
  auto make = [&] {
    KernelBuilder k;
    Expr x = k.input(DType::f32);
    k.output(DType::f32, fma(x, x, k.input(DType::f32) * 2));
    return generate(k.kernel, target(), "one");
  };
  KernelPtr a = make(), b = make();
  EXPECT_EQ(a->code, b->code);
  EXPECT_EQ(a->key, b->key);
  EXPECT_GT(a->code_bytes, 0);
}

TEST_P(X86Pointwise, LongChainsRunSideBySideInEveryType) {
  for (DType d : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i64})
    for (int64_t n : {1, 16, 31, 32, 33, 48, 63, 64, 65, 79, 80, 127, 128, 130, 300}) {
      KernelBuilder k;
      Expr x = k.input(d), y = k.input(d, Access::uniform), z = k.input(d);
      Expr a = x;
      for (int i = 0; i < 4; ++i) {
        a = select(a < z, a * y + x, a - z);
        if (i == 1) k.output(d, a);
      }
      k.output(d, a);
      k.output(DType::bool_, a < x);
      Trial{k.kernel, target(), 3, n}.run();
      if (HasFailure()) return;
    }
}

}  // namespace
}  // namespace ingot::codegen::test
