#include "runtime/program_runner.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <thread>

#include "base/error.h"
#include "runtime/bound_program.h"
#include "runtime/hand_kernels.h"
#include "runtime/memory/arena_plan.h"
#include "runtime/profiler.h"

namespace ingot::runtime {
namespace {

using namespace testing_kernels;

// out = in * scalar, any strides.
KernelPtr scale_kernel() {
  return loop_kernel([](const KernelFrame& f) {
    for (int64_t r = 0; r < f.rows; ++r)
      for (int64_t c = 0; c < f.columns; ++c)
        element<float>(f, 1, r, c) = element<float>(f, 0, r, c) * scalar_f32(f, 0);
  });
}

Argument dense(uint32_t buffer, Dim row_bytes) { return {buffer, 0, {row_bytes, 4}, 0}; }

// x [rows, columns] * scalar twice, through an arena buffer, rows being a symbol.
std::shared_ptr<Program> two_steps() {
  auto p = std::make_shared<Program>();
  Dim rows = p->dims.symbol(3);
  constexpr int64_t kColumns = 37;
  p->inputs = p->outputs = 1;
  p->scalars = {Category::floating};
  p->buffers = {input(0), output(0), {Place::arena, 0, p->dims.mul(rows, kColumns * 4), 0, 1}};
  for (uint32_t i = 0; i < 2; ++i) {
    Step step = costly_step<LoopStep>("scale");
    LoopStep& loop = step.as<LoopStep>();
    loop.kernel = scale_kernel();
    loop.space = {rows, kColumns};
    loop.arguments = {dense(i == 0 ? 0 : 2, kColumns * 4), dense(i == 0 ? 2 : 1, kColumns * 4)};
    loop.scalars = {{ScalarSource::Kind::call, 0, 0, DType::f32}};
    p->steps.push_back(step);
  }
  return p;
}

TEST(ProgramRunner, StepsFollowEachOtherForAnySizeAndThreads) {
  for (int threads : kThreadCounts) {
    Threads scope(threads);
    LoadedProgram program(two_steps());
    for (int64_t rows : {0, 1, 2, 40, 1000, 3}) {
      std::vector<float> x = random_floats(rows * 37, 1), y(rows * 37);
      run(program, {rows}, {x.data()}, {y.data()}, {std::bit_cast<uint64_t>(3.0)});
      for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], x[i] * 3.0f * 3.0f);
    }
  }
}

TEST(ProgramRunner, BindingsAreRememberedAndBounded) {
  LoadedProgram program(two_steps());
  auto first = program.bind(std::vector<int64_t>{5});
  EXPECT_EQ(program.bind(std::vector<int64_t>{5}), first);
  EXPECT_NE(program.bind(std::vector<int64_t>{6}), first);
  for (int64_t rows = 100; rows < 300; ++rows) program.bind(std::vector<int64_t>{rows});
  EXPECT_NE(program.bind(std::vector<int64_t>{5}), first);
}

// A step is bound anew only where a size that it asked for moved, with its kernels and its part of the schedule.
TEST(ProgramRunner, BindingsShareTheStepsWhoseSizesStayed) {
  Threads scope(2);
  auto p = two_steps();
  const Dim other = p->dims.symbol(4);  // a third step of its own, beside the two of `rows`
  constexpr int64_t kColumns = 37;
  p->inputs = p->outputs = 2;
  p->buffers.push_back(input(1)), p->buffers.push_back(output(1));
  Step apart = p->steps[0];
  apart.as<LoopStep>().space = {other, kColumns};
  apart.as<LoopStep>().arguments = {dense(3, kColumns * 4), dense(4, kColumns * 4)};
  p->steps.push_back(apart);
  LoadedProgram program(p);
  auto bind = [&](int64_t rows, int64_t others) { return program.bind(std::vector<int64_t>{rows, others}); };
  const BoundProgramPtr first = bind(5, 6);
  const BoundProgramPtr more_others = bind(5, 7);
  EXPECT_EQ(more_others->steps[0], first->steps[0]);
  EXPECT_EQ(more_others->steps[1], first->steps[1]);
  EXPECT_NE(more_others->steps[2], first->steps[2]);
  EXPECT_EQ(more_others->schedule, first->schedule);  // no buffer of the arena moved
  const BoundProgramPtr more_rows = bind(8, 7);
  EXPECT_NE(more_rows->steps[0], first->steps[0]);
  EXPECT_EQ(more_rows->steps[2], more_others->steps[2]);
  EXPECT_NE(more_rows->schedule, first->schedule);
  for (auto [rows, others] : {std::pair<int64_t, int64_t>{5, 6}, {8, 7}, {0, 7}, {300, 0}, {5, 300}, {1, 1}}) {
    std::vector<float> x = random_floats(rows * kColumns, 1), y(x.size()), u = random_floats(others * kColumns, 2),
                       v(u.size());
    run(program, {rows, others}, {x.data(), u.data()}, {y.data(), v.data()}, {std::bit_cast<uint64_t>(3.0)});
    for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], x[i] * 3.0f * 3.0f);
    for (size_t i = 0; i < u.size(); ++i) ASSERT_EQ(v[i], u[i] * 3.0f);
  }
}

