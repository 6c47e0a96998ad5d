#include "codegen/x86/values.h"

#include <algorithm>
#include <cstddef>

#include "base/error.h"
#include "codegen/x86/arithmetic.h"
#include "codegen/x86/lanes.h"

namespace ingot::codegen::x86 {

Values::Values(const Analysis& analysis, Vectors& vectors, Frame& frame, Memory& memory)
    : analysis_(analysis),
      v_(vectors),
      code_(vectors.code()),
      frame_(frame),
      memory_(memory),
      known_(static_cast<size_t>(Level::column) + 1, Known(analysis.size())),
      uses_(analysis.size()),
      reduced_(analysis.kernel().reductions.size()) {}

void Values::emit_call_level() {
  for (Value v = 0; v < analysis_.size(); ++v) {
    const Node& n = analysis_.node(v);
    if (analysis_.level(v) != Level::call || (n.op == Op::constant && n.type != Type::mask)) continue;
    if (n.region && analysis_.region_level(n.region) == Level::call) continue;
    emit_node(v);
  }
}

void Values::emit_row_level(const std::vector<bool>& live) {
  row_live_ = live;
  for (Value v = 0; v < analysis_.size(); ++v) {
    const Node& n = analysis_.node(v);
    if (!live[v] || analysis_.level(v) != Level::row || known(Level::row).has[v]) continue;
    if (n.region && analysis_.region_level(n.region) == Level::row) continue;
    emit_node(v);
  }
}

void Values::begin_body(const std::vector<Value>& roots, const std::vector<bool>& live) {
  live_ = live;
  uses_.assign(uses_.size(), 0);
  for (Value v : roots) ++uses_[v];
  for (Value v = 0; v < analysis_.size(); ++v)
    if (in_body(v) && !analysis_.fused(v)) {
      const Node& n = analysis_.node(v);
      for (Value o : {n.a, n.b, n.c})
        if (o != kNone) ++uses_[o];
    }
}

void Values::begin_step() {
  known(Level::column).clear();
  for (const Kept& kept : kept_)
    if (kept.column == (frame_.tail() ? kTail : frame_.column_offset())) set(kept.value, kept.vector);
}

void Values::keep_same_rows(int64_t first, int64_t columns, int room) {
  const Kernel& kernel = analysis_.kernel();
  for (Value v = 0; v < analysis_.size(); ++v) {
    const Node& n = analysis_.node(v);
    if (n.op != Op::load || n.a != kNone || n.region || !in_body(v) || !kernel.buffers[n.imm].same_rows) continue;
    if (std::any_of(kept_.begin(), kept_.end(), [v](const Kept& kept) { return kept.value == v; })) continue;
    const int64_t lanes = v_.lanes(), end = first + columns / lanes * lanes;
    if ((room -= static_cast<int>((end - first) / lanes) * v_.parts_of(n.type)) < 0) break;
    for (int64_t column = first; column < end; column += lanes) {
      frame_.set_column_offset(column);
      Vector vector = memory_.load(v, nullptr, false);
      v_.force(vector);
      keep(v, column, vector);
    }
  }
  frame_.set_column_offset(0);
}

void Values::keep(Value v, int64_t column, const Vector& vector) {
  for (Kept& kept : kept_)
    if (kept.value == v && kept.column == column) return void(kept.vector = vector);
  kept_.push_back({v, column, vector});
}

Vector& Values::value(Value v) {
  Known& at = known(analysis_.level(v));
  if (!at.has[v]) {
    INGOT_CHECK(analysis_.is_leaf(v), "a value is used before it is computed");
    set(v, leaf(v));
  }
  return at.vectors[v];
}

void Values::set(Value v, const Vector& result) {
  Known& at = known(analysis_.level(v));
  at.vectors[v] = result;
  at.has[v] = true;
}

Vector Values::leaf(Value v) {
  const Node& n = analysis_.node(v);
  // One reader, which runs whenever this is loaded, can take it from memory.
  const bool one_reader = uses_[v] == 1 && region_ == n.region;
  switch (n.op) {
    case Op::constant:
      return v_.constant(n.type, n.imm);
    case Op::scalar:
      frame_.load_field(Gpr::rax, offsetof(KernelFrame, scalars));
      code_.load(Gpr::rax, Mem::at(Gpr::rax, 8 * static_cast<int64_t>(n.imm)));
      return broadcast(v_, n.type, Gpr::rax);
    case Op::load:
      return memory_.load(v, analysis_.uniform_index(v) == kNone ? operand(n.a) : nullptr, one_reader);
    case Op::local:
      return memory_.load_local(v, one_reader);
    case Op::index:
      return index(n.imm);
    default:
      return reduced_[n.imm];
  }
}

Vector Values::index(uint64_t dim) {
  if (dim == 1) {
    code_.load(Gpr::rax, frame_.at(Slot::row_index));
  } else if (dim > 1) {
    frame_.load_field(Gpr::rax, offsetof(KernelFrame, outer_index));
    code_.load(Gpr::rax, Mem::at(Gpr::rax, 8 * static_cast<int64_t>(dim - 2)));
  }
  if (dim > 0) return broadcast(v_, Type::i64, Gpr::rax);
  Vector lanes = lane_numbers(v_, Type::i64);
  code_.g(VOp::g_mov, Gpr::rax, Gpr::rcx);
  code_.g(VOp::g_addm, Gpr::rax, frame_.at(Slot::column_index));
  if (frame_.column_offset()) code_.g(VOp::g_addi, Gpr::rax, frame_.column_offset());
  Vector start = broadcast(v_, Type::i64, Gpr::rax);
  return binary(v_, Op::add, start, lanes);
}

void Values::emit_node(Value v) {
  if (analysis_.fused(v)) return;
  if (analysis_.is_leaf(v)) {
    value(v);
    return;
  }
  const Node& n = analysis_.node(v);
  if (n.op == Op::rare) return emit_rare(v);
  if (analysis_.picks_by_comparison(n) && analysis_.fused(n.a)) {
    const bool least = analysis_.node(n.a).a == n.b;
    set(v, pick(v_, least, value(n.b), value(n.c)));
    return;
  }
  Vector *a = operand(n.a), *b = operand(n.b), *c = operand(n.c);
  const bool halves =
      n.op == Op::mul && n.type == Type::i64 && analysis_.has_32_bits(n.a) && analysis_.has_32_bits(n.b);
  set(v, halves ? multiply_u32(v_, *a, *b) : compute(v_, n, a, b, c));
}

void Values::emit_rare(Value v) {
  const Node& n = analysis_.node(v);
  const uint16_t region = static_cast<uint16_t>(n.imm);
  const Level level = analysis_.level(v);
  // Other nodes of the region are hoisted out of it, or not needed.
  auto inside = [&](Value u) {
    return analysis_.node(u).region == region && analysis_.level(u) == level &&
           (level == Level::call || (level == Level::row ? row_live_ : live_)[u]);
  };
  Vector& mask = value(n.a);
  Vector& usual = value(n.b);
  // What the region reads from outside must exist on both paths.
  for (Value u = 0; u < v; ++u) {
    if (!inside(u)) continue;
    const Node& m = analysis_.node(u);
    for (Value o : {m.a, m.b, m.c})
      if (o != kNone && !inside(o) && !analysis_.fused(o)) v_.force(value(o));
  }
  if (!inside(n.c)) v_.force(value(n.c));
  Vector result = v_.blank(n.type, level != Level::column);
  v_.copy(result, usual);

  int64_t skip = code_.label();
  if (v_.avx512()) {
    code_.add({.op = VOp::k_test, .a = v_.narrow_mask(mask)[0]});
  } else {
    bool wide = mask.parts == 0;
    VReg any = wide ? mask.wide[0] : mask.part[0].reg;
    for (int p = 1; !mask.uniform && p < v_.parts_of(wide ? Type::f64 : Type::mask); ++p)
      any = v_.emit(VOp::vor, any, wide ? mask.wide[p] : mask.part[p].reg);
    code_.add({.op = VOp::v_test, .width = 32, .a = any});
  }
  code_.jump(skip, Cond::equal);
  int32_t begin = code_.position();
  v_.keep_mask_forms = false;
  region_ = region;
  for (Value u = 0; u < v; ++u)
    if (inside(u) && !analysis_.is_leaf(u)) emit_node(u);
  Vector chosen = select(v_, mask, value(n.c), result);
  v_.copy(result, chosen);
  region_ = 0;
  v_.keep_mask_forms = true;
  code_.cold.push_back({begin, code_.position()});
  code_.place(skip);
  if (n.type == Type::mask && level != Level::column) result.wide[0] = result.part[0].reg;
  set(v, result);
}

}  // namespace ingot::codegen::x86
