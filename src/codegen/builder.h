// Builds the expressions of a kernel: equal nodes are one node, and what is constant is folded where the bits stay the
// same.
#pragma once
#include <concepts>
#include <initializer_list>
#include <unordered_map>
#include <utility>

#include "codegen/kernel_ir.h"

namespace ingot::codegen {

class Builder;

/// A value of a kernel under construction. Arithmetic takes operands of one type; a C++ number becomes a constant of
/// that type.
struct Expr {
  Builder* builder = nullptr;
  Value value = kNone;
  Type type() const;
  bool present() const { return builder != nullptr; }
};

class Builder {
 public:
  /// Appends to `kernel`, which must outlive the builder.
  explicit Builder(Kernel& kernel);
  Kernel& kernel() { return kernel_; }

  Expr constant(Type type, double value);  // rounded to the type; mask: not zero
  Expr constant(Type type, int64_t value);
  Expr constant(Type type, int value) { return constant(type, static_cast<int64_t>(value)); }
  Expr bits(Type type, uint64_t bits);
  Expr truth(bool value) { return bits(Type::mask, value); }
  Expr scalar(Type type, uint32_t number) { return node({Op::scalar, type, 0, kNone, kNone, kNone, number}); }
  Expr load(uint32_t buffer, Expr index = {});
  Expr local(uint32_t number) { return node({Op::local, kernel_.locals[number], 0, kNone, kNone, kNone, number}); }
  Expr index(uint32_t dim) { return node({Op::index, Type::i64, 0, kNone, kNone, kNone, dim}); }
  Expr reduced(uint32_t reduction);

  /// The node, or an equal or simpler one. Its region is set here.
  Expr node(Node node);
  /// mask ? body() : usual, where body's nodes run only if some lane needs them. Inside of another rare body, a plain
  /// select.
  template <class Body>
  Expr rare(Expr mask, Expr usual, Body body) {
    if (region_ || is_constant(mask.value)) return choose(mask, body(), usual);
    begin_rare();
    return end_rare(mask, usual, body());
  }
  /// mask ? yes : no, for any type.
  Expr choose(Expr mask, Expr yes, Expr no);

  const Node& operator[](Value v) const { return kernel_.nodes[v]; }
  bool is_constant(Value v) const { return kernel_.nodes[v].op == Op::constant; }

 private:
  struct Hash {
    size_t operator()(const Node& n) const;
  };
  void begin_rare();
  Expr end_rare(Expr mask, Expr usual, Expr result);
  Expr find_or_append(Node node);
  Value simplify(const Node& node);
  Value fold(const Node& node);

