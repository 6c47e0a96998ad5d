// Random kernels: every operation over every type and access, phases, locals, reductions and rare regions.
#pragma once
#include <algorithm>
#include <random>
#include <vector>

#include "x86_harness.h"

namespace ingot::codegen::test {

inline constexpr DType kStored[] = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64,
                                    DType::i32, DType::i16, DType::i8,  DType::u8,   DType::bool_};
inline constexpr Type kTypes[] = {Type::f32, Type::f64, Type::i32, Type::i64, Type::mask};

class RandomKernel {
 public:
  /// `ordered`: sums and products of floats too, which depend on the order.
  explicit RandomKernel(uint64_t seed, bool ordered = true) : random_(seed), ordered_(ordered) {}

  KernelBuilder& kernel() { return k_; }
  size_t below(size_t n) { return random_() % n; }

  void make() {
    k_.kernel.scalars = 5;
    size_t phases = 1 + below(3);
    for (size_t p = 0; p < phases; ++p) {
      if (p > 0) k_.kernel.phases.emplace_back();
      if (p == 0) k_.kernel.phases.resize(1);
      size_t loads = 1 + below(4);
      for (size_t i = 0; i < loads; ++i) leaf();
      size_t steps = 3 + below(25);
      for (size_t i = 0; i < steps; ++i) operation();
      finish_phase(p + 1 == phases);
    }
  }

  void make_columns() {
    k_.kernel.form = Form::columns;
    k_.kernel.scalars = 5;
    k_.kernel.phases.resize(1);
    for (size_t i = 1 + below(4); i > 0; --i) leaf();
    for (size_t i = below(15); i > 0; --i) operation();
    for (size_t i = 1 + below(3); i > 0; --i) reduction();
  }

