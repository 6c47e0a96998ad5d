// Form::columns: sums along at most 256 rows, into 16 partial lanes a column. Lane by lane, several rows of the lane at
// a time are added in registers to what the lane holds, so that a wide tile streams through memory at full speed.
#include <cstddef>

#include "codegen/x86/lower.h"

namespace ingot::codegen::x86 {

/// What belongs to one of the rows that a step works on.
struct Lowering::RowContext {
  std::vector<Vector> row;
  std::vector<bool> has_row;
  std::deque<Stream> streams;
  std::vector<int64_t> row_slots;
  int64_t row_index = 0;
};

/// The partial lanes of a reduction: where lane 0 starts, and the lane at work.
struct Lowering::Partial {
  const Reduction* reduction;
  DType format;
  bool index;  // the row indices of argmax and argmin, not the values
  int64_t base_slot, lane_slot;
};

void Lowering::exchange(RowContext& c) {
  std::swap(row_, c.row);
  std::swap(has_row_, c.has_row);
  std::swap(streams_, c.streams);
  std::swap(row_slots_, c.row_slots);
  std::swap(row_index_, c.row_index);
}

void Lowering::columns() {
  prologue();
  lanes_ = code_.reserve(8);
  load_slot(Gpr::rdi, frame_slot_);
  g(VOp::g_load, Gpr::rax, Mem::at(Gpr::rdi, offsetof(KernelFrame, lanes)));
  store_slot(lanes_, Gpr::rax);
  const Phase& phase = k_.phases.front();
  std::vector<Value> roots;
  for (const Reduction& r : k_.reductions) roots.push_back(r.value);
  live_ = needed(roots);
  count_uses(live_, roots);

  std::vector<Partial> partials;
  for (uint32_t r : phase.reductions) {
    const Reduction& reduction = k_.reductions[r];
    partials.push_back({&reduction, memory_type(node(reduction.value).type), false, 0, 0});
    if (reduction.combiner == Combiner::argmax || reduction.combiner == Combiner::argmin)
      partials.push_back({&reduction, DType::i64, true, 0, 0});
  }
  std::sort(partials.begin(), partials.end(), [](const Partial& x, const Partial& y) {
    return x.reduction != y.reduction ? x.reduction < y.reduction : x.index < y.index;
  });
  begin_partials(partials);

  // Rows side by side save trips to the partial lanes, while there are registers for their addresses.
  size_t loads = 0;
  for (Value v = 0; v < k_.nodes.size(); ++v) loads += live_[v] && level_[v] == Level::column && node(v).op == Op::load;
  const size_t side_by_side = loads <= 2 ? 4 : 1;
  std::vector<RowContext> contexts(side_by_side);
  for (RowContext& c : contexts) {
    c.row.resize(k_.nodes.size());
    c.has_row.assign(k_.nodes.size(), false);
    for (size_t b = 0; b < k_.buffers.size(); ++b) c.row_slots.push_back(code_.reserve(8));
    c.row_index = code_.reserve(8);
  }

  // rows_left_ is the number of rows; lane: 0 .. lanes - 1, as long as there is a row for it.
  int64_t lane_slot = code_.reserve(8), head = code_.label(), end = code_.label();
  g(VOp::g_imm, Gpr::rax, int64_t(0));
  store_slot(lane_slot, Gpr::rax);
  int32_t begin = code_.position();
  code_.place(head);
  load_slot(Gpr::rax, lane_slot);
  g(VOp::g_cmpm, Gpr::rax, Mem::frame(lanes_));
  code_.jump(end, Cond::greater_equal);
  g(VOp::g_cmpm, Gpr::rax, Mem::frame(rows_left_));
  code_.jump(end, Cond::greater_equal);
  for (const Partial& p : partials) {
    load_slot(Gpr::rax, lane_slot);
    g(VOp::g_imulm, Gpr::rax, Mem::frame(columns_slot_));
    if (ingot::size_of(p.format) > 1) g(VOp::g_shli, Gpr::rax, int64_t(ingot::size_of(p.format) == 8 ? 3 : 2));
    g(VOp::g_addm, Gpr::rax, Mem::frame(p.base_slot));
    store_slot(p.lane_slot, Gpr::rax);
  }
  load_slot(Gpr::rbx, lane_slot);
  store_slot(blocks_, Gpr::rbx);  // the row at work
  if (side_by_side > 1) rows_of_lane(contexts, partials);
  contexts.resize(1);
  std::fill(contexts[0].has_row.begin(), contexts[0].has_row.end(), false);
  rows_of_lane(contexts, partials);
  code_.add({.op = VOp::g_addi_to, .mem = Mem::frame(lane_slot), .value = 1});
  code_.jump(head);
  code_.loops.push_back({begin, code_.position()});
  code_.place(end);
}

/// Addresses of the partial lanes, and the identity in all of them: lanes without a row keep it.
void Lowering::begin_partials(std::vector<Partial>& partials) {
  load_slot(Gpr::rdi, frame_slot_);
  g(VOp::g_load, Gpr::rsi, Mem::at(Gpr::rdi, offsetof(KernelFrame, scratch)));
  for (Partial& p : partials) {
    p.base_slot = code_.reserve(8);
    p.lane_slot = code_.reserve(8);
    store_slot(p.base_slot, Gpr::rsi);
    // Lanes of `columns` elements: steps of 16 elements fill them exactly.
    const int64_t step = kLanes * ingot::size_of(p.format);
    Vector fill = p.index ? v_.constant(Type::i64, INT64_MAX) : identity(*p.reduction);
    int64_t head = code_.label(), done = code_.label();
    load_slot(Gpr::rcx, columns_slot_);
    g(VOp::g_imulm, Gpr::rcx, Mem::frame(lanes_));
    g(VOp::g_shri, Gpr::rcx, int64_t(4));
    g(VOp::g_cmpi, Gpr::rcx, int64_t(0));
    code_.jump(done, Cond::less_equal);
    int32_t begin = code_.position();
    code_.place(head);
    store_format(p.format, fill, Mem::at(Gpr::rsi), false);
    g(VOp::g_addi, Gpr::rsi, step);
    g(VOp::g_addi, Gpr::rcx, int64_t(-1));
    code_.jump(head, Cond::not_equal);
    code_.loops.push_back({begin, code_.position()});
    code_.place(done);
  }
}

/// rbx: the row at work and `count` rows of its lane beyond it.
void Lowering::row_of_lane(int64_t count) {
  g(VOp::g_imm, Gpr::rbx, count);
  g(VOp::g_imulm, Gpr::rbx, Mem::frame(lanes_));
  g(VOp::g_addm, Gpr::rbx, Mem::frame(blocks_));
}

/// Rows of the lane at work: `lanes` apart, all contexts at a time while there are as many.
void Lowering::rows_of_lane(std::vector<RowContext>& contexts, std::vector<Partial>& partials) {
  const int64_t count = static_cast<int64_t>(contexts.size());
  int64_t head = code_.label(), done = code_.label();
  int32_t begin = code_.position();
  code_.place(head);
  row_of_lane(count - 1);
  g(VOp::g_cmpm, Gpr::rbx, Mem::frame(rows_left_));
  code_.jump(done, Cond::greater_equal);

  next_register_ = 0;
  for (int64_t q = 0; q < count; ++q) {
    RowContext& c = contexts[static_cast<size_t>(q)];
    row_of_lane(q);
    for (uint32_t b = 0; b < k_.buffers.size(); ++b) {
      g(VOp::g_mov, Gpr::rax, Gpr::rbx);
      g(VOp::g_imulm, Gpr::rax, Mem::frame(row_stride_slots_[b]));
      g(VOp::g_addm, Gpr::rax, Mem::frame(row_slots_[b]));
      store_slot(c.row_slots[b], Gpr::rax);
    }
    g(VOp::g_addm, Gpr::rbx, Mem::frame(row_index_));
    store_slot(c.row_index, Gpr::rbx);
    exchange(c);
    emit_row_level(live_);
    std::vector<Stream*> used = streams_of(live_, k_.phases.front());
    assign_registers(used);
    load_streams(used, false);
    exchange(c);
  }
  column_step(contexts, partials);
  row_of_lane(count);
  store_slot(blocks_, Gpr::rbx);
  code_.jump(head);
  code_.loops.push_back({begin, code_.position()});
  code_.place(done);
}

/// All columns: the lane's partial results and the values of each context's row.
void Lowering::column_step(std::vector<RowContext>& contexts, std::vector<Partial>& partials) {
  auto step = [&] {
    std::vector<Accumulator> sums;
    auto place = [&](const Partial& p) {
      load_slot(Gpr::rax, p.lane_slot);
      return Mem::at(Gpr::rax, Gpr::rcx, static_cast<int>(ingot::size_of(p.format)));
    };
    for (const Partial& p : partials) {
      if (!p.index) sums.push_back({p.reduction, {}, {}, {}});
      (p.index ? sums.back().index : sums.back().value) = load_dense(p.format, place(p));
    }
    std::vector<Accumulator*> accumulators;
    for (Accumulator& a : sums) accumulators.push_back(&a);
    for (RowContext& c : contexts) {
      exchange(c);
      body(k_.phases.front(), accumulators);
      exchange(c);
    }
    size_t i = 0;
    for (const Partial& p : partials) {
      Accumulator& a = p.index ? sums[i - 1] : sums[i++];
      store_dense(p.format, p.index ? a.index : a.value, place(p));
    }
  };
  g(VOp::g_imm, Gpr::rcx, int64_t(0));
  int64_t head = code_.label(), tail = code_.label(), done = code_.label();
  load_slot(kLimit, columns_slot_);
  g(VOp::g_andi, kLimit, int64_t(-kLanes));
  code_.jump(tail, Cond::equal);
  code_.add({.op = VOp::align_here, .value = 32});
  int32_t begin = code_.position();
  code_.place(head);
  step();
  g(VOp::g_addi, Gpr::rcx, int64_t(kLanes));
  g(VOp::g_cmp, Gpr::rcx, kLimit);
  code_.jump(head, Cond::less);
  code_.loops.push_back({begin, code_.position()});
  code_.place(tail);
  g(VOp::g_cmpm, Gpr::rcx, Mem::frame(columns_slot_));
  code_.jump(done, Cond::equal);
  masked_ = true;
  make_tail();
  step();
  masked_ = false;
  code_.place(done);
}

}  // namespace ingot::codegen::x86
