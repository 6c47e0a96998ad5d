#include "codegen/x86/short_columns.h"

#include <cstddef>

#include "codegen/x86/arithmetic.h"

namespace ingot::codegen::x86 {

ShortColumns::ShortColumns(Emitter& emitter)
    : k_(emitter.analysis.kernel()),
      code_(emitter.vectors.code()),
      e_(emitter),
      plan_(k_, k_.phases.front()),
      together_(fitting_lanes()),
      lanes_(emitter.frame.reserve()),
      left_(emitter.frame.reserve()) {}

void ShortColumns::emit() {
  e_.frame.load_field(Gpr::rax, offsetof(KernelFrame, lanes), Gpr::rdi);
  code_.store(lanes_, Gpr::rax);
  place_lanes();
  e_.body.begin(plan_);
  streams_ = e_.streams.used_by(plan_.phase, plan_.live);
  const std::vector<Stream*> of_rows = e_.streams.used_by_rows(plan_.live);
  INGOT_CHECK(e_.streams.keep_in_registers(streams_, of_rows), "short columns of more streams than registers");
  streams_.insert(streams_.end(), of_rows.begin(), of_rows.end());
  const Mem& columns = e_.frame.at(Slot::columns);
  const int64_t tail = code_.label(), done = code_.label();
  code_.g(VOp::g_imm, Gpr::rcx, 0);
  code_.load(kLimit, columns);
  code_.g(VOp::g_andi, kLimit, -kLanes);
  code_.jump(tail, Cond::equal);
  e_.body.loop(kLanes, [&] { vector_of_columns(); });
  code_.place(tail);
  code_.g(VOp::g_cmpm, Gpr::rcx, columns);
  code_.jump(done, Cond::equal);
  e_.frame.begin_tail();
  vector_of_columns();
  e_.frame.end_tail();
  code_.place(done);
}

int ShortColumns::fitting_lanes() const {
  const Vectors& v = e_.vectors;
  int parts = 0, lanes = kLanes;
  for (const Reduction& r : k_.reductions) parts += v.parts_of(e_.analysis.type_of(r));
  while (lanes > 1 && lanes * parts > (v.avx512() ? 16 : 8)) lanes /= 2;
  return lanes;
}

DType ShortColumns::format_of(size_t reduction) const {
  return memory_type(e_.analysis.type_of(k_.reductions[reduction]));
}

void ShortColumns::place_lanes() {
  e_.frame.load_field(Gpr::rsi, offsetof(KernelFrame, scratch), Gpr::rdi);
  for (size_t r = 0; r < k_.reductions.size(); ++r) {
    places_.push_back(e_.frame.reserve());
    code_.store(places_.back(), Gpr::rsi);
    code_.g(VOp::g_imm, Gpr::rax, kLanes * ingot::size_of(format_of(r)));
    code_.g(VOp::g_imulm, Gpr::rax, e_.frame.at(Slot::columns));
    code_.g(VOp::g_add, Gpr::rsi, Gpr::rax);
  }
}

void ShortColumns::vector_of_columns() {
  e_.values.begin_row();
  if (!e_.frame.tail()) e_.values.keep_same_rows(0, kLanes, e_.vectors.avx512() ? 6 : 2);
  for (int first = 0; first < kLanes; first += together_) {
    sum_lanes(first);
    for (int lane = 0; together_ < kLanes && lane < together_; ++lane)
      for (size_t r = 0; r < k_.reductions.size(); ++r)
        store(r, first + lane, at_work_[static_cast<size_t>(lane)][r].value);
  }
  const int64_t apart = code_.label(), done = code_.label();
  code_.add({.op = VOp::g_cmpi_m, .mem = lanes_, .value = 1});
  code_.jump(apart, Cond::not_equal);
  e_.vectors.keep_mask_forms = false;
  for (size_t r = 0; r < k_.reductions.size(); ++r) {
    Vector sum = joined(r, 0, 1);
    store(r, 0, sum);
  }
  code_.jump(done);
  code_.place(apart);
  for (int lane = 0; together_ == kLanes && lane < kLanes; ++lane)
    for (size_t r = 0; r < k_.reductions.size(); ++r) store(r, lane, at_work_[static_cast<size_t>(lane)][r].value);
  e_.vectors.keep_mask_forms = true;
  code_.place(done);
}

/// The lanes from `first` on that are in registers together: rounds of 16 rows, then the last ones.
void ShortColumns::sum_lanes(int first) {
  at_work_.assign(static_cast<size_t>(together_), {});
  for (Lane& lane : at_work_)
    for (const Reduction& r : k_.reductions) {
      lane.push_back(e_.reductions.accumulator(r));
      e_.reductions.reset(lane.back());
    }
  begin_at_row(first);
  // Mask forms made where rows are summed would be missing where there are none.
  e_.vectors.keep_mask_forms = false;
  const int64_t last = code_.label(), done = code_.label();
  const Loop round = code_.begin_loop();
  code_.add({.op = VOp::g_cmpi_m, .mem = left_, .value = together_});
  code_.jump(last, Cond::less);
  for (Lane& lane : at_work_) sum_row(lane);
  if (together_ < kLanes) move_rows(kLanes - together_);
  code_.add({.op = VOp::g_addi_to, .mem = left_, .value = -kLanes});
  code_.end_loop(round);
  code_.place(last);
  for (int lane = 0; lane + 1 < together_; ++lane) {
    code_.add({.op = VOp::g_cmpi_m, .mem = left_, .value = lane + 1});
    code_.jump(done, Cond::less);
    sum_row(at_work_[static_cast<size_t>(lane)]);
  }
  code_.place(done);
  e_.vectors.keep_mask_forms = true;
}

void ShortColumns::sum_row(Lane& lane) {
  std::vector<Accumulator*> all;
  for (Accumulator& a : lane) all.push_back(&a);
  e_.values.next_row();
  e_.values.emit_row_level(plan_.live);
  for (Stream* s : streams_)
    if (s->index != kNone) e_.body.begin_streams({s}, true);
  e_.body.step(all);
  move_rows(1);
}

/// Whether its register goes along the rows; the row of a table is looked up at each.
bool ShortColumns::moves(const Stream& s) const { return s.index == kNone && !k_.buffers[s.number].same_rows; }

void ShortColumns::move_rows(int64_t rows) {
  for (const Stream* s : streams_) {
    if (!moves(*s)) continue;
    if (rows == 1) {
      code_.g(VOp::g_addm, s->reg, e_.frame.row_stride(s->number));
      continue;
    }
    code_.g(VOp::g_imm, Gpr::rax, rows);
    code_.g(VOp::g_imulm, Gpr::rax, e_.frame.row_stride(s->number));
    code_.g(VOp::g_add, s->reg, Gpr::rax);
  }
}

void ShortColumns::begin_at_row(int64_t row) {
  for (const Stream* s : streams_)
    if (moves(*s)) code_.load(s->reg, s->slot);
  if (row) move_rows(row);
  code_.load(Gpr::rax, e_.frame.at(Slot::rows_left));
  code_.g(VOp::g_addi, Gpr::rax, -row);
  code_.store(left_, Gpr::rax);
}

/// Clobbers rax and rbx.
Mem ShortColumns::place_of(size_t reduction, int lane) {
  const int64_t bytes = ingot::size_of(format_of(reduction));
  code_.g(VOp::g_imm, Gpr::rax, lane * bytes);
  code_.g(VOp::g_imulm, Gpr::rax, e_.frame.at(Slot::columns));
  code_.g(VOp::g_addm, Gpr::rax, places_[reduction]);
  return Mem::at(Gpr::rax, Gpr::rcx, static_cast<int>(bytes));
}

void ShortColumns::store(size_t reduction, int lane, Vector& x) {
  e_.memory.store_dense(format_of(reduction), x, place_of(reduction, lane));
}

Vector ShortColumns::lane_of(size_t reduction, int lane) {
  if (together_ == kLanes) return at_work_[static_cast<size_t>(lane)][reduction].value;
  return e_.memory.load_dense(format_of(reduction), place_of(reduction, lane));
}

/// The canonical order: lanes halved, with `step` between what is left.
Vector ShortColumns::joined(size_t reduction, int lane, int step) {
  if (step == kLanes) return lane_of(reduction, lane);
  Vector x = joined(reduction, lane, 2 * step), y = joined(reduction, lane + step, 2 * step);
  return binary(e_.vectors, combining_op(k_.reductions[reduction].combiner), x, y);
}

}  // namespace ingot::codegen::x86
