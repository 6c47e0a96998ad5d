// Bessel and Airy functions, in double: polynomials through the points of Chebyshev, computed with mpmath to more
// digits than a double has. Up to 8 of the function itself, less its singular part; beyond, of what an asymptotic
// expansion has in front of its exponential or around its phase (F. Olver, chapter 9 of M. Abramowitz and I. Stegun,
// Handbook of Mathematical Functions, 1964: 9.2.5, 9.2.6 and 9.7.1).
#include <cmath>
#include <limits>
#include <numbers>
#include <span>

#include "base/float_environment.h"
#include "eager/ops/checks.h"
#include "eager/ops/smooth_function.h"
#include "eager/ops/special.h"

namespace ingot {
namespace {

using eager::kInfinity;
using eager::smooth;
using std::numbers::pi;

constexpr double kEnd = 8;                              // of the first polynomial
constexpr double kEndOfThird = 2;                       // of that of K0 and K1
constexpr double kAiryOscillates = 4, kAiryDecays = 2;  // below the negative of the one, above the other

// exp(-x) I0(x) and exp(-x) I1(x) / x, of x / 4 - 1; times the root of x, of 16 / x - 1.
constexpr double kI0Small[] = {
    0.2070019212239867,    -0.11300432688620549,    0.09451562853995103,    -0.08904344136075962,
    0.08734341617552313,   -0.08496338091616305,    0.07927522590716347,    -0.06954119561719381,
    0.05677703201991695,   -0.04298594945479612,    0.030177912022978357,   -0.01968265469059234,
    0.011960077907026221,  -0.0067923998730731695,  0.003617126448897043,   -0.001811886793937724,
    0.0008563152748272306, -0.00038290209550065975, 0.00016240542162878106, -6.550861389620851e-05,
    2.520232727107692e-05, -9.251680584432654e-06,  3.2293390826404927e-06, -1.0883393970072518e-06,
    3.675842926555429e-07, -1.1384114641747256e-07, 2.6265363151970112e-08, -7.723094556846333e-09,
    4.470516727511741e-09, -1.1852342482684723e-09};
constexpr double kI1Small[] = {
    0.044687709875608835,  -0.061124338029666284,   0.0680575999095116,     -0.06848260620582691,
    0.06376740371340721,   -0.055280039226991644,   0.04467457262125467,    -0.03367135552108536,
    0.023686016957729535,  -0.015571309243980052,   0.009583962150731578,   -0.005534567847563678,
    0.0030057624197775295, -0.00153887456203039,    0.0007445123445061157,  -0.0003411760289073331,
    0.0001484212433475852, -6.142360299099794e-05,  2.4233753149624307e-05, -9.136543922789093e-06,
    3.293899139003749e-06, -1.1327072698408053e-06, 3.759367306404118e-07,  -1.2424759932738304e-07,
    3.802984785138283e-08, -8.984420960424589e-09,  2.603206542331157e-09,  -1.41695079121077e-09,
    3.7284532079392345e-10};
constexpr double kI0Large[] = {
    0.4021765094450081,     0.0033605519836678614,  0.0001362160743919305,  1.1143033790932038e-05,
    1.4838475658279249e-06, 2.9735985885673923e-07, 8.872219737904054e-08,  3.932584334552952e-08,
    2.1548377974791598e-08, 7.554691881248808e-09,  -6.747657956107524e-09, -1.340891754008974e-08,
    -5.404771567579958e-09, 7.552583062123384e-09,  7.430464650325426e-09,  -3.505966530879332e-09,
    -5.95356943826489e-09,  1.5200816953924232e-09, 3.6379546359011143e-09, -5.715843864202709e-10,
    -1.618980683624682e-09, 1.5279202694981569e-10, 4.577087631643623e-10,  -2.0260604287413626e-11,
    -6.067631570603006e-11};
constexpr double kI1Large[] = {
    0.38939845902587233,     -0.009749577193235737,   -0.00021923576383388928, -1.5038547200567216e-05,
    -1.8349101326980946e-06, -3.483855761044295e-07,  -1.0001288294864884e-07, -4.312917729178349e-08,
    -2.337392820814264e-08,  -8.427766093735185e-09,  6.734464815301592e-09,   1.4034238782067183e-08,
    5.974437608040264e-09,   -7.64239413436356e-09,   -7.888351507862078e-09,  3.4262341490077958e-09,
    6.242741219786445e-09,   -1.4387250533041013e-09, -3.794670896208339e-09,  5.295625441161261e-10,
    1.6848984479705146e-09,  -1.4011625179770627e-10, -4.758818838703853e-10,  1.8515118828852956e-11,
    6.305965197150057e-11};

// J0 and J1 / x, of x^2 / 32 - 1; Y0 - (2 / pi) log(x) J0 and (Y1 - (2 / pi) (log(x) J1 - 1 / x)) / x; P and Q x / 8 of
// Hankel's expansion, of 128 / x^2 - 1.
constexpr double kJ0Small[] = {0.04582966485981377,    0.9303012472958572,     -0.6484692830871837,
                               -0.8080888076696872,    1.0383794611437211,     -0.5074680458471,
                               0.14598884856759264,    -0.028472718610882047,  0.004058078989140991,
                               -0.0004435459224311503, 3.8473197855944365e-05, -2.717749223632098e-06,
                               1.5956109104549218e-07, -7.91532308295207e-09,  3.3634475788173604e-10,
                               -1.243301171273326e-11, 4.0037632815796753e-13};
constexpr double kJ1Small[] = {
    -0.05814382795599107,  0.08105866038589796,    0.15151665143806636,    -0.2595948652859303,
    0.15858376432721838,   -0.05474581821284722,   0.012456814392263375,   -0.0020290394945705996,
    0.0002494945813597261, -2.404574865968694e-05, 1.8684526037206013e-06, -1.196708186787801e-07,
    6.431190177265836e-09, -2.943013798001659e-10, 1.1658972367678622e-11, -4.0045728425886457e-13};
constexpr double kY0Small[] = {-0.382250654459425,      -0.8284358903604587,    1.6470964788745466,
                               0.14412632369302475,     -1.0775477338215995,    0.6721770783431679,
                               -0.21895747096171628,    0.046367047681375125,   -0.00702574105727097,
                               0.000806158605961636,    -7.279541882454115e-05, 5.3213188103997145e-06,
                               -3.2185078445935923e-07, 1.6390875014077404e-08, -7.13046146536789e-10,
                               2.6926938054524057e-11,  -8.840112096073101e-13};
constexpr double kY1Small[] = {
    0.07075985882118005,     -0.24337743079193114,  0.02336757172099348,    0.23507209206669755,
    -0.19639839859930203,    0.07854786922242532,   -0.01962875683311711,   0.0034224907399188495,
    -0.0004438173434420147,  4.467433012646365e-05, -3.601000022590458e-06, 2.3804930420514178e-07,
    -1.3153147367094951e-08, 6.169688029066965e-10, -2.499531546171249e-11, 8.760001143977853e-13};
constexpr double kP0[] = {0.9994572757882519,      -0.0005363673192129672, 6.137416080109497e-06,
                          -2.0527448261170675e-07, 1.280376144080092e-08,  -1.2121098178951377e-09,
                          1.5500565496632596e-10,  -2.491146535471666e-11, 4.786995821368028e-12,
                          -1.0157485021065676e-12, 2.4531772967345006e-13, -1.0251790052831013e-13,
                          3.339452259070809e-14};
constexpr double kQ0[] = {-0.015555113879513518,  6.833149099344083e-05,  -1.477138832650122e-06,
                          7.106214852192226e-08,  -5.668716046704292e-09, 6.432789503382007e-10,
                          -9.4704131236215e-11,   1.7029372022291316e-11, -3.5884013838881433e-12,
                          8.689732394690306e-13,  -2.34205092942912e-13,  5.756325587995953e-14,
                          -1.642189437353317e-14, 1.2731367623367943e-14, -5.071762053003792e-15};
constexpr double kP1[] = {1.0009070262780821,     0.0008988049416705183,   -7.9596946984383e-06,
                          2.453676633366693e-07,  -1.4708512991275258e-08, 1.3602969253877949e-09,
                          -1.713107485294131e-10, 2.72345126828134e-11,    -5.191158004646548e-12,
                          1.0954826479277623e-12, -2.6335760672461096e-13, 1.0923713653079462e-13,
                          -3.5455617466606254e-14};
constexpr double kQ1[] = {0.04677687402744898,    -9.621458822054632e-05,  1.8212018512314264e-06,
                          -8.291960701313517e-08, 6.420132496338991e-09,   -7.151113611051071e-10,
                          1.0395096687547827e-10, -1.8520736145988993e-11, 3.875456046538219e-12,
                          -9.33138059712287e-13,  2.503410968458231e-13,   -6.144675787095688e-14,
                          1.7495330566839966e-14, -1.3449019339973269e-14, 5.344527277743522e-15};

// K0 + log(x / 2) I0 and (x K1 - 1 - x log(x / 2) I1) / x^2, of x^2 / 2 - 1; times exp(x) and the root of x, of
// 4 / x - 1.
constexpr double kK0Small[] = {-0.30362077291575545,  0.3404973210133806,     0.07177701034240512,
                               0.005053392643196092,  0.00018280555827901256, 4.054506619949891e-06,
                               6.093361934166002e-08, 6.623013272794464e-10,  5.45210758976468e-12,
                               3.518631515801595e-14, 1.8282920316203465e-16};
constexpr double kK1Small[] = {-0.057455856135205326,   -0.10866462148495122,    -0.013254642948920608,
                               -0.0006724746609653153,  -1.9109762342337995e-05, -3.4958297951001923e-07,
                               -4.473708999196593e-09,  -4.235477487577751e-11,  -3.0890071516792656e-13,
                               -1.7896636751789106e-15, -8.43709692702938e-18};
constexpr double kK0Large[] = {
    1.2185953385133905,     -0.031071461824889523,   0.0030328918102739454,   -0.0004797690567658713,
    9.956054748575022e-05,  -2.473520457096165e-05,  7.0022444255986085e-06,  -2.191177672686996e-06,
    7.427918745301117e-07,  -2.6890740183537945e-07, 1.028875394812628e-07,   -4.133603551539714e-08,
    1.7288102250486044e-08, -7.294807830568568e-09,  3.237899704197692e-09,   -1.9163886235149194e-09,
    9.50126795470238e-10,   1.6249121403085222e-10,  -1.2974622316235225e-10, -5.425392268826551e-10,
    3.1302580587365775e-10, 2.1672329094976382e-10,  -1.286822465377347e-10,  -6.82912231113288e-11,
    3.96355256263508e-11};
constexpr double kK1Large[] = {
    1.363151890371342,       0.10334973775386523,     -0.005566729880073094,   0.0007357241549077615,
    -0.00013959021963384766, 3.284386556850026e-05,   -8.961206061895131e-06,  2.730041309124799e-06,
    -9.067215327593673e-07,  3.229820302740851e-07,   -1.219592991740941e-07,  4.84585048883485e-08,
    -2.0078990564218355e-08, 8.418479670972575e-09,   -3.7119962979184724e-09, 2.1600738070102857e-09,
    -1.064142272258912e-09,  -1.6214964652946646e-10, 1.3403129134884593e-10,  5.917703107429806e-10,
    -3.4052380863530667e-10, -2.3491838521262873e-10, 1.392647707395567e-10,   7.437054315558186e-11,
    -4.3071978473211124e-11};

// Ai, of (x + 1) / 3; times 2 sqrt(pi) x^(1/4) exp(z) with z = 2 / 3 x^(3/2), of twice z at 2 over z less 1; P and Q z
// of its expansion at -x, of twice the square of z at 4 over z less 1.
constexpr double kAiryNear[] = {
    0.5355608832923521,     -0.030481701349935622,   -2.410023974815571,     2.4557465268404846,
    1.7389341530733304,     -4.3586183030790036,     1.688491628263701,      2.0518758776286545,
    -2.3728414082643323,    0.37669987600006666,     0.8528469083137501,     -0.613245609215131,
    0.018903569055018308,   0.18298767897517954,     -0.09191068293168456,   -0.005411894470990453,
    0.024032453337451905,   -0.008944345846084664,   -0.0011837007885217364, 0.002132527162276694,
    -0.0006084816600367484, -0.00012156593463728943, 0.00013756539923763435, -3.055071662535166e-05,
    -9.010608727416889e-06, 6.832923749670081e-06,   -7.306754900556215e-07, -5.259545325967501e-07,
    1.2774651508219118e-07, 8.722810674137812e-09};
constexpr double kAiryLarge[] = {
    0.983679282828043,       -0.014613458724023247,   0.0014132014717028515,  -0.00022785221368840485,
    4.8463340538145154e-05,  -1.2354390756678582e-05, 3.587832900669974e-06,  -1.1510252662494373e-06,
    3.997093524096636e-07,   -1.4812636113155263e-07, 5.801773667635132e-08,  -2.379735386015867e-08,
    9.99234762282201e-09,    -4.396488383518083e-09,  2.4027096157916705e-09, -1.1719183348888062e-09,
    -5.857081685429259e-11,  8.099243227482072e-11,   6.070149495604203e-10,  -3.50073421904526e-10,
    -2.4438044698817276e-10, 1.459568246434664e-10,   8.319202972661437e-11,  -4.843286683941047e-11};
constexpr double kAiryP[] = {0.999363720981151,      -0.0006209941418028796, 1.4258707704894227e-05,
                             -9.054529364044547e-07, 1.0042139566285106e-07, -1.5925524010948765e-08,
                             3.2417833511874295e-09, -7.919365770811413e-10, 2.2306763023578285e-10,
                             -7.427366609792182e-11, 2.6314696602403106e-11, -4.894567283461339e-12,
                             1.4756745777989362e-12, -3.877702017549419e-12, 1.861129928869604e-12};
constexpr double kAiryQ[] = {0.06880857417665441,     -0.0006071316848869277, 2.601112707824911e-05,
                             -2.3247007282671343e-06, 3.229739578132961e-07,  -6.030172816234305e-08,
                             1.39175786516758e-08,    -3.768231772690732e-09, 1.1585931356986471e-09,
                             -3.934756365004472e-10,  1.3690019371995897e-10, -5.2620080925956345e-11,
                             3.537454178404652e-11,   -1.718376613277836e-11, -5.172048823415683e-12,
                             3.46014637735646e-12,    5.190334266445089e-12,  -2.894669075033989e-12};

/// A polynomial by Horner's rule, some elements at a time in registers: with the roundings of the ops below, one by
/// one.
__attribute__((always_inline)) inline void sum_terms(std::span<const double> factors, const double* x, double* y,
                                                     int64_t n) {
  constexpr int64_t kTogether = 32;
  for (int64_t begin = 0; begin < n; begin += kTogether) {
    double at[kTogether] = {}, sum[kTogether];
    const int64_t count = std::min(kTogether, n - begin);
    std::copy_n(x + begin, count, at);
    for (int64_t i = 0; i < kTogether; ++i) {
      const double first = at[i] * factors.back();
      sum[i] = first + factors[factors.size() - 2];
    }
    for (size_t term = factors.size() - 2; term-- > 0;)
      for (int64_t i = 0; i < kTogether; ++i) sum[i] = __builtin_fma(sum[i], at[i], factors[term]);
    std::copy_n(sum, count, y + begin);
  }
}
using SumTerms = void(std::span<const double>, const double*, double*, int64_t);
__attribute__((target("avx512f"))) void sum_terms_avx512(std::span<const double> factors, const double* x, double* y,
                                                         int64_t n) {
  sum_terms(factors, x, y, n);
}
__attribute__((target("avx2,fma"))) void sum_terms_avx2(std::span<const double> factors, const double* x, double* y,
                                                        int64_t n) {
  sum_terms(factors, x, y, n);
}
/// Null where the processor has no fma.
SumTerms* sum_terms_here() {
  if (__builtin_cpu_supports("avx512f")) return sum_terms_avx512;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? sum_terms_avx2 : nullptr;
}

// An eager call writes each sum to memory, which takes most of the time of these functions: there they stay in
// registers. What is recorded is fused, and has the same bits.
template <size_t kCount>
Tensor polynomial(const double (&factors)[kCount], const Tensor& x) {
  SumTerms* const sums = sum_terms_here();
  if (sums && !eager::intercepted() && !x.requires_grad() && x.dtype() == kFloat64 && x.is_contiguous()) {
    const Tensor result = empty_like(x);
    const std::span<const double> all(factors);
    const double* from = x.data_ptr<double>();
    double* to = result.mutable_data_ptr<double>();
    const int64_t n = x.numel();
    constexpr int64_t kShare = 2048;  // elements for which a thread pays
    runtime::parallel(static_cast<int>(std::clamp<int64_t>(n / kShare, 1, num_threads())),
                      [&](int thread, int threads) {
                        const FloatEnvironment environment;
                        const runtime::Range range = runtime::share(n, thread, threads, 32);
                        sums(all, from + range.begin, to + range.begin, range.end - range.begin);
                      });
    return result;
  }
  Tensor sum = x * factors[kCount - 1] + factors[kCount - 2];
  for (size_t i = kCount - 2; i-- > 0;) sum = addcmul(scalar_tensor(factors[i], kFloat64), sum, x);
  return sum;
}

/// One polynomial up to `end` and another one beyond, where a NaN goes, too. Each sees numbers of its own only; an
/// eager call computes no part that has none.
template <class Near, class Far>
Tensor in_two_parts(const Tensor& size, Near near, Far far, double end = kEnd) {
  const Tensor is_near = size <= end;
  if (!eager::intercepted()) {
    if (is_near.all().template item<bool>()) return near(size);
    if (!is_near.any().template item<bool>()) return far(size);
  }
  return where(is_near, near(where(is_near, size, end)), far(where(is_near, end, size)));
}

Tensor scaled_i0(const Tensor& x) {
  return in_two_parts(
      x.abs(), [](const Tensor& a) { return polynomial(kI0Small, a * 0.25 - 1); },
      [](const Tensor& a) { return polynomial(kI0Large, 16 / a - 1) / sqrt(a); });
}
Tensor scaled_i1(const Tensor& x) {
  const Tensor size = in_two_parts(
      x.abs(), [](const Tensor& a) { return polynomial(kI1Small, a * 0.25 - 1) * a; },
      [](const Tensor& a) { return polynomial(kI1Large, 16 / a - 1) / sqrt(a); });
  return where(x < 0, -size, size);
}
/// By exp(|x|), in two halves: the product is below infinity for longer than that.
Tensor unscaled(eager::Smooth scaled, const Tensor& x) {
  constexpr double kBeyond = 1500;
  const Tensor bounded = clamp(x, -kBeyond, kBeyond), half = exp(bounded.abs() * 0.5);
  return scaled(bounded) * half * half;
}

/// sqrt(2 / (pi x)) (P cos(x - phase) - Q sin(x - phase)), or for the second kind P sin + Q cos. The phase is an odd
/// multiple of pi / 4, so that sums of sin(x) and cos(x) stand for the functions of the difference.
template <int kOrder, bool kSecond>
Tensor oscillating(const Tensor& a) {
  const Tensor bounded = where(a == kInfinity, kEnd, a), inverse = kEnd / bounded, t = inverse * inverse * 2 - 1;
  const Tensor p = polynomial(kOrder ? kP1 : kP0, t), q = polynomial(kOrder ? kQ1 : kQ0, t) * inverse;
  const Tensor sine = sin(bounded), cosine = cos(bounded);
  // cos and sin of x - pi / 4 (order 0), x - 3 pi / 4 (order 1), times the root of 2.
  const Tensor sum = sine + cosine, difference = sine - cosine;
  const Tensor c = kOrder ? difference : sum, s = kOrder ? -sum : difference;
  const Tensor wave = kSecond ? p * s + q * c : p * c - q * s;
  return where(a == kInfinity, 0, wave / sqrt(bounded * pi));
}

Tensor first_kind_0(const Tensor& x) {
  return in_two_parts(
      x.abs(), [](const Tensor& a) { return polynomial(kJ0Small, a * a / 32 - 1); }, oscillating<0, false>);
}
Tensor first_kind_1(const Tensor& x) {
  const Tensor size = in_two_parts(
      x.abs(), [](const Tensor& a) { return polynomial(kJ1Small, a * a / 32 - 1) * a; }, oscillating<1, false>);
  return where(x < 0, -size, size);
}
/// -inf at 0, NaN below.
Tensor above_zero(const Tensor& x, const Tensor& value) {
  return where(x < 0, std::numeric_limits<double>::quiet_NaN(), where(x == 0, -kInfinity, value));
}
Tensor second_kind_0(const Tensor& x) {
  return above_zero(x, in_two_parts(
                           where(x <= 0, 1, x),
                           [](const Tensor& a) {
                             const Tensor t = a * a / 32 - 1;
                             return polynomial(kY0Small, t) + log(a) * polynomial(kJ0Small, t) * (2 / pi);
                           },
                           oscillating<0, true>));
}
Tensor second_kind_1(const Tensor& x) {
  return above_zero(x, in_two_parts(
                           where(x <= 0, 1, x),
                           [](const Tensor& a) {
                             const Tensor t = a * a / 32 - 1;
                             const Tensor regular =
                                 polynomial(kY1Small, t) + log(a) * polynomial(kJ1Small, t) * (2 / pi);
                             return regular * a - (2 / pi) / a;
                           },
                           oscillating<1, true>));
}

/// The third kind, which modifies the second: inf at 0, NaN below. Times exp(x), where it is `scaled`.
template <bool kScaled>
Tensor third_kind_0(const Tensor& x) {
  const auto scaled = [](const Tensor& a) { return kScaled ? exp(a) : ones_like(a); };
  const Tensor value = in_two_parts(
      where(x <= 0, 1, x),
      [&](const Tensor& a) {
        const Tensor regular = polynomial(kK0Small, a * a / 2 - 1), i0 = scaled_i0(a) * exp(a);
        return (regular - log(a / 2) * i0) * scaled(a);
      },
      [&](const Tensor& a) { return polynomial(kK0Large, 4 / a - 1) / sqrt(a) * (kScaled ? ones_like(a) : exp(-a)); },
      kEndOfThird);
  return -above_zero(x, -value);
}
template <bool kScaled>
Tensor third_kind_1(const Tensor& x) {
  const auto scaled = [](const Tensor& a) { return kScaled ? exp(a) : ones_like(a); };
  const Tensor value = in_two_parts(
      where(x <= 0, 1, x),
      [&](const Tensor& a) {
        const Tensor regular = polynomial(kK1Small, a * a / 2 - 1) * a, i1 = scaled_i1(a) * exp(a);
        return (1 / a + regular + log(a / 2) * i1) * scaled(a);
      },
      [&](const Tensor& a) { return polynomial(kK1Large, 4 / a - 1) / sqrt(a) * (kScaled ? ones_like(a) : exp(-a)); },
      kEndOfThird);
  return -above_zero(x, -value);
}

/// What Ai falls by, or turns by, up to x.
Tensor airy_phase(const Tensor& x) { return x * sqrt(x) * (2.0 / 3); }

Tensor airy(const Tensor& x) {
  const auto oscillating = [](const Tensor& a) {
    const Tensor z = airy_phase(a), inverse = 16.0 / 3 / z, t = inverse * inverse * 2 - 1;
    const Tensor p = polynomial(kAiryP, t), q = polynomial(kAiryQ, t) / z;
    const Tensor sine = sin(z), cosine = cos(z);  // their sum and difference, as in `oscillating`
    return (p * (sine + cosine) + q * (sine - cosine)) / sqrt(sqrt(a) * (2 * pi));
  };
  const auto decaying = [](const Tensor& a) {
    const Tensor z = airy_phase(a);
    return polynomial(kAiryLarge, 4.0 * std::numbers::sqrt2 / 3 * 2 / z - 1) * exp(-z) / sqrt(sqrt(a) * (4 * pi));
  };
  const auto others = [&](const Tensor& a) {
    return in_two_parts(
        -a, [](const Tensor& b) { return polynomial(kAiryNear, (1 - b) / 3); }, oscillating, kAiryOscillates);
  };
  const Tensor infinite = isinf(x);
  return where(infinite, std::numeric_limits<double>::quiet_NaN(),
               in_two_parts(where(infinite, 0, x), others, decaying, kAiryDecays));
}

/// value / x, at 0 its limit.
Tensor over(const Tensor& value, const Tensor& x, double limit) {
  const Tensor zero = x == 0;
  return where(zero, limit, value / where(zero, 1, x));
}

}  // namespace

Tensor i0(const TensorArg& self) { return special::i0(self); }
Tensor Tensor::i0(Location location) const { return special::i0({*this, location}); }

namespace special {

Tensor i0(const TensorArg& self) {
  return smooth(
      "i0", self, [](const Tensor& x) { return unscaled(scaled_i0, x); },
      [](const Tensor& x) { return special::i1(x); });
}
Tensor i0e(const TensorArg& self) {
  return smooth("special::i0e", self, scaled_i0, [](const Tensor& x) { return i1e(x) - sign(x) * i0e(x); });
}
Tensor i1(const TensorArg& self) {
  return smooth(
      "special::i1", self, [](const Tensor& x) { return unscaled(scaled_i1, x); },
      [](const Tensor& x) { return special::i0(x) - over(special::i1(x), x, 0.5); });
}
Tensor i1e(const TensorArg& self) {
  return smooth("special::i1e", self, scaled_i1,
                [](const Tensor& x) { return i0e(x) - over(i1e(x), x, 0.5) - sign(x) * i1e(x); });
}
Tensor bessel_j0(const TensorArg& self) {
  return smooth("special::bessel_j0", self, first_kind_0, [](const Tensor& x) { return -bessel_j1(x); });
}
Tensor bessel_j1(const TensorArg& self) {
  return smooth("special::bessel_j1", self, first_kind_1,
                [](const Tensor& x) { return bessel_j0(x) - over(bessel_j1(x), x, 0.5); });
}
Tensor bessel_y0(const TensorArg& self) {
  return smooth("special::bessel_y0", self, second_kind_0, [](const Tensor& x) { return -bessel_y1(x); });
}
Tensor bessel_y1(const TensorArg& self) {
  return smooth("special::bessel_y1", self, second_kind_1,
                [](const Tensor& x) { return bessel_y0(x) - bessel_y1(x) / x; });
}

Tensor modified_bessel_k0(const TensorArg& self) {
  return smooth("special::modified_bessel_k0", self, third_kind_0<false>,
                [](const Tensor& x) { return -modified_bessel_k1(x); });
}
Tensor modified_bessel_k1(const TensorArg& self) {
  return smooth("special::modified_bessel_k1", self, third_kind_1<false>,
                [](const Tensor& x) { return -modified_bessel_k0(x) - modified_bessel_k1(x) / x; });
}
Tensor scaled_modified_bessel_k0(const TensorArg& self) {
  return smooth("special::scaled_modified_bessel_k0", self, third_kind_0<true>,
                [](const Tensor& x) { return scaled_modified_bessel_k0(x) - scaled_modified_bessel_k1(x); });
}
Tensor scaled_modified_bessel_k1(const TensorArg& self) {
  return smooth("special::scaled_modified_bessel_k1", self, third_kind_1<true>, [](const Tensor& x) {
    return scaled_modified_bessel_k1(x) * (1 - 1 / x) - scaled_modified_bessel_k0(x);
  });
}
Tensor airy_ai(const TensorArg& self) {
  return smooth("special::airy_ai", self, airy, [](const Tensor&) -> Tensor {
    eager::fail("special::airy_ai", "self", "a tensor that requires grad", "one that does not: there is no gradient",
                Location::none());
  });
}
Tensor spherical_bessel_j0(const TensorArg& self) {
  return smooth(
      "special::spherical_bessel_j0", self,
      [](const Tensor& x) {
        const Tensor infinite = isinf(x);
        return where(infinite, 0, over(sin(where(infinite, 0, x)), x, 1));
      },
      // Near 0 by its series, where the difference has lost its digits.
      [](const Tensor& x) {
        const Tensor square = x * x,
                     series = x * (((square / 45360 - 1.0 / 840) * square + 1.0 / 30) * square - 1.0 / 3);
        return where(x.abs() < 0.1, series, over(cos(x) - spherical_bessel_j0(x), x, 0));
      });
}

}  // namespace special
}  // namespace ingot
