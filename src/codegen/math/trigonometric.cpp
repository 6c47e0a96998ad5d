// Sine, cosine and tangent: x = n pi / 2 + r with |r| <= pi / 4, minimax polynomials for sin r and cos r
// (tools/minimax.py), and which of them with which sign from n mod 4. n pi / 2 is taken off in three parts (W. J. Cody
// and W. Waite, Software Manual for the Elementary Functions, 1980); large arguments multiply by the bits of 2 / pi
// that matter (M. Payne and R. Hanek, Radian reduction for trigonometric functions, 1983).
#include <vector>

#include "codegen/math/pair.h"

namespace ingot::codegen::math {
namespace {

/// x = quadrant * pi / 2 + high + low; the quadrant mod 4 stands in the last two bits of an integer of the size of x.
struct Angle {
  Expr high, low, quadrant;
};

// 64 zero bits, then 1 / pi from the bit of weight 1/2 on.
constexpr uint32_t kInversePi[] = {0,          0,          0x517cc1b7, 0x27220a94, 0xfe13abe8, 0xfa9a6ee0, 0x6db14acc,
                                   0x9e21c820, 0xff28b1d5, 0xef5de2b0, 0xdb92371d, 0x2126e970, 0x03249775, 0x04e8c90e,
                                   0x7f0ef58e, 0x5894d39f, 0x74411afa, 0x975da242, 0x74ce3813, 0x5a2fbf20, 0x9cc8eb1c,
                                   0xc1a99cfa, 0x4e422fc5, 0xdefc941d, 0x8ffc4bff, 0xef02cc07, 0xf79788c5, 0xad05368f,
                                   0xb69b3f67, 0x93e584db, 0xa7a31fb3, 0x4f2ff516, 0xba93dd63, 0xf5f2f8bd, 0x9e839cfb,
                                   0xc5294975, 0x35fdafd8, 0x8fc6ae84, 0x2b019823, 0x7e3db5d5, 0xf867de10};

Expr word(Builder& b, size_t i) {
  uint64_t high = i < std::size(kInversePi) ? kInversePi[i] : 0,
           low = i + 1 < std::size(kInversePi) ? kInversePi[i + 1] : 0;
  return b.bits(Type::i64, high << 32 | low);
}

// The 64-bit words that start at 32-bit word `index`, index + 2, ... (`count` of them): one bit of the index at a time
// halves what is left.
std::vector<Expr> pick_words(Expr index, int greatest, size_t count) {
  Builder& b = *index.builder;
  int bits = 1;
  while (greatest >> bits) ++bits;
  const size_t behind = 2 * (count - 1);
  std::vector<Expr> words;
  for (size_t i = 0; i < (size_t(1) << bits) + behind; ++i) words.push_back(word(b, i));
  for (int bit = bits - 1; bit >= 0; --bit) {
    size_t half = size_t(1) << bit;
    Expr upper = ne(index & (int64_t(1) << bit), 0);
    for (size_t i = 0; i < half + behind; ++i) words[i] = select(upper, words[i + half], words[i]);
    words.resize(half + behind);
  }
  std::vector<Expr> picked;
  for (size_t i = 0; i < count; ++i) picked.push_back(words[2 * i]);
  return picked;
}

Expr shifted_pair(Expr high, Expr low, Expr shift) {
  return (high << shift) | shift_right_logical(shift_right_logical(low, 1), 63 - shift);
}

// The upper 64 bits of a product of unsigned numbers, m < 2^53.
Expr high_product(Expr m, Expr w) {
  Expr m_high = shift_right_logical(m, 32), m_low = m & 0xffffffff;
  Expr w_high = shift_right_logical(w, 32), w_low = w & 0xffffffff;
  Expr first = m_low * w_high + shift_right_logical(m_low * w_low, 32);
  Expr second = m_high * w_low + (first & 0xffffffff);
  return m_high * w_high + shift_right_logical(first, 32) + shift_right_logical(second, 32);
}

// The bits of 1 / pi for t = m 2^k: the one that has weight 1 after the product with 2^k stands at k + 63.
struct Window {
  Expr m, at;
};
Window window_of(Expr bits, int mantissa_bits, int bias) {
  Expr m = (bits & ((int64_t(1) << mantissa_bits) - 1)) | (int64_t(1) << mantissa_bits);
  return {m, shift_right_logical(bits, mantissa_bits) - (bias + mantissa_bits - 63)};
}

// y in units of 2^-62 is a quadrant (mod 4) and a remainder in [-1/2, 1/2), which replaces y.
Expr take_quadrant(Expr& y) {
  Expr quadrant = shift_right_logical(y + (int64_t(1) << 61), 62);
  y = y - (quadrant << 62);
  return quadrant;
}

// For t >= 2^13: 96 bits of 1 / pi give t / (pi / 2) mod 4 to 2^-61.
Angle reduce_large_f32(Expr t) {
  auto [m, at] = window_of(convert(bitcast(t), Type::i64), 23, 127);
  std::vector<Expr> w = pick_words(shift_right_logical(at, 5), (127 - 23 + 63) >> 5, 2);
  Expr shift = at & 31;
  Expr y = m * shifted_pair(w[0], w[1], shift) + shift_right_logical(m * shift_right_logical(w[1] << shift, 32), 32);
  Expr quadrant = take_quadrant(y);
  Expr r = convert(y, Type::f64) * (kHalfPi * 0x1p-62), high = convert(r, Type::f32);
  return {high, convert(r - convert(high, Type::f64), Type::f32), convert(quadrant, Type::i32)};
}

// For t >= 2^30: 192 bits of 1 / pi.
Angle reduce_large_f64(Expr t) {
  constexpr int64_t kTop = std::numeric_limits<int64_t>::min();
  auto [m, at] = window_of(bitcast(t), 52, 1023);
  std::vector<Expr> w = pick_words(shift_right_logical(at, 5), (1023 - 52 + 63) >> 5, 4);
  Expr shift = at & 31;
  Expr w0 = shifted_pair(w[0], w[1], shift), w1 = shifted_pair(w[1], w[2], shift), w2 = shifted_pair(w[2], w[3], shift);
  // y = t / (pi / 2) mod 4 in units of 2^-62, with 64 bits of fraction more.
  Expr part = m * w1, low = part + high_product(m, w2);
  Expr carry = convert((low ^ kTop) < (part ^ kTop), Type::i64);
  Expr y = m * w0 + high_product(m, w1) + carry;
  Expr quadrant = take_quadrant(y);
  // y as a sum of two f64, times pi / 2.
  Expr first = convert(shift_right_arithmetic(y, 10), Type::f64) * 0x1p-52;
  Expr second = convert(((y & 0x3ff) << 53) | shift_right_logical(low, 11), Type::f64) * 0x1p-115;
  Expr high = first + second, rest = second - (high - first);
  Expr r = high * kHalfPi;
  Expr r_low = fma(high, kHalfPi, -r) + fma(high, 0x1.1a62633145c07p-54, rest * kHalfPi);
  return {r, r_low, quadrant};
}

// The nearest n by adding 1.5 2^52 (f32: 2^23), which leaves n mod 4 in the last bits.
struct Multiple {
  Expr n, quadrant;
};
Multiple nearest_multiple(Expr t) {
  double magic = t.type() == Type::f32 ? 0x1.8p23 : 0x1.8p52;
  Expr m = fma(t, 0x1.45f306dc9c883p-1, magic);
  return {m - magic, bitcast(m)};
}

// For 0 <= t <= 2^30. The first difference is exact; the second keeps its rounding error.
Angle reduce_f64(Expr t) {
  auto [n, quadrant] = nearest_multiple(t);
  Expr first = fma(n, -kHalfPi, t);
  Expr p = n * 0x1.1a62633145c06p-54, p_low = fma(n, 0x1.1a62633145c06p-54, -p);
  Expr r = first - p, lost = (first - r) - p;
  return {r, fma(n, -0x1.c1cd129024e08p-107, lost - p_low), quadrant};
}

// For 0 <= t <= 8192; the first difference is exact here too.
Angle reduce_f32(Expr t) {
  auto [n, quadrant] = nearest_multiple(t);
  Expr next = n * -0x1.4442dp-24;
  Pair r = sum(fma(n, -0x1.921fb4p0, t), next);
  return {r.high, fma(n, -0x1.846988p-48, r.low - fma(n, 0x1.4442dp-24, next)), quadrant};
}

struct SineCosine {
  Expr sine, cosine;
};

// cos r = 1 - r^2 / 2 + ..., where the low part takes what the first difference loses.
SineCosine of_remainder_f32(Expr r, Expr low) {
  Expr square = r * r;
  Expr p = polynomial(square, {-0x1.555556p-3, 0x1.111112p-7, -0x1.a009ep-13, 0x1.6cb4aep-19});
  Expr q = polynomial(square, {0x1.55554ap-5, -0x1.6c0c22p-10, 0x1.99e524p-16});
  Expr high = fma(square, -0.5, 1.0), lost = fma(square, -0.5, 1.0 - high);
  Expr cosine = high + (fma(square * square, q, lost) - low * r);
  return {fma(r * square, p, low * cosine) + r, cosine};
}

// sin(r + low) = sin r + low cos r and cos(r + low) = cos r - low sin r.
SineCosine of_remainder_f64(Expr r, Expr low) {
  Expr square = r * r;
  Expr p = polynomial(square, {-0x1.5555555555548p-3, 0x1.111111110f74cp-7, -0x1.a01a019bed048p-13,
                               0x1.71de3558a29b9p-19, -0x1.ae5e4e4df57e6p-26, 0x1.5d8c29bd8f1fp-33});
  Expr q = polynomial(square, {-0.5, 0x1.555555555554ap-5, -0x1.6c16c16c14ee7p-10, 0x1.a01a019c757adp-16,
                               -0x1.27e4f7dfb1da3p-22, 0x1.1ee9d001d6f67p-29, -0x1.8fa087697992fp-37});
  return {fma(r * square, p, fma(square * -0.5, low, low)) + r, fma(square, q, low * -r) + 1.0};
}

SineCosine of_remainder(const Angle& x) {
  return x.high.type() == Type::f32 ? of_remainder_f32(x.high, x.low) : of_remainder_f64(x.high, x.low);
}

// tan(high + low) or -1 / tan of it.
Expr tangent_f32(const Angle& x, Expr odd) {
  Expr r = x.high, square = r * r;
  Expr p = polynomial(
      square, {0x1.55555cp-2, 0x1.110e16p-3, 0x1.bad378p-5, 0x1.5c95e4p-6, 0x1.65463cp-7, -0x1.7194p-15, 0x1.24496p-8});
  Pair tail = product(square * p, r);
  Expr whole = r + tail.high, square_low = fma(r, r, -square);
  tail.low = fma(square_low * p, r, tail.low) + fma(whole * whole, x.low, x.low);
  Pair t = fast_sum(r, tail.high);
  t.low = t.low + tail.low;
  Expr d = select(odd, t.high, lift(r, 1.0));
  return quotient({select(odd, lift(r, -1.0), t.high), select(odd, lift(r, 0.0), t.low)}, {d, select(odd, t.low, 0.0)});
}

enum class Function { sine, cosine, tangent };

/// The function of |x|; an odd one still has to take the sign of x.
Expr of_positive(Function function, const Angle& x) {
  Expr quadrant = function == Function::cosine ? x.quadrant + 1 : x.quadrant;
  Expr odd = ne(quadrant & 1, 0);
  if (function == Function::tangent && x.high.type() == Type::f32) return tangent_f32(x, odd);
  SineCosine y = of_remainder(x);
  int top = codegen::size_of(quadrant.type()) == 4 ? 31 : 63;
  if (function == Function::tangent) {
    Expr ratio = select(odd, y.cosine, y.sine) / select(odd, y.sine, y.cosine);
    return bitcast(bitcast(ratio) ^ (quadrant << top));
  }
  return bitcast(bitcast(select(odd, y.cosine, y.sine)) ^ ((quadrant & 2) << (top - 1)));
}

/// NaN and infinity take the way of large arguments.
Expr circular(Function function, Expr x) {
  bool narrow = x.type() == Type::f32;
  Expr t = abs(x);
  auto with_sign = [&](Expr y) { return function == Function::cosine ? y : bitcast(bitcast(y) ^ sign_bit(x)); };
  Expr usual = with_sign(of_positive(function, narrow ? reduce_f32(t) : reduce_f64(t)));
  return x.builder->rare(~(t <= (narrow ? 0x1p13 : 0x1p30)), usual, [&] {
    Expr large = of_positive(function, narrow ? reduce_large_f32(t) : reduce_large_f64(t));
    return select(t < kInfinity, with_sign(large), kNaN);
  });
}

}  // namespace

Expr sin(Expr x) { return circular(Function::sine, x); }
Expr cos(Expr x) { return circular(Function::cosine, x); }
Expr tan(Expr x) { return circular(Function::tangent, x); }

}  // namespace ingot::codegen::math
