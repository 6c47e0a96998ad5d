#include "runtime/program_runner.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "base/float_environment.h"
#include "base/hash.h"
#include "base/hot.h"
#include "base/mutex.h"
#include "runtime/bound_program.h"
#include "runtime/kept_values.h"
#include "runtime/memory/allocator.h"
#include "runtime/memory/checked_memory.h"
#include "runtime/memory/weight_cache.h"
#include "runtime/profiler.h"
#include "runtime/scalar_bits.h"
#include "runtime/thread_pool.h"

namespace ingot::runtime {
namespace {

/// Of memory without bytes, which nobody reads: steps count on from it before they find that there is nothing to do.
char* address(void* memory) {
  static char nothing;
  return memory ? static_cast<char*>(memory) : &nothing;
}

constexpr size_t kBindings = 64;

}  // namespace

struct LoadedProgram::Bindings {
  explicit Bindings(size_t forms) : constants(forms) {}
  Mutex mutex;
  struct Recent {
    uint64_t hash;  // of the symbols: most are told apart without a look at them
    BoundProgramPtr program;
  };
  std::vector<Recent> recent;  // the last used first
  KernelTable kernels;
  std::vector<StepConstants> constants;  // one a form
  struct Scalar {
    ScalarSource source;
    bool floating;  // how the call gives it
  };
  std::vector<Scalar> scalars;  // of all steps, in order
};

LoadedProgram::LoadedProgram(std::shared_ptr<const Program> program, bool pack_weights_only)
    : program_(std::move(program)),
      forms_(std::make_unique<const StepForms>(*program_)),
      bindings_(std::make_unique<Bindings>(forms_->size())),
      weights_(std::make_unique<WeightSlot[]>(program_->steps.size())) {
  INGOT_CHECK(program_->target.cuda_arch == 0);
  for (size_t i = 0; i < program_->steps.size(); ++i) weights_[i].gives_back = pack_weights_only;
  for (const Step& step : program_->steps) {
    for_each_kernel(step, [&](const KernelPtr& source) {
      auto [it, fresh] = bindings_->kernels.try_emplace(source.get());
      if (!fresh) return;
      kernels_.push_back(KernelCache::instance().load(source));
      it->second = kernels_.back().get();
    });
    first_scalars_.push_back(static_cast<uint32_t>(bindings_->scalars.size()));
    for_each_scalar(step, [&](const ScalarSource& s) {
      bool call = s.kind == ScalarSource::Kind::call;
      INGOT_CHECK(!call || s.number < program_->scalars.size(), step.name);
      bindings_->scalars.push_back({s, call && program_->scalars[s.number] == Category::floating});
    });
    for_each_dim(step, [&](Dim d) { INGOT_CHECK(program_->dims.knows(d), step.name); });
  }
  kept_ = std::make_unique<const KeptValues>(*program_, first_scalars_);
}

// What it packed and nobody else uses goes with it.
LoadedProgram::~LoadedProgram() {
  std::unique_ptr<RunState> state(idle_.load());
  const bool held = state && std::any_of(state->weights.begin(), state->weights.end(),
                                         [](const WeightUse& use) { return use.holds_any(); });
  state.reset();
  more_idle_.clear();
  if (held) WeightCache::instance().drop_unheld();
}

BoundProgramPtr LoadedProgram::find(std::span<const int64_t> symbols) const {
  const int threads = num_threads();
  const uint64_t hash = hash_bytes(symbols.data(), symbols.size_bytes());
  std::lock_guard lock(bindings_->mutex);
  auto& recent = bindings_->recent;
  auto it = std::find_if(recent.begin(), recent.end(), [&](const Bindings::Recent& r) {
    return r.hash == hash && r.program->threads == threads && std::ranges::equal(symbols, r.program->symbols);
  });
  if (it == recent.end()) return nullptr;
  std::rotate(recent.begin(), it, it + 1);
  return recent.front().program;
}

BoundProgramPtr LoadedProgram::bind(std::span<const int64_t> symbols, std::vector<int64_t> values) const {
  BoundProgramPtr like, last;
  {
    std::lock_guard lock(bindings_->mutex);
    if (!bindings_->recent.empty()) like = bindings_->recent.front().program;
  }
  auto bound = std::make_shared<const BoundProgram>(*program_, *forms_, symbols, std::move(values), num_threads(),
                                                    bindings_->kernels, bindings_->constants, like.get());
  std::lock_guard lock(bindings_->mutex);
  auto& recent = bindings_->recent;
  if (recent.size() == kBindings) {
    last = std::move(recent.back().program);  // ends without the lock
    recent.pop_back();
  }
  recent.insert(recent.begin(), {hash_bytes(symbols.data(), symbols.size_bytes()), bound});
  return bound;
}

BoundProgramPtr LoadedProgram::bind_where_it_holds(std::span<const int64_t> symbols) const {
  const bool timed = profiling();
  auto start = std::chrono::steady_clock::time_point();
  if (timed) start = std::chrono::steady_clock::now();
  if (BoundProgramPtr known = find(symbols)) return known;  // it was bound because they hold
  const DimTable& dims = program_->dims;
  std::vector<int64_t> values = dims.evaluate(symbols);
  for (const DimGuard& guard : dims.guards())
    if (!dims.holds(guard, values)) return nullptr;
  BoundProgramPtr bound = bind(symbols, std::move(values));
  if (timed) {
    const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - start;
    record_binding(bound->fresh_steps, elapsed.count());
  }
  return bound;
}

BoundProgramPtr LoadedProgram::bind(std::span<const int64_t> symbols) const {
  if (BoundProgramPtr known = find(symbols)) return known;
  return bind(symbols, program_->dims.evaluate(symbols));
}

INGOT_HOT std::unique_ptr<RunState> LoadedProgram::acquire(int64_t arena_bytes) const {
  std::unique_ptr<RunState> state(idle_.exchange(nullptr, std::memory_order_acquire));
  if (!state) {
    std::lock_guard lock(mutex_);
    if (!more_idle_.empty()) {
      state = std::move(more_idle_.back());
      more_idle_.pop_back();
    }
  }
  if (!state) {
    state = std::make_unique<RunState>();
    state->buffers.resize(program_->buffers.size() + program_->steps.size());
    state->step_buffers.resize(forms_->buffers().size());
    state->scalars.resize(bindings_->scalars.size());
    state->weights.resize(program_->steps.size());
  }
  if (state->arena_bytes < arena_bytes) {
    char* arena = static_cast<char*>(allocate(arena_bytes));
    deallocate(state->arena, state->arena_bytes);
    state->arena = arena, state->arena_bytes = arena_bytes;
  }
  return state;
}

// Small arenas wait with their program; large ones go to the allocator, which all programs share and which is bounded.
INGOT_HOT void LoadedProgram::give_back(std::unique_ptr<RunState> state) const {
  constexpr int64_t kKeptArena = 256 << 10;
  constexpr size_t kKeptStates = 64;
  if (state->arena_bytes > kKeptArena) {
    deallocate(state->arena, state->arena_bytes);
    state->arena = nullptr, state->arena_bytes = 0;
  }
  std::unique_ptr<RunState> other(idle_.exchange(state.release(), std::memory_order_acq_rel));
  if (!other) return;
  std::lock_guard lock(mutex_);
  if (more_idle_.size() < kKeptStates) more_idle_.push_back(std::move(other));
}

INGOT_HOT void LoadedProgram::run(const BoundProgram& bound, const CallData& data, bool in_place) const {
  const FloatEnvironment environment;
  const Program& program = *program_;
  INGOT_CHECK(data.inputs.size() == program.inputs && data.outputs.size() == program.outputs &&
              data.scalars.size() == program.scalars.size());
  std::unique_ptr<RunState> state = acquire(bound.schedule->arena_bytes);
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const ProgramBuffer& buffer = program.buffers[i];
    if (buffer.place == Place::arena || buffer.place == Place::kept) continue;
    state->buffers[i] = address((buffer.place == Place::input ? data.inputs : data.outputs)[buffer.number]);
  }
  const bool checked = !bound.schedule->arena.empty() && checks_memory();
  for (const ArenaBuffer& buffer : bound.schedule->arena)
    state->buffers[buffer.buffer] = checked ? static_cast<char*>(allocate_checked(bound.bytes(program, buffer.buffer)))
                                            : address(state->arena) + buffer.offset;
  for (size_t i = 0; i < bindings_->scalars.size(); ++i) {
    const auto& [source, floating] = bindings_->scalars[i];
    uint64_t& to = state->scalars[i];
    if (source.kind == ScalarSource::Kind::size)
      to = converted(DimTable::value_of(source.size, bound.values), source.type);
    else if (floating)
      to = converted(std::bit_cast<double>(data.scalars[source.number]), source.type);
    else
      to = converted(static_cast<int64_t>(data.scalars[source.number]), source.type);
  }
  kept_->begin(*state, data.inputs, data.identities);
  auto tell_steps = [&](uint32_t first, uint32_t end) {
    const size_t from = first < program.steps.size() ? forms_->first_buffer(first) : forms_->buffers().size(),
                 to = end < program.steps.size() ? forms_->first_buffer(end) : forms_->buffers().size();
    std::ranges::transform(forms_->buffers().subspan(from, to - from), state->step_buffers.begin() + from,
                           [all = state->buffers.data()](uint32_t buffer) { return all[buffer]; });
  };
  tell_steps(0, static_cast<uint32_t>(program.steps.size()));
  struct Release {
    const BoundProgram& bound;
    RunState& state;
    ~Release() {
      for (uint32_t i : bound.schedule->weight_steps) state.weights[i].release();
    }
  };
  {
    Release release{bound, *state};
    for (uint32_t i : bound.schedule->weight_steps) {
      const StepDriver& driver = *bound.steps[i];
      uint32_t input = program.buffers[forms_->buffers(i)[static_cast<size_t>(driver.weight_buffer)]].number;
      driver.prepare(state_of(i, *state), data.identities.empty() ? InputIdentity{} : data.identities[input],
                     weights_[i]);
    }
    // What is written over an input cannot be had back: the memory of all steps is there before the first.
    int64_t scratch = 0;
    std::optional<ReservedScratch> reserved;
    if (in_place) {
      for (uint32_t i = 0; i < bound.steps.size(); ++i)
        scratch = std::max(scratch, bound.steps[i]->scratch_bytes(state_of(i, *state)));
      reserved.emplace(scratch);
    }
    state->times.clear();
    auto move = [&](const Program::Segment& segment, int64_t slices) {
      for (const Program::Segment::Move& m : segment.moves)
        state->buffers[m.buffer] += slices * DimTable::value_of(m.bytes, bound.values);
      tell_steps(segment.first_step, segment.end_step);
    };
    for (const BoundSegment& phases : bound.schedule->segments) {
      if (phases.number < 0) {
        run_phases(bound, phases, *state, scratch);
        continue;
      }
      const Program::Segment& segment = program.segments[static_cast<size_t>(phases.number)];
      const int64_t slices = DimTable::value_of(segment.slices, bound.values);
      if (slices < 1) continue;
      if (segment.backwards) move(segment, slices - 1);
      for (int64_t slice = 0; slice < slices; ++slice) {
        state->again = slice > 0;
        if (state->again) move(segment, segment.backwards ? -1 : 1);
        run_phases(bound, phases, *state, scratch);
      }
      state->again = false;
      if (!segment.backwards) move(segment, 1 - slices);
    }
    kept_->end(*state);
    for (const auto& [step, ns] : state->times) record_step(program_, step, ns);
  }
  if (checked)
    for (const ArenaBuffer& buffer : bound.schedule->arena)
      deallocate_checked(state->buffers[buffer.buffer], bound.bytes(program, buffer.buffer));
  give_back(std::move(state));
}

