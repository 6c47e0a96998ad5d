// What a compiled function says of itself: explain() as data, as a page, as HTML; logs; dumps; passes left out.
#include "compile/explain.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "base/log.h"
#include "support.h"

namespace ingot {
namespace {

using test::same_bits;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

Tensor two_steps(const Tensor& x) { return softmax(x.matmul(x.t()).relu() * 2, -1); }

TEST(Explain, TellsWhatWasCompiledAndWhy) {
  auto fast = compile([](const Tensor& x) { return softmax(x * 2, -1); }, {.name = "mine"});
  fast(randn({3, 5}));
  fast(randn({4, 5}));
  Explanation e = fast.explain();
  EXPECT_EQ(e.name, "mine");
  ASSERT_EQ(e.programs.size(), 2u);
  EXPECT_EQ(e.programs[0].shapes, "f32[3, 5]");
  EXPECT_EQ(e.programs[1].shapes, "f32[s0, 5]");
  EXPECT_TRUE(contains(e.programs[0].trace, "softmax"));
  EXPECT_FALSE(contains(e.programs[0].primitives, "softmax")) << "it was decomposed";
  EXPECT_FALSE(e.programs[0].kernels.empty());
  EXPECT_EQ(e.programs[0].hits, 1);
  ASSERT_EQ(e.programs[1].inputs.size(), 1u);
  EXPECT_EQ(e.programs[1].inputs[0].type, "f32[s0, 5]");
  EXPECT_FALSE(e.programs[1].inputs[0].constant);
  EXPECT_TRUE(contains(e.programs[1].inputs[0].used_by, "explain_test.cpp")) << e.programs[1].inputs[0].used_by;
}

/// Of a list that is about to go, items come as values.
template <class Owner, class Item>
constexpr bool keeps(Listed<Item> Owner::*list) {
  using Rvalue = decltype((std::declval<Owner>().*list));
  using Lvalue = decltype((std::declval<Owner&>().*list));
  return std::is_same_v<decltype(std::declval<Rvalue>().back()), Item> &&
         std::is_same_v<decltype(std::declval<Rvalue>().front()), Item> &&
         std::is_same_v<decltype(std::declval<Rvalue>().at(0)), Item> &&
         std::is_same_v<decltype(std::declval<Rvalue>()[0]), Item> &&
         std::is_same_v<decltype(std::declval<Lvalue>().back()), Item&>;
}
using E = Explanation;
static_assert(keeps(&E::programs) && keeps(&E::breaks) && keeps(&E::fallbacks) && keeps(&E::recompiles));
static_assert(keeps(&E::Program::traced_ops) && keeps(&E::Program::ops) && keeps(&E::Program::outputs) &&
              keeps(&E::Program::inputs) && keeps(&E::Program::groups) && keeps(&E::Program::decisions) &&
              keeps(&E::Program::notes) && keeps(&E::Program::steps) && keeps(&E::Program::kernels) &&
              keeps(&E::Program::stages) && keeps(&E::Program::writes) && keeps(&E::Program::saved) &&
              keeps(&E::Program::recomputed));
static_assert(keeps(&E::Op::operands) && keeps(&E::Step::kernels) && keeps(&E::Group::members) &&
              keeps(&E::Group::ops) && keeps(&E::Group::stored) && keeps(&E::Group::steps));

// The usual loop over a temporary; AddressSanitizer says whether what it reads is there.
TEST(Explain, WhatATemporaryHandsOutStays) {
  auto fast = compile(two_steps);
  fast(randn({6, 5}));
  const Explanation whole = fast.explain();
  std::vector<std::string> names, expected;
  for (const auto& step : whole.programs.back().steps) expected.push_back(step.name);
  for (auto& step : fast.explain().programs.back().steps) names.push_back(step.name);
  for (auto& kernel : fast.explain().programs[0].kernels) EXPECT_FALSE(kernel.text.empty());
  for (char c : fast.explain().programs.at(0).kernels.front().text) EXPECT_NE(c, 0);
  for (uint32_t number : fast.explain().programs.back().groups.back().ops)
    EXPECT_LT(number, whole.programs.back().ops.size());
  EXPECT_EQ(names, expected);
  EXPECT_FALSE(expected.empty());
}

// Each tensor from outside that is written, in place or why not.
TEST(Explain, TellsWhichWritesAreDonated) {
  const Tensor a = randn({5, 24}), b = randn({5, 24}), c = randn({5, 24});
  auto fast = compile([&](const Tensor& x) {
    a.mul_(0.9).add_(x);  // read where it is written
    b.copy_(x * 2);       // not read
    c.add_(c.flip({0}));  // read elsewhere
  });
  set_log_topics("writes");
  testing::internal::CaptureStderr();
  fast(randn({5, 24}));
  const std::string said = testing::internal::GetCapturedStderr();
  set_log_topics("");
  const Explanation e = fast.explain();
  ASSERT_EQ(e.programs.size(), 1u);
  const auto& writes = e.programs[0].writes;
  ASSERT_EQ(writes.size(), 3u);
  EXPECT_EQ(std::ranges::count_if(writes, [](const auto& w) { return w.in_place; }), 2);
  for (const auto& w : writes) EXPECT_FALSE(w.input.empty()) << w.value;
  for (const auto& w : writes) {
    EXPECT_EQ(w.type, "f32[5, 24]");
    EXPECT_TRUE(contains(w.location, "explain_test.cpp")) << w.location;
    EXPECT_EQ(w.in_place, w.reason.empty());
    if (w.in_place) continue;
    EXPECT_EQ(w.op, "add");
    EXPECT_TRUE(contains(w.reason, "reads other elements of it than the one that it stores")) << w.reason;
    EXPECT_TRUE(contains(said, "written apart and copied: " + w.reason)) << said;
    EXPECT_TRUE(contains(e.str(), w.reason)) << e.str();
  }
  EXPECT_TRUE(contains(said, ": written in place\n")) << said;
  EXPECT_TRUE(contains(e.str(), "2 x  in place")) << e.str();
}

TEST(Explain, WritesThatFollowAReadOfTheOldValuesOrACheckAreApart) {
  const Tensor state = randn({3, 4}), table = randn({8, 4});
  auto reason = [&](auto f) {
    auto fast = compile(f);
    fast(ones({3, 4}));
    const Explanation e = fast.explain();
    EXPECT_EQ(e.programs.back().writes.size(), 1u);
    return std::string(e.programs.back().writes.front().reason);
  };
  auto late = [&](const Tensor& x) {
    const Tensor product = state.matmul(x.t());
    state.add_(product.sum());
    return product;
  };
  EXPECT_EQ(reason(late), "") << "the product has read it before";
  auto checked = [&](const Tensor& x) {
    state.add_(table.index_select(0, (x.sum(1) * 1).to(kInt64)));
    return state * 2;
  };
  EXPECT_EQ(reason(checked), "the program may still refuse a value after it is written");
  auto none = compile([](const Tensor& x) { return x * 2; });
  none(ones({3}));
  EXPECT_TRUE(none.explain().programs[0].writes.empty());
  EXPECT_FALSE(contains(none.explain().str(), "in place"));
}

TEST(Explain, EveryOpHasItsGroupAndEveryDecisionItsPlace) {
  auto fast = compile(two_steps);
  fast(randn({6, 5}));
  const Explanation e = fast.explain();
  const Explanation::Program& p = e.programs.at(0);
  ASSERT_GE(p.groups.size(), 1u);
  std::set<uint32_t> steps;
  int64_t saved = 0;
  for (const auto& group : p.groups) {
    EXPECT_EQ(group.ops.size(), group.members.size());
    for (size_t i = 0; i < group.ops.size(); ++i) EXPECT_EQ(p.ops.at(group.ops[i]).op, group.members[i]);
    steps.insert(group.steps.begin(), group.steps.end());
    saved += group.bytes_saved;
  }
  EXPECT_EQ(steps.size(), p.steps.size()) << "each step belongs to one group";
  EXPECT_EQ(static_cast<double>(saved), p.bytes_saved());
  bool fused = false, refused = false;
  for (const auto& d : p.decisions) {
    EXPECT_FALSE(d.reason.empty());
    EXPECT_TRUE(contains(d.location, "explain_test.cpp")) << d.location;
    EXPECT_TRUE(std::any_of(p.ops.begin(), p.ops.end(), [&](const auto& op) { return op.value == d.value; }))
        << d.value;
    (d.fused ? fused : refused) = true;
    EXPECT_GT(d.bytes, 0);
    if (d.fused) EXPECT_GT(d.bytes_saved, 0) << d.reason;
  }
  EXPECT_TRUE(fused && refused);
  for (const auto& step : p.steps) EXPECT_FALSE(step.kernels.empty()) << step.name;
  double stages = 0;
  for (const auto& stage : p.stages) stages += stage.ms;
  EXPECT_LE(stages, p.compile_ms);
  EXPECT_EQ(p.stages.front().name, "attention");
}

TEST(Explain, ProfileHasTheTimeOfEachStep) {
  auto fast = compile(two_steps);
  Tensor x = randn({6, 5});
  fast(x);
  for (const auto& step : fast.explain().programs.at(0).steps) EXPECT_EQ(step.mean_us, 0);
  const Explanation measured = fast.profile([&] { fast(x); });
  for (const auto& step : measured.programs.at(0).steps) EXPECT_GT(step.mean_us, 0) << step.name;
}

TEST(Explain, ThePageShowsWhatIsAskedFor) {
  auto fast = compile(two_steps, {.name = "mine"});
  fast(randn({6, 5}));
  fast(randn({7, 5}));
  const Explanation e = fast.explain();
  const std::string page = e.str();
  for (const char* part :
       {"mine: 2 calls", "Recompiles", "size 0 of operand", "was 6, is 7", "Programs", "Trace", "matmul", "Steps",
        "Fusion", "fused, and what that saves:", "kept apart, and what is stored:", "Guards", "Compiling", "Kernels"})
    EXPECT_TRUE(contains(page, part)) << part << "\n" << page;
  for (const char* part : {"ingot.ir", "kernel rows", "zmm", "\033["}) EXPECT_FALSE(contains(page, part)) << part;
  EXPECT_TRUE(contains(e.str({.ir = true}), "ingot.ir 1"));
  EXPECT_TRUE(contains(e.str({.kernel_ir = ""}), "%0 = "));
  EXPECT_TRUE(contains(test::error_of([&] { (void)e.str({.assembly = "no such kernel"}); }),
                       "explain: assembly: got \"no such kernel\", expected a part of one of these names: "));
  EXPECT_TRUE(contains(test::error_of([&] { (void)e.str({.kernel_ir = "?"}); }), "explain: kernel_ir: got \"?\""));
  EXPECT_TRUE(contains(test::error_of([&] { (void)e.str({.program = 2}); }),
                       "explain: program: got 2, expected a number from 0 to 1"));
  EXPECT_TRUE(contains(test::error_of([&] { (void)e.str({.program = -2}); }), "explain_test.cpp"));
  EXPECT_TRUE(contains(test::error_of([&] { (void)compile(two_steps).explain().str({.program = 0}); }),
                       "expected none: no program was compiled"));
  EXPECT_TRUE(contains(e.str({.program = 0}), "Program #0: f32[6, 5]"));
  EXPECT_TRUE(contains(e.str({.color = true}), "\033[1m"));
  const auto& decision = e.programs.back().decisions.front();
  EXPECT_TRUE(contains(e.str({.fusion = true}), "  " + decision.op + " ")) << decision.op;
}

struct DeepImpl : nn::Module {
  std::vector<nn::Linear> layers;
  DeepImpl() {
    for (int i = 0; i < 20; ++i) layers.emplace_back(32, 32);
  }
  Tensor forward(const Tensor& x) {
    Tensor y = x;
    for (nn::Linear& layer : layers) y = relu(layer(y));
    return y.cumsum(0);
  }
};
INGOT_MODULE(Deep, layers);

TEST(Explain, ADeepFunctionBeginsWithASummary) {
  const NoGradGuard no_grad;
  Deep deep;
  auto fast = compile(deep);
  const Tensor x = randn({64, 32});
  fast(x);
  const std::string untimed = fast.explain().str();
  EXPECT_TRUE(contains(untimed, "21 steps: 100% products, 0% host ops; ")) << untimed;
  const Explanation e = fast.profile([&] {
    for (int i = 0; i < 5; ++i) fast(x);
  });
  const Explanation::Program& p = e.programs.back();
  EXPECT_EQ(e.statistics.host_steps, 1);
  ASSERT_EQ(p.steps.size(), 21u);
  EXPECT_EQ(p.steps[3].modules, std::vector<std::string>{"layers.3"});
  EXPECT_EQ(p.steps[3].ops, (std::vector<std::string>{"matmul", "add", "relu"}));
  const auto kinds = p.kinds();
  ASSERT_EQ(kinds.size(), 2u);
  EXPECT_EQ(kinds[0].steps + kinds[1].steps, 21);
  EXPECT_NEAR(kinds[0].share + kinds[1].share, 1, 1e-9);
  EXPECT_GE(kinds[0].share, kinds[1].share);
  const auto order = p.longest();
  for (size_t i = 1; i < order.size(); ++i) EXPECT_GE(p.steps[order[i - 1]].mean_us, p.steps[order[i]].mean_us);
  const std::string page = e.str(), all = e.str({.steps = true});
  EXPECT_TRUE(contains(page, p.summary())) << page;
  EXPECT_TRUE(contains(page, "GFLOP/s"));
  EXPECT_LT(page.find(p.summary()), page.find("The ten longest steps"));
  EXPECT_TRUE(contains(page, "and 11 more in ")) << page;
  EXPECT_FALSE(contains(all, "more in ")) << all;
  EXPECT_TRUE(contains(e.html(), "The longest steps"));
}

TEST(Explain, TheHtmlPageIsWhole) {
  auto fast = compile(two_steps, {.name = "a<b>&c"});
  fast(randn({6, 5}));
  const Explanation e = fast.explain();
  const std::string page = e.html();
  EXPECT_TRUE(page.starts_with("<!doctype html>"));
  EXPECT_TRUE(page.ends_with("</html>\n"));
  EXPECT_TRUE(contains(page, "a&lt;b&gt;&amp;c"));
  EXPECT_FALSE(contains(page, "a<b>"));
  EXPECT_FALSE(contains(page, "http://") && !contains(page, "xmlns=\"http://www.w3.org")) << "nothing is loaded";
  for (const char* tag : {"<svg", "</svg>", "<path", "matmul", "relu"}) EXPECT_TRUE(contains(page, tag)) << tag;
  auto count = [&](const std::string& what) {
    int n = 0;
    for (size_t at = page.find(what); at != std::string::npos; at = page.find(what, at + 1)) ++n;
    return n;
  };
  EXPECT_EQ(count("<details"), count("</details>"));
  EXPECT_EQ(count("<g>"), count("</g>"));
}

Explanation::Recompile last_recompile(const Explanation& e) {
  return e.recompiles.empty() ? Explanation::Recompile{} : e.recompiles.back();
}

TEST(Recompiles, NameTheGuardAndBothValues) {
  auto f = [](const Tensor& x, int64_t dim, bool negate) {
    Tensor y = x.sum(dim);
    return negate ? -y : y.exp();
  };
  auto fast = compile(f);
  auto expect = [&](const char* guard, const char* before, const char* after, const char* op) {
    Explanation::Recompile r = last_recompile(fast.explain());
    EXPECT_EQ(r.guard, guard);
    EXPECT_EQ(r.before, before);
    EXPECT_EQ(r.after, after);
    EXPECT_EQ(r.op, op);
    EXPECT_TRUE(contains(r.location, "explain_test.cpp")) << r.location;
  };
  Tensor x = ones({3, 4});
  fast(x, 0, false);
  EXPECT_TRUE(fast.explain().recompiles.empty());
  fast(x, 1, false);
  expect("argument dim of sum", "[0]", "[1]", "sum");
  fast(x, 1, true);
  expect("the op that comes next", "exp", "neg", "neg");
  fast(x.to(kFloat64), 1, true);
  expect("dtype of operand self of sum", "f32", "f64", "sum");
  fast(ones({3, 4, 2}, kFloat64), 1, true);
  expect("rank of operand self of sum", "2", "3", "sum");
  fast(ones({3, 4, 2}, kFloat64), 1, false);
  expect("the op that comes next", "neg", "exp", "exp");
  fast = compile(f);
  fast(x, 1, true);
  fast(x.t(), 1, true);
  EXPECT_EQ(last_recompile(fast.explain()).guard, "strides of operand self of sum");
  EXPECT_TRUE(contains(last_recompile(fast.explain()).after, "strides [1, 4]"));
}

TEST(Recompiles, NameWhichTensorIsAnotherOne) {
  auto fast = compile([](const Tensor& x, const Tensor& y, int64_t way) {
    Tensor a = x.exp(), b = x.cos();
    Tensor c = way == 2 ? b + b : a + b;
    Tensor d = c * (way == 1 ? y : x);
    return way == 3 ? d.clamp(-1, std::nullopt) : way == 4 ? d + 2 : way == 5 ? d + 2.5 : d.clamp(std::nullopt, 1);
  });
  const Tensor x = ones({3}), y = ones({3});
  auto expect = [&](int64_t way, const char* guard, const char* before, const char* after) {
    fast(x, y, way);
    const Explanation::Recompile r = last_recompile(fast.explain());
    EXPECT_EQ(r.guard, guard);
    EXPECT_EQ(r.before, before);
    EXPECT_EQ(r.after, after);
  };
  fast(x, y, 0);
  expect(1, "which tensor operand other of mul is", "tensor 0", "another one");
  expect(2, "which tensor operand self of add is", "result 0 of the call", "another one");
  expect(3, "operand min of clamp", "none", "an integer");
  expect(4, "the op that comes next", "clamp", "add");
  expect(5, "operand other of add", "an integer", "a float");
}

TEST(Recompiles, NameTheSizesThatDifferThoughTheyWereEqual) {
  auto fast = compile([](const Tensor& x, const Tensor& y) {
    Tensor a = x.sum();
    return a + y.sum();
  });
  fast(ones({4}), ones({4}));
  fast(ones({5}), ones({5}));
  fast(ones({6}), ones({7}));
  Explanation::Recompile r = last_recompile(fast.explain());
  EXPECT_TRUE(contains(r.before, "the same as size 0 of operand self of sum (6)")) << r.before;
  EXPECT_EQ(r.after, "7");
}

TEST(Recompiles, NameWhatIsKept) {
  std::vector<Tensor> kept;
  auto fast = compile([&](const Tensor& x, const Tensor& keep) {
    Tensor y = x.exp();
    if (kept.capacity()) kept.push_back(y);
    return y + keep;
  });
  fast(ones({3}), ones({3}));
  kept.reserve(1);
  fast(ones({3}), ones({3}));
  Explanation::Recompile r = last_recompile(fast.explain());
  EXPECT_EQ(r.guard, "which results are kept");
  EXPECT_EQ(r.before, "add (result 1)");
  EXPECT_EQ(r.after, "exp (result 0), add (result 1)");
}

TEST(Notices, BreaksAndFallbacksNameOpAndLine) {
  auto fast = compile([](const Tensor& x, const Tensor& y) {
    Tensor s = x.tanh().sum();
    Tensor view = y.view({6});
    if (s.item<float>() > -100) y.add_(1);
    return view.exp() + y.sum();
  });
  Tensor base = ones({6});
  fast(ones({2}), base.view({2, 3}));
  Explanation e = fast.explain();
  ASSERT_FALSE(e.breaks.empty());
  EXPECT_EQ(e.breaks[0].op, "view");
  EXPECT_TRUE(contains(e.breaks[0].reason, "item"));
  EXPECT_TRUE(contains(e.breaks[0].location, "explain_test.cpp"));
  EXPECT_TRUE(contains(e.str(), "Graph breaks"));
  auto falls = compile([](const Tensor& x, const Tensor& y) { return x.add_(1) * y; });
  Tensor shared = ones({6});
  falls(shared.narrow(0, 0, 3), shared.narrow(0, 1, 3));
  e = falls.explain();
  ASSERT_EQ(e.fallbacks.size(), 1u);
  EXPECT_EQ(e.fallbacks[0].op, "add");
  EXPECT_TRUE(contains(e.fallbacks[0].reason, "shares its storage"));
  EXPECT_TRUE(contains(e.str(), "Fallbacks"));
}

TEST(Disable, EachPassCanBeLeftOutWithTheSameBits) {
  Tensor x = randn({6, 5});
  const Tensor expected = two_steps(x);
  size_t groups = 0;
  for (const char* pass : {"", "attention", "simplify", "fold", "cse", "dce", "recompute", "channels_last", "fuse",
                           "siblings", "split_cat", "transpose", "slice", "keep", "prologue", "join_buffers"}) {
    CompileOptions options;
    if (*pass) options.disable = {pass};
    auto fast = compile(two_steps, options);
    EXPECT_TRUE(same_bits(fast(x), expected)) << pass;
    EXPECT_EQ(fast.stats().fallbacks, 0) << pass;
    const Explanation e = fast.explain();
    for (const auto& stage : e.programs.at(0).stages) EXPECT_NE(stage.name, pass);
    if (!*pass) groups = e.programs.at(0).groups.size();
    if (std::string(pass) == "fuse") {
      EXPECT_GT(e.programs.at(0).groups.size(), groups);
      EXPECT_EQ(e.programs.at(0).bytes_saved(), 0);
    }
  }
}

TEST(Disable, AnUnknownPassListsWhatExists) {
  auto expect_list = [](auto&& action) {
    try {
      action();
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      for (const char* part : {"\"fsue\"", "simplify, fold, cse, dce, recompute, channels_last, fuse, siblings"})
        EXPECT_TRUE(contains(error.what(), part)) << error.what();
    }
  };
  expect_list([] { compile(two_steps, {.disable = {"fsue"}}); });
  setenv("INGOT_DISABLE", "cse,fsue", 1);
  expect_list([] { compile(two_steps); });
  setenv("INGOT_DISABLE", "fuse", 1);
  auto fast = compile(two_steps);
  fast(ones({6, 5}));
  unsetenv("INGOT_DISABLE");
  EXPECT_EQ(fast.explain().programs.at(0).bytes_saved(), 0);
}

TEST(Logs, EveryTopicTells) {
  struct Row {
    const char *topic, *part;
  };
  static int number = 0;
  for (const Row& row :
       {Row{"graph", "traced:\ningot.ir 1"}, Row{"guards", "inputs f32[6, "},
        Row{"recompiles", "dtype of operand self of permute: was f32, is f64 (permute at "},
        Row{"breaks", "graph break: item (sum, "}, Row{"fusion", "not fused: "}, Row{"kernels", "kernel rows"},
        Row{"asm", " ret"}, Row{"cache", "new program for f32[6, "}, Row{"timings", "compiled in "}}) {
    ++number;  // kernels are logged when they are new: each turn has its own
    auto fast = compile([](const Tensor& x) {
      Tensor y = two_steps(x) * static_cast<double>(number) - 1.0;
      for (int i = 0; i < number; ++i) y = y.sin();
      return y.sum().item<double>();
    });
    set_log_topics(row.topic);
    testing::internal::CaptureStderr();
    fast(ones({6, 5}));
    fast(ones({6, 5}, kFloat64));
    std::string text = testing::internal::GetCapturedStderr();
    set_log_topics("");
    EXPECT_TRUE(contains(text, row.part)) << row.topic << ": " << text.substr(0, 2000);
    EXPECT_TRUE(contains(text, std::string("[ingot] ") + row.topic + ": ")) << row.topic;
  }
}

TEST(Dump, EveryStageOfACompileIsAFile) {
  std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / ("ingot_dump_" + std::to_string(getpid()));
  setenv("INGOT_DUMP", folder.c_str(), 1);
  compile([](const Tensor& x) { return softmax(x * 2, -1); })(randn({3, 9}));
  unsetenv("INGOT_DUMP");
  std::set<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    EXPECT_GT(file.file_size(), 0u) << file;
    std::string name = file.path().filename().string();
    names.insert(name.substr(name.find('-') + 1));
  }
  for (const char* name :
       {"traced.ir", "pass1-attention.ir", "pass7-recompute.ir", "lower1-layout.txt", "lower2-group.txt",
        "lower3-schedule.txt", "lower4-emit.txt", "lower9-join_buffers.txt", "program.txt", "steps.txt"})
    EXPECT_TRUE(names.count(name)) << name;
  auto ending = [&](const char* end) {
    return std::count_if(names.begin(), names.end(), [&](const std::string& name) { return name.ends_with(end); });
  };
  EXPECT_GE(ending(".kir"), 1);
  EXPECT_EQ(ending(".asm"), ending(".bin"));
  std::filesystem::remove_all(folder);
}

TEST(Explain, ABreakInALoopIsSaidAtPowersOfTen) {
  auto fast = compile([](const Tensor& x) { return x.sum().item<float>() > 0 ? x + 1 : x - 1; });
  set_log_topics("breaks");
  testing::internal::CaptureStderr();
  for (int i = 0; i < 25; ++i) fast(ones({3}));
  const std::string said = testing::internal::GetCapturedStderr();
  set_log_topics("");
  size_t lines = 0;
  for (size_t at = said.find("graph break"); at != std::string::npos; at = said.find("graph break", at + 1)) ++lines;
  EXPECT_EQ(lines, 2u) << said;
  EXPECT_NE(said.find(", 10 times"), std::string::npos) << said;
  EXPECT_EQ(fast.stats().graph_breaks, 25);
}

}  // namespace
}  // namespace ingot
