#include "codegen/kernel_ir.h"

#include <gtest/gtest.h>

#include <functional>

#include "codegen/builder.h"
#include "codegen/kernel_analysis.h"
#include "random_kernel.h"

namespace ingot::codegen {
namespace {

// y = x * s, with a rare branch; then the sum of y, stored once a row.
Kernel sample() {
  Kernel k;
  k.scalars = 1;
  k.buffers = {{DType::f16}, {DType::f32, Access::dense, true}, {DType::f32, Access::uniform, true}};
  k.locals = {Type::f32};
  Builder b(k);
  Expr x = b.load(0), y = x * b.scalar(Type::f32, 0);
  Expr z = b.rare(x < 0.0, y, [&] { return sqrt(-x); });
  k.reductions = {{Combiner::sum, z.value}};
  Phase first;
  first.local_stores = {{0, z.value}};
  first.reductions = {0};
  Phase second;
  Expr local = b.local(0), sum = b.reduced(0);
  second.stores = {{1, (local / sum).value}};
  second.row_stores = {{2, sum.value}};
  k.phases = {first, second};
  return k;
}

TEST(KernelAnalysis, AValueChangesAsOftenAsWhatItIsComputedFrom) {
  Kernel k;
  k.scalars = 1;
  k.buffers = {{DType::i64}, {DType::i64, Access::uniform}, {DType::i64, Access::dense, true}};
  Builder b(k);
  const Expr once = b.scalar(Type::i64, 0) + 1, plane = once + b.index(2), row = plane + b.index(1),
             uniform = b.load(1), column = row + b.index(0), loaded = b.load(0), gathered = b.load(1, column);
  const std::vector<Level> levels = find_levels(k);
  EXPECT_EQ(levels[once.value], Level::call);
  EXPECT_EQ(levels[plane.value], Level::plane);
  for (Expr x : {row, uniform}) EXPECT_EQ(levels[x.value], Level::row);
  for (Expr x : {column, loaded, gathered}) EXPECT_EQ(levels[x.value], Level::column);
}

TEST(KernelAnalysis, WhatAPhaseComputesIsLive) {
  const Kernel k = sample();
  auto live = [&](const std::vector<Value>& roots) {
    std::vector<Value> values;
    const std::vector<bool> all = find_live(k, roots);
    for (Value v = 0; v < all.size(); ++v)
      if (all[v]) values.push_back(v);
    return values;
  };
  EXPECT_EQ(live(column_roots(k, k.phases[0])), (std::vector<Value>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(live(column_roots(k, k.phases[1])), (std::vector<Value>{11, 12, 13}));
  EXPECT_EQ(live(row_roots(k.phases[0])), std::vector<Value>{});
  EXPECT_EQ(live(row_roots(k.phases[1])), std::vector<Value>{12});
}

TEST(KernelIr, PrintsOneLineANode) {
  EXPECT_EQ(print(sample()), R"(kernel rows scalars 1
b0 f16 dense
b1 f32 dense written
b2 f32 uniform written
l0 f32
%0 = load f32 b0
%1 = scalar f32 0
%2 = mul f32 %0 %1
%3 = constant f32 0x0 (0)
%4 = lt mask %0 %3
[1] %5 = bitcast i32 %0
[1] %6 = constant i32 -2147483648
[1] %7 = bit_xor i32 %5 %6
[1] %8 = bitcast f32 %7
[1] %9 = sqrt f32 %8
%10 = rare f32 %4 %2 %9 1
%11 = local f32 l0
%12 = reduced f32 r0
%13 = div f32 %11 %12
r0 sum %10
phase 0
  local_store l0 %10
  reduce r0
phase 1
  store b1 %13
  row_store b2 %12
)");
}

TEST(KernelIr, EqualKernelsHaveEqualTextAndDifferentOnesDoNot) {
  Kernel a = sample();
  EXPECT_EQ(print(a), print(sample()));
  std::vector<std::function<void(Kernel&)>> changes = {
      [](Kernel& k) { k.form = Form::columns; },
      [](Kernel& k) { k.known_columns = 8; },
      [](Kernel& k) { k.few_columns = true; },
      [](Kernel& k) { k.scalars = 2; },
      [](Kernel& k) { k.buffers[0].access = Access::strided; },
      [](Kernel& k) { k.buffers[0].access = Access::strided, k.buffers[0].stride = -1; },
      [](Kernel& k) { k.buffers[0].dtype = DType::bf16; },
      [](Kernel& k) { k.buffers[0].written = true; },
      [](Kernel& k) { k.buffers[0].same_rows = true; },
      [](Kernel& k) { k.locals[0] = Type::i32; },
      [](Kernel& k) { k.nodes[3].imm = 0x80000000; },
      [](Kernel& k) { k.nodes[2].b = 0; },
      [](Kernel& k) { k.nodes[4].op = Op::le; },
      [](Kernel& k) { k.reductions[0].combiner = Combiner::max; },
      [](Kernel& k) { k.phases[0].local_stores.clear(); },
      [](Kernel& k) { k.phases[1].row_stores[0].value = 10; },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    Kernel b = sample();
    changes[i](b);
    EXPECT_NE(print(a), print(b)) << i;
  }
}

TEST(KernelIr, TextIsReadBack) {
  EXPECT_EQ(parse_kernel(print(sample())), sample());
  Kernel same_rows = sample();
  same_rows.buffers[0].same_rows = true;
  EXPECT_EQ(parse_kernel(print(same_rows)), same_rows);
  int read = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    test::RandomKernel random(seed);
    if (seed % 3)
      random.make();
    else
      random.make_columns();
    Kernel kernel = random.kernel().kernel;
    kernel.known_columns = seed % 5 ? 0 : 8;
    kernel.few_columns = kernel.form == Form::columns && kernel.known_columns == 0 && seed % 2;
    kernel.streams = seed % 7 == 0;
    EXPECT_EQ(parse_kernel(print(kernel)), kernel) << print(kernel);
    read += static_cast<int>(kernel.nodes.size());
  }
  EXPECT_GT(read, 3000);
  EXPECT_EQ(parse_kernel("\n# y = -0.5\nkernel rows scalars 0  # of nothing\n b0 f32 dense written\n"
                         "%0 = constant f32 0xbf000000\nphase 0\nstore b0 %0\n"),
            parse_kernel("kernel rows scalars 0\nb0 f32 dense written\n%0 = constant f32 0xbf000000 (-0.5)\nphase 0\n"
                         "  store b0 %0"));
}

TEST(KernelIr, TextThatIsNoKernelIsAnErrorWithItsLine) {
  const std::string good = print(sample());
  // A line less, a word less, a word more, another number: never anything but an Error or another kernel.
  auto refused = [](const std::string& text) -> std::string {
    try {
      static_cast<void>(parse_kernel(text));
    } catch (const Error& e) {
      return e.what();
    }
    return {};
  };
  int errors = 0, tried = 0;
  for (size_t at = 0; at < good.size(); ++at)
    for (const std::string& text :
         {good.substr(0, at), good.substr(0, at) + good.substr(at + 1), good.substr(0, at) + "9" + good.substr(at),
          good.substr(0, at) + " x" + good.substr(at)})
      ++tried, errors += !refused(text).empty();
  EXPECT_GT(errors, tried / 2);
  EXPECT_EQ(refused(""), "kernel IR: line 0: got ``, expected `kernel rows` or `kernel columns`");
  EXPECT_EQ(refused("kernel rows scalars 0\n%0 = nothing f32\n"), "kernel IR: line 2: got `nothing`, expected an op");
  EXPECT_EQ(refused("kernel rows scalars 0\nb1 f32 dense\n"),
            "kernel IR: line 2: got `f32`, expected number 0 before it");
  EXPECT_EQ(refused("kernel rows scalars 0\nstore b0 %0\n"), "kernel IR: line 2: got ``, expected `phase 0` before it");
  // Each kind of line, with a word that it does not know.
  const std::pair<const char*, const char*> lines[] = {
      {"kernel planes scalars 0", "1: got `planes`, expected one of rows, columns"},
      {"kernel rows scalars many", "1: got `many`, expected a number"},
      {"kernel rows scalars 0\n\nb0 f33 dense", "3: got `f33`, expected a dtype"},
      {"kernel rows scalars 0\nb0 f32 sparse", "2: got `sparse`, expected dense, uniform or strided"},
      {"kernel rows scalars 0\nl0 f16", "2: got `f16`, expected a register type"},
      {"kernel rows scalars 0\n%0 = load f32 l0", "2: got `l0`, expected `b` and a number"},
      {"kernel rows scalars 0\n%0 = index i64 0\n[1 %1 = index i64 0", "3: got `[1`, expected `[region]`"},
      {"kernel rows scalars 0\n%0 = index i64 0\nr0 mean %0", "3: got `mean`, expected a combiner"},
      {"kernel rows scalars 0\n%0 = index i64 0 0", "2: got `0`, expected the end of the line"},
      {"kernel rows scalars 0\nphase 1", "2: got ``, expected number 0 before it"},
      {"kernel rows scalars 0\nphase 0\n  keep b0 %0",
       "3: got `keep`, expected a buffer, local, node, reduction or store"}};
  for (const auto& [text, error] : lines) EXPECT_EQ(refused(text), "kernel IR: line " + std::string(error));
  EXPECT_NE(refused("kernel rows scalars 0\n%0 = index i64 0\n").find("there is a phase"), std::string::npos);
}

TEST(KernelIr, VerifierAcceptsTheSample) { EXPECT_NO_THROW(verify(sample())); }

TEST(KernelIr, VerifierRefusesBrokenKernels) {
  struct Broken {
    const char* why;
    std::function<void(Kernel&)> change;
  };
  const Broken cases[] = {
      {"operand after use", [](Kernel& k) { k.nodes[2].b = 5; }},
      {"missing operand", [](Kernel& k) { k.nodes[2].b = kNone; }},
      {"surplus operand", [](Kernel& k) { k.nodes[9].b = 0; }},
      {"types differ", [](Kernel& k) { k.nodes[2].type = Type::f64; }},
      {"comparison is a mask", [](Kernel& k) { k.nodes[4].type = Type::f32; }},
      {"no such buffer", [](Kernel& k) { k.nodes[0].imm = 9; }},
      {"no such scalar", [](Kernel& k) { k.nodes[1].imm = 1; }},
      {"load of another type", [](Kernel& k) { k.buffers[0].dtype = DType::f64; }},
      {"constant too wide", [](Kernel& k) { k.nodes[3].imm = uint64_t(1) << 40; }},
      {"value leaves its region", [](Kernel& k) { k.nodes[13].a = 9; }},
      {"region left open", [](Kernel& k) { k.nodes[11].region = 2; }},
      {"regions not in order",
       [](Kernel& k) {
         for (auto& n : k.nodes) n.region *= 2;
       }},
      {"rare of another region", [](Kernel& k) { k.nodes[10].imm = 2; }},
      {"rare result from outside", [](Kernel& k) { k.nodes[10].c = 0; }},
      {"not written", [](Kernel& k) { k.buffers[1].written = false; }},
      {"store of another type", [](Kernel& k) { k.buffers[1].dtype = DType::i32; }},
      {"store to a uniform buffer", [](Kernel& k) { k.buffers[1].access = Access::uniform; }},
      {"reduction computed twice", [](Kernel& k) { k.phases[1].reductions = {0}; }},
      {"reduction never computed", [](Kernel& k) { k.phases[0].reductions.clear(); }},
      {"reduction read too early",
       [](Kernel& k) {
         k.phases[0].stores = {{1, 12}};
       }},
      {"local read too early",
       [](Kernel& k) {
         k.phases[0].stores = {{1, 11}};
       }},
      {"row store depends on the column", [](Kernel& k) { k.phases[1].row_stores[0].value = 0; }},
      {"sum of a mask", [](Kernel& k) { k.reductions[0].value = 4; }},
      {"reduction inside of a region", [](Kernel& k) { k.reductions[0].value = 9; }},
      {"no phase", [](Kernel& k) { k.phases.clear(); }},
      {"form columns with stores", [](Kernel& k) { k.form = Form::columns; }},
  };
  for (const Broken& c : cases) {
    Kernel k = sample();
    c.change(k);
    EXPECT_THROW(verify(k), InternalError) << c.why;
  }
}

TEST(KernelIr, VerifierNamesTheFaultAndShowsTheKernel) {
  Kernel k = sample();
  k.nodes[2].b = 5;
  try {
    verify(k);
    FAIL();
  } catch (const InternalError& e) {
    EXPECT_NE(std::string(e.what()).find("%2"), std::string::npos);
    EXPECT_NE(std::string(e.what()).find(print(k)), std::string::npos);
  }
}

TEST(KernelIr, RegisterTypes) {
  EXPECT_EQ(register_type(DType::bf16), Type::f32);
  EXPECT_EQ(register_type(DType::f64), Type::f64);
  EXPECT_EQ(register_type(DType::u8), Type::i32);
  EXPECT_EQ(register_type(DType::i64), Type::i64);
  EXPECT_EQ(register_type(DType::bool_), Type::mask);
  EXPECT_THROW(register_type(DType::c64), InternalError);
}

}  // namespace
}  // namespace ingot::codegen
