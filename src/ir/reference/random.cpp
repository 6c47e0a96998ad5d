// Random numbers: Philox 4x32-10 (Salmon and others, SC 2011) in 32-bit words, and what is made of its bits.
#include <algorithm>

#include "ir/reference/elementwise.h"

namespace ingot::ir::reference {
namespace {

struct Bits {
  uint64_t word[2];
};

Bits philox(uint64_t seed, uint64_t position) {
  std::array<uint32_t, 4> x = {static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32), 0, 0};
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
    uint64_t even = uint64_t{0xD2511F53u} * x[0], odd = uint64_t{0xCD9E8D57u} * x[2];
    x = {static_cast<uint32_t>(odd >> 32) ^ x[1] ^ k0, static_cast<uint32_t>(odd),
         static_cast<uint32_t>(even >> 32) ^ x[3] ^ k1, static_cast<uint32_t>(even)};
  }
  return {{x[0] | uint64_t{x[1]} << 32, x[2] | uint64_t{x[3]} << 32}};
}

int64_t whole(const ReferenceContext& c, std::string_view name) { return c.argument(name).scalar.integer; }

/// Draw i of the call.
Bits draw(const ReferenceContext& c, int64_t i) {
  return philox(static_cast<uint64_t>(whole(c, "seed")),
                static_cast<uint64_t>(whole(c, "offset")) + static_cast<uint64_t>(i));
}

double fraction(uint64_t bits, int digits) {
  return std::ldexp(static_cast<double>(bits & ((uint64_t{1} << digits) - 1)), -digits);
}

int digits_of(DType dtype) {
  return dtype == DType::f64 ? 53 : dtype == DType::f32 ? 24 : dtype == DType::f16 ? 11 : 8;
}

double normal_of(Bits bits, DType dtype) {
  bool wide = dtype == DType::f64;
  double u = 1 - fraction(bits.word[0], wide ? 53 : 24);
  double turn = wide ? fraction(bits.word[1], 53) : fraction(bits.word[0] >> 32, 24);
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * kPi * turn);
}

template <class Value>
void each_draw(ReferenceContext& c, Value value) {
  ReferenceTensor& out = c.out();
  for (int64_t i = 0, n = out.size(); i < n; ++i) put(out, i, value(i));
}

}  // namespace

void random_bits(ReferenceContext& c) {
  const ReferenceTensor& counter = c.tensor("counter");
  int64_t word = c.integer("word") != 0;
  each_draw(c, [&](int64_t i) { return static_cast<int64_t>(draw(c, counter.integer[i]).word[word]); });
}

void rand(ReferenceContext& c) {
  each_draw(c, [&](int64_t i) { return fraction(draw(c, i).word[0], digits_of(c.out().dtype)); });
}

void randn(ReferenceContext& c) {
  each_draw(c, [&](int64_t i) { return normal_of(draw(c, i), c.out().dtype); });
}

void randint(ReferenceContext& c) {
  int64_t low = whole(c, "low"), range = minus(whole(c, "high"), low);
  using Wide = unsigned __int128;
  each_draw(c, [&](int64_t i) {
    Wide product = static_cast<Wide>(draw(c, i).word[0]) * static_cast<uint64_t>(range);
    return plus(low, static_cast<int64_t>(product >> 64));
  });
}

void randperm(ReferenceContext& c) {
  std::vector<std::pair<int64_t, int64_t>> keys;
  for (int64_t i = 0; i < c.out().size(); ++i) keys.emplace_back(static_cast<int64_t>(draw(c, i).word[0]), i);
  std::sort(keys.begin(), keys.end());
  each_draw(c, [&](int64_t i) { return keys[i].second; });
}

void uniform(ReferenceContext& c) {
  DType dtype = c.out().dtype, working = working_dtype(dtype);
  double from = c.number("from", working), to = c.number("to", working);
  each_draw(c, [&](int64_t i) { return fraction(draw(c, i).word[0], digits_of(dtype)) * (to - from) + from; });
}

void normal(ReferenceContext& c) {
  DType dtype = c.out().dtype;
  double mean = c.number("mean", working_dtype(dtype)), std = c.number("std", working_dtype(dtype));
  each_draw(c, [&](int64_t i) { return normal_of(draw(c, i), dtype) * std + mean; });
}

void exponential(ReferenceContext& c) {
  DType working = working_dtype(c.out().dtype);
  double rate = c.number("lambd", working);
  each_draw(c, [&](int64_t i) {
    return -std::log(1 - fraction(draw(c, i).word[0], working == DType::f64 ? 53 : 24)) / rate;
  });
}

void bernoulli(ReferenceContext& c) {
  std::string_view name = c.has("p") ? "p" : "self";
  const Argument& p = c.argument(name);
  bool dims = p.tensor && !p.tensor->shape.empty();
  Reader chance(c, p, c.out().shape, dims ? p.tensor->dtype : DType::f32);
  each_draw(c, [&](int64_t i) { return static_cast<double>(fraction(draw(c, i).word[0], 24) < chance.real(i)); });
}

void multinomial(ReferenceContext& c) {
  const ReferenceTensor& weights = c.tensor("self");
  const int64_t size = weights.shape.back(), samples = c.out().shape.back();
  for (int64_t row = 0; row * samples < c.out().size(); ++row) {
    std::vector<double> w(weights.real.begin() + row * size, weights.real.begin() + (row + 1) * size);
    const double largest = *std::max_element(w.begin(), w.end());
    for (double& each : w) each /= largest;
    if (c.flag("replacement")) {
      std::vector<double> sums = w;
      for (int64_t i = 1; i < size; ++i) sums[i] += sums[i - 1];
      for (int64_t i = row * samples; i < (row + 1) * samples; ++i) {
        const double at = fraction(draw(c, i).word[0], 53) * sums.back();
        put(c.out(), i, static_cast<int64_t>(std::upper_bound(sums.begin(), sums.end(), at) - sums.begin()));
      }
      continue;
    }
    std::vector<std::pair<double, int64_t>> order;
    for (int64_t i = 0; i < size; ++i) {
      const double time = -std::log(1 - fraction(draw(c, row * size + i).word[0], 53));
      order.emplace_back(-w[i] / std::max(time, 0x1p-54), i);
    }
    std::stable_sort(order.begin(), order.end());
    for (int64_t i = 0; i < samples; ++i) put(c.out(), row * samples + i, order[static_cast<size_t>(i)].second);
  }
}

void dropout(ReferenceContext& c) {
  const ReferenceTensor& x = c.tensor("input");
  double p = c.number("p", working_dtype(x.dtype));
  each_draw(c, [&](int64_t i) {
    bool kept = fraction(draw(c, i).word[0], 24) >= to_working(c, DType::f32, p);
    return x.real[i] * (kept ? 1 / (1 - p) : 0.0);
  });
}

}  // namespace ingot::ir::reference
