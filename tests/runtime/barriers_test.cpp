// Where threads wait for one another between the steps of a program, and where they do not.
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/bound_program.h"
#include "runtime/hand_kernels.h"
#include "runtime/touches.h"

namespace ingot::runtime {
namespace {

using namespace testing_kernels;

constexpr int64_t kElements = 1 << 16;

Argument reads(uint32_t buffer) { return {buffer, 0, {kElements * 4, 4}, 0, true}; }
Argument writes(uint32_t buffer) { return {buffer, 0, {kElements * 4, 4}, 0, false}; }

/// A step that threads share, or one that is not worth it; its kernel does nothing.
Step step_of(std::vector<Argument> arguments, bool shared = true) {
  Step step = costly_step<LoopStep>("step");
  if (!shared) step.operations = step.bytes = 1;
  LoopStep& loop = step.as<LoopStep>();
  loop.kernel = loop_kernel([](const KernelFrame&) {});
  loop.space = {1, kElements};
  loop.arguments = std::move(arguments);
  return step;
}

/// Buffers of a program by number: two inputs, two outputs, then the arena's, that all live at once.
enum : uint32_t { x, y, out, other, a, b, c };

Program program_of(std::vector<Step> steps) {
  Program p;
  p.inputs = p.outputs = 2;
  const auto last = static_cast<uint32_t>(steps.size() - 1);
  const ProgramBuffer arena{Place::arena, 0, kElements * 4, 0, last};
  p.buffers = {input(0), input(1), output(0), output(1), arena, arena, arena};
  p.steps = std::move(steps);
  return p;
}

/// Before which steps threads wait.
std::vector<uint32_t> waits(Program program) {
  const Threads scope(2);
  const LoadedProgram loaded(std::make_shared<Program>(std::move(program)));
  const BoundProgramPtr bound = loaded.bind({});
  std::vector<uint32_t> steps;
  for (const BoundPhase& phase : bound->schedule->phases)
    if (phase.barrier_before) steps.push_back(phase.step);
  return steps;
}
std::vector<uint32_t> waits(std::vector<Step> steps) { return waits(program_of(std::move(steps))); }

using Steps = std::vector<uint32_t>;

TEST(Barriers, WhereOneOfTwoWritesWhatBothTouch) {
  EXPECT_EQ(waits({step_of({reads(x), writes(a)}), step_of({reads(a), writes(b)})}), Steps{1}) << "read after write";
  EXPECT_EQ(waits({step_of({reads(a), writes(b)}), step_of({reads(x), writes(a)})}), Steps{1}) << "write after read";
  EXPECT_EQ(waits({step_of({reads(x), writes(a)}), step_of({reads(y), writes(a)})}), Steps{1}) << "write after write";
  EXPECT_EQ(waits({step_of({reads(x), writes(out)}), step_of({reads(y), writes(out)})}), Steps{1}) << "of an output";
  EXPECT_EQ(waits({step_of({reads(x), writes(out)}), step_of({reads(out), writes(a)})}), Steps{1});
}

TEST(Barriers, NotWhereNobodyWritesIt) {
  EXPECT_EQ(waits({step_of({reads(x), writes(a)}), step_of({reads(x), writes(b)})}), Steps{});
  EXPECT_EQ(waits({step_of({reads(c), writes(a)}), step_of({reads(c), writes(b)})}), Steps{});
  EXPECT_EQ(waits({step_of({reads(a), writes(out)}), step_of({reads(b), writes(other)})}), Steps{}) << "two outputs";
  EXPECT_EQ(waits({step_of({writes(a)}), step_of({writes(b)}), step_of({writes(c)})}), Steps{});
}

// A call may give an input's memory as that of an output.
TEST(Barriers, AnOutputMayBeTheMemoryOfAnyInput) {
  EXPECT_EQ(waits({step_of({reads(x), writes(a)}), step_of({reads(a), writes(out)})}), Steps{1});
  EXPECT_EQ(waits({step_of({reads(x), writes(a)}), step_of({reads(b), writes(out)})}), Steps{1});
  EXPECT_EQ(waits({step_of({reads(a), writes(out)}), step_of({reads(y), writes(b)})}), Steps{1});
}

// Parts of one buffer are not told apart: who writes the rows that nobody else touches waits all the same.
TEST(Barriers, ABufferIsOnePieceOfMemory) {
  Step first = step_of({reads(x), writes(a)}), second = step_of({reads(x), writes(a)});
  for (Step* step : {&first, &second}) step->as<LoopStep>().space = {1, kElements / 2};
  second.as<LoopStep>().arguments[1].offset = kElements * 2;
  EXPECT_EQ(waits({first, second}), Steps{1});
}

// Buffers of the arena whose lives do not meet may lie in one place.
TEST(Barriers, BuffersThatShareAPlaceAreOne) {
  std::vector<Step> steps = {step_of({reads(x), writes(a)}), step_of({reads(y), writes(b)})};
  EXPECT_EQ(waits(steps), Steps{});
  Program program = program_of(steps);
  program.buffers[a].last_step = 0, program.buffers[b].first_step = 1;
  program.buffers[c].bytes = 0;
  EXPECT_EQ(waits(program), Steps{1});
}

TEST(Barriers, WhatWasWaitedForIsForgotten) {
  EXPECT_EQ(waits({step_of({writes(a)}), step_of({reads(a), writes(b)}), step_of({reads(a), writes(c)})}), Steps{1});
  EXPECT_EQ(waits({step_of({writes(a)}), step_of({reads(a), writes(b)}), step_of({reads(b), writes(c)})}),
            (Steps{1, 2}));
}

TEST(Barriers, KeptBuffersAreToldByTheirNumbers) {
  Program program = program_of({step_of({writes(a)}), step_of({writes(b)}), step_of({reads(a), writes(c)})});
  EXPECT_EQ(waits(program), Steps{2});
  for (uint32_t i : {a, b, c}) program.buffers[i] = {Place::kept, i - a, kElements * 4};
  EXPECT_EQ(waits(program), Steps{2});
}

// Steps that are not shared run on the caller's thread, in order: they wait for those that are, and those for them.
TEST(Barriers, OfStepsOfTheCallersThread) {
  const Step writes_a = step_of({writes(a)}, false), reads_a = step_of({reads(a), writes(b)}, false);
  const Step apart = step_of({writes(c)});
  EXPECT_EQ(waits({writes_a, reads_a}), Steps{}) << "no threads at all";
  EXPECT_EQ(waits({apart, writes_a, reads_a}), Steps{}) << "one after the other";
  EXPECT_EQ(waits({writes_a, step_of({reads(a), writes(b)})}), Steps{1});
  EXPECT_EQ(waits({step_of({writes(a)}), reads_a}), Steps{1});
  EXPECT_EQ(waits({apart, writes_a, step_of({reads(b), writes(out)}), reads_a}), Steps{3}) << "writes what is read";
}

/// What two pieces have to do with each other, by looking at them.
bool conflict(const Touched& p, const Touched& q) {
  if (p.read_only && q.read_only) return false;
  auto outside = [](const Touched& t) { return t.place == Place::input || t.place == Place::output; };
  if (outside(p) && outside(q) && p.place != q.place) return true;
  if (p.place != q.place) return false;
  return p.place == Place::arena ? p.begin < q.end && q.begin < p.end : p.number == q.number;
}

TEST(Touches, FindsWhatLookingAtAllOfThemFinds) {
  uint64_t random = 7;
  auto next = [&](uint64_t n) { return (random = random * 6364136223846793005u + 1442695040888963407u) / 65536 % n; };
  auto piece = [&] {
    Touched t{static_cast<Place>(next(4)), next(2) == 0, static_cast<uint32_t>(next(6))};
    if (t.place == Place::input) t.read_only = true;
    t.begin = static_cast<int64_t>(next(40)) * 64;
    t.end = t.begin + static_cast<int64_t>(1 + next(4)) * 64;
    return t;
  };
  Touches touches;
  int conflicts = 0;
  for (int round = 0; round < 400; ++round) {
    touches.clear();
    std::vector<Touched> list;
    for (uint64_t i = 0, n = next(12); i < n; ++i) {
      list.push_back(piece());
      touches.add(list.back());
      const Touched asked = piece();
      const bool expected = std::any_of(list.begin(), list.end(), [&](const Touched& t) { return conflict(t, asked); });
      ASSERT_EQ(touches.conflicts_with(asked), expected) << "round " << round;
      conflicts += expected;
    }
  }
  EXPECT_GT(conflicts, 100);
}

// What was touched grows where no step waits; a further piece takes no longer for that.
TEST(Touches, TakesAsLongForThePiecesOfALongProgram) {
  auto work = [](int64_t pieces) {
    Touches touches;
    for (int64_t i = 0; i < pieces; ++i) touches.add({Place::arena, false, 0, i * 128, i * 128 + 64});
    for (int64_t i = 1; i < pieces; ++i) touches.add({Place::arena, false, 0, i * 128 - 64, i * 128});
    return touches.work();
  };
  EXPECT_GE(work(1000), 2000u);
  EXPECT_LE(work(4000), 5 * work(1000));
}

}  // namespace
}  // namespace ingot::runtime
