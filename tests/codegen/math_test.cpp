// Math functions against MPFR: the bounds that the rows of the op table state.
#include "codegen/math/math.h"

#include <gtest/gtest.h>
#include <mpfr.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "codegen/elementwise.h"
#include "run_scalar.h"
#include "uniform.h"

namespace ingot::codegen {
namespace {

/// An MPFR number with room for the products of an f64 function.
struct Number {
  mpfr_t m;
  explicit Number(double x = 0) {
    mpfr_init2(m, 160);
    mpfr_set_d(m, x, MPFR_RNDN);
  }
  Number(const Number&) = delete;
  ~Number() { mpfr_clear(m); }
};

using Unary = int (*)(mpfr_t, mpfr_srcptr, mpfr_rnd_t);
using Binary = int (*)(mpfr_t, mpfr_srcptr, mpfr_srcptr, mpfr_rnd_t);

int sigmoid(mpfr_t y, mpfr_srcptr x, mpfr_rnd_t mode) {
  mpfr_neg(y, x, mode);
  mpfr_exp(y, y, mode);
  mpfr_add_ui(y, y, 1, mode);
  return mpfr_ui_div(y, 1, y, mode);
}

int rsqrt(mpfr_t y, mpfr_srcptr x, mpfr_rnd_t mode) {
  mpfr_sqrt(y, x, mode);
  return mpfr_ui_div(y, 1, y, mode);
}

// 0 below 2^-26, as the row defines it.
int tanhshrink(mpfr_t y, mpfr_srcptr x, mpfr_rnd_t mode) {
  if (mpfr_zero_p(x) || (mpfr_number_p(x) && mpfr_get_exp(x) <= -26)) return mpfr_set_ui(y, 0, mode);
  if (mpfr_inf_p(x)) return mpfr_set(y, x, mode);
  Number t;
  mpfr_set_prec(t.m, 400);
  mpfr_tanh(t.m, x, mode);
  return mpfr_sub(y, x, t.m, mode);
}

int reciprocal_of_one_plus_exp(mpfr_t y, mpfr_srcptr x, mpfr_srcptr numerator) {
  Number e;
  mpfr_neg(e.m, x, MPFR_RNDN);
  mpfr_exp(e.m, e.m, MPFR_RNDN);
  mpfr_add_ui(e.m, e.m, 1, MPFR_RNDN);
  return mpfr_div(y, numerator, e.m, MPFR_RNDN);
}
int silu(mpfr_t y, mpfr_srcptr x, mpfr_rnd_t) { return reciprocal_of_one_plus_exp(y, x, x); }

int gelu(mpfr_t y, mpfr_srcptr x, mpfr_rnd_t mode) {
  Number root(2), t;
  mpfr_sqrt(root.m, root.m, mode);
  mpfr_div(t.m, x, root.m, mode);
  mpfr_neg(t.m, t.m, mode);
  mpfr_erfc(t.m, t.m, mode);
  mpfr_div_ui(t.m, t.m, 2, mode);
  return mpfr_mul(y, t.m, x, mode);
}

// log(1 + e^x), x itself past PyTorch's threshold.
int log_of_one_plus_exp(mpfr_t y, mpfr_srcptr x, mpfr_rnd_t mode) {
  if (mpfr_inf_p(x) || mpfr_cmp_ui(x, 2000) > 0)
    return mpfr_sgn(x) > 0 ? mpfr_set(y, x, mode) : mpfr_set_ui(y, 0, mode);
  Number e;
  mpfr_exp(e.m, x, mode);
  return mpfr_log1p(y, e.m, mode);
}
int softplus(mpfr_t y, mpfr_srcptr x, mpfr_rnd_t mode) {
  return mpfr_cmp_ui(x, 20) > 0 ? mpfr_set(y, x, mode) : log_of_one_plus_exp(y, x, mode);
}
int logsigmoid(mpfr_t y, mpfr_srcptr x, mpfr_rnd_t mode) {
  Number t;
  mpfr_neg(t.m, x, mode);
  log_of_one_plus_exp(y, t.m, mode);
  return mpfr_neg(y, y, mode);
}
int mish(mpfr_t y, mpfr_srcptr x, mpfr_rnd_t mode) {
  Number t;
  log_of_one_plus_exp(t.m, x, mode);
  mpfr_tanh(t.m, t.m, mode);
  return mpfr_mul(y, t.m, x, mode);
}
int elu(mpfr_t y, mpfr_srcptr x, mpfr_rnd_t mode) {
  return mpfr_sgn(x) > 0 ? mpfr_set(y, x, mode) : mpfr_expm1(y, x, mode);
}
int selu(mpfr_t y, mpfr_srcptr x, mpfr_rnd_t mode) {
  const bool below = mpfr_sgn(x) <= 0;
  elu(y, x, mode);
  if (below) mpfr_mul_d(y, y, 1.6732632423543772, mode);
  return mpfr_mul_d(y, y, 1.0507009873554805, mode);
}
int logit(mpfr_t y, mpfr_srcptr x, mpfr_rnd_t mode) {
  Number t;
  mpfr_ui_sub(t.m, 1, x, mode);
  mpfr_div(t.m, x, t.m, mode);
  return mpfr_log(y, t.m, mode);
}
int softsign(mpfr_t y, mpfr_srcptr x, mpfr_rnd_t mode) {
  Number t;
  mpfr_abs(t.m, x, mode);
  mpfr_add_ui(t.m, t.m, 1, mode);
  return mpfr_div(y, x, t.m, mode);
}
int lgamma(mpfr_t y, mpfr_srcptr x, mpfr_rnd_t mode) {
  int sign;
  return mpfr_lgamma(y, &sign, x, mode);
}

int erfcx(mpfr_t y, mpfr_srcptr x, mpfr_rnd_t mode) {
  if (mpfr_inf_p(x)) return mpfr_sgn(x) > 0 ? mpfr_set_ui(y, 0, mode) : mpfr_abs(y, x, mode);
  Number t;
  mpfr_sqr(t.m, x, mode);
  if (mpfr_sgn(x) > 0 && mpfr_get_exp(x) > 14) {
    // 1 / (x sqrt pi) (1 - w / 2 + 3/4 w^2) of w = x^-2: erfc itself is too small for MPFR.
    mpfr_ui_div(t.m, 1, t.m, mode);
    mpfr_mul_d(y, t.m, 0.75, mode);
    mpfr_sub_d(y, y, 0.5, mode);
    mpfr_mul(y, y, t.m, mode);
    mpfr_add_ui(y, y, 1, mode);
    mpfr_div(y, y, x, mode);
    mpfr_const_pi(t.m, mode);
    mpfr_sqrt(t.m, t.m, mode);
    return mpfr_div(y, y, t.m, mode);
  }
  mpfr_exp(t.m, t.m, mode);
  mpfr_erfc(y, x, mode);
  return mpfr_mul(y, y, t.m, mode);
}

/// A function of one number and what MPFR has for it; its bounds stand in its row of the op table.
struct Function {
  OpId op;
  Unary oracle;
  size_t every = 1;  // of the inputs: MPFR's gamma functions are slow
};
struct Function2 {
  const char* name;
  Expr (*two)(Expr, Expr);
  Binary oracle;
  double f32, f64;  // bounds, in units in the last place
};

const Function kFunctions[] = {
    {OpId::sqrt, mpfr_sqrt},    {OpId::rsqrt, rsqrt},
    {OpId::exp, mpfr_exp},      {OpId::exp2, mpfr_exp2},
    {OpId::expm1, mpfr_expm1},  {OpId::sigmoid, sigmoid},
    {OpId::tanh, mpfr_tanh},    {OpId::tanhshrink, tanhshrink},
    {OpId::sinh, mpfr_sinh},    {OpId::cosh, mpfr_cosh},
    {OpId::log, mpfr_log},      {OpId::log2, mpfr_log2},
    {OpId::log10, mpfr_log10},  {OpId::log1p, mpfr_log1p},
    {OpId::asinh, mpfr_asinh},  {OpId::acosh, mpfr_acosh},
    {OpId::atanh, mpfr_atanh},  {OpId::erf, mpfr_erf},
    {OpId::erfc, mpfr_erfc},    {OpId::erfcx, erfcx},
    {OpId::sin, mpfr_sin},      {OpId::cos, mpfr_cos},
    {OpId::tan, mpfr_tan},      {OpId::asin, mpfr_asin},
    {OpId::acos, mpfr_acos},    {OpId::atan, mpfr_atan},
    {OpId::lgamma, lgamma, 16}, {OpId::digamma, mpfr_digamma, 16},
    {OpId::silu, silu},         {OpId::gelu, gelu},
    {OpId::softplus, softplus}, {OpId::logsigmoid, logsigmoid},
    {OpId::mish, mish},         {OpId::elu, elu},
    {OpId::selu, selu},         {OpId::logit, logit},
    {OpId::softsign, softsign},
};
const Function2 kFunctions2[] = {
    {"atan2", math::atan2, mpfr_atan2, 1, 2},
    {"pow", math::pow, mpfr_pow, 1, 1.5},
    {"hypot", math::hypot, mpfr_hypot, 1, 1.5},
    {"fmod", math::fmod, mpfr_fmod, 0, 0},
};

template <class T>
constexpr DType kDType = sizeof(T) == 4 ? DType::f32 : DType::f64;

template <class T, class Define>
std::vector<T> evaluate(Define define, std::vector<T>& x, std::vector<T>& y) {
  Kernel k;
  k.buffers = {{kDType<T>}, {kDType<T>}, {kDType<T>, Access::dense, true}};
  Builder b(k);
  Expr a = b.load(0), c = b.load(1);
  Phase p;
  p.stores = {{2, define(a, c).value}};
  k.phases = {p};
  std::vector<T> out(x.size());
  test::Call call;
  call.columns = static_cast<int64_t>(x.size());
  call.buffers = {x.data(), y.data(), out.data()};
  call.run(k);
  return out;
}

/// Of any exponent, of ordinary size, and around 1, with the special values in every pair.
template <class T>
void make_inputs(std::vector<T>& x, std::vector<T>& y) {
  using Limits = std::numeric_limits<T>;
  const T special[] = {0,
                       -T(0),
                       1,
                       -1,
                       2,
                       3,
                       T(0.5),
                       Limits::infinity(),
                       -Limits::infinity(),
                       Limits::quiet_NaN(),
                       Limits::max(),
                       Limits::min(),
                       Limits::denorm_min(),
                       -Limits::denorm_min(),
                       Limits::lowest()};
  for (T a : special)
    for (T b : special) {
      x.push_back(a);
      y.push_back(b);
    }
  std::mt19937_64 rng(3);
  auto uniform = [&](double low, double high) { return ingot::test::uniform<double>(rng, low, high); };
  auto scaled = [&](int low, int high) {
    double v = std::ldexp(uniform(1, 2), low + static_cast<int>(rng() % static_cast<uint64_t>(high - low)));
    return static_cast<T>(rng() % 2 ? -v : v);
  };
  for (int i = 0; i < 12000; ++i) {
    switch (i % 4) {
      case 0:
        x.push_back(scaled(Limits::min_exponent - Limits::digits, Limits::max_exponent));
        break;
      case 1:
        x.push_back(static_cast<T>(uniform(-10, 10)));
        break;
      case 2:
        x.push_back(scaled(-14, 9));
        break;
      default:
        x.push_back(static_cast<T>(uniform(0.4, 2.5)));
        break;
    }
    switch (i % 3) {
      case 0:
        y.push_back(scaled(Limits::min_exponent - Limits::digits, Limits::max_exponent));
        break;
      case 1:
        y.push_back(scaled(-6, 8));
        break;
      default:
        y.push_back(static_cast<T>(static_cast<int>(rng() % 41) - 20));
        break;
    }
  }
}

/// Distance of a result from the exact one, in units in the last place of T there.
template <class T>
double error_of(T got, mpfr_srcptr exact, mpfr_srcptr operand = nullptr) {
  using Limits = std::numeric_limits<T>;
  if (mpfr_nan_p(exact) || std::isnan(got)) return mpfr_nan_p(exact) && std::isnan(got) ? 0 : INFINITY;
  T rounded =
      sizeof(T) == 4 ? static_cast<T>(mpfr_get_flt(exact, MPFR_RNDN)) : static_cast<T>(mpfr_get_d(exact, MPFR_RNDN));
  if (got == rounded) return got == 0 && std::signbit(got) != (mpfr_signbit(exact) != 0) ? INFINITY : 0.5;
  if (std::isinf(got))
    return std::abs(rounded) == Limits::max() && std::signbit(got) == std::signbit(rounded) ? 1 : INFINITY;
  if (std::isinf(rounded))
    return std::abs(got) == Limits::max() && std::signbit(got) == std::signbit(rounded) ? 1 : INFINITY;
  Number difference(static_cast<double>(got));
  mpfr_sub(difference.m, difference.m, exact, MPFR_RNDN);
  long exponent = mpfr_zero_p(exact) ? Limits::min_exponent : mpfr_get_exp(exact);
  if (operand && mpfr_regular_p(operand)) exponent = std::max<long>(exponent, mpfr_get_exp(operand));
  long unit = std::max<long>(exponent, Limits::min_exponent) - Limits::digits;
  mpfr_mul_2si(difference.m, difference.m, -unit, MPFR_RNDN);
  return std::abs(mpfr_get_d(difference.m, MPFR_RNDN));
}

template <class T, class Define, class Oracle>
void check(const std::string& name, double bound, Define define, Oracle oracle, bool of_operand = false,
           size_t every = 1) {
  std::vector<T> x, y;
  make_inputs(x, y);
  std::vector<T> out = evaluate<T>(define, x, y);
  double worst = 0;
  size_t at = 0;
  Number exact;
  for (size_t i = 0; i < x.size(); i += every) {
    Number a(static_cast<double>(x[i])), b(static_cast<double>(y[i]));
    oracle(exact.m, a.m, b.m);
    double error = error_of(out[i], exact.m, of_operand ? a.m : nullptr);
    // An exact function may still have to round denormal results of f32 computed in f64: none does here.
    if (error > worst) {
      worst = error;
      at = i;
    }
  }
  EXPECT_LE(worst, std::max(bound, 0.5)) << name << (sizeof(T) == 4 ? " f32" : " f64") << " at " << x[at] << " "
                                         << y[at] << ": " << out[at];
}

TEST(Math, FunctionsOfOneNumberKeepTheirBounds) {
  for (const Function& f : kFunctions) {
    const ir::OpInfo& row = ir::info(f.op);
    auto define = [&](Expr a, Expr) {
      std::vector<Expr> operands(static_cast<size_t>(row.operand_count));
      operands[0] = a;
      const ir::Attr mode = ir::Attr::mode(0);
      const DType dtype = a.type() == Type::f32 ? DType::f32 : DType::f64;
      return define_elementwise(f.op, {*a.builder, operands, {&mode, 1}, dtype, dtype});
    };
    auto oracle = [&](mpfr_t y, mpfr_srcptr a, mpfr_srcptr) { f.oracle(y, a, MPFR_RNDN); };
    check<float>(std::string(row.name), row.accuracy.f32, define, oracle, row.accuracy.of_operand, f.every);
    check<double>(std::string(row.name), row.accuracy.f64, define, oracle, row.accuracy.of_operand, f.every);
  }
}

TEST(Math, FunctionsOfTwoNumbersKeepTheirBounds) {
  for (const Function2& f : kFunctions2) {
    auto oracle = [&](mpfr_t y, mpfr_srcptr a, mpfr_srcptr b) { f.oracle(y, a, b, MPFR_RNDN); };
    check<float>(f.name, f.f32, f.two, oracle);
    check<double>(f.name, f.f64, f.two, oracle);
  }
}

// (1 + erf(x / sqrt 2)) / 2 has an absolute bound: gelu multiplies it by x.
template <class T>
void check_normal_cdf(double bound) {
  std::vector<T> x, y;
  make_inputs(x, y);
  std::vector<T> out = evaluate<T>([](Expr a, Expr) { return math::normal_cdf(a); }, x, y);
  Number root(2), exact;
  mpfr_sqrt(root.m, root.m, MPFR_RNDN);
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i])) {
      EXPECT_TRUE(std::isnan(out[i]));
      continue;
    }
    Number a(static_cast<double>(-x[i]));
    mpfr_div(a.m, a.m, root.m, MPFR_RNDN);
    mpfr_erfc(exact.m, a.m, MPFR_RNDN);
    mpfr_div_ui(exact.m, exact.m, 2, MPFR_RNDN);
    mpfr_sub_d(exact.m, exact.m, static_cast<double>(out[i]), MPFR_RNDN);
    EXPECT_LE(std::abs(mpfr_get_d(exact.m, MPFR_RNDN)), bound) << x[i];
  }
}

TEST(Math, NormalDistribution) {
  check_normal_cdf<float>(0x1p-23);
  check_normal_cdf<double>(0x1p-52);
}

}  // namespace
}  // namespace ingot::codegen