 private:
  Expr reduction() {
    Expr e = values_[values_.size() - 1 - below(std::min<size_t>(values_.size(), 6))];
    if (e.type() == Type::mask) return k_.reduce(below(2) ? Combiner::any : Combiner::all, e);
    Combiner c = static_cast<Combiner>(below(8) < 4 ? below(4) : 6 + below(2));
    if (!ordered_ && is_float(e.type()) && c <= Combiner::prod) c = c == Combiner::sum ? Combiner::max : Combiner::min;
    return k_.reduce(c, e);
  }
  bool is_float(Type t) { return t == Type::f32 || t == Type::f64; }
  Expr any(Type t) {
    std::vector<Expr> fits;
    for (Expr e : values_)
      if (e.type() == t) fits.push_back(e);
    if (!fits.empty() && below(8)) return fits[fits.size() - 1 - below(std::min<size_t>(fits.size(), 12))];
    if (below(3) == 0) return k_.b.scalar(t, static_cast<uint32_t>(t));
    if (t == Type::mask) return any(Type::f32) < any(Type::f32);
    static const double numbers[] = {0.0, 1.0, -1.0, 2.0, 0.5, -0.0, 3.0, 100.0};
    double c = numbers[below(8)];
    return is_float(t) ? k_.b.constant(t, c) : k_.b.constant(t, static_cast<int64_t>(c));
  }
  Expr column_value(Type t) {
    for (size_t i = values_.size(); i-- > 0;)
      if (values_[i].type() == t) return values_[i];
    return any(t);
  }
  void leaf() {
    DType d = kStored[below(std::size(kStored))];
    Access access = below(4) == 0 ? Access::uniform : below(5) == 0 ? Access::strided : Access::dense;
    if (below(6) == 0) {
      Expr index = below(2) ? k_.input(DType::i64) & 3 : k_.input(DType::i64, Access::uniform) & 3;
      uint32_t table = k_.table(d, access);
      layouts_.resize(table + 1);
      tables_.push_back(table);
      values_.push_back(k_.b.load(table, index));
    } else {
      values_.push_back(k_.input(d, access));
      if (access == Access::strided && below(2))
        k_.kernel.buffers.back().stride = static_cast<uint8_t>(2 + below(kMostKnownStride - 1));
    }
    if (below(8) == 0) values_.push_back(k_.b.index(static_cast<uint32_t>(below(4))));
  }
  void operation() { values_.push_back(below(12) == 0 ? rare() : step()); }
  Expr rare() {
    Type t = kTypes[below(5)];
    Expr mask = any(Type::mask), usual = any(t);
    std::vector<Expr> outside = values_;
    Expr result = k_.b.rare(mask, usual, [&] {
      Expr x = any(t);
      for (int i = 0; i < 3; ++i) {
        values_.push_back(step());
        if (values_.back().type() == t) x = values_.back();
      }
      return x;
    });
    values_ = outside;
    return result;
  }
  Expr step() {
    Type t = kTypes[below(4)];
    switch (below(is_float(t) ? 20 : 17)) {
      case 0:
        return any(t) + any(t);
      case 1:
        return any(t) - any(t);
      case 2:
        return any(t) * any(t);
      case 3:
        return any(t) / any(t);
      case 4:
        return min(any(t), any(t));
      case 5:
        return max(any(t), any(t));
      case 6:
        return any(t) < any(t);
      case 7:
        return any(t) <= any(t);
      case 8:
        return eq(any(t), any(t));
      case 9:
        return ne(any(t), any(t));
      case 10:
        return select(any(Type::mask), any(t), any(t));
      case 11: {
        Expr a = any(t), b = any(t);
        return below(2) ? select(a < b, a, b) : select(a < b, b, a);
      }
      case 12:
        return any(Type::mask) & any(Type::mask);
      case 13:
        return any(Type::mask) ^ any(Type::mask);
      case 14: {
        Type from = kTypes[below(5)];
        return from == t ? any(t) : convert(any(from), t);
      }
      case 15: {
        // All NaN are equal, so their bits must not be looked at.
        Expr x = any(t);
        return bitcast(is_float(t) ? select(eq(x, x), x, k_.b.constant(t, 1)) : x);
      }
      case 16:
        if (is_float(t)) return sqrt(any(t));
        if (t == Type::i32 && below(3) == 0) {
          DType narrow[] = {DType::i16, DType::i8, DType::u8};
          return wrap(any(t), narrow[below(3)]);
        }
        switch (below(5)) {
          case 0:
            return any(t) & any(t);
          case 1:
            return any(t) ^ any(t);
          case 2:
            return any(t) << (any(t) & (t == Type::i32 ? 31 : 63));
          case 3:
            return shift_right_arithmetic(any(t), any(t) & (t == Type::i32 ? 31 : 63));
          default:
            return shift_right_logical(any(t), static_cast<int>(below(31)));
        }
      case 17:
        return fma(any(t), any(t), any(t));
      case 18:
        return below(2) ? round_even(any(t)) : trunc(any(t));
      default:
        if (t == Type::f32 && below(2)) return round_to(any(t), below(2) ? DType::f16 : DType::bf16);
        if (Expr power = round_even(any(t)); below(2))
          return scale_normal(any(t), select(eq(power, power), max(min(power, 127), -126), 0.0));
        else if (below(2))
          return scale_near_one(max(min(any(t), 2), 0.5), select(eq(power, power), max(min(power, 250), -250), 0.0));
        else
          return scale(any(t), max(min(power, 400), -400));
    }
  }
  DType stored(Type t) {
    for (;;)
      if (DType d = kStored[below(std::size(kStored))]; register_type(d) == t) return d;
  }
  void finish_phase(bool last) {
    Phase& phase = k_.kernel.phases.back();
    std::vector<Expr> reduced;
    size_t stores = below(3) + (last ? 1 : 0);
    for (size_t i = 0; i < stores; ++i) {
      Expr e = values_[values_.size() - 1 - below(std::min<size_t>(values_.size(), 6))];
      phase.stores.push_back(k_.to(stored(e.type()), e, below(6) ? Access::dense : Access::strided));
    }
    size_t reductions = below(3) + (phase.stores.empty() ? 1 : 0);
    for (size_t i = 0; i < reductions; ++i) reduced.push_back(reduction());
    std::vector<Expr> kept = reduced;
    if (below(2)) {
      Expr e = values_.back();
      k_.kernel.locals.push_back(e.type());
      phase.local_stores.push_back({static_cast<uint32_t>(k_.kernel.locals.size() - 1), e.value});
      kept.push_back(k_.b.local(static_cast<uint32_t>(k_.kernel.locals.size() - 1)));
    }
    for (Expr r : reduced)
      if (below(2)) phase.row_stores.push_back(k_.to(stored(r.type()), r, Access::uniform));
    values_ = kept;
  }

  std::mt19937_64 random_;
  bool ordered_;
  KernelBuilder k_;
  std::vector<Expr> values_;

 public:
  std::vector<Layout> layouts_;
  std::vector<uint32_t> tables_;
};

}  // namespace ingot::codegen::test
