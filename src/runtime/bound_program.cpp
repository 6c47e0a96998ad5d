#include "runtime/bound_program.h"

#include <algorithm>

#include "base/error.h"
#include "base/work_count.h"
#include "runtime/drivers/drivers.h"
#include "runtime/memory/arena_plan.h"
#include "runtime/steps/host_steps.h"
#include "runtime/steps/steps.h"
#include "runtime/touches.h"

namespace ingot::runtime {
namespace {

constexpr size_t kFirstBytes = 16 << 10, kLeastBytes = 256;  // of drivers; the first where nothing is known

StepDriver* bind_step(const Step& step, const BindContext& context) {
  return std::visit([&](const auto& work) -> StepDriver* { return bind(work, step, context); }, step.work);
}

// Where two drivers of a step are alike as far as a schedule asks.
bool same_for_schedule(const StepDriver& a, const StepDriver& b) {
  return (a.useful_threads == 1) == (b.useful_threads == 1) && a.alone == b.alone && a.phases == b.phases &&
         (a.shared_bytes == 0) == (b.shared_bytes == 0) && a.weight_buffer == b.weight_buffer;
}

}  // namespace

BoundProgram::BoundProgram(const Program& program, const StepForms& forms, std::span<const int64_t> given,
                           std::vector<int64_t> evaluated, int allowed_threads, const KernelTable& kernels,
                           std::span<StepConstants> constants, const BoundProgram* like)
    : symbols(given.begin(), given.end()), values(std::move(evaluated)), threads(allowed_threads) {
  if (like && like->threads != threads) like = nullptr;
  uint64_t moved = 0;
  for (size_t i = 0; like && i < values.size(); ++i)
    if (values[i] != like->values[i]) moved |= BindContext::mark(i);
  bool same_schedule = like != nullptr;
  memories.push_back(
      std::make_shared<DriverMemory>(like ? std::max(like->memories[0]->bytes(), kLeastBytes) : kFirstBytes));
  std::vector<uint32_t> shared(like ? like->memories.size() : 0);  // the number here of each of those, or 0
  std::vector<BoundStep> bound(forms.size());                      // here
  steps.reserve(program.steps.size());
  for (uint32_t i = 0; i < program.steps.size(); ++i) {
    if (like && !(like->steps[i].asked & moved)) {
      BoundStep step = like->steps[i];
      uint32_t& memory = shared[step.memory];
      if (memory == 0) {
        memory = static_cast<uint32_t>(memories.size());
        memories.push_back(like->memories[step.memory]);
      }
      step.memory = memory;
      useful_threads = std::max(useful_threads, step->useful_threads);
      steps.push_back(step);
      continue;
    }
    ++fresh_steps;
    BoundStep& step = bound[forms.of(i)];
    if (!step.driver) {
      const BindContext context(values, threads, kernels, constants[forms.of(i)], *memories[0]);
      StepDriver* driver = bind_step(forms.form(forms.of(i)), context);
      driver->shared_buffer = static_cast<uint32_t>(forms.buffers(i).size()) - 1;
      useful_threads = std::max(useful_threads, driver->useful_threads);
      same_schedule = same_schedule && same_for_schedule(*driver, *like->steps[i]);
      step = {driver, context.asked(), 0};
    }
    steps.push_back(step);
  }
  same_schedule = same_schedule &&
                  std::all_of(like->schedule->arena.begin(), like->schedule->arena.end(),
                              [&](const ArenaBuffer& b) { return b.room == arena_room(bytes(program, b.buffer)); });
  if (same_schedule) {
    schedule = like->schedule;
    return;
  }
  auto made = std::make_shared<Schedule>();
  for (uint32_t i = 0; i < steps.size(); ++i) {
    const int64_t weight = steps[i]->weight_buffer;
    if (weight >= 0 && program.buffers[forms.buffers(i)[static_cast<size_t>(weight)]].place == Place::input)
      made->weight_steps.push_back(i);
  }
  made->keeps_values = std::any_of(program.buffers.begin(), program.buffers.end(),
                                   [](const ProgramBuffer& b) { return b.place == Place::kept; });
  plan_memory(program, *made);
  plan_barriers(program, *made);
  schedule = std::move(made);
}

void BoundProgram::plan_memory(const Program& program, Schedule& to) const {
  std::vector<ArenaRequest> requests;
  for (uint32_t i = 0; i < program.buffers.size(); ++i) {
    const ProgramBuffer& buffer = program.buffers[i];
    if (buffer.place != Place::arena) continue;
    const int64_t room = arena_room(bytes(program, i));
    requests.push_back({room, buffer.first_step, buffer.last_step});
    to.arena.push_back({i, 0, room});
  }
  for (uint32_t i = 0; i < steps.size(); ++i) {
    if (steps[i]->shared_bytes == 0) continue;
    const int64_t room = arena_room(steps[i]->shared_bytes);
    const Program::Segment* segment = segment_of(program, i);  // there for all of its slices
    requests.push_back({room, segment ? segment->first_step : i, segment ? segment->end_step - 1 : i});
    to.arena.push_back({own_buffer(program, i), 0, room});
  }
  ArenaPlan plan = plan_arena(requests);
  for (size_t i = 0; i < to.arena.size(); ++i) to.arena[i].offset = plan.offsets[i];
  to.arena_bytes = plan.bytes;
}

// Steps that do not pay for threads all run on the caller's, in order; others wait only for what they share.
void BoundProgram::plan_barriers(const Program& program, Schedule& to) const {
  std::vector<const ArenaBuffer*> place(program.buffers.size() + steps.size());
  for (const ArenaBuffer& buffer : to.arena) place[buffer.buffer] = &buffer;
  auto arena_touch = [&](uint32_t buffer, bool read_only) {
    return Touched{Place::arena, read_only, 0, place[buffer]->offset, place[buffer]->offset + place[buffer]->room};
  };
  std::vector<Touched> touched;
  Touches by_caller, by_threads;  // since the last barrier
  size_t segment = 0;             // the first that does not end before the step
  for (uint32_t i = 0; i < steps.size(); ++i) {
    const StepDriver& driver = *steps[i];
    const bool single = driver.useful_threads == 1;
    bool wait = false;
    if (useful_threads > 1) {
      touched.clear();
      for_each_argument(program.steps[i], [&](const Argument& a) {
        const ProgramBuffer& buffer = program.buffers[a.buffer];
        if (buffer.place == Place::arena)
          touched.push_back(arena_touch(a.buffer, a.read_only));
        else
          touched.push_back({buffer.place, a.read_only || buffer.place == Place::input, buffer.number});
      });
      if (driver.shared_bytes) touched.push_back(arena_touch(own_buffer(program, i), false));
      auto meets = [&](const Touches& earlier) {
        return std::ranges::any_of(touched, [&](const Touched& t) { return earlier.conflicts_with(t); });
      };
      wait = meets(by_threads) || (!single && meets(by_caller));
      if (wait) by_caller.clear(), by_threads.clear();
      for (const Touched& t : touched) (single ? by_caller : by_threads).add(t);
    }
    bool begins = i == 0;
    if (segment < program.segments.size() && program.segments[segment].end_step == i) ++segment, begins = true;
    const bool within = segment < program.segments.size() && program.segments[segment].holds(i);
    begins = begins || (within ? program.segments[segment].first_step == i : driver.alone || steps[i - 1]->alone);
    if (begins) to.segments.push_back({to.phases.size(), 0, within ? static_cast<int64_t>(segment) : -1});
    for (int phase = 0; phase < driver.phases; ++phase)
      to.phases.push_back({i, phase, single, phase == 0 ? wait : !single});
    to.segments.back().end_phase = to.phases.size();
    to.segments.back().single = to.segments.back().single && single;
  }
  detail::count_work(by_caller.work() + by_threads.work());
}

}  // namespace ingot::runtime