// A driver lasts as long as a binding that runs it, whichever binding made it; so do its lists.
TEST(ProgramRunner, SharedStepsOutliveTheBindingThatMadeThem) {
  auto p = two_steps();
  const Dim other = p->dims.symbol(4);
  constexpr int64_t kColumns = 37;
  p->inputs = p->outputs = 2;
  p->buffers.push_back(input(1)), p->buffers.push_back(output(1));
  Step apart = p->steps[0];
  apart.as<LoopStep>().space = {other, kColumns};
  apart.as<LoopStep>().arguments = {dense(3, kColumns * 4), dense(4, kColumns * 4)};
  p->steps.push_back(apart);
  LoadedProgram program(p);
  const auto* first = program.bind(std::vector<int64_t>{5, 1})->steps[0].driver;
  for (int64_t others = 2; others < 200; ++others) {
    const BoundProgramPtr bound = program.bind(std::vector<int64_t>{5, others});
    ASSERT_EQ(bound->steps[0].driver, first);
    ASSERT_EQ(bound->memories.size(), 2u);  // its own, and the one of the first
  }
  std::vector<float> x = random_floats(5 * kColumns, 1), y(x.size()), u = random_floats(199 * kColumns, 2), v(u.size());
  run(program, {5, 199}, {x.data(), u.data()}, {y.data(), v.data()}, {std::bit_cast<uint64_t>(3.0)});
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], x[i] * 3.0f * 3.0f);
  for (size_t i = 0; i < u.size(); ++i) ASSERT_EQ(v[i], u[i] * 3.0f);
}

// Sizes that differ little have the same plan of the arena; each run has its own sizes.
TEST(ProgramRunner, OneScheduleServesSizesThatDifferLittle) {
  LoadedProgram program(two_steps());
  const BoundProgramPtr first = program.bind(std::vector<int64_t>{100});
  EXPECT_EQ(program.bind(std::vector<int64_t>{101})->schedule, first->schedule);
  EXPECT_NE(program.bind(std::vector<int64_t>{200})->schedule, first->schedule);
  for (int64_t rows : {101, 100, 102, 200, 103}) {
    std::vector<float> x = random_floats(rows * 37, 1), y(x.size());
    run(program, {rows}, {x.data()}, {y.data()}, {std::bit_cast<uint64_t>(3.0)});
    for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], x[i] * 3.0f * 3.0f);
  }
}

// More expressions than marks: two that share one are never taken for each other.
TEST(ProgramRunner, ManySizesMoveOneByOne) {
  constexpr int kSteps = 150;
  auto p = std::make_shared<Program>();
  p->scalars = {Category::floating};
  p->inputs = p->outputs = kSteps;
  for (uint32_t i = 0; i < kSteps; ++i) {
    const Dim columns = p->dims.symbol(3);
    p->buffers.push_back(input(i)), p->buffers.push_back(output(i));
    Step step = costly_step<LoopStep>("scale");
    LoopStep& loop = step.as<LoopStep>();
    loop.kernel = scale_kernel();
    loop.space = {1, columns};
    loop.arguments = {dense(2 * i, 0), dense(2 * i + 1, 0)};
    loop.scalars = {{ScalarSource::Kind::call, 0, 0, DType::f32}};
    p->steps.push_back(step);
  }
  LoadedProgram program(p);
  std::vector<int64_t> sizes(kSteps, 3);
  for (int moved = 0; moved < 2 * kSteps; ++moved) {
    sizes[static_cast<size_t>(moved * 7 % kSteps)] += moved % 3 - 1;
    std::vector<std::vector<float>> x, y;
    std::vector<void*> in, out;
    for (int64_t n : sizes) x.push_back(random_floats(n, moved)), y.emplace_back(static_cast<size_t>(n));
    for (int i = 0; i < kSteps; ++i) in.push_back(x[i].data()), out.push_back(y[i].data());
    const uint64_t two = std::bit_cast<uint64_t>(2.0);
    program.run(*program.bind(sizes), {in, {}, out, {&two, 1}});
    for (int i = 0; i < kSteps; ++i)
      for (size_t j = 0; j < x[i].size(); ++j) ASSERT_EQ(y[i][j], x[i][j] * 2.0f) << moved << " step " << i;
  }
}

