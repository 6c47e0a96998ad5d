// Graphs as text in, kernels as text out: what lowering makes of them, line by line. The programs are run, too.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "base/hash.h"
#include "codegen/lower_support.h"

namespace ingot::codegen {
namespace {

using namespace test;

/// The kernels of a graph's steps in order, each as it is after it was read back.
std::string kernels_of(const std::string& graph, const std::vector<int64_t>& symbols = {},
                       const std::vector<ir::ReferenceScalar>& scalars = {}) {
  const LowerResult r = check_compiled(ir::parse("ingot.ir 1\n" + graph), 1e-5, {}, symbols, scalars);
  std::string text;
  for (const Step& step : r.program.steps)
    for_each_kernel(step, [&](const KernelPtr& kernel) {
      if (kernel && kernel->text.starts_with("kernel ")) text += print(parse_kernel(kernel->text));
    });
  return text;
}

/// The nodes of each kernel of a text in the order in which its results ask for them, without those that nobody asks
/// for: compilers differ in which argument of a function they evaluate first, and definitions are functions.
std::string ordered(const std::string& text) {
  std::string out;
  for (size_t at = 0, end; at < text.size(); at = end) {
    end = std::min(text.find("\nkernel ", at), text.size() - 1) + 1;
    Kernel kernel = parse_kernel(text.substr(at, end - at));
    std::vector<Node> nodes;
    std::vector<Value> now(kernel.nodes.size(), kNone);
    std::vector<uint64_t> hashes;  // of a node and all behind it: the order of what may be exchanged
    for (Node& n : kernel.nodes) {
      auto hash_of = [&](Value v) { return v == kNone ? 0 : hashes[v]; };
      constexpr Op kExchange[] = {Op::add,     Op::mul,    Op::fma,     Op::min, Op::max,
                                  Op::bit_and, Op::bit_or, Op::bit_xor, Op::eq,  Op::ne};
      const bool exchanges = std::ranges::find(kExchange, n.op) != std::end(kExchange);
      if (exchanges && hash_of(n.b) < hash_of(n.a)) std::swap(n.a, n.b);
      uint64_t hash = hash_combine(static_cast<uint64_t>(n.op) << 8 | static_cast<uint64_t>(n.type), n.imm);
      for (Value v : {n.a, n.b, n.c}) hash = hash_combine(hash, hash_of(v));
      hashes.push_back(hash);
    }
    std::function<void(Value&)> take = [&](Value& value) {
      if (value == kNone) return;
      Value& place = now[value];
      if (place == kNone) {
        Node node = kernel.nodes[value];
        for (Value* operand : {&node.a, &node.b, &node.c}) take(*operand);
        nodes.push_back(node);
        place = static_cast<Value>(nodes.size()) - 1;
      }
      value = place;
    };
    for (Reduction& reduction : kernel.reductions) take(reduction.value);
    for (Phase& phase : kernel.phases)
      for (auto* stores : {&phase.stores, &phase.local_stores, &phase.row_stores})
        for (Store& store : *stores) take(store.value);
    kernel.nodes = std::move(nodes);
    out += print(kernel);
  }
  return out;
}

// A vector a row and a number a row: what does not move along the columns is uniform.
TEST(LowerText, PointwiseWithBroadcastIsOnePhase) {
  EXPECT_EQ(kernels_of(R"(symbol s0 = 40
input %0 = f32[4, s0]
input %1 = f32[4, 1]
input %2 = f16[s0]
scalar $0 = floating
%3 = add(%0, %1, 1)
%4 = mul(%3, %2)
%5 = mul(%4, $0)
output %5
)",
                       {17}, {0.5}),
            R"(kernel rows scalars 1
b0 f16 dense
b1 f32 dense
b2 f32 uniform
b3 f32 dense written
%0 = load f32 b0
%1 = load f32 b2
%2 = load f32 b1
%3 = add f32 %1 %2
%4 = mul f32 %0 %3
%5 = scalar f32 0
%6 = mul f32 %4 %5
phase 0
  store b3 %6
)");
}

// The store rounds the last one.
TEST(LowerText, SixteenBitFloatsAreRoundedAfterEachOp) {
  EXPECT_EQ(kernels_of(R"(input %0 = bf16[40, 50]
input %1 = bf16[50, 40]
%2 = permute(%0, dims=[1, 0])
%3 = add(%2, %1, 1)
%4 = mul(%3, %2)
output %4
)"),
            R"(kernel rows scalars 0 known_columns 40
b0 bf16 strided
b1 bf16 dense
b2 bf16 dense written
%0 = load f32 b0
%1 = load f32 b1
%2 = add f32 %0 %1
%3 = round_to f32 %2 bf16
%4 = mul f32 %0 %3
phase 0
  store b2 %4
)");
}

TEST(LowerText, SixteenBitFloatsThatAreOnlyMovedAreIntegers) {
  EXPECT_EQ(ordered(kernels_of(R"(input %0 = bf16[40, 50]
input %1 = bool[40, 50]
%2 = neg(%0)
%3 = where(%1, %2, 1.5)
output %3
)")),
            ordered(R"(kernel rows scalars 0
b0 bool dense
b1 i16 dense
b2 i16 dense written
%0 = load mask b0
%1 = load i32 b1
%2 = constant i32 -32768
%3 = bit_xor i32 %1 %2
%4 = constant i32 16320
%5 = select i32 %0 %3 %4
phase 0
  store b2 %5
)"));
}

// No list of positions is read; the rows of what is turned and transposed are those along which it is dense.
TEST(LowerText, ADimInTheOppositeOrderIsReadBackwards) {
  EXPECT_EQ(kernels_of(R"(input %0 = f32[40, 50]
%1 = flip(%0, dims=[1])
output %1
)"),
            R"(kernel rows scalars 0 known_columns 50
b0 f32 strided by -1
b1 f32 dense written
%0 = load f32 b0
phase 0
  store b1 %0
)");
  EXPECT_EQ(kernels_of(R"(input %0 = f32[40, 50]
%1 = rot90(%0, k=1)
output %1
)"),
            R"(kernel rows scalars 0 known_columns 40
b0 f32 dense
b1 f32 dense written
%0 = load f32 b0
phase 0
  store b1 %0
kernel rows scalars 0 known_columns 40 streams
b0 f32 dense
b1 f32 dense written
%0 = load f32 b0
phase 0
  store b1 %0
)");
}

// One kernel of three phases: the largest; the exponentials, kept, and their sum; the quotients.
TEST(LowerText, SoftmaxKeepsItsExponentials) {
  EXPECT_EQ(ordered(kernels_of("input %0 = f32[4, 40]\n%1 = softmax(%0, dim=1)\noutput %1\n")),
            ordered(R"(kernel rows scalars 0 known_columns 40
b0 f32 dense
b1 f32 dense written
l0 f32
%0 = load f32 b0
%1 = reduced f32 r0
%2 = constant f32 0x3f800000 (1)
%3 = constant i32 1065353216
%4 = constant i32 -2147483648
%5 = constant i32 -1082130432
%6 = constant f32 0xbf800000 (-1)
%7 = fma f32 %1 %6 %0
%8 = constant f32 0xc2d10000 (-104.5)
%9 = lt mask %7 %8
%10 = select f32 %9 %8 %7
%11 = constant f32 0x42b20000 (89)
%12 = lt mask %11 %10
%13 = select f32 %12 %11 %10
%14 = constant f32 0x3fb8aa3b (1.442695)
%15 = mul f32 %13 %14
%16 = round f32 %15 0
%17 = constant f32 0xbf317218 (-0.6931472)
%18 = fma f32 %16 %17 %13
%19 = constant f32 0x3102e308 (1.9046542e-09)
%20 = fma f32 %16 %19 %18
%21 = constant f32 0x3ab5f7dc (0.0013883072)
%22 = constant f32 0x3c0914fa (0.008366818)
%23 = fma f32 %20 %21 %22
%24 = constant f32 0x3d2aab62 (0.04166735)
%25 = fma f32 %20 %23 %24
%26 = constant f32 0x3e2aaa57 (0.16666542)
%27 = fma f32 %20 %25 %26
%28 = constant f32 0x3effffff (0.49999997)
%29 = fma f32 %20 %27 %28
%30 = fma f32 %20 %29 %2
%31 = fma f32 %20 %30 %2
%32 = scale f32 %31 %16 2
%33 = reduced f32 r1
%34 = local f32 l0
%35 = div f32 %2 %33
%36 = mul f32 %34 %35
r0 max %0
r1 sum %32
phase 0
  reduce r0
phase 1
  local_store l0 %32
  reduce r1
phase 2
  store b1 %36
)"));
}

// The centred row is cheap: computed again rather than kept. The reciprocal root (%14 to %43) is computed once a row.
TEST(LowerText, LayerNormIsThreePhasesWithoutALocal) {
  EXPECT_EQ(ordered(kernels_of(R"(symbol s0 = 4
input %0 = f32[s0, 1000]
input %1 = f32[1000]
input %2 = f32[1000]
%3 = layer_norm(%0, %1, %2, 1e-05, normalized_shape=[1000])
output %3
)",
                               {3})),
            ordered(R"(kernel rows scalars 0
b0 f32 dense
b1 f32 dense
b2 f32 dense
b3 f32 dense written
%0 = load f32 b2
%1 = reduced f32 r0
%2 = constant f32 0x447a0000 (1000)
%3 = div f32 %1 %2
%4 = constant f32 0x3f800000 (1)
%5 = constant i32 1065353216
%6 = constant i32 -2147483648
%7 = constant i32 -1082130432
%8 = constant f32 0xbf800000 (-1)
%9 = fma f32 %3 %8 %0
%10 = mul f32 %9 %9
%11 = reduced f32 r1
%12 = load f32 b0
%13 = load f32 b1
%14 = div f32 %11 %2
%15 = constant f32 0x3727c5ac (1e-05)
%16 = fma f32 %4 %15 %14
%17 = constant f32 0x7e000000 (4.2535296e+37)
%18 = le mask %16 %17
%19 = constant f32 0x1000000 (2.3509887e-38)
%20 = le mask %19 %16
%21 = bit_and mask %18 %20
%22 = div f32 %4 %16
%23 = sqrt f32 %22
%24 = constant mask 1
%25 = bit_xor mask %21 %24
[1] %26 = lt mask %16 %4
[1] %27 = constant f32 0x5f800000 (1.8446744e+19)
[1] %28 = constant f32 0x1f800000 (5.421011e-20)
[1] %29 = select f32 %26 %27 %28
[1] %30 = mul f32 %16 %29
[1] %31 = constant f32 0x4f800000 (4294967300)
[1] %32 = constant f32 0x2f800000 (2.3283064e-10)
[1] %33 = select f32 %26 %31 %32
[1] %34 = div f32 %4 %30
[1] %35 = sqrt f32 %34
[1] %36 = mul f32 %33 %35
[1] %37 = constant f32 0x0 (0)
[1] %38 = lt mask %16 %37
[1] %39 = constant f32 0x7fc00000 (nan)
[1] %40 = select f32 %38 %39 %36
[1] %41 = eq mask %16 %37
[1] %42 = select f32 %41 %22 %40
%43 = rare f32 %25 %23 %42 1
%44 = mul f32 %9 %43
%45 = mul f32 %13 %44
%46 = add f32 %12 %45
r0 sum %0
r1 sum %10
phase 0
  reduce r0
phase 1
  reduce r1
phase 2
  store b3 %46
)"));
}

// A column step for the sum, with what comes before it inside; what comes after is a kernel of its own.
TEST(LowerText, SumOverColumnsAndWhatFollows) {
  EXPECT_EQ(kernels_of(R"(input %0 = f32[30, 1000]
%1 = mul(%0, %0)
%2 = sum(%1, dim=[0], keepdim=false)
%3 = sqrt(%2)
output %3
)"),
            R"(kernel columns scalars 0 few_columns
b0 f32 dense
%0 = load f32 b0
%1 = mul f32 %0 %0
r0 sum %1
phase 0
  reduce r0
kernel rows scalars 0
b0 f32 dense
b1 f32 dense written
%0 = load f32 b0
%1 = sqrt f32 %0
phase 0
  store b1 %1
)");
}

TEST(LowerText, ArgmaxStoresAnIndexOnceARow) {
  EXPECT_EQ(kernels_of("input %0 = i32[4, 1000]\n%1 = bitwise_not(%0)\n"
                       "%2 = argmax(%1, dim=1, keepdim=false)\noutput %2\n"),
            R"(kernel rows scalars 0
b0 i32 dense
b1 i64 uniform written
%0 = load i32 b0
%1 = constant i32 -1
%2 = bit_xor i32 %0 %1
%3 = reduced i64 r0
r0 argmax %2
phase 0
  reduce r0
  row_store b1 %3
)");
}

// One for tiles of any width, and one each for tiles that end their sums in registers. Buffer 0 is the tile.
TEST(LowerText, TheEpilogueOfAProductReadsItsTile) {
  std::string expected;  // 50 columns are two panels of 32, the last of which is not full
  for (const char* columns : {"", " known_columns 32"})
    expected += "kernel rows scalars 0" + std::string(columns) + R"(
b0 f32 dense
b1 f32 dense same_rows
b2 f32 dense written
%0 = load f32 b1
%1 = load f32 b0
%2 = add f32 %0 %1
%3 = constant f32 0x0 (0)
%4 = le mask %2 %3
%5 = select f32 %4 %3 %2
phase 0
  store b2 %5
)";
  EXPECT_EQ(kernels_of(R"(input %0 = f32[30, 40]
input %1 = f32[40, 50]
input %2 = f32[50]
%3 = matmul(%0, %1)
%4 = add(%3, %2, 1)
%5 = relu(%4)
output %5
)"),
            expected);
}

}  // namespace
}  // namespace ingot::codegen
