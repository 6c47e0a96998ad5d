#include "codegen/x86/rows.h"

#include <algorithm>
#include <cstddef>

#include "base/canonical_order.h"

namespace ingot::codegen::x86 {
namespace {
using canonical::kBlock;
constexpr int kShortSteps = 4;  // of a short body that sums, in one round of its loop

std::vector<Accumulator*> pointers(std::vector<Accumulator>& own) {
  std::vector<Accumulator*> out;
  for (Accumulator& a : own) out.push_back(&a);
  return out;
}

std::vector<Accumulator*> with(std::vector<Accumulator>& plain, std::vector<Accumulator>& own) {
  std::vector<Accumulator*> all = pointers(plain);
  for (Accumulator& a : own) all.push_back(&a);
  return all;
}

}  // namespace

struct Rows::Plan {
  PhasePlan body;
  std::vector<Stream*> streams;
  std::vector<bool> row_live;  // what is stored once a row needs
};

Rows::Rows(Emitter& emitter)
    : k_(emitter.analysis.kernel()),
      code_(emitter.vectors.code()),
      e_(emitter),
      splits_(!k_.reductions.empty() && k_.known_columns == 0) {}

void Rows::emit() {
  begin_rows();
  std::vector<Plan> plans = plan_phases();
  const Mem& rows_left = e_.frame.at(Slot::rows_left);
  int64_t end = code_.label();
  code_.add({.op = VOp::g_cmpi_m, .mem = rows_left, .value = 0});
  code_.jump(end, Cond::less_equal);
  const bool resident = keep_streams_in_registers(plans);
  if (resident && plans.size() == 1 && is_short_row(plans.front().body.phase)) {
    code_.g(VOp::g_imm, Gpr::rcx, 0);
    e_.body.begin(plans.front().body);
    e_.values.keep_same_rows(0, k_.known_columns, e_.vectors.avx512() ? 16 : 4);  // the others are for the body
  }
  const Loop loop = code_.begin_loop();
  for (size_t number = 0; number < plans.size(); ++number) {
    const Plan& plan = plans[number];
    if (!plan.body.roots.empty()) {
      e_.body.begin_row(plan.body, plan.streams, resident);
      phase_loop(plan.body.phase, static_cast<int64_t>(number), end);
    }
    e_.values.emit_row_level(plan.row_live);
    const int64_t stored = code_.label();
    if (splits_ && !plan.body.phase.row_stores.empty()) {
      code_.add({.op = VOp::g_cmpi_m, .mem = last_phase_, .value = KernelFrame::kToTheEnd});
      code_.jump(stored, Cond::not_equal);
    }
    for (const Store& s : plan.body.phase.row_stores) e_.memory.store_row(s.buffer, e_.values.value(s.value));
    code_.place(stored);
  }
  advance_row();
  code_.add({.op = VOp::g_addi_to, .mem = rows_left, .value = -1});
  code_.end_loop(loop, Cond::not_equal);
  code_.place(end);
}

/// Local row buffers lie side by side, each of the columns rounded up; behind them the stack of subtrees. Of a row
/// split: the phases to run.
void Rows::begin_rows() {
  e_.frame.load_field(Gpr::rsi, offsetof(KernelFrame, scratch), Gpr::rdi);
  for (uint32_t l = 0; l < k_.locals.size(); ++l) {
    code_.store(e_.streams.get(l, true).slot, Gpr::rsi);
    code_.load(Gpr::rax, e_.frame.at(Slot::columns));
    code_.g(VOp::g_addi, Gpr::rax, kLanes - 1);
    code_.g(VOp::g_andi, Gpr::rax, -kLanes);
    int64_t bytes = size_of(k_.locals[l]);
    if (bytes > 1) code_.g(VOp::g_shli, Gpr::rax, bytes == 8 ? 3 : 2);
    code_.g(VOp::g_add, Gpr::rsi, Gpr::rax);
  }
  code_.store(e_.frame.at(Slot::tree), Gpr::rsi);
  if (!splits_) return;
  for (auto [slot, offset] : {std::pair(&first_phase_, offsetof(KernelFrame, first_phase)),
                              std::pair(&last_phase_, offsetof(KernelFrame, last_phase))}) {
    *slot = e_.frame.reserve();
    code_.load(Gpr::rax, Mem::at(Gpr::rdi, static_cast<int64_t>(offset)));
    code_.store(*slot, Gpr::rax);
  }
}

std::vector<Rows::Plan> Rows::plan_phases() {
  std::vector<Plan> plans;
  for (const Phase& phase : k_.phases) {
    PhasePlan body(k_, phase);
    std::vector<Stream*> streams = e_.streams.used_by(phase, body.live);
    plans.push_back({std::move(body), std::move(streams), find_live(k_, row_roots(phase))});
  }
  return plans;
}

bool Rows::keep_streams_in_registers(const std::vector<Plan>& plans) {
  std::vector<Stream*> all;
  for (const Plan& plan : plans) all.insert(all.end(), plan.streams.begin(), plan.streams.end());
  return e_.streams.keep_in_registers(all);
}

void Rows::advance_row() {
  e_.streams.advance_row();
  if (std::any_of(k_.nodes.begin(), k_.nodes.end(), [](const Node& n) { return n.op == Op::index && n.imm == 1; }))
    code_.add({.op = VOp::g_addi_to, .mem = e_.frame.at(Slot::row_index), .value = 1});
}

/// `end`: where a split reduction leaves.
void Rows::phase_loop(const Phase& phase, int64_t number, int64_t end) {
  Accumulators plain, tree;
  for (uint32_t r : phase.reductions) {
    const Reduction& reduction = k_.reductions[r];
    (e_.reductions.in_tree(reduction) ? tree : plain).push_back(e_.reductions.accumulator(reduction));
  }
  const int64_t known = code_.label(), joined = code_.label();
  if (splits_) {
    code_.add({.op = VOp::g_cmpi_m, .mem = first_phase_, .value = number});
    code_.jump(known, Cond::greater);
  }
  for (Accumulator& a : plain) e_.reductions.reset(a);
  code_.g(VOp::g_imm, Gpr::rcx, 0);
  if (tree.empty()) {
    plain_loop(phase, plain);
  } else {
    tree_loop(plain, tree);
  }
  if (splits_) {
    code_.add({.op = VOp::g_cmpi_m, .mem = last_phase_, .value = number});
    code_.jump(joined, Cond::not_equal);
    int32_t begin = code_.position();
    e_.reductions.store_parts(with(plain, tree));
    code_.jump(end);
    code_.place(known);
    e_.reductions.load_parts(with(plain, tree));
    code_.cold.push_back({begin, code_.position()});
    code_.place(joined);
  }
  for (Accumulator* a : with(plain, tree)) e_.reductions.finish(*a);
}

// Several steps at a time, each into its own partial accumulators, where their order does not matter and one step is
// short.
int Rows::side_by_side(const Accumulators& all) const {
  const Vectors& v = e_.vectors;
  int vectors = 0, masks = 0;
  for (const Accumulator& a : all) {
    if (a.index.parts > 0) return 1;
    (a.value.type == Type::mask ? masks : vectors) += a.value.parts;
    if (e_.reductions.keeps_nan_apart(*a.reduction))
      masks += v.parts_of(size_of(a.value.type) == 8 ? Type::f64 : Type::mask);
  }
  if (all.empty() || !e_.body.is_short()) return 1;
  if (!v.avx512()) vectors += masks;  // vector masks
  for (int steps : {4, 2})
    if (steps * vectors <= (v.avx512() ? 16 : 8) && (!v.avx512() || steps * masks <= 4)) return steps;
  return 1;
}

bool Rows::is_short_row(const Phase& phase) const {
  return k_.known_columns > 0 && k_.known_columns <= 4 * kLanes && phase.reductions.empty();
}

/// A row of few columns, as many as is known, without a loop.
bool Rows::short_row(const Phase& phase) {
  if (!is_short_row(phase)) return false;
  const int64_t whole = k_.known_columns / kLanes * kLanes;
  if (whole > 0) e_.body.mixed_steps({}, static_cast<int>(whole / kLanes));
  if (whole == k_.known_columns) return true;
  code_.g(VOp::g_imm, Gpr::rcx, whole);
  e_.body.tail_step({});
  return true;
}

void Rows::whole_steps(int64_t columns, int64_t none) {
  code_.load(kLimit, e_.frame.at(Slot::columns));
  code_.g(VOp::g_andi, kLimit, -columns);
  code_.jump(none, Cond::equal);
}

void Rows::plain_loop(const Phase& phase, Accumulators& all) {
  if (short_row(phase)) return;
  if (const int steps = side_by_side(all); steps > 1) {
    int64_t few = code_.label();
    whole_steps(kLanes * steps, few);
    std::vector<Accumulators> others(static_cast<size_t>(steps - 1));
    for (auto& own : others)
      for (const Accumulator& a : all) {
        own.push_back(e_.reductions.accumulator(*a.reduction));
        e_.reductions.reset(own.back());
      }
    e_.body.loop(kLanes * steps, [&] {
      for (int j = 0; j < steps; ++j) e_.body.step(pointers(j ? others[static_cast<size_t>(j - 1)] : all), j * kLanes);
    });
    for (auto& own : others)
      for (size_t i = 0; i < all.size(); ++i) e_.reductions.merge(all[i], own[i]);
    code_.place(few);
  }
  if (const int count = e_.body.chains(); count > 1) {
    int64_t few = code_.label();
    whole_steps(kLanes * count, few);
    e_.body.loop(kLanes * count, [&] { e_.body.mixed_steps(pointers(all), count); });
    code_.place(few);
  }
  int64_t tail = code_.label(), done = code_.label();
  code_.load(kLimit, e_.frame.at(Slot::columns));
  code_.g(VOp::g_andi, kLimit, -kLanes);
  code_.g(VOp::g_cmp, Gpr::rcx, kLimit);
  code_.jump(tail, Cond::equal);
  e_.body.loop(kLanes, [&] { e_.body.step(pointers(all)); });
  code_.place(tail);
  code_.g(VOp::g_cmpm, Gpr::rcx, e_.frame.at(Slot::columns));
  code_.jump(done, Cond::equal);
  e_.body.tail_step(pointers(all));
  code_.place(done);
}

// Memory is read straight through: some processors read several streams at half the speed of one. The chains of
// additions of neighbouring blocks overlap by themselves, as one is not long enough to fill the window of waiting
// instructions.
void Rows::tree_loop(Accumulators& plain, Accumulators& tree) {
  int64_t last = code_.label(), tail = code_.label(), whole = code_.label();
  e_.reductions.begin_tree();
  const Mem& tail_count = e_.frame.at(Slot::tail_count);
  const Loop loop = code_.begin_loop();
  for (Accumulator& a : tree) e_.reductions.reset(a);
  // rax: columns of this block; the last 0..15 of them are the masked end.
  code_.load(Gpr::rax, e_.frame.at(Slot::columns));
  code_.g(VOp::g_sub, Gpr::rax, Gpr::rcx);
  code_.g(VOp::g_imm, Gpr::rbx, kBlock);
  code_.g(VOp::g_cmp, Gpr::rax, Gpr::rbx);
  code_.add({.op = VOp::g_cmov, .cond = Cond::greater, .g = Gpr::rax, .h = Gpr::rbx});
  code_.g(VOp::g_mov, Gpr::rbx, Gpr::rax);
  code_.g(VOp::g_andi, Gpr::rbx, kLanes - 1);
  code_.store(tail_count, Gpr::rbx);
  code_.g(VOp::g_sub, Gpr::rax, Gpr::rbx);
  code_.g(VOp::g_lea, kLimit, Mem::at(Gpr::rax, Gpr::rcx, 1));
  const int in_a_row = e_.body.is_short() ? kShortSteps : 1;
  if (const int count = std::max(in_a_row, e_.body.chains()); count > 1) {
    int64_t few = code_.label();
    code_.g(VOp::g_addi, kLimit, -kLanes * (count - 1));
    code_.g(VOp::g_cmp, Gpr::rcx, kLimit);
    code_.jump(few, Cond::greater_equal);
    e_.body.loop(kLanes * count, [&] {
      if (in_a_row == 1) return e_.body.mixed_steps(with(plain, tree), count);
      for (int j = 0; j < count; ++j) e_.body.step(with(plain, tree), j * kLanes);
    });
    code_.place(few);
    code_.g(VOp::g_addi, kLimit, kLanes * (count - 1));
  }
  code_.g(VOp::g_cmp, Gpr::rcx, kLimit);
  code_.jump(tail, Cond::equal);
  e_.body.loop(kLanes, [&] { e_.body.step(with(plain, tree)); });
  code_.place(tail);
  code_.add({.op = VOp::g_cmpi_m, .mem = tail_count, .value = 0});
  code_.jump(whole, Cond::equal);
  e_.body.tail_step(with(plain, tree));
  code_.jump(last);
  code_.place(whole);
  code_.g(VOp::g_cmpm, Gpr::rcx, e_.frame.at(Slot::columns));
  code_.jump(last, Cond::greater_equal);
  e_.reductions.push_block(tree);
  code_.end_loop(loop);
  code_.place(last);
  e_.reductions.merge_stack(tree);
}

}  // namespace ingot::codegen::x86