TEST(ProgramRunner, ManyCallersAtOnce) {
  Threads scope(2);
  LoadedProgram program(two_steps());
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller)
    callers.emplace_back([&, caller] {
      for (int round = 0; round < 50; ++round) {
        int64_t rows = 1 + (caller * 7 + round) % 30;
        std::vector<float> x = random_floats(rows * 37, caller), y(rows * 37);
        run(program, {rows}, {x.data()}, {y.data()}, {std::bit_cast<uint64_t>(0.5)});
        for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], x[i] * 0.25f);
      }
    });
  for (std::thread& caller : callers) caller.join();
}

// Each element is visited once, with its own indices, whatever the division over threads.
TEST(LoopDriver, VisitsEachElementOnce) {
  struct Case {
    Dims space;
    bool rows_whole;
  };
  const Case cases[] = {{{1, 1000}, false}, {{1, 7}, false},       {{100, 3}, false},       {{3, 5000}, false},
                        {{3, 500}, true},   {{2, 3, 4, 5}, false}, {{5, 1, 40, 33}, false}, {{4, 2, 300}, true},
                        {{0, 4, 5}, false}, {{4, 0}, false}};
  for (int threads : kThreadCounts)
    for (const Case& c : cases) {
      Threads scope(threads);
      auto p = std::make_shared<Program>();
      p->outputs = 1;
      p->buffers = {output(0)};
      Step step = costly_step<LoopStep>("visit");
      LoopStep& loop = step.as<LoopStep>();
      loop.space = c.space;
      loop.rows_whole = c.rows_whole;
      size_t outer = c.space.size() - 2;
      int64_t total = 8;
      Dims strides(c.space.size());
      for (size_t d = c.space.size(); d-- > 0; total *= c.space[d].code) strides[d] = total;
      loop.kernel = loop_kernel([&](const KernelFrame& f) {
        for (int64_t r = 0; r < f.rows; ++r)
          for (int64_t col = 0; col < f.columns; ++col) {
            int64_t place = strides.back().code * (f.column_index + col) + strides[outer].code * (f.row_index + r);
            for (size_t d = 0; d < outer; ++d) place += strides[outer - 1 - d].code * f.outer_index[d];
            element<int64_t>(f, 0, r, col) += 1 + place;
          }
        if (c.rows_whole) {
          EXPECT_EQ(f.columns, c.space.back().code);
        }
        EXPECT_TRUE(f.column_index % 16 == 0);
      });
      loop.arguments = {{0, 0, strides, 0}};
      p->steps = {step};
      LoadedProgram program(p);
      std::vector<int64_t> out(total / 8 + 1, 0);
      run(program, {}, {}, {out.data()});
      for (int64_t i = 0; i < total / 8; ++i) ASSERT_EQ(out[i], 1 + 8 * i) << "threads " << threads;
    }
}

