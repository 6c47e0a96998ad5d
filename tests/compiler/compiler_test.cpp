// The door: what identifies a program, what becomes of one that is asked for again, and where outputs are written.
#include "compiler/compiler.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <set>
#include <thread>

#include "runtime/cpu.h"

namespace ingot::compiler {
namespace {

constexpr const char* kText =
    "ingot.ir 1\nsymbol s0 = 8\nscalar $0 = floating\ninput %0 = f32[s0, 4]\n"
    "%1 = mul(%0, $0)\n%2 = add(%1, 0.5, 1) at \"model.cpp\":12 in \"h.3\"\noutput %2\n";

Settings host() { return {.level = {runtime::host_target()}}; }

ReadyProgram compile(const std::string& text, const Settings& settings = host()) {
  ir::Graph graph = ir::parse(text);
  const std::string key = key_of(graph, settings);
  return compile(key, std::move(graph), settings, {});
}

std::vector<float> run(const ReadyProgram& ready, std::vector<float> x, int64_t rows, double factor) {
  std::vector<float> y(x.size());
  const uint64_t scalar = std::bit_cast<uint64_t>(factor);
  void* const in[] = {x.data()};
  void* const out[] = {y.data()};
  const int64_t symbols[] = {rows};
  ready.loaded->run(*ready.loaded->bind(symbols), {in, {}, out, {&scalar, 1}});
  return y;
}

TEST(Compiler, WhatWasCompiledBeforeIsNotCompiledAgain) {
  const ReadyProgram first = compile(kText), again = compile(kText);
  EXPECT_EQ(first.compiled, again.compiled);
  EXPECT_NE(first.loaded, again.loaded);  // memory and bindings are each one's own
  EXPECT_EQ(first.compiled->traced_text(), ir::print(ir::parse(kText)));
  const std::vector<float> x{1, 2, 3, 4, 5, 6, 7, 8}, expected{2.5, 4.5, 6.5, 8.5, 10.5, 12.5, 14.5, 16.5};
  EXPECT_EQ(run(first, x, 2, 2), expected);
  EXPECT_EQ(run(again, x, 2, 2), expected);
}

TEST(Compiler, ThreadsThatAskAtOnceAreGivenOneProgram) {
  std::string text = kText;
  text.replace(text.find("0.5"), 3, "0.75");  // nobody has asked for it
  std::vector<ReadyProgram> ready(6);
  std::vector<std::vector<float>> results(ready.size());
  std::vector<std::thread> threads;
  for (size_t t = 0; t < ready.size(); ++t)
    threads.emplace_back([&, t] {
      ready[t] = compile(text);
      results[t] = run(ready[t], {1, 2, 3, 4}, 1, static_cast<double>(t));
    });
  for (std::thread& thread : threads) thread.join();
  for (size_t t = 0; t < ready.size(); ++t) {
    EXPECT_EQ(ready[t].compiled, ready[0].compiled);
    const float f = static_cast<float>(t);
    EXPECT_EQ(results[t], (std::vector<float>{f + 0.75f, 2 * f + 0.75f, 3 * f + 0.75f, 4 * f + 0.75f}));
  }
}

/// `text` with one thing replaced.
std::string with(std::string_view from, std::string_view to) {
  std::string text = kText;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Compiler, EverythingThatAProgramDependsOnIsPartOfItsKey) {
  std::vector<std::string> texts{kText,
                                 with("symbol s0 = 8", "symbol s0 = 9"),
                                 with("f32[s0, 4]", "f32[s0, 5]"),
                                 with("f32[s0, 4]", "f32[8, s0]"),
                                 with("f32[s0, 4]", "f64[s0, 4]"),
                                 with("f32[s0, 4]", "f32[s0, 4] strides [4, 2]"),
                                 with("f32[s0, 4]", "f32[s0, 4] constant"),
                                 with("floating", "integer"),
                                 with("0.5", "0.25"),
                                 with("0.5, 1)", "0.5, 2)"),
                                 with("mul(%0, $0)", "mul($0, %0)"),
                                 with("mul(", "div("),
                                 with("output %2", "output %1"),
                                 with("output %2", "output %2, %1"),
                                 with(":12", ":13"),
                                 with("model.cpp", "other.cpp"),
                                 with("h.3", "h.4")};
  std::set<std::string> keys;
  for (const std::string& text : texts) EXPECT_TRUE(keys.insert(key_of(ir::parse(text), host())).second) << text;

  const ir::Graph graph = ir::parse(kText);
  std::vector<std::function<void(Settings&)>> changes{
      [](Settings& s) { s.level.target = {}; },
      [](Settings& s) { s.level.target.bf16_dot = !s.level.target.bf16_dot; },
      [](Settings& s) { s.level.target.isa = s.level.target.isa == Isa::avx2 ? Isa::avx512 : Isa::avx2; },
      [](Settings& s) { s.level.numerics = Numerics::fast; },
      [](Settings& s) { s.level.numerics = Numerics::strict; },
      [](Settings& s) { s.disabled = {"fuse"}; },
      [](Settings& s) { s.disabled = {"cse"}; },
      [](Settings& s) { s.passes = false; },
      [](Settings& s) {
        s.output_strides = {{4, 1}};
      },
      [](Settings& s) {
        s.output_strides = {{8, 1}};
      }};
  for (size_t i = 0; i < changes.size(); ++i) {
    Settings settings = host();
    changes[i](settings);
    EXPECT_TRUE(keys.insert(key_of(graph, settings)).second) << i;
  }
  setenv("INGOT_DISABLE", "simplify", 1);
  EXPECT_TRUE(keys.insert(key_of(graph, host())).second);
  unsetenv("INGOT_DISABLE");
  // What must hold of sizes, whoever said so.
  ir::Graph guarded = ir::parse(kText);
  guarded.dims.less(guarded.dims.symbol_dim(0), 64);
  ASSERT_FALSE(guarded.dims.guards().empty());
  EXPECT_TRUE(keys.insert(key_of(guarded, host())).second);
}

TEST(Compiler, PassesAndStagesAreLeftOutByName) {
  setenv("INGOT_DISABLE", "dce,,join_buffers", 1);
  const std::vector<std::string> also{"fuse"};
  EXPECT_EQ(disabled_stages(also), (std::vector<std::string>{"fuse", "dce", "join_buffers"}));
  unsetenv("INGOT_DISABLE");
  EXPECT_TRUE(disabled_stages({}).empty());
  for (const std::string wrong : {"nothing", "decompose", "layout"}) {
    try {
      disabled_stages({&wrong, 1});
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(
          error.what(),
          "passes: got \"" + wrong +
              "\" to disable, expected one of: attention, simplify, fold, cse, dce, recompute, channels_last, fuse, "
              "siblings, split_cat, side_by_side, transpose, winograd, slice, keep, prologue, join_buffers");
    }
  }
}

TEST(Compiler, WhatIsLeftOutTakesNoTime) {
  Settings settings = host();
  settings.disabled = {"cse", "join_buffers"};
  std::vector<std::string_view> names;
  for (const ir::PassTime& stage : compile(kText, settings).compiled->stages) names.push_back(stage.name);
  EXPECT_EQ(names, (std::vector<std::string_view>{"attention", "decompose", "simplify", "fold", "dce", "recompute",
                                                  "layout", "group", "schedule", "emit", "slice", "keep", "prologue",
                                                  "lifetimes", "device_source", "load"}));
}

TEST(Compiler, OutputsAreWrittenWhereTheyAreSaidToLie) {
  // A result of its own, an input as it is, a view, a sum, and one that is read again.
  for (const char* nodes : {"%1 = exp(%0)\noutput %1\n", "output %0\n", "%1 = permute(%0, dims=[0, 1])\noutput %1\n",
                            "%1 = exp(%0)\n%2 = sum(%1, dim=[1], keepdim=true)\n%3 = div(%1, %2)\noutput %3\n"})
    for (const Dims& strides : {Dims{7, 1}, Dims{1, 3}, Dims{16, 3}}) {
      SCOPED_TRACE(std::string(nodes) + std::to_string(strides[0].code));
      const std::string text = "ingot.ir 1\ninput %0 = f32[3, 5]\n" + std::string(nodes);
      const ReadyProgram dense = compile(text);
      Settings settings = host();
      settings.output_strides = {strides};
      const ReadyProgram given = compile(text, settings);
      float x[15], expected[15], memory[64];
      for (int i = 0; i < 15; ++i) x[i] = 0.125f * static_cast<float>(i);
      std::fill(std::begin(memory), std::end(memory), -7.0f);
      void* const in[] = {x};
      void* const to_dense[] = {expected};
      void* const to_given[] = {memory};
      dense.loaded->run(*dense.loaded->bind({}), {in, {}, to_dense, {}});
      given.loaded->run(*given.loaded->bind({}), {in, {}, to_given, {}});
      std::set<int64_t> written;
      for (int64_t i = 0; i < 3; ++i)
        for (int64_t j = 0; j < 5; ++j) {
          const int64_t at = i * strides[0].code + j * strides[1].code;
          written.insert(at);
          EXPECT_EQ(memory[at], expected[i * 5 + j]) << i << ", " << j;
        }
      for (int64_t at = 0; at < 64; ++at)
        if (!written.contains(at)) EXPECT_EQ(memory[at], -7.0f) << at;
    }
}

TEST(Compiler, WhereNoCodeCanBeMadeTheScalarExecutorRuns) {
  Settings settings = host();
  settings.level.target = {.isa = Isa::avx512, .cuda_arch = 90};  // that is no program for this processor
  std::string reason;
  const ReadyProgram ready = compile_or_interpret(ir::parse(kText), settings, &reason);
  EXPECT_NE(reason, "");
  EXPECT_EQ(run(ready, {1, 2, 3, 4}, 1, 3), (std::vector<float>{3.5, 6.5, 9.5, 12.5}));
  for (const KernelPtr& kernel : ready.compiled->kernels()) EXPECT_TRUE(kernel->code.empty());
  // Nothing is said of what needs no code.
  reason.clear();
  settings.level.target = {};
  EXPECT_EQ(compile_or_interpret(ir::parse(kText), settings, &reason).compiled, ready.compiled);
  EXPECT_EQ(reason, "");
}

}  // namespace
}  // namespace ingot::compiler
