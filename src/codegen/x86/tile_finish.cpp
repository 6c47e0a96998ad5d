// What follows a product, on the sums of a tile while they are in registers: where there is little to sum, storing them
// and reading them again takes as long as what follows.
#include <algorithm>

#include "codegen/x86/emitter.h"
#include "codegen/x86/tile.h"
#include "codegen/x86/x86.h"

namespace ingot::codegen::x86 {
namespace {
constexpr std::ptrdiff_t kMostNodes = 10;  // the sums leave few registers, and much work hides what this saves

bool is_sum(const Node& n) { return n.op == Op::load && n.imm == 0; }
}  // namespace

bool may_finish(const Target& target, const Kernel& k) {
  if (target.cuda_arch || target.isa == Isa::none) return false;
  if (k.form != Form::rows || k.phases.size() != 1 || !k.reductions.empty() || !k.locals.empty()) return false;
  // Rows of narrow elements end by mask, which AVX2 has not.
  auto fits = [&](const Buffer& b) {
    return b.access == Access::dense && (b.dtype == DType::f32 || (is_half(b.dtype) && target.isa == Isa::avx512));
  };
  if (!std::all_of(k.buffers.begin(), k.buffers.end(), fits) || k.buffers[0].written) return false;
  auto simple = [](const Node& n) {
    return n.op != Op::index && n.op != Op::rare && !(n.op == Op::load && n.a != kNone);
  };
  auto works = [](const Node& n) { return !is_leaf(n.op); };
  return std::all_of(k.nodes.begin(), k.nodes.end(), simple) &&
         std::count_if(k.nodes.begin(), k.nodes.end(), works) <= kMostNodes;
}

/// But for the sums'.
std::vector<Stream*> TileFinish::streams_of(const PhasePlan& plan) {
  std::vector<Stream*> streams = emitter_.streams.used_by(plan.phase, plan.live);
  std::erase_if(streams, [](const Stream* s) { return s->number == 0; });
  return streams;
}

bool TileFinish::by_parts() const {
  auto narrow = [](const Node& n) { return n.type == Type::f32 || n.type == Type::mask; };
  return !emitter_.vectors.avx512() && k_.known_columns % emitter_.vectors.lanes_a_part(Type::f32) == 0 &&
         k_.buffers.size() <= std::size(kStreamRegisters) && std::all_of(k_.nodes.begin(), k_.nodes.end(), narrow);
}

/// What does not fit is to lie in memory here only, not in the loop before.
std::vector<VReg> TileFinish::ends_of(std::span<const VReg> sums) {
  std::vector<VReg> ends(sums.begin(), sums.end());
  if (!emitter_.vectors.avx512())
    for (VReg& sum : ends) sum = emitter_.vectors.emit1(VOp::vmovups, sum);
  return ends;
}

void TileFinish::emit_part(std::span<const VReg> sums, int part, bool goes_on) {
  constexpr int kRoom = 2;  // registers beside the sums, constants and what is computed
  Emitter& e = emitter_;
  const PhasePlan plan(k_, k_.phases.front());
  const std::vector<Stream*> streams = streams_of(plan);
  const int lanes = e.vectors.lanes_a_part(Type::f32);
  const bool last = (part + 1) * lanes == k_.known_columns;
  INGOT_CHECK(e.streams.keep_in_registers(streams), "a part of an epilogue with more streams than registers");
  const std::vector<VReg> ends = ends_of(sums);
  e.vectors.work_on(lanes);
  code_.g(VOp::g_imm, Gpr::rcx, 0);
  e.values.begin_row();
  for (const VReg& sum : ends) {
    e.body.begin_row(plan, streams, true);
    Vector vector;
    vector.parts = 1;
    vector.part[0] = sum;
    for (Value v = 0; v < k_.nodes.size(); ++v)
      if (is_sum(k_.nodes[v])) e.values.keep(v, part * lanes, vector);
    if (&sum == &ends.front()) e.values.keep_same_rows(part * lanes, lanes, kRoom);
    e.body.step({}, part * lanes);
    if (&sum != &ends.back() || (goes_on && last)) e.streams.advance_row();
  }
  if (goes_on && last) e.streams.put_back();
  e.vectors.work_on(kLanes);
}

void TileFinish::emit(std::span<const VReg> sums, int rows, bool goes_on) {
  Emitter& e = emitter_;
  const PhasePlan plan(k_, k_.phases.front());
  const std::vector<Stream*> streams = streams_of(plan);
  const bool resident = e.streams.keep_in_registers(streams);
  const auto steps = static_cast<int>(k_.known_columns / kLanes),
             vectors = static_cast<int>((k_.known_columns + kLanes - 1) / kLanes);
  const int parts = e.vectors.parts_of(Type::f32);
  const int64_t whole = steps * kLanes;
  const std::vector<VReg> ends = ends_of(sums);
  code_.g(VOp::g_imm, Gpr::rcx, 0);
  for (int row = 0; row < rows; ++row) {
    e.values.begin_row();
    e.body.begin_row(plan, streams, resident);
    for (Value v = 0; v < k_.nodes.size(); ++v) {
      if (!is_sum(k_.nodes[v])) continue;
      for (int step = 0; step < vectors; ++step) {
        Vector sum;
        sum.parts = parts;
        for (int p = 0; p < parts; ++p)
          sum.part[static_cast<size_t>(p)] = ends[static_cast<size_t>((row * vectors + step) * parts + p)];
        e.values.keep(v, step < steps ? step * kLanes : Values::kTail, sum);
      }
    }
    if (steps > 0) e.body.mixed_steps({}, steps);
    if (vectors > steps) {
      code_.g(VOp::g_imm, Gpr::rcx, whole);
      e.body.tail_step({});
      if (row + 1 < rows) code_.g(VOp::g_imm, Gpr::rcx, 0);
    }
    if (row + 1 < rows || goes_on) e.streams.advance_row();
  }
  if (goes_on) e.streams.put_back();
}

}  // namespace ingot::codegen::x86