StepState LoadedProgram::state_of(uint32_t step, RunState& state) const {
  return {state.step_buffers.data() + forms_->first_buffer(step), state.scalars.data() + first_scalars_[step],
          state.weights[step], state.again};
}

// Shares are fixed. A thread begins with its own, whose data and weights its caches hold from the step before, then
// takes what others have not begun: a thread that is late or has lost its processor holds nobody up.
// One that gets no memory for them takes none.
INGOT_HOT void LoadedProgram::run_phases(const BoundProgram& bound, const BoundSegment& segment, RunState& state,
                                         int64_t scratch) const {
  const std::vector<BoundPhase>& phases = bound.schedule->phases;
  auto driver_of = [&](const BoundPhase& p) -> const StepDriver& { return *bound.steps[p.step]; };
  auto left_out = [&](const BoundPhase& p) {
    return (state.kept.current && kept_->makes(p.step)) || driver_of(p).idle(state_of(p.step, state), p.number);
  };
  const bool timed = profiling();
  auto begin_progress = [&] {
    if (state.phases < phases.size()) {
      state.progress = std::make_unique<Progress[]>(phases.size());
      state.phases = phases.size();
    }
    for (size_t i = segment.first_phase; i < segment.end_phase; ++i) state.progress[i].reset();
  };
  auto region = [&](int thread, int threads) {
    std::optional<ReservedScratch> reserved;
    try {
      if (thread > 0 && scratch > 0) reserved.emplace(scratch);
    } catch (const OutOfMemory&) {
      return;
    }
    auto shares = [&](const BoundPhase& p) { return p.single ? 1 : std::min(threads, driver_of(p).useful_threads); };
    size_t awaited = segment.first_phase;  // phases before this one have ended
    auto await_before = [&](size_t end) {
      if (threads > 1)
        for (size_t i = awaited; i < end; ++i)
          if (!left_out(phases[i])) await(state.progress[i].done, shares(phases[i]));
      awaited = end;
    };
    auto start = std::chrono::steady_clock::time_point();
    for (size_t i = segment.first_phase; i < segment.end_phase; ++i) {
      const BoundPhase& p = phases[i];
      const StepDriver& driver = driver_of(p);
      if (p.barrier_before || timed) await_before(i);
      if (timed && p.number == 0) start = std::chrono::steady_clock::now();
      if (left_out(p)) continue;
      if (threads == 1) {
        driver.run(state_of(p.step, state), p.number, 0, 1);
      } else if (Progress& progress = state.progress[i]; p.single) {
        if (thread == 0)
          driver.run(state_of(p.step, state), p.number, 0, 1), progress.done.store(1, std::memory_order_release);
      } else {
        const int n = shares(p);
        for (int next = 0; next < n; ++next) {
          const int share = (thread + next) % n;
          if (!progress.claim(share)) continue;
          driver.run(state_of(p.step, state), p.number, share, n);
          progress.done.fetch_add(1, std::memory_order_acq_rel);
        }
      }
      if (timed && p.number + 1 == driver.phases) {
        await_before(i + 1);
        std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - start;
        if (thread == 0) state.add_time(p.step, elapsed.count());
      }
    }
    if (thread == 0) await_before(segment.end_phase);
  };
  const int useful = segment.single ? 1 : bound.useful_threads;
  if (useful > 1) begin_progress();
  parallel(useful, region);
}

int64_t LoadedProgram::arena_bytes(const BoundProgram& bound) const { return bound.schedule->arena_bytes; }

std::string LoadedProgram::weight(size_t step) const {
  if (kept_->makes(static_cast<uint32_t>(step))) return "its results are kept while the weights stay";
  const WeightSlot& slot = weights_[step];
  return describe(slot.fate.load(std::memory_order_relaxed), slot.bytes.load(std::memory_order_relaxed),
                  slot.source.load(std::memory_order_relaxed));
}

int64_t LoadedProgram::weight_packs() const {
  int64_t packs = 0;
  for (size_t i = 0; i < program_->steps.size(); ++i) packs += weights_[i].packs.load(std::memory_order_relaxed);
  return packs;
}

}  // namespace ingot::runtime
