// Form::rows: for each row, each phase, a loop over the columns in steps of 16 with a masked end.
#include <bit>
#include <cstddef>

#include "codegen/x86/lower.h"

namespace ingot::codegen::x86 {
namespace {
constexpr int64_t kBlock = 256;  // columns of a block of the canonical order
constexpr int kMostSlots = 256;  // registers that live at once in steps side by side: 16 KiB of the frame

std::vector<Accumulator*> with(std::vector<Accumulator>& plain, std::vector<Accumulator>& own) {
  std::vector<Accumulator*> all;
  for (auto* group : {&plain, &own})
    for (Accumulator& a : *group) all.push_back(&a);
  return all;
}

}  // namespace

struct Lowering::PhasePlan {
  const Phase* phase;
  std::vector<Value> roots, row_roots;  // evaluated at each column, and once a row
  std::vector<bool> live;               // what the roots need
  std::vector<Stream*> streams;
};

void Lowering::rows() {
  prologue();
  // Local row buffers lie side by side, each of the columns rounded up; behind them the stack of subtrees.
  load_slot(Gpr::rdi, frame_slot_);
  g(VOp::g_load, Gpr::rsi, Mem::at(Gpr::rdi, offsetof(KernelFrame, scratch)));
  for (uint32_t l = 0; l < k_.locals.size(); ++l) {
    store_slot(stream(l, true).slot, Gpr::rsi);
    load_slot(Gpr::rax, columns_slot_);
    g(VOp::g_addi, Gpr::rax, int64_t(kLanes - 1));
    g(VOp::g_andi, Gpr::rax, int64_t(-kLanes));
    int64_t bytes = size_of(k_.locals[l]);
    if (bytes > 1) g(VOp::g_shli, Gpr::rax, int64_t(bytes == 8 ? 3 : 2));
    g(VOp::g_add, Gpr::rsi, Gpr::rax);
  }
  store_slot(tree_slot_, Gpr::rsi);
  in_pieces_ = !k_.reductions.empty() && k_.known_columns == 0;
  if (in_pieces_)
    for (auto [slot, offset] : {std::pair(&first_phase_, offsetof(KernelFrame, first_phase)),
                                std::pair(&last_phase_, offsetof(KernelFrame, last_phase))}) {
      *slot = code_.reserve(8);
      g(VOp::g_load, Gpr::rax, Mem::at(Gpr::rdi, static_cast<int64_t>(offset)));
      store_slot(*slot, Gpr::rax);
    }

  std::vector<PhasePlan> plans;
  for (const Phase& phase : k_.phases) {
    PhasePlan plan{&phase, {}, {}, {}, {}};
    for (const Store& s : phase.stores) plan.roots.push_back(s.value);
    for (const Store& s : phase.local_stores) plan.roots.push_back(s.value);
    for (uint32_t r : phase.reductions) plan.roots.push_back(k_.reductions[r].value);
    for (const Store& s : phase.row_stores) plan.row_roots.push_back(s.value);
    plan.live = needed(plan.roots);
    plan.streams = streams_of(plan.live, phase);
    plans.push_back(plan);
  }
  int64_t head = code_.label(), end = code_.label();
  code_.add({.op = VOp::g_cmpi_m, .mem = Mem::frame(rows_left_), .value = 0});
  code_.jump(end, Cond::less_equal);
  const bool resident = keep_streams_in_registers(plans);
  int32_t begin = code_.position();
  code_.place(head);
  for (size_t number = 0; number < plans.size(); ++number) {
    const PhasePlan& plan = plans[number];
    if (!plan.roots.empty()) {
      live_ = plan.live;
      count_uses(live_, plan.roots);
      // What is stored as it was loaded is loaded before anything is stored: it may be the same memory.
      if (plan.phase->stores.size() > 1)
        for (const Store& s : plan.phase->stores) ++uses_[s.value];
      emit_row_level(live_);
      if (!resident) {
        next_register_ = 0;
        assign_registers(plan.streams);
      }
      load_streams(plan.streams, resident);
      phase_loop(*plan.phase, static_cast<int64_t>(number), end);
    }
    emit_row_level(needed(plan.row_roots));
    const int64_t stored = code_.label();
    if (in_pieces_ && !plan.row_roots.empty()) {
      code_.add({.op = VOp::g_cmpi_m, .mem = Mem::frame(last_phase_), .value = KernelFrame::kToTheEnd});
      code_.jump(stored, Cond::not_equal);
    }
    for (const Store& s : plan.phase->row_stores) row_store(s);
    code_.place(stored);
  }
  advance_row();
  code_.add({.op = VOp::g_addi_to, .mem = Mem::frame(rows_left_), .value = -1});
  code_.jump(head, Cond::not_equal);
  code_.loops.push_back({begin, code_.position()});
  code_.place(end);
}

/// If there is a register for every stream of every phase, they stay there from row to row.
bool Lowering::keep_streams_in_registers(std::vector<PhasePlan>& plans) {
  std::vector<Stream*> all;
  for (PhasePlan& plan : plans)
    for (Stream* s : plan.streams)
      if (wants_register(*s) && std::find(all.begin(), all.end(), s) == all.end()) all.push_back(s);
  if (all.size() > std::size(kStreamRegisters)) return false;
  next_register_ = 0;
  assign_registers(all);
  for (Stream* s : all) {
    if (s->index == kNone) load_slot(s->reg, s->slot);
    s->moves = !s->local && s->index == kNone;
  }
  return true;
}

void Lowering::advance_row() {
  for (uint32_t b = 0; b < k_.buffers.size(); ++b) {
    bool slot_is_read = true;
    for (const Stream& s : streams_)
      if (s.moves && s.number == b) {
        g(VOp::g_addm, s.reg, Mem::frame(row_stride_slots_[b]));
        slot_is_read = std::any_of(k_.nodes.begin(), k_.nodes.end(),
                                   [&](const Node& n) { return n.op == Op::load && n.imm == b && n.a != kNone; });
        for (const Phase& phase : k_.phases)
          for (const Store& store : phase.row_stores) slot_is_read |= store.buffer == b;
      }
    if (!slot_is_read) continue;
    load_slot(Gpr::rax, row_stride_slots_[b]);
    code_.add({.op = VOp::g_add_to, .g = Gpr::rax, .mem = Mem::frame(row_slots_[b])});
  }
  if (std::any_of(k_.nodes.begin(), k_.nodes.end(), [](const Node& n) { return n.op == Op::index && n.imm == 1; }))
    code_.add({.op = VOp::g_addi_to, .mem = Mem::frame(row_index_), .value = 1});
}

/// `end`: where a row that is done in pieces leaves.
void Lowering::phase_loop(const Phase& phase, int64_t number, int64_t end) {
  std::vector<Accumulator> plain, tree;
  for (uint32_t r : phase.reductions) {
    const Reduction& reduction = k_.reductions[r];
    (in_tree(reduction) ? tree : plain).push_back(accumulator(reduction));
  }
  const int64_t known = code_.label(), joined = code_.label();
  if (in_pieces_) {
    code_.add({.op = VOp::g_cmpi_m, .mem = Mem::frame(first_phase_), .value = number});
    code_.jump(known, Cond::greater);
  }
  for (Accumulator& a : plain) reset(a);
  g(VOp::g_imm, Gpr::rcx, int64_t(0));
  if (tree.empty()) {
    plain_loop(phase, plain);
  } else {
    tree_loop(phase, plain, tree);
  }
  if (in_pieces_) {
    code_.add({.op = VOp::g_cmpi_m, .mem = Mem::frame(last_phase_), .value = number});
    code_.jump(joined, Cond::not_equal);
    int32_t begin = code_.position();
    store_parts(with(plain, tree));
    code_.jump(end);
    code_.place(known);
    load_parts(with(plain, tree));
    code_.cold.push_back({begin, code_.position()});
    code_.place(joined);
  }
  for (auto* group : {&plain, &tree})
    for (Accumulator& a : *group) reduced_[static_cast<size_t>(a.reduction - k_.reductions.data())] = finish(a);
}

/// Column-level operations of the body that always run.
int Lowering::work() const {
  int work = 0;
  for (Value v = 0; v < k_.nodes.size(); ++v)
    work += live_[v] && level_[v] == Level::column && !is_leaf(v) && node(v).region == 0;
  return work;
}

// How many steps run side by side where each is one long chain of operations: the processor's window of waiting
// instructions is shorter than a few of them in a row.
int Lowering::chains() const {
  constexpr int kLong = 56;
  if (!v_.avx512() || work() <= 6) return 1;
  int most = 1;  // registers of a value
  for (Value v = 0; v < k_.nodes.size(); ++v)
    if (live_[v] && level_[v] == Level::column) most = std::max(most, v_.parts_of(node(v).type));
  const int fitting = std::max(1, kMostSlots / std::max(1, live_at_once()));
  return std::max(1, std::min((work() < kLong ? 4 : 8) / most, static_cast<int>(std::bit_floor(unsigned(fitting)))));
}

/// Registers of the column-level values of one step that live at once, at most.
int Lowering::live_at_once() const {
  int live = 0, most = 0;
  std::vector<bool> seen(k_.nodes.size());
  for (Value v = static_cast<Value>(k_.nodes.size()); v-- > 0;) {
    if (!live_[v] || level_[v] != Level::column) continue;
    if (seen[v]) live -= v_.parts_of(node(v).type);
    for (Value o : {node(v).a, node(v).b, node(v).c})
      if (o != kNone && level_[o] == Level::column && !seen[o]) {
        seen[o] = true;
        live += v_.parts_of(node(o).type);
      }
    most = std::max(most, live);
  }
  return most;
}

/// Fetches what comes soon, while there is much to compute: in a kernel of one phase the same streams further on, else
/// the row behind this one and where this row's results will go.
void Lowering::fetch_ahead(int count) {
  constexpr int64_t kAhead = 1024;
  if (k_.known_columns) return;  // what comes next is another row
  for (const Stream& s : streams_) {
    if (!s.moves || k_.buffers[s.number].access != Access::dense) continue;
    const int64_t bytes = ingot::size_of(k_.buffers[s.number].dtype);
    Gpr base = s.reg;
    if (k_.phases.size() > 1 && !k_.buffers[s.number].written) {
      base = Gpr::rax;
      g(VOp::g_mov, base, s.reg);
      g(VOp::g_addm, base, Mem::frame(row_stride_slots_[s.number]));
    }
    for (int64_t at = 0; at < count * kLanes * bytes; at += 64)
      code_.add({.op = VOp::prefetch,
                 .mem = Mem::at(base, Gpr::rcx, static_cast<int>(bytes), at + (k_.phases.size() > 1 ? 0 : kAhead))});
  }
}

void Lowering::bodies(const Phase& phase, const std::vector<Accumulator*>& accumulators, int count) {
  fetch_ahead(count);
  std::vector<int32_t> starts;
  for (int j = 0; j < count; ++j) {
    column_offset_ = j * kLanes;
    starts.push_back(code_.position());
    body(phase, accumulators);
  }
  column_offset_ = 0;
  if (count * live_at_once() <= kMostSlots) code_.interleave(starts);
}

// Several steps at a time, each into its own partial results, where their order does not matter and one step is short.
int Lowering::side_by_side(const std::vector<Accumulator>& all) const {
  int vectors = 0, masks = 0;
  for (const Accumulator& a : all) {
    if (a.index.parts > 0) return 1;
    (a.value.type == Type::mask ? masks : vectors) += a.value.parts;
    if (keeps_nan_apart(*a.reduction)) masks += v_.parts_of(size_of(a.value.type) == 8 ? Type::f64 : Type::mask);
  }
  if (all.empty() || work() > 6) return 1;
  if (!v_.avx512()) vectors += masks;  // vector masks
  for (int steps : {4, 2})
    if (steps * vectors <= (v_.avx512() ? 16 : 8) && (!v_.avx512() || steps * masks <= 4)) return steps;
  return 1;
}

/// A row of few columns, as many as is known, without a loop.
bool Lowering::short_row(const Phase& phase, const std::vector<Accumulator>& all) {
  constexpr int64_t kMost = 4 * kLanes;
  if (k_.known_columns == 0 || k_.known_columns > kMost || !all.empty()) return false;
  const int64_t whole = k_.known_columns / kLanes * kLanes;
  if (whole > 0) bodies(phase, {}, static_cast<int>(whole / kLanes));
  if (whole == k_.known_columns) return true;
  g(VOp::g_imm, Gpr::rcx, whole);
  masked_body(phase, {});
  return true;
}

void Lowering::plain_loop(const Phase& phase, std::vector<Accumulator>& all) {
  if (short_row(phase, all)) return;
  auto pointers = [](std::vector<Accumulator>& own) {
    std::vector<Accumulator*> out;
    for (Accumulator& a : own) out.push_back(&a);
    return out;
  };
  auto loop = [&](int64_t step, auto once) {
    code_.add({.op = VOp::align_here, .value = 32});
    int64_t head = code_.label();
    int32_t begin = code_.position();
    code_.place(head);
    once();
    g(VOp::g_addi, Gpr::rcx, step);
    g(VOp::g_cmp, Gpr::rcx, kLimit);
    code_.jump(head, Cond::less);
    code_.loops.push_back({begin, code_.position()});
  };
  if (const int steps = side_by_side(all); steps > 1) {
    int64_t short_row = code_.label();
    load_slot(kLimit, columns_slot_);
    g(VOp::g_andi, kLimit, int64_t(-kLanes * steps));
    code_.jump(short_row, Cond::equal);
    std::vector<std::vector<Accumulator>> others(static_cast<size_t>(steps - 1));
    for (auto& own : others)
      for (const Accumulator& a : all) {
        own.push_back(accumulator(*a.reduction));
        reset(own.back());
      }
    loop(kLanes * steps, [&] {
      for (int j = 0; j < steps; ++j) {
        column_offset_ = j * kLanes;
        body(phase, pointers(j ? others[static_cast<size_t>(j - 1)] : all));
      }
      column_offset_ = 0;
    });
    for (auto& own : others)
      for (size_t i = 0; i < all.size(); ++i) merge(all[i], own[i]);
    code_.place(short_row);
  }
  int64_t tail = code_.label(), done = code_.label();
  if (const int count = chains(); count > 1) {
    int64_t short_row = code_.label();
    load_slot(kLimit, columns_slot_);
    g(VOp::g_andi, kLimit, int64_t(-kLanes * count));
    code_.jump(short_row, Cond::equal);
    loop(kLanes * count, [&] { bodies(phase, pointers(all), count); });
    code_.place(short_row);
  }
  load_slot(kLimit, columns_slot_);
  g(VOp::g_andi, kLimit, int64_t(-kLanes));
  g(VOp::g_cmp, Gpr::rcx, kLimit);
  code_.jump(tail, Cond::equal);
  loop(kLanes, [&] { body(phase, pointers(all)); });
  code_.place(tail);
  g(VOp::g_cmpm, Gpr::rcx, Mem::frame(columns_slot_));
  code_.jump(done, Cond::equal);
  masked_body(phase, pointers(all));
  code_.place(done);
}

// Blocks that are summed side by side hide the latency of addition; a body with much to do hides it by itself.
int Lowering::group_size(const std::vector<Accumulator>& tree) const {
  int registers = 0;
  for (const Accumulator& a : tree) registers += a.value.parts;
  if (work() > 6) return 1;
  const int limit = v_.avx512() ? 24 : 8;
  for (int size : {8, 4, 2})
    if (size * registers <= limit) return size;
  return 1;
}

/// Groups of `size` blocks, while there are as many; then to `fewer`, or to `last` where no column is left.
void Lowering::block_group(const Phase& phase, std::vector<Accumulator>& plain, std::vector<Accumulator>& tree,
                           int size, int64_t fewer, int64_t last) {
  std::vector<std::vector<Accumulator>> group(static_cast<size_t>(size));
  for (auto& own : group)
    for (const Accumulator& a : tree) own.push_back(accumulator(*a.reduction));
  int64_t group_head = code_.label(), head = code_.label();
  int32_t group_begin = code_.position();
  code_.place(group_head);
  load_slot(Gpr::rax, columns_slot_);
  g(VOp::g_sub, Gpr::rax, Gpr::rcx);
  g(VOp::g_cmpi, Gpr::rax, size * kBlock);
  code_.jump(fewer, Cond::less);
  for (auto& own : group)
    for (Accumulator& a : own) reset(a);
  code_.add({.op = VOp::g_lea, .g = kLimit, .mem = Mem::at(Gpr::rcx, kBlock)});
  code_.add({.op = VOp::align_here, .value = 32});
  int32_t begin = code_.position();
  code_.place(head);
  for (int j = 0; j < size; ++j) {
    column_offset_ = j * kBlock;
    body(phase, with(plain, group[static_cast<size_t>(j)]));
  }
  column_offset_ = 0;
  g(VOp::g_addi, Gpr::rcx, int64_t(kLanes));
  g(VOp::g_cmp, Gpr::rcx, kLimit);
  code_.jump(head, Cond::less);
  code_.loops.push_back({begin, code_.position()});
  g(VOp::g_addi, Gpr::rcx, (size - 1) * kBlock);
  int level = 0;
  for (int half = 1; half < size; half *= 2, ++level)
    for (int j = 0; j < size; j += 2 * half)
      for (size_t r = 0; r < tree.size(); ++r)
        combine(group[static_cast<size_t>(j)][r], group[static_cast<size_t>(j + half)][r].value, nullptr);
  for (size_t r = 0; r < tree.size(); ++r) v_.copy(tree[r].value, group[0][r].value);
  g(VOp::g_cmpm, Gpr::rcx, Mem::frame(columns_slot_));
  code_.jump(last, Cond::equal);
  push_blocks(tree, level);
  code_.jump(group_head);
  code_.loops.push_back({group_begin, code_.position()});
}

void Lowering::tree_loop(const Phase& phase, std::vector<Accumulator>& plain, std::vector<Accumulator>& tree) {
  int64_t block_head = code_.label(), last = code_.label();
  g(VOp::g_imm, Gpr::rax, int64_t(0));
  store_slot(blocks_, Gpr::rax);

  for (int size = group_size(tree); size > 1; size /= 2) {
    const int64_t fewer = code_.label();
    block_group(phase, plain, tree, size, fewer, last);
    code_.place(fewer);
  }

  int64_t head = code_.label(), tail = code_.label(), whole = code_.label();
  int32_t block_begin = code_.position();
  code_.place(block_head);
  for (Accumulator& a : tree) reset(a);
  // rax: columns of this block; the last 0..15 of them are the masked end.
  load_slot(Gpr::rax, columns_slot_);
  g(VOp::g_sub, Gpr::rax, Gpr::rcx);
  g(VOp::g_imm, Gpr::rbx, kBlock);
  g(VOp::g_cmp, Gpr::rax, Gpr::rbx);
  code_.add({.op = VOp::g_cmov, .cond = Cond::greater, .g = Gpr::rax, .h = Gpr::rbx});
  g(VOp::g_mov, Gpr::rbx, Gpr::rax);
  g(VOp::g_andi, Gpr::rbx, int64_t(kLanes - 1));
  store_slot(tail_count_, Gpr::rbx);
  g(VOp::g_sub, Gpr::rax, Gpr::rbx);
  code_.add({.op = VOp::g_lea, .g = kLimit, .mem = Mem::at(Gpr::rax, Gpr::rcx, 1)});
  if (const int count = chains(); count > 1) {
    int64_t few = code_.label(), chains_head = code_.label();
    g(VOp::g_addi, kLimit, int64_t(-kLanes * (count - 1)));
    g(VOp::g_cmp, Gpr::rcx, kLimit);
    code_.jump(few, Cond::greater_equal);
    code_.add({.op = VOp::align_here, .value = 32});
    int32_t begin = code_.position();
    code_.place(chains_head);
    bodies(phase, with(plain, tree), count);
    g(VOp::g_addi, Gpr::rcx, int64_t(kLanes * count));
    g(VOp::g_cmp, Gpr::rcx, kLimit);
    code_.jump(chains_head, Cond::less);
    code_.loops.push_back({begin, code_.position()});
    code_.place(few);
    g(VOp::g_addi, kLimit, int64_t(kLanes * (count - 1)));
  }
  g(VOp::g_cmp, Gpr::rcx, kLimit);
  code_.jump(tail, Cond::equal);
  code_.add({.op = VOp::align_here, .value = 32});
  int32_t begin = code_.position();
  code_.place(head);
  body(phase, with(plain, tree));
  g(VOp::g_addi, Gpr::rcx, int64_t(kLanes));
  g(VOp::g_cmp, Gpr::rcx, kLimit);
  code_.jump(head, Cond::less);
  code_.loops.push_back({begin, code_.position()});
  code_.place(tail);
  code_.add({.op = VOp::g_cmpi_m, .mem = Mem::frame(tail_count_), .value = 0});
  code_.jump(whole, Cond::equal);
  masked_body(phase, with(plain, tree));
  code_.jump(last);
  code_.place(whole);
  g(VOp::g_cmpm, Gpr::rcx, Mem::frame(columns_slot_));
  code_.jump(last, Cond::greater_equal);
  push_blocks(tree, 0);
  code_.jump(block_head);
  code_.loops.push_back({block_begin, code_.position()});
  code_.place(last);
  merge_stack(tree);
}

void Lowering::make_tail() {
  load_slot(Gpr::rax, columns_slot_);
  g(VOp::g_sub, Gpr::rax, Gpr::rcx);
  store_slot(tail_count_, Gpr::rax);
  tail_ = Vector();
  tail_.type = Type::mask;
  if (v_.avx512()) {
    g(VOp::g_imm, Gpr::rbx, int64_t(-1));
    g(VOp::g_bzhi, Gpr::rbx, Gpr::rax);
    tail_.parts = 1;
    tail_.part[0] = code_.mask();
    code_.add({.op = VOp::k_from_gpr, .g = Gpr::rbx, .dst = tail_.part[0].reg});
    return;
  }
  Vector count = broadcast_gpr(Type::i32, Gpr::rax), lanes;
  lanes.type = Type::i32;
  lanes.parts = v_.parts_of(Type::i32);
  for (int p = 0; p < lanes.parts; ++p) lanes.part[p] = code_.counting(4, 8 * p);
  tail_ = v_.compare(Op::lt, lanes, count);
}

void Lowering::masked_body(const Phase& phase, const std::vector<Accumulator*>& accumulators) {
  masked_ = true;
  make_tail();
  body(phase, accumulators);
  masked_ = false;
}

void Lowering::body(const Phase& phase, const std::vector<Accumulator*>& accumulators) {
  std::fill(has_column_.begin(), has_column_.end(), false);
  auto ready = [&](Value v) { return level_[v] != Level::column || has_column_[v]; };
  std::vector<bool> stored(phase.stores.size()), stored_local(phase.local_stores.size()), added(accumulators.size());
  std::vector<Value> loads;
  for (Value v = 0; v < k_.nodes.size(); ++v)
    if (live_[v] && (node(v).op == Op::load || node(v).op == Op::local)) loads.push_back(v);
  size_t loaded = 0;
  // Values leave their registers as soon as they are there; a store waits for the last load, which may be of the same
  // memory.
  auto flush = [&](bool all) {
    for (size_t i = 0; i < accumulators.size(); ++i)
      if (!added[i] && (all || ready(accumulators[i]->reduction->value))) {
        accumulate(*accumulators[i]);
        added[i] = true;
      }
    while (loaded < loads.size() && ready(loads[loaded])) ++loaded;
    if (!all && loaded < loads.size()) return;
    for (size_t i = 0; i < stored.size(); ++i)
      if (!stored[i] && (all || ready(phase.stores[i].value))) {
        store(phase.stores[i]);
        stored[i] = true;
      }
    for (size_t i = 0; i < stored_local.size(); ++i)
      if (!stored_local[i] && (all || ready(phase.local_stores[i].value))) {
        local_store(phase.local_stores[i]);
        stored_local[i] = true;
      }
  };
  for (Value v = 0; v < k_.nodes.size(); ++v) {
    const Node& n = node(v);
    if (!live_[v] || level_[v] != Level::column || is_leaf(v) || n.region) continue;
    emit_node(v);
    flush(false);
  }
  // Loads that are stored or reduced as they are.
  for (const Store& s : phase.stores) value(s.value);
  for (const Store& s : phase.local_stores) value(s.value);
  flush(true);
}

}  // namespace ingot::codegen::x86
