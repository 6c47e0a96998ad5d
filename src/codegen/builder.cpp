#include "codegen/builder.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/hash.h"
#include "codegen/kernel_analysis.h"
#include "codegen/scalar/lanes.h"

namespace ingot::codegen {
namespace {

bool is_commutative(Op op) {
  switch (op) {
    case Op::add:
    case Op::mul:
    case Op::fma:
    case Op::min:
    case Op::max:
    case Op::bit_and:
    case Op::bit_or:
    case Op::bit_xor:
    case Op::eq:
    case Op::ne:
      return true;
    default:
      return false;
  }
}

uint64_t float_bits(Type type, double x) {
  return type == Type::f64 ? std::bit_cast<uint64_t>(x) : std::bit_cast<uint32_t>(static_cast<float>(x));
}
uint64_t all_ones(Type type) { return type == Type::mask ? 1 : type == Type::i32 ? 0xffffffffu : ~uint64_t(0); }

uint64_t sign_mask(Type t) { return codegen::size_of(t) == 4 ? uint64_t(1) << 31 : uint64_t(1) << 63; }

/// The value of a float constant.
double number_of(const Node& n) {
  return n.type == Type::f64 ? std::bit_cast<double>(n.imm) : std::bit_cast<float>(static_cast<uint32_t>(n.imm));
}

/// x / c and x * (1 / c) are equal for every x where both are powers of two and 1 / c is normal.
bool has_exact_reciprocal(const Node& n) {
  double c = number_of(n), limit = n.type == Type::f32 ? 0x1p126 : 0x1p1022;
  int exponent;
  return std::abs(std::frexp(c, &exponent)) == 0.5 && std::abs(c) <= limit && std::abs(c) >= 1 / limit;
}

}  // namespace

size_t Builder::Hash::operator()(const Node& n) const {
  uint64_t h = static_cast<uint64_t>(n.op) | static_cast<uint64_t>(n.type) << 8 | static_cast<uint64_t>(n.region) << 16;
  for (uint64_t part : {uint64_t(n.a) << 32 | n.b, uint64_t(n.c), n.imm}) h = hash_combine(h, part);
  return h;
}

Builder::Builder(Kernel& kernel) : kernel_(kernel) {
  for (Value v = 0; v < kernel.nodes.size(); ++v) {
    known_.emplace(kernel.nodes[v], v);
    regions_ = std::max(regions_, kernel.nodes[v].region);
  }
}

Expr Builder::bits(Type type, uint64_t bits) {
  return find_or_append({Op::constant, type, 0, kNone, kNone, kNone, bits});
}

Expr Builder::constant(Type type, double value) {
  if (is_float(type)) return bits(type, float_bits(type, value));
  return constant(type, static_cast<int64_t>(value));
}

Expr Builder::constant(Type type, int64_t value) {
  switch (type) {
    case Type::f32:
    case Type::f64:
      return bits(type, type == Type::f32 ? float_bits(type, static_cast<float>(value))
                                          : float_bits(type, static_cast<double>(value)));
    case Type::i32:
      return bits(type, static_cast<uint32_t>(value));
    case Type::i64:
      return bits(type, static_cast<uint64_t>(value));
    case Type::mask:
      break;
  }
  return bits(type, value != 0);
}

Expr Builder::load(uint32_t buffer, Expr index) {
  return node({Op::load, register_type(kernel_.buffers[buffer].dtype), 0, index.value, kNone, kNone, buffer});
}

Expr Builder::reduced(uint32_t reduction) {
  const Reduction& r = kernel_.reductions[reduction];
  bool index = r.combiner == Combiner::argmax || r.combiner == Combiner::argmin;
  return node({Op::reduced, index ? Type::i64 : kernel_.nodes[r.value].type, 0, kNone, kNone, kNone, reduction});
}

Expr Builder::find_or_append(Node n) {
  n.region = 0;
  if (auto it = known_.find(n); it != known_.end()) return {this, it->second};
  n.region = region_;
  auto [it, added] = known_.emplace(n, static_cast<Value>(kernel_.nodes.size()));
  if (added) kernel_.nodes.push_back(n);
  return {this, it->second};
}

Expr Builder::node(Node n) {
  // One order of operands for equal values: constants last, then by number.
  if (is_commutative(n.op)) {
    auto rank = [&](Value v) { return std::pair(is_constant(v), v); };
    if (rank(n.b) < rank(n.a)) std::swap(n.a, n.b);
  }
  Value simple = simplify(n);
  return simple != kNone ? Expr{this, simple} : find_or_append(n);
}

Value Builder::fold(const Node& n) {
  if (n.a == kNone || n.op == Op::load) return kNone;
  scalar::Lanes lanes[3], out;
  const scalar::Lanes* operands[3] = {};
  const Value values[] = {n.a, n.b, n.c};
  for (int i = 0; i < 3 && values[i] != kNone; ++i) {
    if (!is_constant(values[i])) return kNone;
    const Node& c = kernel_.nodes[values[i]];
    lanes[i] = scalar::broadcast(c.type, c.imm);
    operands[i] = &lanes[i];
  }
  scalar::evaluate(n, kernel_.nodes[n.a].type, operands[0], operands[1], operands[2], &out);
  return bits(n.type, scalar::lane_bits(n.type, out, 0)).value;
}

// Only what keeps every bit, with all NaNs equal: x + 0 is not x, for x = -0.
Value Builder::simplify(const Node& n) {
  if (Value folded = fold(n); folded != kNone) return folded;
  if (n.a == kNone) return kNone;
  const Node a = kernel_.nodes[n.a];
  auto b_is = [&](uint64_t bits) { return is_constant(n.b) && kernel_.nodes[n.b].imm == bits; };
  auto b_is_number = [&](double x) {
    return b_is(is_float(a.type) ? float_bits(a.type, x) : static_cast<uint64_t>(x));
  };
  switch (n.op) {
    case Op::add:
      return b_is_number(is_float(n.type) ? -0.0 : 0) ? n.a : kNone;
    case Op::sub:
    case Op::scale:
      return b_is_number(0) ? n.a : kNone;
    case Op::mul:
      if (!is_float(n.type) && b_is(0)) return n.b;
      return b_is_number(1) ? n.a : kNone;
    case Op::div:
      if (b_is_number(1)) return n.a;
      if (is_float(n.type) && is_constant(n.b) && has_exact_reciprocal(kernel_.nodes[n.b]))
        return (Expr{this, n.a} * (1 / number_of(kernel_.nodes[n.b]))).value;
      return kNone;
    case Op::fma:
      if (b_is_number(1)) return (Expr{this, n.a} + Expr{this, n.c}).value;
      if (is_constant(n.c) && kernel_.nodes[n.c].imm == float_bits(n.type, -0.0))
        return (Expr{this, n.a} * Expr{this, n.b}).value;
      return kNone;
    case Op::min:
    case Op::max:
      return n.a == n.b ? n.a : kNone;
    case Op::bit_and:
      if (n.a == n.b || b_is(all_ones(n.type))) return n.a;
      if (b_is(0)) return n.b;
      if (is_constant(n.b) && a.op == Op::bit_and && is_constant(a.b))
        return (Expr{this, a.a} & (Expr{this, a.b} & Expr{this, n.b})).value;
      return kNone;
    case Op::bit_or:
      if (n.a == n.b || b_is(0)) return n.a;
      return b_is(all_ones(n.type)) ? n.b : kNone;
    case Op::bit_xor:
      if (n.a == n.b) return bits(n.type, 0).value;
      if (b_is(0)) return n.a;
      if (is_constant(n.b) && a.op == Op::bit_xor && is_constant(a.b))  // -(-x), ~~x
        return (Expr{this, a.a} ^ (Expr{this, a.b} ^ Expr{this, n.b})).value;
      return kNone;
    case Op::shl:
    case Op::shr:
    case Op::sar:
      return b_is(0) ? n.a : kNone;
    case Op::select:
      return n.b == n.c ? n.b : kNone;
    case Op::convert:
      return a.type == n.type ? n.a : kNone;
    case Op::bitcast:
      return a.op == Op::bitcast ? a.a : kNone;
    case Op::wrap:
      if (a.op == n.op && a.imm == n.imm) return n.a;
      return a.op == Op::load && kernel_.buffers[a.imm].dtype == static_cast<DType>(n.imm) ? n.a : kNone;
    case Op::round_to:
      find_halves(kernel_, halves_);
      return halves_[n.a] == static_cast<DType>(n.imm) ? n.a : kNone;
    case Op::round:
      return a.op == Op::round || (a.op == Op::convert && !is_float(kernel_.nodes[a.a].type)) ? n.a : kNone;
    default:
      return kNone;
  }
}

Expr Builder::choose(Expr mask, Expr yes, Expr no) {
  if (is_constant(mask.value)) return kernel_.nodes[mask.value].imm ? yes : no;
  if (yes.type() == Type::mask) return (mask & yes) | (~mask & no);
  return make(Op::select, yes.type(), mask, yes, no);
}

void Builder::begin_rare() {
  INGOT_CHECK(regions_ < std::numeric_limits<uint16_t>::max());
  region_ = static_cast<uint16_t>(regions_ + 1);
  region_start_ = kernel_.nodes.size();
}

Expr Builder::end_rare(Expr mask, Expr usual, Expr result) {
  uint16_t region = std::exchange(region_, uint16_t(0));
  if (kernel_.nodes[result.value].region == region) {
    regions_ = region;
    return find_or_append({Op::rare, result.type(), 0, mask.value, usual.value, result.value, region});
  }
  // The result was there already: nothing of the region is needed.
  for (; kernel_.nodes.size() > region_start_; kernel_.nodes.pop_back()) known_.erase(kernel_.nodes.back());
  halves_.resize(std::min(halves_.size(), region_start_));
  return choose(mask, result, usual);
}

Expr convert(Expr x, Type type) {
  if (x.type() == type) return x;
  if (type == Type::mask) return ne(x, 0);
  return make(Op::convert, type, x);
}

Expr bitcast(Expr x) {
  switch (x.type()) {
    case Type::f32:
      return make(Op::bitcast, Type::i32, x);
    case Type::f64:
      return make(Op::bitcast, Type::i64, x);
    case Type::i32:
      return make(Op::bitcast, Type::f32, x);
    case Type::i64:
      return make(Op::bitcast, Type::f64, x);
    case Type::mask:
      break;
  }
  INGOT_CHECK(!"a mask has no float of its size");
}

Expr operator~(Expr x) { return x ^ x.builder->bits(x.type(), all_ones(x.type())); }

Expr operator-(Expr x) {
  if (!is_float(x.type())) return 0 - x;
  Expr b = bitcast(x);
  return bitcast(b ^ b.builder->bits(b.type(), sign_mask(b.type())));
}

Expr abs(Expr x) {
  if (!is_float(x.type())) return max(x, -x);
  Expr b = bitcast(x);
  return bitcast(b & b.builder->bits(b.type(), sign_mask(b.type()) - 1));
}

Expr sign_bit(Expr x) {
  Expr b = bitcast(x);
  return b & b.builder->bits(b.type(), sign_mask(b.type()));
}

Expr copysign(Expr x, Expr sign) { return bitcast(bitcast(abs(x)) | sign_bit(sign)); }

Expr is_nan(Expr x) { return ne(x, x); }

Expr polynomial(Expr x, std::span<const double> coefficients) {
  Expr sum = lift(x, coefficients.back());
  for (size_t i = coefficients.size() - 1; i-- > 0;) sum = fma(sum, x, lift(x, coefficients[i]));
  return sum;
}

}  // namespace ingot::codegen
