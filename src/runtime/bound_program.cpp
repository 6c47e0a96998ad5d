#include "runtime/bound_program.h"

#include <algorithm>

#include "base/error.h"
#include "runtime/arena_plan.h"
#include "runtime/library_steps.h"

namespace ingot::runtime {
namespace {

// Calls fn(argument, read_only) for everything that a step touches.
template <class F>
void for_each_argument(const Step& step, F fn) {
  auto all = [&](const std::vector<Argument>& arguments, bool only_read) {
    for (const Argument& a : arguments) fn(a, only_read || a.read_only);
  };
  switch (step.kind) {
    case Step::Kind::loop:
      all(step.loop.arguments, false);
      break;
    case Step::Kind::column:
      all(step.column.arguments, true);
      for (const auto& result : step.column.results) fn(result.out, false);
      break;
    case Step::Kind::matmul:
      fn(step.matmul.a, true);
      fn(step.matmul.b, true);
      if (step.matmul.epilogues.empty()) fn(step.matmul.c, false);
      all(step.matmul.epilogue_arguments, false);
      break;
    case Step::Kind::library:
      all(step.library.arguments, false);
      break;
  }
}

// A piece of memory that a step touches. Inputs and outputs may be the same memory, so where is no more than the kind.
struct Touched {
  Place place;
  int64_t begin = 0, end = 0;  // arena
  uint32_t number = 0;         // output
  bool read_only = false;
};

bool conflict(const Touched& a, const Touched& b) {
  if (a.read_only && b.read_only) return false;
  if ((a.place == Place::arena) != (b.place == Place::arena)) return false;
  if (a.place == Place::arena) return a.begin < b.end && b.begin < a.end;
  if (a.place == Place::output && b.place == Place::output) return a.number == b.number;
  return a.place != b.place;  // an output may be the memory of any input
}

std::unique_ptr<StepDriver> bind_step(const Step& step, const BindContext& context) {
  switch (step.kind) {
    case Step::Kind::loop:
      return bind_loop(step.loop, step, context);
    case Step::Kind::column:
      return bind_column(step.column, step, context);
    case Step::Kind::matmul:
      return bind_matmul(step.matmul, context);
    case Step::Kind::library:
      return bind_library(step.library, step, context);
  }
  INGOT_CHECK(false, step.name);
  return nullptr;
}

}  // namespace

BoundProgram::BoundProgram(const Program& program, std::span<const int64_t> given, int allowed_threads,
                           std::span<const uint32_t> first_scalars,
                           const std::function<const LoadedKernel&(const KernelPtr&)>& kernel)
    : symbols(given.begin(), given.end()), threads(allowed_threads), values(program.dims.evaluate(given)) {
  BindContext context{values, threads, 0, 0, kernel};
  for (uint32_t i = 0; i < program.steps.size(); ++i) {
    context.step = i;
    context.first_scalar = first_scalars[i];
    steps.push_back(bind_step(program.steps[i], context));
    const StepDriver& driver = *steps.back();
    useful_threads = std::max(useful_threads, driver.useful_threads);
    if (driver.weight_buffer >= 0 && program.buffers[driver.weight_buffer].place == Place::input)
      weight_steps.push_back(i);
  }
  plan_memory(program);
  plan_barriers(program);
}

void BoundProgram::plan_memory(const Program& program) {
  std::vector<ArenaRequest> requests;
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const ProgramBuffer& buffer = program.buffers[i];
    if (buffer.place != Place::arena) continue;
    const int64_t bytes = DimTable::value_of(buffer.bytes, values);
    requests.push_back({bytes, buffer.first_step, buffer.last_step});
    arena.push_back({static_cast<uint32_t>(i), 0, bytes});
  }
  for (uint32_t i = 0; i < steps.size(); ++i) {
    if (steps[i]->shared_bytes == 0) continue;
    steps[i]->shared_buffer = static_cast<uint32_t>(program.buffers.size()) + i;
    requests.push_back({steps[i]->shared_bytes, i, i});
    arena.push_back({steps[i]->shared_buffer, 0, steps[i]->shared_bytes});
  }
  ArenaPlan plan = plan_arena(requests);
  for (size_t i = 0; i < arena.size(); ++i) arena[i].offset = plan.offsets[i];
  arena_bytes = plan.bytes;
}

// Steps that do not pay for threads all run on the caller's, in order; others wait only for what they share.
void BoundProgram::plan_barriers(const Program& program) {
  struct Earlier {
    Touched touched;
    bool single;
  };
  std::vector<const ArenaBuffer*> place(program.buffers.size() + steps.size());
  for (const ArenaBuffer& buffer : arena) place[buffer.buffer] = &buffer;
  auto arena_touch = [&](uint32_t buffer, bool read_only) {
    return Touched{Place::arena, place[buffer]->offset, place[buffer]->offset + place[buffer]->bytes, 0, read_only};
  };
  std::vector<Earlier> since_barrier;
  for (size_t i = 0; i < steps.size(); ++i) {
    const StepDriver& driver = *steps[i];
    bool single = driver.useful_threads == 1;
    std::vector<Touched> touched;
    for_each_argument(program.steps[i], [&](const Argument& a, bool read_only) {
      const ProgramBuffer& buffer = program.buffers[a.buffer];
      if (buffer.place == Place::arena)
        touched.push_back(arena_touch(a.buffer, read_only));
      else
        touched.push_back({buffer.place, 0, 0, buffer.number, read_only || buffer.place == Place::input});
    });
    if (driver.shared_bytes) touched.push_back(arena_touch(driver.shared_buffer, false));
    bool wait = std::any_of(since_barrier.begin(), since_barrier.end(), [&](const Earlier& earlier) {
      return !(single && earlier.single) && std::any_of(touched.begin(), touched.end(),
                                                        [&](const Touched& t) { return conflict(earlier.touched, t); });
    });
    for (int phase = 0; phase < driver.phases; ++phase)
      phases.push_back({&driver, static_cast<uint32_t>(i), phase, single, phase == 0 ? wait : !single});
    if (wait) since_barrier.clear();
    for (const Touched& t : touched) since_barrier.push_back({t, single});
  }
}

}  // namespace ingot::runtime