TEST(LoopDriver, LocalsHaveScratchOfTheirOwn) {
  for (int threads : kThreadCounts) {
    Threads scope(threads);
    constexpr int64_t kRows = 50, kColumns = 21;
    auto p = std::make_shared<Program>();
    p->inputs = p->outputs = 1;
    p->buffers = {input(0), output(0)};
    Step step = costly_step<LoopStep>("reverse");
    LoopStep& loop = step.as<LoopStep>();
    loop.space = {kRows, kColumns};
    loop.rows_whole = true;
    loop.local_bytes = {4, 8};
    auto kernel = loop_kernel([](const KernelFrame& f) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(f.scratch) % 64, 0u);
      float* row = reinterpret_cast<float*>(f.scratch);
      for (int64_t r = 0; r < f.rows; ++r) {
        for (int64_t c = 0; c < f.columns; ++c) row[c] = element<float>(f, 0, r, c);
        std::memset(f.scratch + 32 * 4, 0xff, 32 * 8 + 100);
        for (int64_t c = 0; c < f.columns; ++c) element<float>(f, 1, r, c) = row[f.columns - 1 - c];
      }
    });
    std::const_pointer_cast<KernelSource>(kernel)->scratch_bytes = 100;
    loop.kernel = kernel;
    loop.arguments = {dense(0, kColumns * 4), dense(1, kColumns * 4)};
    p->steps = {step};
    LoadedProgram program(p);
    std::vector<float> x = random_floats(kRows * kColumns, 3), y(x.size());
    run(program, {}, {x.data()}, {y.data()});
    for (int64_t r = 0; r < kRows; ++r)
      for (int64_t c = 0; c < kColumns; ++c) ASSERT_EQ(y[r * kColumns + c], x[r * kColumns + kColumns - 1 - c]);
  }
}

TEST(ProgramRunner, ScalarsBecomeWhatKernelsExpect) {
  struct Case {
    Category category;
    uint64_t given;
    DType type;
    uint64_t expected;
  };
  auto f64 = [](double x) { return std::bit_cast<uint64_t>(x); };
  auto f32 = [](float x) { return uint64_t{std::bit_cast<uint32_t>(x)}; };
  const Case cases[] = {
      {Category::floating, f64(0.1), DType::f32, f32(0.1f)},
      {Category::floating, f64(0.1), DType::f64, f64(0.1)},
      {Category::floating, f64(-2.9), DType::i64, static_cast<uint64_t>(-2)},
      {Category::floating, f64(1e30), DType::i32, 0x7fffffff},
      {Category::floating, f64(std::numeric_limits<double>::quiet_NaN()), DType::i64, 0},
      {Category::floating, f64(0.25), DType::bool_, 1},
      {Category::integer, static_cast<uint64_t>(-3), DType::f32, f32(-3.0f)},
      {Category::integer, 16777217, DType::f32, f32(16777216.0f)},
      {Category::integer, static_cast<uint64_t>(-3), DType::i32, 0xfffffffdu},
      {Category::integer, uint64_t{1} << 40, DType::i64, uint64_t{1} << 40},
      {Category::boolean, 1, DType::f64, f64(1.0)},
      {Category::integer, 2, DType::bool_, 1},
  };
  for (const Case& c : cases) {
    auto p = std::make_shared<Program>();
    uint64_t seen[2] = {};
    p->dims.symbol(9);
    p->scalars = {c.category};
    LoopStep loop;
    loop.space = {1, 1};
    loop.scalars = {{ScalarSource::Kind::call, 0, 0, c.type},
                    {ScalarSource::Kind::size, 0, Dim::expression(0), DType::f32}};
    loop.kernel = loop_kernel([&](const KernelFrame& f) { std::copy_n(f.scalars, 2, seen); });
    p->steps = {Step{"scalars", 0, 0, std::move(loop)}};
    LoadedProgram program(p);
    run(program, {11}, {}, {}, {c.given});
    EXPECT_EQ(seen[0], c.expected) << name_of(c.type) << " from " << c.given;
    EXPECT_EQ(seen[1], f32(11.0f));
  }
}

TEST(ProgramRunner, ExceptionsLeaveTheProgramUsable) {
  for (int threads : kThreadCounts) {
    Threads scope(threads);
    auto p = std::make_shared<Program>();
    bool fail = true;
    std::atomic<int> rows{0};
    Step step = costly_step<LoopStep>("fails");
    LoopStep& loop = step.as<LoopStep>();
    loop.space = {100, 1};
    loop.kernel = loop_kernel([&](const KernelFrame& f) {
      if (fail && f.row_index == 0) throw Error("on purpose");
      rows += static_cast<int>(f.rows);
    });
    p->steps = {step};
    LoadedProgram program(p);
    EXPECT_THROW(run(program, {}, {}, {}), Error);
    fail = false, rows = 0;
    run(program, {}, {}, {});
    EXPECT_EQ(rows, 100);
  }
}

