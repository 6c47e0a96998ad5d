#include "codegen/x86/columns.h"

#include <algorithm>
#include <cstddef>

#include "codegen/x86/formats.h"

namespace ingot::codegen::x86 {

Columns::Columns(Emitter& emitter)
    : k_(emitter.analysis.kernel()),
      code_(emitter.vectors.code()),
      e_(emitter),
      plan_(k_, k_.phases.front()),
      lanes_(emitter.frame.reserve()),
      window_(emitter.frame.reserve()),
      row_(emitter.frame.at(Slot::blocks)),
      accumulators_(accumulators_of(k_.phases.front())) {}

void Columns::emit() {
  e_.frame.load_field(Gpr::rax, offsetof(KernelFrame, lanes), Gpr::rdi);
  code_.store(lanes_, Gpr::rax);
  e_.body.begin(plan_);
  begin_accumulators();
  std::vector<Row> rows = rows_side_by_side();

  code_.g(VOp::g_imm, Gpr::rax, 0);
  code_.store(window_, Gpr::rax);
  if (rows.size() > 1) windows(rows);
  rows.erase(rows.begin() + 1, rows.end());
  rows[0].values.clear();
  windows(rows);
}

/// As many rows of each lane as there are in `rows`, lane by lane, then the next ones: memory is read nearly straight
/// through. One row of each lane also where there are fewer lanes left.
void Columns::windows(std::vector<Row>& rows) {
  const auto count = static_cast<int64_t>(rows.size());
  const Mem& left = e_.frame.at(Slot::rows_left);  // all rows: nobody counts them here
  const int64_t done = code_.label(), next = code_.label();
  const Loop window = code_.begin_loop();
  code_.g(VOp::g_imm, Gpr::rbx, count);
  if (count > 1) code_.g(VOp::g_imulm, Gpr::rbx, lanes_);
  code_.g(VOp::g_addm, Gpr::rbx, window_);
  code_.g(VOp::g_cmpm, Gpr::rbx, left);
  code_.jump(done, Cond::greater);
  for (const PartialAccumulator& p : accumulators_) {
    code_.load(Gpr::rax, p.base);
    code_.store(p.lane, Gpr::rax);
  }
  code_.load(Gpr::rax, window_);
  code_.store(row_, Gpr::rax);
  const Loop lane = code_.begin_loop();
  code_.load(Gpr::rax, row_);
  code_.g(VOp::g_cmpm, Gpr::rax, left);
  code_.jump(next, Cond::greater_equal);
  rows_of_lane(rows);
  for (const PartialAccumulator& p : accumulators_) {
    code_.g(VOp::g_imm, Gpr::rax, ingot::size_of(p.format));
    code_.g(VOp::g_imulm, Gpr::rax, e_.frame.at(Slot::columns));
    code_.g(VOp::g_addm, Gpr::rax, p.lane);
    code_.store(p.lane, Gpr::rax);
  }
  code_.load(Gpr::rax, row_);
  code_.g(VOp::g_addi, Gpr::rax, 1);
  code_.store(row_, Gpr::rax);
  code_.g(VOp::g_imm, Gpr::rbx, 0);
  code_.g(VOp::g_addm, Gpr::rbx, window_);
  code_.g(VOp::g_addm, Gpr::rbx, lanes_);
  code_.g(VOp::g_cmp, Gpr::rax, Gpr::rbx);
  code_.end_loop(lane, Cond::less);
  code_.place(next);
  code_.g(VOp::g_imm, Gpr::rbx, count);
  code_.g(VOp::g_imulm, Gpr::rbx, lanes_);
  code_.g(VOp::g_addm, Gpr::rbx, window_);
  code_.store(window_, Gpr::rbx);
  code_.end_loop(window);
  code_.place(done);
}

std::vector<Columns::PartialAccumulator> Columns::accumulators_of(const Phase& phase) {
  std::vector<PartialAccumulator> accumulators;
  for (uint32_t r : phase.reductions) {
    const Reduction& reduction = k_.reductions[r];
    accumulators.push_back({&reduction, memory_type(e_.analysis.type_of(reduction)), false, {}, {}});
    if (is_index(reduction.combiner)) accumulators.push_back({&reduction, DType::i64, true, {}, {}});
  }
  std::sort(accumulators.begin(), accumulators.end(), [](const PartialAccumulator& x, const PartialAccumulator& y) {
    return x.reduction != y.reduction ? x.reduction < y.reduction : x.index < y.index;
  });
  return accumulators;
}

/// Addresses of the lanes, and the identity in all of them: lanes without a row keep it.
void Columns::begin_accumulators() {
  e_.frame.load_field(Gpr::rsi, offsetof(KernelFrame, scratch), Gpr::rdi);
  for (PartialAccumulator& p : accumulators_) {
    p.base = e_.frame.reserve();
    p.lane = e_.frame.reserve();
    code_.store(p.base, Gpr::rsi);
    // Lanes of `columns` elements, rounded up to steps of 16.
    const int64_t step = kLanes * ingot::size_of(p.format);
    Vector fill = p.index ? e_.vectors.constant(Type::i64, INT64_MAX) : e_.reductions.identity(*p.reduction);
    int64_t done = code_.label();
    code_.load(Gpr::rcx, e_.frame.at(Slot::columns));
    code_.g(VOp::g_imulm, Gpr::rcx, lanes_);
    code_.g(VOp::g_addi, Gpr::rcx, kLanes - 1);
    code_.g(VOp::g_shri, Gpr::rcx, 4);
    code_.g(VOp::g_cmpi, Gpr::rcx, 0);
    code_.jump(done, Cond::less_equal);
    const Loop loop = code_.begin_loop();
    store_elements(e_.vectors, p.format, fill, Mem::at(Gpr::rsi));
    code_.g(VOp::g_addi, Gpr::rsi, step);
    code_.g(VOp::g_addi, Gpr::rcx, -1);
    code_.end_loop(loop, Cond::not_equal);
    code_.place(done);
  }
}

/// They save trips to the accumulators, while there are registers for their addresses.
std::vector<Columns::Row> Columns::rows_side_by_side() {
  size_t loads = 0;
  for (Value v = 0; v < e_.analysis.size(); ++v) {
    const Node& node = e_.analysis.node(v);
    loads += e_.values.in_body(v) && node.op == Op::load && !k_.buffers[static_cast<size_t>(node.imm)].same_rows;
  }
  std::vector<Row> rows;
  for (size_t i = 0; i < (loads <= 2 ? 4 : 1); ++i) {
    Row row{{}, {}, Values::Known(e_.analysis.size())};
    for (size_t b = 0; b < k_.buffers.size(); ++b) row.frame.addresses.push_back(e_.frame.reserve());
    row.frame.index = e_.frame.reserve();
    rows.push_back(std::move(row));
  }
  return rows;
}

/// Makes it the row that is emitted for, and back.
void Columns::exchange(Row& row) {
  e_.frame.exchange_row(row.frame);
  e_.streams.exchange_row(row.streams);
  e_.values.exchange_row(row.values);
}

/// rbx: the row at work and `count` rows of its lane beyond it.
void Columns::row_of_lane(size_t count) {
  code_.g(VOp::g_imm, Gpr::rbx, static_cast<int64_t>(count));
  code_.g(VOp::g_imulm, Gpr::rbx, lanes_);
  code_.g(VOp::g_addm, Gpr::rbx, row_);
}

/// So many rows of the lane at work, `lanes` apart.
void Columns::rows_of_lane(std::vector<Row>& rows) {
  e_.streams.free_registers();
  for (size_t i = 0; i < rows.size(); ++i) {
    Row& row = rows[i];
    row_of_lane(i);
    for (uint32_t b = 0; b < k_.buffers.size(); ++b) {
      code_.g(VOp::g_mov, Gpr::rax, Gpr::rbx);
      code_.g(VOp::g_imulm, Gpr::rax, e_.frame.row_stride(b));
      code_.g(VOp::g_addm, Gpr::rax, e_.frame.row(b));
      code_.store(row.frame.addresses[b], Gpr::rax);
    }
    code_.g(VOp::g_addm, Gpr::rbx, e_.frame.at(Slot::row_index));
    code_.store(row.frame.index, Gpr::rbx);
    exchange(row);
    e_.values.emit_row_level(plan_.live);
    std::vector<Stream*> used = e_.streams.used_by(plan_.phase, plan_.live);
    e_.streams.assign_registers(used);
    e_.body.begin_streams(used, false);
    exchange(row);
  }
  column_loop(rows);
}

/// A step of the lane's accumulators and the values of each row.
void Columns::step(std::vector<Row>& rows) {
  std::vector<Accumulator> sums;
  auto address = [&](const PartialAccumulator& p) {
    code_.load(Gpr::rax, p.lane);
    return Mem::at(Gpr::rax, Gpr::rcx, static_cast<int>(ingot::size_of(p.format)));
  };
  for (const PartialAccumulator& p : accumulators_) {
    if (!p.index) sums.push_back({p.reduction, {}, {}, {}});
    (p.index ? sums.back().index : sums.back().value) = e_.memory.load_dense(p.format, address(p));
  }
  std::vector<Accumulator*> accumulators;
  for (Accumulator& a : sums) accumulators.push_back(&a);
  for (Row& row : rows) {
    exchange(row);
    e_.body.step(accumulators);
    exchange(row);
  }
  size_t i = 0;
  for (const PartialAccumulator& p : accumulators_) {
    Accumulator& a = p.index ? sums[i - 1] : sums[i++];
    e_.memory.store_dense(p.format, p.index ? a.index : a.value, address(p));
  }
}

void Columns::column_loop(std::vector<Row>& rows) {
  const Mem& columns = e_.frame.at(Slot::columns);
  code_.g(VOp::g_imm, Gpr::rcx, 0);
  int64_t tail = code_.label(), done = code_.label();
  code_.load(kLimit, columns);
  code_.g(VOp::g_andi, kLimit, -kLanes);
  code_.jump(tail, Cond::equal);
  e_.body.loop(kLanes, [&] { step(rows); });
  code_.place(tail);
  code_.g(VOp::g_cmpm, Gpr::rcx, columns);
  code_.jump(done, Cond::equal);
  e_.frame.begin_tail();
  step(rows);
  e_.frame.end_tail();
  code_.place(done);
}

}  // namespace ingot::codegen::x86
