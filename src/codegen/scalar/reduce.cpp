#include "codegen/scalar/reduce.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/canonical_order.h"

namespace ingot::codegen::scalar {
namespace {

constexpr int kBlockSteps = canonical::kBlock / kLanes;

template <class T>
uint64_t bits_of(T x) {
  if constexpr (sizeof(T) == 4) {
    return std::bit_cast<uint32_t>(x);
  } else {
    return std::bit_cast<uint64_t>(x);
  }
}

template <class T>
uint64_t identity_bits(Combiner c) {
  using Limits = std::numeric_limits<T>;
  constexpr bool floating = !Limits::is_integer;
  switch (c) {
    case Combiner::sum:
      return bits_of(floating ? static_cast<T>(-0.0) : T(0));
    case Combiner::prod:
      return bits_of(T(1));
    case Combiner::max:
    case Combiner::argmax:
      return bits_of(floating ? -Limits::infinity() : Limits::lowest());
    default:
      return bits_of(floating ? Limits::infinity() : Limits::max());
  }
}

uint64_t identity_bits(Combiner c, Type type) {
  switch (type) {
    case Type::f32:
      return identity_bits<float>(c);
    case Type::f64:
      return identity_bits<double>(c);
    case Type::i32:
      return identity_bits<int32_t>(c);
    case Type::i64:
      return identity_bits<int64_t>(c);
    case Type::mask:
      break;
  }
  return c == Combiner::all;
}

template <class T>
bool is_not_a_number(T x) {
  return x != x;
}

// NaN wins, then the extreme value, then the smaller index.
template <class T>
void combine_index(bool greatest, T* value, int64_t* index, const T* other, const int64_t* other_index) {
  for (int l = 0; l < kLanes; ++l) {
    T a = value[l], b = other[l];
    bool tie = is_not_a_number(a) ? is_not_a_number(b) : a == b;
    bool wins = is_not_a_number(b) ? !is_not_a_number(a) : greatest ? b > a : b < a;
    if (wins || (tie && other_index[l] < index[l])) {
      value[l] = b;
      index[l] = other_index[l];
    }
  }
}

}  // namespace

Accumulator identity(Combiner c, Type type) {
  Accumulator p;
  p.value = broadcast(type, identity_bits(c, type));
  p.index = broadcast(Type::i64, static_cast<uint64_t>(std::numeric_limits<int64_t>::max()));
  return p;
}

void combine(Combiner c, Type type, Accumulator& a, const Accumulator& b) {
  if (!is_index(c)) {
    evaluate({combining_op(c), type}, type, &a.value, &b.value, nullptr, &a.value);
    return;
  }
  bool greatest = c == Combiner::argmax;
  switch (type) {
    case Type::f32:
      return combine_index(greatest, a.value.f32, a.index.i64, b.value.f32, b.index.i64);
    case Type::f64:
      return combine_index(greatest, a.value.f64, a.index.i64, b.value.f64, b.index.i64);
    case Type::i32:
      return combine_index(greatest, a.value.i32, a.index.i64, b.value.i32, b.index.i64);
    case Type::i64:
      return combine_index(greatest, a.value.i64, a.index.i64, b.value.i64, b.index.i64);
    case Type::mask:
      break;
  }
  INGOT_CHECK(!"no index of the extreme of a mask");
}

void RowReduction::begin() {
  block_ = identity(combiner_, type_);
  steps_ = 0;
  blocks_ = 0;
  parts_.clear();
}

void RowReduction::add(const Lanes& value, int64_t first_index, int count) {
  Accumulator p = identity(combiner_, type_);
  int64_t bytes = codegen::size_of(type_);
  std::copy_n(reinterpret_cast<const char*>(&value), count * bytes, reinterpret_cast<char*>(&p.value));
  for (int l = 0; l < count; ++l) p.index.i64[l] = first_index + l;
  combine(combiner_, type_, block_, p);
  if (++steps_ == kBlockSteps) close_block();
}

// A binary counter: two neighbouring subtrees of one size become one.
void RowReduction::close_block() {
  parts_.push_back(block_);
  for (uint64_t carry = blocks_++; carry & 1; carry >>= 1) {
    Accumulator right = parts_.back();
    parts_.pop_back();
    combine(combiner_, type_, parts_.back(), right);
  }
  block_ = identity(combiner_, type_);
  steps_ = 0;
}

Accumulator RowReduction::lanes() {
  if (steps_ > 0) close_block();
  if (parts_.empty()) {
    Accumulator none = identity(combiner_, type_);
    if (combiner_ == Combiner::sum) none.value = broadcast(type_, 0);  // the empty sum is +0
    return none;
  }
  // An odd last subtree moves up as it is, so the small ones join first.
  for (; parts_.size() > 1; parts_.pop_back()) combine(combiner_, type_, parts_[parts_.size() - 2], parts_.back());
  return parts_.back();
}

Lanes RowReduction::finish() {
  Accumulator total = lanes();
  for (int half = kLanes / 2; half; half /= 2) {
    Accumulator upper = identity(combiner_, type_);
    int64_t bytes = half * codegen::size_of(type_);
    std::copy_n(reinterpret_cast<const char*>(&total.value) + bytes, bytes, reinterpret_cast<char*>(&upper.value));
    std::copy_n(total.index.i64 + half, half, upper.index.i64);
    combine(combiner_, type_, total, upper);
  }
  Type result = is_index(combiner_) ? Type::i64 : type_;
  return broadcast(result, lane_bits(result, is_index(combiner_) ? total.index : total.value, 0));
}

}  // namespace ingot::codegen::scalar
