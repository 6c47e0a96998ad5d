#include "codegen/x86/body.h"

#include <algorithm>
#include <bit>

namespace ingot::codegen::x86 {
namespace {
constexpr int kMostSlots = 256;   // registers that live at once in steps side by side: 16 KiB of the frame
constexpr int kSlotsOfAvx2 = 14;  // all that there are, less two for constants
}  // namespace

PhasePlan::PhasePlan(const Kernel& kernel, const Phase& p)
    : phase(p), roots(column_roots(kernel, p)), live(find_live(kernel, roots)) {
  // What is stored as it was loaded is loaded before anything is stored: it may be the same memory.
  if (p.stores.size() > 1)
    for (const Store& s : p.stores) roots.push_back(s.value);
}

void Body::begin(const PhasePlan& plan) {
  phase_ = &plan.phase;
  values_.begin_body(plan.roots, plan.live);
}

void Body::begin_row(const PhasePlan& plan, const std::vector<Stream*>& streams, bool resident) {
  begin(plan);
  values_.emit_row_level(plan.live);
  if (!resident) {
    streams_.free_registers();
    streams_.assign_registers(streams);
  }
  begin_streams(streams, resident);
}

void Body::begin_streams(const std::vector<Stream*>& streams, bool resident) {
  for (Stream* s : streams) streams_.begin(*s, values_.operand(s->index), resident);
}

void Body::step(const std::vector<Accumulator*>& accumulators, int64_t column_offset) {
  frame_.set_column_offset(column_offset);
  values_.begin_step();
  const Phase& phase = *phase_;
  std::vector<bool> stored(phase.stores.size()), stored_local(phase.local_stores.size()), added(accumulators.size());
  std::vector<Value> loads;
  for (Value v = 0; v < analysis_.size(); ++v) {
    const Op op = analysis_.node(v).op;
    if ((op == Op::load || op == Op::local) && values_.in_body(v)) loads.push_back(v);
  }
  size_t loaded = 0;
  // Values leave their registers as soon as they are there; a store waits for the last load, which may be of the same
  // memory.
  auto flush = [&](bool all) {
    for (size_t i = 0; i < accumulators.size(); ++i)
      if (!added[i] && (all || values_.ready(accumulators[i]->reduction->value))) {
        reductions_.accumulate(*accumulators[i]);
        added[i] = true;
      }
    while (loaded < loads.size() && values_.ready(loads[loaded])) ++loaded;
    if (!all && loaded < loads.size()) return;
    for (size_t i = 0; i < stored.size(); ++i)
      if (const Store& s = phase.stores[i]; !stored[i] && (all || values_.ready(s.value))) {
        memory_.store(s, values_.value(s.value));
        stored[i] = true;
      }
    for (size_t i = 0; i < stored_local.size(); ++i)
      if (const Store& s = phase.local_stores[i]; !stored_local[i] && (all || values_.ready(s.value))) {
        memory_.store_local(s.buffer, values_.value(s.value));
        stored_local[i] = true;
      }
  };
  for (Value v = 0; v < analysis_.size(); ++v) {
    if (!values_.in_body(v) || analysis_.is_leaf(v) || analysis_.node(v).region) continue;
    values_.emit_node(v);
    flush(false);
  }
  // Loads that are stored or reduced as they are.
  for (const Store& s : phase.stores) values_.value(s.value);
  for (const Store& s : phase.local_stores) values_.value(s.value);
  flush(true);
  frame_.set_column_offset(0);
}

void Body::tail_step(const std::vector<Accumulator*>& accumulators) {
  frame_.begin_tail();
  step(accumulators);
  frame_.end_tail();
}

void Body::mixed_steps(const std::vector<Accumulator*>& accumulators, int count) {
  streams_.fetch_ahead(count);
  std::vector<int32_t> starts;
  for (int j = 0; j < count; ++j) {
    starts.push_back(code_.position());
    step(accumulators, j * kLanes);
  }
  if (count * live_at_once() <= kMostSlots) code_.interleave(starts);
}

/// Column-level operations that always run.
int Body::work() const {
  int work = 0;
  for (Value v = 0; v < analysis_.size(); ++v)
    work += values_.in_body(v) && !analysis_.is_leaf(v) && analysis_.node(v).region == 0;
  return work;
}

// Where each step is one long chain of operations: the processor's window of waiting instructions is shorter than a few
// of them in a row.
int Body::chains() const {
  constexpr int kLong = 56;
  if (is_short()) return 1;
  int most = 1;  // registers of a value
  for (Value v = 0; v < analysis_.size(); ++v)
    if (values_.in_body(v)) most = std::max(most, v_.parts_of(analysis_.node(v).type));
  // Of AVX2 a step is two chains, and a third is worth no memory.
  const int slots = v_.avx512() ? kMostSlots : kSlotsOfAvx2, wanted = v_.avx512() && work() >= kLong ? 8 : 4;
  const int fitting = std::max(1, slots / std::max(1, live_at_once()));
  return std::max(1, std::min(wanted / most, static_cast<int>(std::bit_floor(unsigned(fitting)))));
}

/// Registers of the column-level values of one step that live at once, at most.
int Body::live_at_once() const {
  int live = 0, most = 0;
  std::vector<bool> seen(analysis_.size());
  for (Value v = analysis_.size(); v-- > 0;) {
    if (!values_.in_body(v)) continue;
    const Node& n = analysis_.node(v);
    if (seen[v]) live -= v_.parts_of(n.type);
    for (Value o : {n.a, n.b, n.c})
      if (o != kNone && analysis_.level(o) == Level::column && !seen[o]) {
        seen[o] = true;
        live += v_.parts_of(analysis_.node(o).type);
      }
    most = std::max(most, live);
  }
  return most;
}

}  // namespace ingot::codegen::x86
