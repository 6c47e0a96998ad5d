#include "codegen/x86/reductions.h"

#include <bit>
#include <cstddef>
#include <limits>

#include "codegen/x86/arithmetic.h"
#include "codegen/x86/formats.h"
#include "codegen/x86/lanes.h"

namespace ingot::codegen::x86 {
namespace {

double identity_value(Combiner c) {
  switch (c) {
    case Combiner::sum:
      return -0.0;
    case Combiner::prod:
      return 1;
    case Combiner::max:
    case Combiner::argmax:
      return -std::numeric_limits<double>::infinity();
    default:
      return std::numeric_limits<double>::infinity();
  }
}

uint64_t identity_bits(Combiner c, Type t) {
  bool least = c == Combiner::max || c == Combiner::argmax;
  switch (t) {
    case Type::f32:
      return std::bit_cast<uint32_t>(static_cast<float>(identity_value(c)));
    case Type::f64:
      return std::bit_cast<uint64_t>(identity_value(c));
    case Type::mask:
      return c == Combiner::all;
    default:
      break;
  }
  if (c == Combiner::sum || c == Combiner::prod) return c == Combiner::prod;
  uint64_t lowest = t == Type::i32 ? 0x80000000u : 0x8000000000000000u;
  uint64_t highest = t == Type::i32 ? 0x7fffffffu : 0x7fffffffffffffffu;
  return least ? lowest : highest;
}

constexpr int kTreeLevels = 48;

}  // namespace

bool Reductions::in_tree(const Reduction& r) const {
  return (r.combiner == Combiner::sum || r.combiner == Combiner::prod) && is_float(analysis_.type_of(r));
}

Vector Reductions::identity(const Reduction& r) {
  const Type t = analysis_.type_of(r);
  return v_.constant(t, identity_bits(r.combiner, t));
}

bool Reductions::keeps_nan_apart(const Reduction& r) const {
  return k_.form == Form::rows && (r.combiner == Combiner::max || r.combiner == Combiner::min) &&
         is_float(analysis_.type_of(r));
}

Accumulator Reductions::accumulator(const Reduction& r) {
  Accumulator a;
  a.reduction = &r;
  a.value = v_.blank(analysis_.type_of(r));
  if (is_index(r.combiner)) a.index = v_.blank(Type::i64);
  if (keeps_nan_apart(r)) a.nan = v_.blank_mask(analysis_.type_of(r));
  return a;
}

void Reductions::reset(Accumulator& a) {
  v_.copy(a.value, identity(*a.reduction));
  if (is_index(a.reduction->combiner)) v_.copy(a.index, v_.constant(Type::i64, INT64_MAX));
  if (keeps_nan_apart(*a.reduction)) v_.clear_mask(a.nan);
}

void Reductions::combine(Accumulator& into, Vector& x, Vector* index, Vector* valid) {
  const Combiner c = into.reduction->combiner;
  Vector mine = into.value;
  if (!is_index(c)) {
    Vector none = valid ? identity(*into.reduction) : Vector(), masked = valid ? select(v_, *valid, x, none) : x;
    binary(v_, combining_op(c), mine, masked, &into.value);
    return;
  }
  Vector my_index = into.index;
  v_.force(x);
  Vector tie = compare(v_, Op::eq, mine, x);
  Vector take = c == Combiner::argmax ? compare(v_, Op::lt, mine, x) : compare(v_, Op::lt, x, mine);
  if (is_float(x.type)) {
    Vector my_nan = compare(v_, Op::ne, mine, mine), nan = compare(v_, Op::ne, x, x);
    Vector both = binary(v_, Op::bit_and, my_nan, nan), only = binary(v_, Op::bit_xor, both, nan);
    tie = binary(v_, Op::bit_or, tie, both);
    take = binary(v_, Op::bit_or, take, only);
  }
  Vector earlier = compare(v_, Op::lt, *index, my_index), tied = binary(v_, Op::bit_and, tie, earlier);
  take = binary(v_, Op::bit_or, take, tied);
  if (valid) take = binary(v_, Op::bit_and, take, *valid);
  Vector best = select(v_, take, x, mine), best_index = select(v_, take, *index, my_index);
  v_.copy(into.value, best);
  v_.copy(into.index, best_index);
}

void Reductions::accumulate(Accumulator& a) {
  Vector& x = values_.value(a.reduction->value);
  Vector index;
  const bool along_rows = k_.form == Form::columns;
  if (is_index(a.reduction->combiner)) index = values_.index(along_rows ? 1 : 0);
  Vector* valid = along_rows ? nullptr : frame_.tail();
  if (!keeps_nan_apart(*a.reduction)) return combine(a, x, &index, valid);
  // Off the chain of maxima, NaN costs a comparison; it joins in finish().
  Vector none = valid ? identity(*a.reduction) : Vector(), masked = valid ? select(v_, *valid, x, none) : x,
         mine = a.value;
  v_.force(masked);
  Vector nan = compare(v_, Op::ne, masked, masked);
  v_.or_into(a.nan, nan);
  ordered_minmax(v_, a.reduction->combiner == Combiner::max, mine, masked, &a.value);
}

void Reductions::merge(Accumulator& into, Accumulator& from) {
  if (!keeps_nan_apart(*into.reduction)) return combine(into, from.value, &from.index);
  Vector mine = into.value;
  v_.or_into(into.nan, from.nan);
  ordered_minmax(v_, into.reduction->combiner == Combiner::max, mine, from.value, &into.value);
}

/// With what it kept apart.
Vector Reductions::lanes_of(Accumulator& a) {
  if (!keeps_nan_apart(*a.reduction)) return a.value;
  Vector nan = v_.constant(a.value.type, a.value.type == Type::f32 ? 0x7fc00000u : 0x7ff8000000000000u);
  return select(v_, a.nan, nan, a.value);
}

void Reductions::finish(Accumulator& a) {
  values_.set_reduced(static_cast<size_t>(a.reduction - k_.reductions.data()), result_of(a));
}

/// The 16 lanes halved to one, in every lane of the result.
Vector Reductions::result_of(Accumulator& a) {
  const Combiner c = a.reduction->combiner;
  if (a.value.type == Type::mask && v_.avx512()) {
    code_.g(VOp::g_imm, Gpr::rax, 0);
    code_.g(VOp::g_imm, Gpr::rbx, 0xffff);
    code_.add({.op = VOp::k_test, .a = a.value.part[0].reg});
    code_.add(
        {.op = VOp::g_cmov, .cond = c == Combiner::any ? Cond::not_equal : Cond::carry, .g = Gpr::rax, .h = Gpr::rbx});
    Vector out = v_.blank(Type::mask, true);
    code_.add({.op = VOp::k_from_gpr, .g = Gpr::rax, .dst = out.part[0].reg});
    out.wide[0] = out.part[0].reg;
    return out;
  }
  if (is_index(c)) {
    for (int step = kLanes / 2; step; step /= 2) {
      Vector x = upper(v_, a.value, step, true), index = upper(v_, a.index, step, true);
      combine(a, x, &index);
    }
    return broadcast_first(v_, a.index);
  }
  Vector x = lanes_of(a);
  for (int step = kLanes / 2; step; step /= 2) {
    Vector other = upper(v_, x, step);
    x = binary(v_, combining_op(c), x, other);
  }
  Vector out = broadcast_first(v_, x);
  if (c != Combiner::sum || !is_float(out.type)) return out;
  // The empty sum is +0, not the identity.
  Vector result = v_.blank(out.type, true);
  v_.copy(result, out);
  int64_t some = code_.label();
  code_.add({.op = VOp::g_cmpi_m, .mem = frame_.at(Slot::columns), .value = 0});
  code_.jump(some, Cond::not_equal);
  int32_t begin = code_.position();
  v_.copy(result, v_.constant(out.type, 0));
  code_.cold.push_back({begin, code_.position()});
  code_.place(some);
  return result;
}

/// Where the lanes of a reduction lie; clobbers rax.
Mem Reductions::part_of(const Reduction& r, bool index) {
  int64_t offset = 0;
  for (const Reduction* before = k_.reductions.data(); before != &r; ++before)
    offset += kLanes * (size_of(analysis_.type_of(*before)) + (is_index(before->combiner) ? 8 : 0));
  if (index) offset += kLanes * size_of(analysis_.type_of(r));
  frame_.load_field(Gpr::rax, offsetof(KernelFrame, accumulators));
  return Mem::at(Gpr::rax, offset);
}

void Reductions::store_parts(const std::vector<Accumulator*>& accumulators) {
  for (Accumulator* a : accumulators) {
    Vector x = lanes_of(*a);
    store_elements(v_, memory_type(x.type), x, part_of(*a->reduction, false));
    if (is_index(a->reduction->combiner)) store_elements(v_, DType::i64, a->index, part_of(*a->reduction, true));
  }
}

void Reductions::load_parts(const std::vector<Accumulator*>& accumulators) {
  for (Accumulator* a : accumulators) {
    v_.copy(a->value, load_elements(v_, memory_type(a->value.type), part_of(*a->reduction, false)));
    if (is_index(a->reduction->combiner))
      v_.copy(a->index, load_elements(v_, DType::i64, part_of(*a->reduction, true)));
    if (keeps_nan_apart(*a->reduction)) v_.clear_mask(a->nan);  // the lanes themselves are NaN
  }
}

int64_t Reductions::level_bytes(const std::vector<Accumulator>& tree) const {
  int64_t bytes = 0;
  for (const Accumulator& a : tree) bytes += a.value.parts * code_.width;
  return bytes;
}

/// f(accumulator, register, its place in the level at rdx), for each register of the tree.
template <class F>
void Reductions::each_register(const std::vector<Accumulator>& tree, F f) {
  int64_t offset = 0;
  for (const Accumulator& a : tree)
    for (int p = 0; p < a.value.parts; ++p, offset += code_.width) f(a, a.value.part[p].reg, Mem::at(Gpr::rdx, offset));
}

void Reductions::join_level(const std::vector<Accumulator>& tree) {
  each_register(tree, [&](const Accumulator& a, VReg x, const Mem& at) {
    bool single = a.value.type == Type::f32, add = a.reduction->combiner == Combiner::sum;
    v_.emit(add ? (single ? VOp::vaddps : VOp::vaddpd) : (single ? VOp::vmulps : VOp::vmulpd), x, at, 0, x);
  });
}

void Reductions::begin_tree() {
  code_.g(VOp::g_imm, Gpr::rax, 0);
  code_.store(frame_.at(Slot::blocks), Gpr::rax);
}

// rdx: the level.
void Reductions::push_block(const std::vector<Accumulator>& tree) {
  const int64_t step = level_bytes(tree);
  scratch_bytes_ = std::max(scratch_bytes_, step * kTreeLevels);
  code_.load(Gpr::rax, frame_.at(Slot::blocks));
  code_.load(Gpr::rdx, frame_.at(Slot::tree));
  int64_t done = code_.label();
  const Loop loop = code_.begin_loop();
  code_.g(VOp::g_testi, Gpr::rax, 1);
  code_.jump(done, Cond::equal);
  join_level(tree);
  code_.g(VOp::g_addi, Gpr::rdx, step);
  code_.g(VOp::g_shri, Gpr::rax, 1);
  code_.end_loop(loop);
  code_.place(done);
  each_register(tree, [&](const Accumulator&, VReg x, const Mem& at) {
    code_.add({.op = VOp::store, .width = static_cast<uint8_t>(code_.width), .a = x, .mem = at});
  });
  code_.add({.op = VOp::g_addi_to, .mem = frame_.at(Slot::blocks), .value = 1});
}

void Reductions::merge_stack(const std::vector<Accumulator>& tree) {
  const int64_t step = level_bytes(tree);
  code_.load(Gpr::rax, frame_.at(Slot::blocks));
  code_.load(Gpr::rdx, frame_.at(Slot::tree));
  int64_t next = code_.label(), done = code_.label();
  const Loop loop = code_.begin_loop();
  code_.g(VOp::g_cmpi, Gpr::rax, 0);
  code_.jump(done, Cond::equal);
  code_.g(VOp::g_testi, Gpr::rax, 1);
  code_.jump(next, Cond::equal);
  join_level(tree);
  code_.place(next);
  code_.g(VOp::g_addi, Gpr::rdx, step);
  code_.g(VOp::g_shri, Gpr::rax, 1);
  code_.end_loop(loop);
  code_.place(done);
}

}  // namespace ingot::codegen::x86