  Kernel& kernel_;
  std::unordered_map<Node, Value, Hash> known_;
  std::vector<DType> halves_;
  uint16_t region_ = 0, regions_ = 0;
  size_t region_start_ = 0;
};

inline Type Expr::type() const { return (*builder)[value].type; }

/// A constant like x, or y itself.
inline Expr lift(Expr, Expr y) { return y; }
template <class N>
requires std::floating_point<N> Expr lift(Expr x, N y) { return x.builder->constant(x.type(), static_cast<double>(y)); }
template <class N>
requires std::integral<N> Expr lift(Expr x, N y) { return x.builder->constant(x.type(), static_cast<int64_t>(y)); }

inline Expr make(Op op, Type type, Expr a, uint64_t imm = 0) {
  return a.builder->node({op, type, 0, a.value, kNone, kNone, imm});
}
inline Expr make(Op op, Type type, Expr a, Expr b) {
  return a.builder->node({op, type, 0, a.value, b.value, kNone, 0});
}
inline Expr make(Op op, Type type, Expr a, Expr b, Expr c) {
  return a.builder->node({op, type, 0, a.value, b.value, c.value, 0});
}

/// An Expr, or a number that takes the type of the Expr beside it.
template <class T>
concept Term = std::same_as<T, Expr> || std::integral<T> || std::floating_point<T>;

inline Type same_type(Expr x) { return x.type(); }
inline Type mask_type(Expr) { return Type::mask; }
#define INGOT_BINARY(name, op, result)             \
  template <Term B>                                \
  Expr name(Expr a, B b) {                         \
    return make(Op::op, result(a), a, lift(a, b)); \
  }                                                \
  template <Term A>                                \
  requires(!std::same_as<A, Expr>) Expr name(A a, Expr b) { return make(Op::op, result(b), lift(b, a), b); }
INGOT_BINARY(operator+, add, same_type)
INGOT_BINARY(operator-, sub, same_type)
INGOT_BINARY(operator*, mul, same_type)
INGOT_BINARY(operator/, div, same_type)
INGOT_BINARY(operator&, bit_and, same_type)
INGOT_BINARY(operator|, bit_or, same_type)
INGOT_BINARY(operator^, bit_xor, same_type)
INGOT_BINARY(operator<<, shl, same_type)
INGOT_BINARY(min, min, same_type)
INGOT_BINARY(max, max, same_type)
INGOT_BINARY(eq, eq, mask_type)
INGOT_BINARY(ne, ne, mask_type)
INGOT_BINARY(operator<, lt, mask_type)
INGOT_BINARY(operator<=, le, mask_type)
#undef INGOT_BINARY
template <Term B>
Expr operator>(Expr a, B b) {
  return lift(a, b) < a;
}
template <Term B>
Expr operator>=(Expr a, B b) {
  return lift(a, b) <= a;
}
template <Term B>
Expr shift_right_logical(Expr a, B b) {
  return make(Op::shr, a.type(), a, lift(a, b));
}
template <Term B>
Expr shift_right_arithmetic(Expr a, B b) {
  return make(Op::sar, a.type(), a, lift(a, b));
}
/// a * b + c, rounded once.
template <Term B, Term C>
Expr fma(Expr a, B b, C c) {
  return make(Op::fma, a.type(), a, lift(a, b), lift(a, c));
}
/// a * 2^power.
template <Term B>
Expr scale(Expr a, B power) {
  return make(Op::scale, a.type(), a, lift(a, power));
}
/// Where 2^power is a normal number; elsewhere, and for NaN, it may give anything.
template <Term B>
Expr scale_normal(Expr a, B power) {
  return a.builder->node({Op::scale, a.type(), 0, a.value, lift(a, power).value, kNone, 1});
}
/// For an a of [1/2, 2] and a power of up to 250 (f64: 2040) either way, so that half of the power cannot round; of an
/// a that is NaN the power may be anything.
template <Term B>
Expr scale_near_one(Expr a, B power) {
  return a.builder->node({Op::scale, a.type(), 0, a.value, lift(a, power).value, kNone, 2});
}
inline Expr select(Expr mask, Expr yes, Expr no) { return mask.builder->choose(mask, yes, no); }
template <Term N>
Expr select(Expr mask, Expr yes, N no) {
  return select(mask, yes, lift(yes, no));
}
template <Term N>
requires(!std::same_as<N, Expr>) Expr select(Expr mask, N yes, Expr no) { return select(mask, lift(no, yes), no); }

inline Expr sqrt(Expr x) { return make(Op::sqrt, x.type(), x); }
inline Expr round_even(Expr x) { return make(Op::round, x.type(), x, uint64_t(0)); }
inline Expr floor(Expr x) { return make(Op::round, x.type(), x, 1); }
inline Expr ceil(Expr x) { return make(Op::round, x.type(), x, 2); }
inline Expr trunc(Expr x) { return make(Op::round, x.type(), x, 3); }
inline Expr round_to(Expr x, DType d) { return make(Op::round_to, x.type(), x, static_cast<uint64_t>(d)); }
inline Expr wrap(Expr x, DType d) { return make(Op::wrap, x.type(), x, static_cast<uint64_t>(d)); }
/// To another register type; to a mask: x != 0.
Expr convert(Expr x, Type type);
/// The same bits as the integer or float of the same size.
Expr bitcast(Expr x);
/// Logical not of a mask, bitwise not of an integer.
Expr operator~(Expr x);
/// Sign bit flipped; integers wrap.
Expr operator-(Expr x);
Expr abs(Expr x);
/// Only the sign bit of a float, as an integer.
Expr sign_bit(Expr x);
/// The magnitude of x with the sign bit of `sign`.
Expr copysign(Expr x, Expr sign);
Expr is_nan(Expr x);
/// c[0] + x * (c[1] + x * (...)), by fma.
Expr polynomial(Expr x, std::span<const double> coefficients);
inline Expr polynomial(Expr x, std::initializer_list<double> coefficients) {
  return polynomial(x, std::span(coefficients.begin(), coefficients.size()));
}

}  // namespace ingot::codegen