TEST(Profiler, TimesStepsWhileAProfileExists) {
  Threads scope(2);
  LoadedProgram program(two_steps());
  std::vector<float> x(37), y(37);
  auto once = [&] { run(program, {1}, {x.data()}, {y.data()}, {0}); };
  once();
  Profile profile;
  once();
  once();
  auto steps = profile.steps();
  ASSERT_EQ(steps.size(), 2u);
  for (uint32_t i = 0; i < 2; ++i) {
    EXPECT_EQ(steps[i].step, i);
    EXPECT_EQ(steps[i].runs, 2);
    EXPECT_GT(steps[i].least_ns, 0);
    EXPECT_LE(steps[i].least_ns * 2, steps[i].total_ns);
  }
  EXPECT_FALSE(Profile().steps().size());
}

TEST(Profiler, TimesBindingsOfSizesThatAreNew) {
  LoadedProgram program(two_steps());
  std::vector<int64_t> sizes{1};
  const BoundProgramPtr first = program.bind_where_it_holds(sizes);
  Profile profile;
  EXPECT_EQ(program.bind_where_it_holds(sizes), first);
  EXPECT_EQ(profile.bindings().bindings, 0);
  sizes = {2};
  EXPECT_NE(program.bind_where_it_holds(sizes), first);
  EXPECT_EQ(profile.bindings().bindings, 1);
  EXPECT_GE(profile.bindings().steps, 1);
  EXPECT_GT(profile.bindings().total_ns, 0);
}

TEST(ArenaPlan, LiveBuffersNeverOverlapAndDeadOnesAreReused) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<ArenaRequest> requests(1 + random() % 20);
    for (ArenaRequest& r : requests) {
      r.bytes = random() % 3 ? random() % 1000 : random() % 100000;
      r.first_step = random() % 10;
      r.last_step = r.first_step + random() % 4;
    }
    ArenaPlan plan = plan_arena(requests);
    for (size_t i = 0; i < requests.size(); ++i) {
      EXPECT_EQ(plan.offsets[i] % 64, 0);
      EXPECT_LE(plan.offsets[i] + requests[i].bytes, plan.bytes);
      for (size_t j = 0; j < i; ++j) {
        bool live = requests[i].first_step <= requests[j].last_step && requests[j].first_step <= requests[i].last_step;
        bool apart = plan.offsets[i] + requests[i].bytes <= plan.offsets[j] ||
                     plan.offsets[j] + requests[j].bytes <= plan.offsets[i];
        EXPECT_TRUE(!live || apart) << round;
      }
    }
  }
  std::vector<ArenaRequest> chain;
  for (uint32_t i = 0; i < 50; ++i) chain.push_back({1 << 20, i, i + 1});
  EXPECT_LE(plan_arena(chain).bytes, (2 << 20) + (16 << 10));
  std::vector<ArenaRequest> absurd(4, {int64_t{1} << 45, 0, 0});
  EXPECT_THROW(plan_arena(absurd), Error);
}

TEST(KernelCache, EqualKeysAreLoadedOnce) {
  KernelPtr source = scale_kernel();
  auto copy = std::make_shared<KernelSource>(*source);
  auto first = KernelCache::instance().load(source, 1000);
  auto again = KernelCache::instance().load(copy);
  EXPECT_EQ(first, again);
  EXPECT_EQ(KernelCache::instance().find(source->key), first);
  EXPECT_EQ(first->hits, 2);
  EXPECT_GE(first->compile_ns, 1000);
  EXPECT_EQ(KernelCache::instance().find("no such key"), nullptr);
}

TEST(KernelCache, DropsWhatNobodyUsesAndWasNotAskedForTheLongest) {
  KernelCache cache;
  auto kernel = [](const std::string& key) {
    auto source = std::make_shared<KernelSource>(*scale_kernel());
    source->key = key;
    return source;
  };
  const LoadedKernelPtr used = cache.load(kernel("used"));
  cache.load(kernel("asked for"));
  for (size_t i = 0; i < KernelCache::kMostUnused; ++i) {
    cache.load(kernel(std::to_string(i)));
    if (i % 500 == 0) EXPECT_NE(cache.find("asked for"), nullptr);
  }
  EXPECT_LE(cache.figures().kernels, static_cast<int64_t>(KernelCache::kMostUnused) + 1);
  EXPECT_GT(cache.figures().evictions, 0);
  EXPECT_EQ(cache.find("used"), used);
  EXPECT_NE(cache.find("asked for"), nullptr);
  EXPECT_EQ(cache.find("0"), nullptr);
}

}  // namespace
}  // namespace ingot::runtime
