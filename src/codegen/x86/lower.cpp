#include "codegen/x86/lower.h"

#include <cstddef>

#include "base/error.h"

namespace ingot::codegen::x86 {

Lowering::Lowering(const Kernel& kernel, VCode& code) : k_(kernel), code_(code), v_(code) {
  size_t n = k_.nodes.size();
  for (auto* values : {&call_, &row_, &column_}) values->resize(n);
  for (auto* has : {&has_call_, &has_row_, &has_column_}) has->assign(n, false);
  uses_.resize(n);
  reduced_.resize(k_.reductions.size());
  lane_offsets_.resize(k_.buffers.size());
  index_scale_.resize(k_.buffers.size());
  analyse();
}

void Lowering::analyse() {
  uint64_t regions = 0;
  for (const Node& n : k_.nodes) {
    Level level = Level::call;
    for (Value o : {n.a, n.b, n.c})
      if (o != kNone) level = std::max(level, level_[o]);
    if (n.op == Op::local || (n.op == Op::index && n.imm == 0)) level = Level::column;
    if (n.op == Op::reduced || (n.op == Op::index && n.imm == 1)) level = std::max(level, Level::row);
    if (n.op == Op::load)
      level = std::max(level, k_.buffers[n.imm].access == Access::uniform ? Level::row : Level::column);
    level_.push_back(level);
    if (n.op == Op::rare) regions = std::max(regions, n.imm);
  }
  fused_.assign(k_.nodes.size(), false);
  for (const Node& n : k_.nodes)
    if (picks_by_comparison(n)) fused_[n.a] = true;
  for (const Node& n : k_.nodes) {
    const bool picks = picks_by_comparison(n);
    for (Value o : {n.a, n.b, n.c})
      if (o != kNone && !(picks && o == n.a)) fused_[o] = false;
  }
  for (const Reduction& r : k_.reductions) fused_[r.value] = false;
  for (const Phase& p : k_.phases)
    for (const auto* stores : {&p.stores, &p.local_stores, &p.row_stores})
      for (const Store& s : *stores) fused_[s.value] = false;
  region_level_.assign(regions + 1, Level::column);
  for (Value v = 0; v < k_.nodes.size(); ++v)
    if (node(v).op == Op::rare) region_level_[node(v).imm] = level_[v];
}

std::vector<bool> Lowering::needed(const std::vector<Value>& roots) const {
  std::vector<bool> live(k_.nodes.size());
  for (Value v : roots) live[v] = true;
  for (Value v = static_cast<Value>(k_.nodes.size()); v-- > 0;)
    if (live[v])
      for (Value o : {node(v).a, node(v).b, node(v).c})
        if (o != kNone) live[o] = true;
  return live;
}

/// x < y ? x : y and x < y ? y : x are the processor's minimum and maximum.
bool Lowering::picks_by_comparison(const Node& n) const {
  if (n.op != Op::select || (n.type != Type::f32 && n.type != Type::f64)) return false;
  const Node& m = node(n.a);
  return m.op == Op::lt && ((m.a == n.b && m.b == n.c) || (m.a == n.c && m.b == n.b));
}

bool Lowering::has_32_bits(Value v, int depth) const {
  constexpr int kDeepest = 4;
  const Node& n = node(v);
  auto below = [&](Value x, uint64_t limit) { return node(x).op == Op::constant && node(x).imm < limit; };
  switch (n.op) {
    case Op::constant:
      return n.imm >> 32 == 0;
    case Op::bit_and:
      return below(n.a, uint64_t{1} << 32) || below(n.b, uint64_t{1} << 32);
    case Op::shr:
      return node(n.b).op == Op::constant && !below(n.b, 32);
    case Op::bit_or:
    case Op::bit_xor:
      return depth < kDeepest && has_32_bits(n.a, depth + 1) && has_32_bits(n.b, depth + 1);
    default:
      return false;
  }
}

bool Lowering::is_leaf(Value v) const { return codegen::is_leaf(node(v).op); }

void Lowering::count_uses(const std::vector<bool>& live, const std::vector<Value>& roots) {
  std::fill(uses_.begin(), uses_.end(), 0);
  for (Value v : roots) ++uses_[v];
  for (Value v = 0; v < k_.nodes.size(); ++v)
    if (live[v] && !fused_[v] && level_[v] == Level::column)
      for (Value o : {node(v).a, node(v).b, node(v).c})
        if (o != kNone) ++uses_[o];
}

// rdi: the frame.
void Lowering::prologue() {
  for (int64_t* slot :
       {&frame_slot_, &columns_slot_, &rows_left_, &row_index_, &column_index_, &tail_count_, &blocks_, &tree_slot_})
    *slot = code_.reserve(8);
  auto field = [](size_t offset) { return Mem::at(Gpr::rdi, static_cast<int64_t>(offset)); };
  auto copy = [&](size_t offset, int64_t slot) {
    g(VOp::g_load, Gpr::rax, field(offset));
    store_slot(slot, Gpr::rax);
  };
  store_slot(frame_slot_, Gpr::rdi);
  copy(offsetof(KernelFrame, columns), columns_slot_);
  copy(offsetof(KernelFrame, rows), rows_left_);
  copy(offsetof(KernelFrame, row_index), row_index_);
  copy(offsetof(KernelFrame, column_index), column_index_);
  auto copy_array = [&](size_t offset, std::vector<int64_t>& slots, auto wanted) {
    slots.assign(k_.buffers.size(), -1);
    g(VOp::g_load, Gpr::rsi, field(offset));
    for (uint32_t b = 0; b < k_.buffers.size(); ++b) {
      if (!wanted(b)) continue;
      slots[b] = code_.reserve(8);
      g(VOp::g_load, Gpr::rax, Mem::at(Gpr::rsi, 8 * b));
      store_slot(slots[b], Gpr::rax);
    }
  };
  auto indexed = [&](uint32_t b) {
    return std::any_of(k_.nodes.begin(), k_.nodes.end(),
                       [&](const Node& n) { return n.op == Op::load && n.imm == b && n.a != kNone; });
  };
  auto strided = [&](uint32_t b) { return k_.buffers[b].access == Access::strided; };
  copy_array(offsetof(KernelFrame, buffers), row_slots_, [](uint32_t) { return true; });
  copy_array(offsetof(KernelFrame, row_strides), row_stride_slots_, [](uint32_t) { return true; });
  if (std::any_of(k_.buffers.begin(), k_.buffers.end(), [](const Buffer& b) { return b.access == Access::strided; }))
    copy_array(offsetof(KernelFrame, column_strides), stride_slots_, strided);
  copy_array(offsetof(KernelFrame, index_strides), index_stride_slots_, indexed);
  emit_call_level();
}

void Lowering::emit_call_level() {
  for (Value v = 0; v < k_.nodes.size(); ++v) {
    const Node& n = node(v);
    if (level_[v] != Level::call || (n.op == Op::constant && n.type != Type::mask)) continue;
    if (n.region && region_level_[n.region] == Level::call) continue;
    emit_node(v);
  }
  // What gathers multiply and add is the same all through the call.
  if (!v_.avx512()) return;
  for (uint32_t b = 0; b < k_.buffers.size(); ++b) {
    DType d = k_.buffers[b].dtype;
    if (size_of(d) < 4) continue;
    auto scaled = [&](int64_t slot) {
      load_slot(Gpr::rax, slot);
      return broadcast_gpr(Type::i64, Gpr::rax);
    };
    if (index_stride_slots_[b] >= 0) index_scale_[b] = scaled(index_stride_slots_[b]);
    Vector iota = index_vector(~0ull);
    if (k_.buffers[b].access == Access::strided) {
      Vector stride = scaled(stride_slots_[b]);
      lane_offsets_[b] = v_.binary(Op::mul, iota, stride);
    } else if (k_.buffers[b].access == Access::dense && index_stride_slots_[b] >= 0) {
      Vector size = v_.constant(Type::i64, static_cast<uint64_t>(size_of(d)));
      lane_offsets_[b] = v_.binary(Op::mul, iota, size);
    }
  }
}

void Lowering::emit_row_level(const std::vector<bool>& live) {
  row_live_ = live;
  for (Value v = 0; v < k_.nodes.size(); ++v) {
    const Node& n = node(v);
    if (!live[v] || level_[v] != Level::row || has_row_[v]) continue;
    if (n.region && region_level_[n.region] == Level::row) continue;
    emit_node(v);
  }
}

Vector& Lowering::value(Value v) {
  Level level = level_[v];
  std::vector<Vector>& values = level == Level::call ? call_ : level == Level::row ? row_ : column_;
  std::vector<bool>& has = level == Level::call ? has_call_ : level == Level::row ? has_row_ : has_column_;
  if (!has[v]) {
    INGOT_CHECK(is_leaf(v), "a value is used before it is computed");
    values[v] = leaf(v);
    has[v] = true;
  }
  return values[v];
}

void Lowering::emit_node(Value v) {
  if (fused_[v]) return;
  if (is_leaf(v)) {
    value(v);
    return;
  }
  const Node& n = node(v);
  if (n.op == Op::rare) return emit_rare(v);
  Vector result;
  if (picks_by_comparison(n) && fused_[n.a]) {
    const bool least = node(n.a).a == n.b;
    result = v_.pick(least, value(n.b), value(n.c));
  } else {
    Vector *a = operand(n.a), *b = operand(n.b), *c = operand(n.c);
    bool halves = n.op == Op::mul && n.type == Type::i64 && has_32_bits(n.a) && has_32_bits(n.b);
    result = halves ? v_.multiply_u32(*a, *b) : v_.compute(n, a, b, c);
  }
  Level level = level_[v];
  (level == Level::call ? call_ : level == Level::row ? row_ : column_)[v] = result;
  (level == Level::call ? has_call_ : level == Level::row ? has_row_ : has_column_)[v] = true;
}

void Lowering::emit_rare(Value v) {
  const Node& n = node(v);
  const uint16_t region = static_cast<uint16_t>(n.imm);
  const Level level = level_[v];
  // Other nodes of the region are hoisted out of it, or not needed.
  auto inside = [&](Value u) {
    return node(u).region == region && level_[u] == level &&
           (level == Level::call || (level == Level::row ? row_live_ : live_)[u]);
  };
  Vector& mask = value(n.a);
  Vector& usual = value(n.b);
  // What the region reads from outside must exist on both paths.
  for (Value u = 0; u < v; ++u) {
    if (!inside(u)) continue;
    for (Value o : {node(u).a, node(u).b, node(u).c})
      if (o != kNone && !inside(o) && !fused_[o]) v_.force(value(o));
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
    if (inside(u) && !is_leaf(u)) emit_node(u);
  Vector chosen = v_.select(mask, value(n.c), result);
  v_.copy(result, chosen);
  region_ = 0;
  v_.keep_mask_forms = true;
  code_.cold.push_back({begin, code_.position()});
  code_.place(skip);
  if (n.type == Type::mask && level != Level::column) result.wide[0] = result.part[0].reg;
  (level == Level::call ? call_ : level == Level::row ? row_ : column_)[v] = result;
  (level == Level::call ? has_call_ : level == Level::row ? has_row_ : has_column_)[v] = true;
}

Vector Lowering::broadcast_gpr(Type type, Gpr from) {
  Vector v;
  v.type = type;
  v.uniform = true;
  v.parts = 1;
  if (type == Type::mask) {
    g(VOp::g_andi, from, 1);
    g(VOp::g_neg, from, int64_t(0));
    if (v_.avx512()) {
      v.part[0] = code_.mask();
      code_.add({.op = VOp::k_from_gpr, .g = from, .dst = v.part[0].reg});
      v.wide[0] = v.part[0].reg;
      return v;
    }
  }
  VReg first = code_.vector();
  code_.add({.op = size_of(type) == 8 ? VOp::q_from_gpr : VOp::d_from_gpr, .g = from, .dst = first});
  v.part[0] = first;
  return v_.broadcast_first(v);
}

// dim ~0: the numbers of the lanes.
Vector Lowering::index_vector(uint64_t dim) {
  Vector v;
  v.type = Type::i64;
  if (dim != 0 && dim != ~0ull) {
    if (dim == 1) {
      load_slot(Gpr::rax, row_index_);
    } else {
      load_slot(Gpr::rax, frame_slot_);
      g(VOp::g_load, Gpr::rax, Mem::at(Gpr::rax, offsetof(KernelFrame, outer_index)));
      g(VOp::g_load, Gpr::rax, Mem::at(Gpr::rax, 8 * static_cast<int64_t>(dim - 2)));
    }
    return broadcast_gpr(Type::i64, Gpr::rax);
  }
  v.parts = v_.parts_of(Type::i64);
  int lanes = v_.lanes_a_part(Type::i64);
  for (int p = 0; p < v.parts; ++p) v.part[p] = code_.counting(8, p * lanes);
  if (dim == ~0ull) return v;
  g(VOp::g_mov, Gpr::rax, Gpr::rcx);
  g(VOp::g_addm, Gpr::rax, Mem::frame(column_index_));
  if (column_offset_) g(VOp::g_addi, Gpr::rax, column_offset_);
  Vector start = broadcast_gpr(Type::i64, Gpr::rax);
  return v_.binary(Op::add, start, v);
}

Vector Lowering::leaf(Value v) {
  const Node& n = node(v);
  switch (n.op) {
    case Op::constant:
      return v_.constant(n.type, n.imm);
    case Op::scalar:
      load_slot(Gpr::rax, frame_slot_);
      g(VOp::g_load, Gpr::rax, Mem::at(Gpr::rax, offsetof(KernelFrame, scalars)));
      g(VOp::g_load, Gpr::rax, Mem::at(Gpr::rax, 8 * static_cast<int64_t>(n.imm)));
      return broadcast_gpr(n.type, Gpr::rax);
    case Op::load:
      return load(v);
    case Op::local:
      return local_load(n);
    case Op::index:
      return index_vector(n.imm);
    default:
      return reduced_[n.imm];
  }
}

}  // namespace ingot::codegen::x86
