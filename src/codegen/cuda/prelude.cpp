// What every translation unit begins with: the scalar operations that C++ lacks, memory in pieces of up to 16 bytes,
// and the canonical order of reductions. No header: the same text compiles for a processor, where tests run it. An
// instruction that C++ has no name for stands beside what it does.
#include "codegen/cuda/cuda.h"

#include "base/canonical_order.h"
#include "base/cuda_launch.h"

namespace ingot::codegen::cuda {
namespace {

static_assert(canonical::kDeviceChunk == 1024 && canonical::kDeviceLanes == 256 && kCudaTile == 64,
              "the text below says so");

constexpr const char* kPrelude = R"(// Made by Ingot. Nothing may be contracted: compile with --fmad=false.
#define INGOT_DEVICE __device__ __forceinline__

// Values: float, double, int, long long and bool. 16-bit floats are computed in float.

INGOT_DEVICE float from_bits(int x) { return __int_as_float(x); }
INGOT_DEVICE double from_bits(long long x) { return __longlong_as_double(x); }
INGOT_DEVICE int to_bits(float x) { return __float_as_int(x); }
INGOT_DEVICE long long to_bits(double x) { return __double_as_longlong(x); }

INGOT_DEVICE float from_bf16(unsigned short x) { return from_bits(int(unsigned(x) << 16)); }
#ifdef __CUDA_ARCH__
// Two at a time: the instruction for one is four times as slow.
INGOT_DEVICE unsigned pair_to_bf16(float low, float high) {
  unsigned y;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  return y;
}
INGOT_DEVICE unsigned short to_bf16(float x) { return (unsigned short)pair_to_bf16(x, 0.0f); }
INGOT_DEVICE float from_f16(unsigned short x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
  return y;
}
INGOT_DEVICE unsigned pair_to_f16(float low, float high) {
  unsigned y;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  return y;
}
INGOT_DEVICE unsigned short to_f16(float x) { return (unsigned short)pair_to_f16(x, 0.0f); }
#else
INGOT_DEVICE unsigned short to_bf16(float x) {
  unsigned bits = unsigned(to_bits(x));
  unsigned rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  return (unsigned short)(x != x ? bits >> 16 | 0x40u : rounded);
}
INGOT_DEVICE float from_f16(unsigned short x) {
  unsigned sign = unsigned(x & 0x8000u) << 16, magnitude = x & 0x7fffu;
  unsigned normal = (magnitude << 13) + 0x38000000u, special = 0x7f800000u | (magnitude & 0x3ffu) << 13;
  unsigned tiny = unsigned(to_bits(float(int(magnitude)) * 0x1p-24f));
  return from_bits(int(sign | (magnitude >= 0x7c00u ? special : magnitude >= 0x400u ? normal : tiny)));
}
INGOT_DEVICE unsigned short to_f16(float x) {
  unsigned bits = unsigned(to_bits(x)), magnitude = bits & 0x7fffffffu;
  unsigned sign = bits >> 16 & 0x8000u;
  unsigned normal = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  unsigned tiny = unsigned(to_bits(from_bits(int(magnitude)) + 0.5f)) - 0x3f000000u;
  unsigned nan = 0x7e00u | (magnitude >> 13 & 0x3ffu);
  unsigned result = magnitude < 0x38800000u ? tiny : magnitude < 0x477ff000u ? normal : 0x7c00u;
  return (unsigned short)(sign | (magnitude > 0x7f800000u ? nan : result));
}
INGOT_DEVICE unsigned pair_to_bf16(float low, float high) { return to_bf16(low) | unsigned(to_bf16(high)) << 16; }
INGOT_DEVICE unsigned pair_to_f16(float low, float high) { return to_f16(low) | unsigned(to_f16(high)) << 16; }
#endif

// The first line of a kernel, which may be launched before the one in front of it has ended.
INGOT_DEVICE void begin() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

template <class T> struct Limits;
template <> struct Limits<float> {
  static __device__ float lowest() { return from_bits(int(0xff800000u)); }
  static __device__ float highest() { return from_bits(0x7f800000); }
};
template <> struct Limits<double> {
  static __device__ double lowest() { return from_bits((long long)0xfff0000000000000ull); }
  static __device__ double highest() { return from_bits(0x7ff0000000000000ll); }
};
template <> struct Limits<int> {
  static __device__ int lowest() { return int(0x80000000u); }
  static __device__ int highest() { return 0x7fffffff; }
};
template <> struct Limits<long long> {
  static __device__ long long lowest() { return (long long)0x8000000000000000ull; }
  static __device__ long long highest() { return 0x7fffffffffffffffll; }
};

INGOT_DEVICE float add(float a, float b) { return a + b; }
INGOT_DEVICE double add(double a, double b) { return a + b; }
INGOT_DEVICE int add(int a, int b) { return int(unsigned(a) + unsigned(b)); }
INGOT_DEVICE long long add(long long a, long long b) {
  return (long long)((unsigned long long)a + (unsigned long long)b);
}
INGOT_DEVICE float sub(float a, float b) { return a - b; }
INGOT_DEVICE double sub(double a, double b) { return a - b; }
INGOT_DEVICE int sub(int a, int b) { return int(unsigned(a) - unsigned(b)); }
INGOT_DEVICE long long sub(long long a, long long b) {
  return (long long)((unsigned long long)a - (unsigned long long)b);
}
INGOT_DEVICE float mul(float a, float b) { return a * b; }
INGOT_DEVICE double mul(double a, double b) { return a * b; }
INGOT_DEVICE int mul(int a, int b) { return int(unsigned(a) * unsigned(b)); }
INGOT_DEVICE long long mul(long long a, long long b) {
  return (long long)((unsigned long long)a * (unsigned long long)b);
}
// Integers: by zero 0, the lowest by -1 itself.
INGOT_DEVICE float divide(float a, float b) { return __fdiv_rn(a, b); }
INGOT_DEVICE double divide(double a, double b) { return __ddiv_rn(a, b); }
INGOT_DEVICE int divide(int a, int b) { return b == 0 ? 0 : b == -1 ? sub(0, a) : a / b; }
INGOT_DEVICE long long divide(long long a, long long b) { return b == 0 ? 0 : b == -1 ? sub(0ll, a) : a / b; }
// NaN wins, -0 < +0.
#ifdef __CUDA_ARCH__
INGOT_DEVICE float minimum(float a, float b) {
  float y;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
INGOT_DEVICE float maximum(float a, float b) {
  float y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
#else
INGOT_DEVICE float minimum(float a, float b) {
  return a != a ? a : b != b ? b : a == b ? from_bits(to_bits(a) | to_bits(b)) : a < b ? a : b;
}
INGOT_DEVICE float maximum(float a, float b) {
  return a != a ? a : b != b ? b : a == b ? from_bits(to_bits(a) & to_bits(b)) : a < b ? b : a;
}
#endif
INGOT_DEVICE double minimum(double a, double b) {
  return a != a ? a : b != b ? b : a == b ? from_bits(to_bits(a) | to_bits(b)) : a < b ? a : b;
}
INGOT_DEVICE int minimum(int a, int b) { return a < b ? a : b; }
INGOT_DEVICE long long minimum(long long a, long long b) { return a < b ? a : b; }
INGOT_DEVICE double maximum(double a, double b) {
  return a != a ? a : b != b ? b : a == b ? from_bits(to_bits(a) & to_bits(b)) : a < b ? b : a;
}
INGOT_DEVICE int maximum(int a, int b) { return a < b ? b : a; }
INGOT_DEVICE long long maximum(long long a, long long b) { return a < b ? b : a; }

INGOT_DEVICE float multiply_add(float a, float b, float c) { return __fmaf_rn(a, b, c); }
INGOT_DEVICE double multiply_add(double a, double b, double c) { return __fma_rn(a, b, c); }
INGOT_DEVICE float square_root(float x) { return __fsqrt_rn(x); }
INGOT_DEVICE double square_root(double x) { return __dsqrt_rn(x); }
INGOT_DEVICE float round_even(float x) { return rintf(x); }
INGOT_DEVICE double round_even(double x) { return rint(x); }
INGOT_DEVICE float round_down(float x) { return floorf(x); }
INGOT_DEVICE double round_down(double x) { return floor(x); }
INGOT_DEVICE float round_up(float x) { return ceilf(x); }
INGOT_DEVICE double round_up(double x) { return ceil(x); }
INGOT_DEVICE float round_to_zero(float x) { return truncf(x); }
INGOT_DEVICE double round_to_zero(double x) { return trunc(x); }
INGOT_DEVICE float power_of_two(int e, float) { return from_bits((e + 127) << 23); }
INGOT_DEVICE double power_of_two(int e, double) { return from_bits((long long)(e + 1023) << 52); }
// x * 2^power with one rounding: in three steps of which only the last can round (or what it rounds is lost anyway).
template <int kMin, int kMax, class T> INGOT_DEVICE T scale_in_steps(T x, T power) {
  constexpr int kLimit = -3 * kMin;
  int p = power > T(kLimit) ? kLimit : power < T(-kLimit) ? -kLimit : int(power);
  int a = p > kMax ? kMax : p < kMin ? kMin : p, rest = p - a;
  int b = rest > kMax ? kMax : rest < kMin ? kMin : rest, c = rest - b;
  return power != power ? power : x * power_of_two(c, x) * power_of_two(b, x) * power_of_two(a, x);
}
INGOT_DEVICE float scale(float x, float power) { return scale_in_steps<-126, 127>(x, power); }
INGOT_DEVICE double scale(double x, double power) { return scale_in_steps<-1022, 1023>(x, power); }

// The sum with 1.5 * 2^mantissa bits holds an integer in its low bits; moved up, they are an exponent.
INGOT_DEVICE int low_integer(float x) { return to_bits(x + 12582912.0f); }
INGOT_DEVICE long long low_integer(double x) { return to_bits(x + 6755399441055744.0); }
INGOT_DEVICE float power_of_low(int e) { return from_bits(int((unsigned(e) << 23) + 0x3f800000u)); }
INGOT_DEVICE double power_of_low(long long e) {
  return from_bits((long long)(((unsigned long long)e << 52) + 0x3ff0000000000000ull));
}
// The power is that of a normal number.
template <class T> INGOT_DEVICE T scale_normal(T x, T power) { return x * power_of_low(low_integer(power)); }
// x is of [1/2, 2], so a half of the power cannot round.
template <class T> INGOT_DEVICE T scale_near_one(T x, T power) {
  const auto e = low_integer(power), half = e >> 1;
  return x * power_of_low(half) * power_of_low(e - half);
}

INGOT_DEVICE int shift_left(int a, int b) { return int(unsigned(a) << b); }
INGOT_DEVICE long long shift_left(long long a, long long b) { return (long long)((unsigned long long)a << b); }
INGOT_DEVICE int shift_right_logical(int a, int b) { return int(unsigned(a) >> b); }
INGOT_DEVICE long long shift_right_logical(long long a, long long b) {
  return (long long)((unsigned long long)a >> b);
}

// Float to integer truncates and saturates; NaN gives 0.
template <class I, class F> INGOT_DEVICE I to_integer(F x) {
  const F limit = -F(Limits<I>::lowest());
  return x != x ? I(0) : x >= limit ? Limits<I>::highest() : x < -limit ? Limits<I>::lowest() : I(x);
}
// Bits of a run-time scalar.
template <class T> INGOT_DEVICE T scalar(unsigned long long bits);
template <> INGOT_DEVICE float scalar<float>(unsigned long long bits) { return from_bits(int(unsigned(bits))); }
template <> INGOT_DEVICE double scalar<double>(unsigned long long bits) { return from_bits((long long)bits); }
template <> INGOT_DEVICE int scalar<int>(unsigned long long bits) { return int(unsigned(bits)); }
template <> INGOT_DEVICE long long scalar<long long>(unsigned long long bits) { return (long long)bits; }
template <> INGOT_DEVICE bool scalar<bool>(unsigned long long bits) { return (bits & 1) != 0; }

// Division of sizes: a 32-bit one where both fit, which is many times as fast.
INGOT_DEVICE long long quotient(long long a, long long b) {
  return ((a | b) >> 32) == 0 ? (long long)(unsigned(a) / unsigned(b)) : a / b;
}

// A buffer: its first element and its strides in bytes.
template <int kOuter> struct Operand {
  char* at;
  long long row, column, index;
  long long outer[kOuter];
};
template <> struct Operand<0> {
  char* at;
  long long row, column, index;
};
INGOT_DEVICE long long strides_of(const Operand<0>& o) { return o.row | o.index; }
template <int kOuter> INGOT_DEVICE long long strides_of(const Operand<kOuter>& o) {
  long long bits = o.row | o.index;
  #pragma unroll
  for (int d = 0; d < kOuter; ++d) bits |= o.outer[d];
  return bits;
}

// N elements side by side, moved in pieces of up to 16 bytes.
template <class T, int N> struct Vector {
  static constexpr int kPiece = N * sizeof(T) < 16 ? N : int(16 / sizeof(T));
  struct alignas(kPiece * sizeof(T)) Piece {
    T at[kPiece];
  };
};
// True if every row of a dense buffer begins where pieces may, at every index.
template <class T, int N, int kOuter> INGOT_DEVICE bool in_pieces(const Operand<kOuter>& o) {
  return (((long long)o.at | strides_of(o)) & (long long)(sizeof(typename Vector<T, N>::Piece) - 1)) == 0;
}
template <class T, int N> INGOT_DEVICE void load_pieces(T (&to)[N], const char* from) {
  using V = Vector<T, N>;
  #pragma unroll
  for (int i = 0; i < N; i += V::kPiece) {
    typename V::Piece piece = *reinterpret_cast<const typename V::Piece*>(from + i * sizeof(T));
    #pragma unroll
    for (int k = 0; k < V::kPiece; ++k) to[i + k] = piece.at[k];
  }
}
template <class T, int N> INGOT_DEVICE void store_pieces(char* to, const T (&from)[N]) {
  using V = Vector<T, N>;
  #pragma unroll
  for (int i = 0; i < N; i += V::kPiece) {
    typename V::Piece piece;
    #pragma unroll
    for (int k = 0; k < V::kPiece; ++k) piece.at[k] = from[i + k];
    *reinterpret_cast<typename V::Piece*>(to + i * sizeof(T)) = piece;
  }
}
// 16-bit floats side by side, two in a word: taking each apart takes longer than what is computed of it.
template <int N> struct Halves {
  unsigned words[N / 2];
};
template <int N> INGOT_DEVICE float from_bf16(const Halves<N>& x, int i) {
  return from_bits(int(i % 2 ? x.words[i / 2] & 0xffff0000u : x.words[i / 2] << 16));
}
template <int N> INGOT_DEVICE float from_f16(const Halves<N>& x, int i) {
  return from_f16((unsigned short)(x.words[i / 2] >> i % 2 * 16));
}
template <int N> INGOT_DEVICE Halves<N> to_bf16(const float (&x)[N]) {
  Halves<N> y;
  #pragma unroll
  for (int i = 0; i < N; i += 2) y.words[i / 2] = pair_to_bf16(x[i], x[i + 1]);
  return y;
}
template <int N> INGOT_DEVICE Halves<N> to_f16(const float (&x)[N]) {
  Halves<N> y;
  #pragma unroll
  for (int i = 0; i < N; i += 2) y.words[i / 2] = pair_to_f16(x[i], x[i + 1]);
  return y;
}
template <int N> INGOT_DEVICE void load_pieces(Halves<N>& to, const char* from) { load_pieces(to.words, from); }
template <int N> INGOT_DEVICE void store_pieces(char* to, const Halves<N>& from) { store_pieces(to, from.words); }
// One after the other, i from 0 on.
template <class T, int N> INGOT_DEVICE void put(T (&to)[N], int i, T x) { to[i] = x; }
template <int N> INGOT_DEVICE void put(Halves<N>& to, int i, unsigned short x) {
  to.words[i / 2] = i % 2 ? to.words[i / 2] | unsigned(x) << 16 : x;
}
template <class T, int N> INGOT_DEVICE T take(const T (&from)[N], int i) { return from[i]; }
template <int N> INGOT_DEVICE unsigned short take(const Halves<N>& from, int i) {
  return (unsigned short)(from.words[i / 2] >> i % 2 * 16);
}
template <class A> struct Elements;
template <class T, int N> struct Elements<T[N]> {
  using Type = T;
  static constexpr int kCount = N;
};
template <int N> struct Elements<Halves<N>> {
  using Type = unsigned short;
  static constexpr int kCount = N;
};
template <class A> INGOT_DEVICE void gather(A& to, const char* from, long long stride) {
  using T = typename Elements<A>::Type;
  #pragma unroll
  for (int i = 0; i < Elements<A>::kCount; ++i) put(to, i, *reinterpret_cast<const T*>(from + i * stride));
}
template <class A> INGOT_DEVICE void scatter(char* to, const A& from, long long stride) {
  using T = typename Elements<A>::Type;
  #pragma unroll
  for (int i = 0; i < Elements<A>::kCount; ++i) *reinterpret_cast<T*>(to + i * stride) = take(from, i);
}
// Elements of a thread in a part of a row: pieces of P, of which those of a warp lie side by side.
enum : int { kWarp = 32 };
template <int P> INGOT_DEVICE constexpr int spread(int e) { return e / P * (kWarp * P) + e % P; }
template <int P, class T, int N> INGOT_DEVICE void load_spread(T (&to)[N], const char* from) {
  #pragma unroll
  for (int i = 0; i < N; i += P) {
    T piece[P];
    load_pieces(piece, from + spread<P>(i) * int(sizeof(T)));
    #pragma unroll
    for (int k = 0; k < P; ++k) to[i + k] = piece[k];
  }
}
template <int P, class T, int N> INGOT_DEVICE void store_spread(char* to, const T (&from)[N]) {
  #pragma unroll
  for (int i = 0; i < N; i += P) {
    T piece[P];
    #pragma unroll
    for (int k = 0; k < P; ++k) piece[k] = from[i + k];
    store_pieces(to + spread<P>(i) * int(sizeof(T)), piece);
  }
}
template <int P, int N> INGOT_DEVICE void load_spread(Halves<N>& to, const char* from) { load_spread<P / 2>(to.words, from); }
template <int P, int N> INGOT_DEVICE void store_spread(char* to, const Halves<N>& from) { store_spread<P / 2>(to, from.words); }
// Of which `left` are there from the first one on; in pieces where all are. What is not there is 0.
template <int P, class A> INGOT_DEVICE void load(A& to, const char* from, long long stride, int left, bool pieces) {
  using T = typename Elements<A>::Type;
  constexpr int kCount = Elements<A>::kCount;
  if (pieces && spread<P>(kCount - 1) < left) {
    load_spread<P>(to, from);
  } else {
    #pragma unroll
    for (int i = 0; i < kCount; ++i)
      put(to, i, spread<P>(i) < left ? *reinterpret_cast<const T*>(from + spread<P>(i) * stride) : T(0));
  }
}
template <int P, class A> INGOT_DEVICE void store(char* to, const A& from, long long stride, int left, bool pieces) {
  using T = typename Elements<A>::Type;
  constexpr int kCount = Elements<A>::kCount;
  if (pieces && spread<P>(kCount - 1) < left) {
    store_spread<P>(to, from);
  } else {
    #pragma unroll
    for (int i = 0; i < kCount; ++i)
      if (spread<P>(i) < left) *reinterpret_cast<T*>(to + spread<P>(i) * stride) = take(from, i);
  }
}
template <class T> INGOT_DEVICE T load_one(const char* from) { return *reinterpret_cast<const T*>(from); }
// Form loop: tiles of 64 x 64, column by column, so that a warp reads along the columns without a conflict of banks.
enum : int { kTile = 64, kTileThreads = 256, kTileStep = kTileThreads / kTile };
template <class T> INGOT_DEVICE int tile_place(int row, int column) {
  return column * (kTile + (sizeof(T) < 4 ? 4 / int(sizeof(T)) : 1)) + row;
}
// A warp goes along the rows where they are dense, else along the columns; eight loads are in flight before any is stored.
template <bool kWhole, class T> INGOT_DEVICE void load_tile_along(T* tile, const char* from, long long next, int place, int step, int there, int slow, int end) {
  constexpr int kBatch = 8;
  #pragma unroll 1
  for (; slow < end; slow += kBatch * kTileStep) {
    T x[kBatch];
    #pragma unroll
    for (int i = 0; i < kBatch; ++i, from += next)
      x[i] = kWhole || (there && slow + i * kTileStep < end) ? load_one<T>(from) : T(0);
    #pragma unroll
    for (int i = 0; i < kBatch; ++i, place += step)
      if (kWhole || (there && slow + i * kTileStep < end)) tile[place] = x[i];
  }
}
template <class T> INGOT_DEVICE void load_tile(T* tile, const char* from, long long row_stride, long long column_stride, int rows, int columns) {
  const bool along_rows = row_stride == (long long)sizeof(T), whole = rows == kTile && columns == kTile;
  const int fast = threadIdx.x % kTile, slow = threadIdx.x / kTile;
  const long long stride = along_rows ? row_stride : column_stride, next = along_rows ? column_stride : row_stride;
  const int place = along_rows ? tile_place<T>(fast, slow) : tile_place<T>(slow, fast);
  const int step = along_rows ? tile_place<T>(0, kTileStep) : kTileStep;
  from += fast * stride + slow * next;
  if (whole)
    load_tile_along<true>(tile, from, kTileStep * next, place, step, true, slow, kTile);
  else
    load_tile_along<false>(tile, from, kTileStep * next, place, step, fast < (along_rows ? rows : columns), slow, along_rows ? columns : rows);
}
template <class T> INGOT_DEVICE void store_one(char* to, T x) { *reinterpret_cast<T*>(to) = x; }
INGOT_DEVICE int count_from(long long first, long long end, int most) {
  return end - first >= most ? most : end - first <= 0 ? 0 : int(end - first);
}

// Reductions. Canonical order on a GPU: the elements are cut into chunks of 1024; in a chunk element i adds to lane
// i % 256 in order; lanes pair up, neighbours first; the results of the chunks are reduced in the same way.
enum : int { kChunk = 1024, kLanes = 256, kThreadLanes = kLanes / kWarp };

template <class T> struct Indexed {
  T value;
  long long index;
};
INGOT_DEVICE float zero_to_add(float) { return -0.0f; }
INGOT_DEVICE double zero_to_add(double) { return -0.0; }
INGOT_DEVICE int zero_to_add(int) { return 0; }
INGOT_DEVICE long long zero_to_add(long long) { return 0; }
template <class T> struct Plain {
  using Value = T;
  static __device__ T of(T x, long long) { return x; }
};
template <class T> struct Sum : Plain<T> {
  static __device__ T none() { return zero_to_add(T(0)); }
  static __device__ T empty() { return T(0); }
  static __device__ T join(T a, T b) { return add(a, b); }
};
template <class T> struct Prod : Plain<T> {
  static __device__ T none() { return T(1); }
  static __device__ T empty() { return none(); }
  static __device__ T join(T a, T b) { return mul(a, b); }
};
template <class T> struct Max : Plain<T> {
  static __device__ T none() { return Limits<T>::lowest(); }
  static __device__ T empty() { return none(); }
  static __device__ T join(T a, T b) { return maximum(a, b); }
};
template <class T> struct Min : Plain<T> {
  static __device__ T none() { return Limits<T>::highest(); }
  static __device__ T empty() { return none(); }
  static __device__ T join(T a, T b) { return minimum(a, b); }
};
template <class T> struct Any : Plain<T> {
  static __device__ T none() { return false; }
  static __device__ T empty() { return none(); }
  static __device__ T join(T a, T b) { return a | b; }
};
template <class T> struct All : Plain<T> {
  static __device__ T none() { return true; }
  static __device__ T empty() { return none(); }
  static __device__ T join(T a, T b) { return a & b; }
};
// NaN wins, then the extreme value, then the smaller index.
template <class T, bool kGreatest> struct Extreme {
  using Value = Indexed<T>;
  static __device__ Value of(T x, long long index) { return {x, index}; }
  static __device__ Value none() {
    return {kGreatest ? Limits<T>::lowest() : Limits<T>::highest(), Limits<long long>::highest()};
  }
  static __device__ Value empty() { return none(); }
  static __device__ Value join(Value a, Value b) {
    bool tie = a.value != a.value ? b.value != b.value : a.value == b.value;
    bool wins = b.value != b.value ? a.value == a.value : kGreatest ? b.value > a.value : b.value < a.value;
    return wins || (tie && b.index < a.index) ? b : a;
  }
};
template <class T> struct ArgMax : Extreme<T, true> {};
template <class T> struct ArgMin : Extreme<T, false> {};

INGOT_DEVICE float from_lane(float x, int distance) { return __shfl_xor_sync(0xffffffffu, x, distance); }
INGOT_DEVICE double from_lane(double x, int distance) { return __shfl_xor_sync(0xffffffffu, x, distance); }
INGOT_DEVICE int from_lane(int x, int distance) { return __shfl_xor_sync(0xffffffffu, x, distance); }
INGOT_DEVICE long long from_lane(long long x, int distance) { return __shfl_xor_sync(0xffffffffu, x, distance); }
INGOT_DEVICE bool from_lane(bool x, int distance) { return __shfl_xor_sync(0xffffffffu, int(x), distance) != 0; }
template <class T> INGOT_DEVICE Indexed<T> from_lane(Indexed<T> x, int distance) {
  return {from_lane(x.value, distance), from_lane(x.index, distance)};
}
template <class C, int N> INGOT_DEVICE void clear(typename C::Value (&lanes)[N]) {
  #pragma unroll
  for (int l = 0; l < N; ++l) lanes[l] = C::none();
}
// The lanes of a thread, neighbours first.
template <class C, int N> INGOT_DEVICE typename C::Value tree(const typename C::Value (&lanes)[N]) {
  typename C::Value level[N];
  #pragma unroll
  for (int l = 0; l < N; ++l) level[l] = lanes[l];
  #pragma unroll
  for (int distance = 1; distance < N; distance *= 2)
    #pragma unroll
    for (int l = 0; l < N; l += 2 * distance) level[l] = C::join(level[l], level[l + distance]);
  return level[0];
}
// Those of N threads of a warp; each of them has the result.
template <class C, int N> INGOT_DEVICE typename C::Value warp_tree(typename C::Value x) {
  #pragma unroll
  for (int distance = 1; distance < N; distance *= 2) x = C::join(x, from_lane(x, distance));
  return x;
}
// The lanes of a warp, of which each thread has pieces of P.
template <class C, int P> INGOT_DEVICE typename C::Value chunk_result(const typename C::Value (&lanes)[kThreadLanes]) {
  typename C::Value of_pieces[kThreadLanes / P];
  #pragma unroll
  for (int i = 0; i < kThreadLanes / P; ++i) {
    typename C::Value piece[P];
    #pragma unroll
    for (int k = 0; k < P; ++k) piece[k] = lanes[i * P + k];
    of_pieces[i] = warp_tree<C, kWarp>(tree<C>(piece));
  }
  return tree<C>(of_pieces);
}
// Partial results in memory, 16 bytes each.
enum : int { kSlot = 16 };
template <class C> INGOT_DEVICE typename C::Value load_slot(const char* slots, long long i) {
  return *reinterpret_cast<const typename C::Value*>(slots + i * kSlot);
}
template <class C> INGOT_DEVICE void store_slot(char* slots, long long i, typename C::Value x) {
  *reinterpret_cast<typename C::Value*>(slots + i * kSlot) = x;
}
// The result of a chunk of up to 1024 slots. Of a whole one all loads are in flight before any is joined. Not inlined:
// it stands in a kernel twice a reduction.
template <class C> __device__ __noinline__ typename C::Value slots_result(const char* slots, int count) {
  typename C::Value lanes[kThreadLanes];
  clear<C>(lanes);
  constexpr int kParts = kChunk / kLanes;
  const int first = threadIdx.x * kThreadLanes;
  if (sizeof(typename C::Value) <= 8 && count == kChunk) {
    typename C::Value all[kParts][kThreadLanes];
    #pragma unroll
    for (int part = 0; part < kParts; ++part)
      #pragma unroll
      for (int l = 0; l < kThreadLanes; ++l) all[part][l] = load_slot<C>(slots, part * kLanes + first + l);
    #pragma unroll
    for (int part = 0; part < kParts; ++part)
      #pragma unroll
      for (int l = 0; l < kThreadLanes; ++l) lanes[l] = C::join(lanes[l], all[part][l]);
    return chunk_result<C, kThreadLanes>(lanes);
  }
  #pragma unroll 1
  for (int part = 0; part < count; part += kLanes)
    #pragma unroll
    for (int l = 0; l < kThreadLanes; ++l)
      if (part + first + l < count) lanes[l] = C::join(lanes[l], load_slot<C>(slots, part + first + l));
  return chunk_result<C, kThreadLanes>(lanes);
}
// Levels of slots: those of a row's chunks, then those of chunks of them, and so on. The first with up to `most`, if given.
INGOT_DEVICE void find_level(char*& slots, long long& count, long long most) {
  while (most && count > most) {
    slots += count * kSlot;
    count = (count + kChunk - 1) / kChunk;
  }
}
// From one level to the next; a warp takes every `warps`-th chunk.
template <class C> INGOT_DEVICE void fold_slots(char* slots, long long count, long long warp, long long warps) {
  for (long long chunk = warp; chunk * kChunk < count; chunk += warps) {
    const typename C::Value result =
        slots_result<C>(slots + chunk * kChunk * kSlot, count_from(chunk * kChunk, count, kChunk));
    if (threadIdx.x == 0) store_slot<C>(slots, count + chunk, result);
  }
}
template <class C> INGOT_DEVICE void fold_level(char* slots, long long count, long long level, long long warp, long long warps) {
  find_level(slots, count, level);
  fold_slots<C>(slots, count, warp, warps);
}
// The result of a row of more slots than a warp has threads.
template <class C> __device__ __noinline__ typename C::Value finish_long_row(char* slots, long long count, long long level) {
  find_level(slots, count, level);
  for (; count > kChunk; count = (count + kChunk - 1) / kChunk) {
    fold_slots<C>(slots, count, threadIdx.y, blockDim.y);
    slots += count * kSlot;
    __syncthreads();
  }
  return slots_result<C>(slots, int(count));
}
// The result of a row whose slots stand there, from `level` on, in every thread of the block.
template <class C> INGOT_DEVICE typename C::Value finish_row(char* slots, long long count, long long level) {
  __syncthreads();
  typename C::Value result;
  if (count <= kWarp) {  // a lane each
    result = warp_tree<C, kWarp>(threadIdx.x < count ? load_slot<C>(slots, threadIdx.x) : C::none());
  } else {
    result = finish_long_row<C>(slots, count, level);
  }
  __syncthreads();
  return result;
}

// Form columns: blocks of 32 x 16 threads, one a column and 16 neighbouring lanes, of which it takes 8 after the other.
enum : int { kTileRows = 16, kTileLanes = kLanes / kTileRows };
// Partial results of the launch before, instead of elements: those of half of a thread's lanes.
template <class C> INGOT_DEVICE void collect(typename C::Value (&lanes)[kThreadLanes], const char* slots, long long first_row, long long rows, long long column, long long columns) {
  #pragma unroll 1
  for (int part = 0; part < kChunk; part += kLanes)
    #pragma unroll
    for (int l = 0; l < kThreadLanes; ++l) {
      const long long row = first_row + part + threadIdx.y * kTileLanes + l;
      if (row < rows && column < columns) lanes[l] = C::join(lanes[l], load_slot<C>(slots, row * columns + column));
    }
}
// Results of a tile of 32 columns: to slots, or stored by `result` (where slots is null). R: what is stored.
template <class R> INGOT_DEVICE R result_of(R x) { return x; }
template <class R> INGOT_DEVICE R result_of(bool x) { return R(x); }
template <class R, class T> INGOT_DEVICE R result_of(Indexed<T> x) { return x.index; }
template <class C, class R> INGOT_DEVICE void finish_columns(typename C::Value of_thread, char* shared, long long rows, long long first, long long columns, char* slots, char* result, long long stride) {
  using Row = typename C::Value[kWarp + 1];
  Row* tile = reinterpret_cast<Row*>(shared);
  tile[threadIdx.y][threadIdx.x] = of_thread;
  __syncthreads();
  // Sixteen threads a column.
  const int thread = threadIdx.y * kWarp + threadIdx.x;
  typename C::Value x = warp_tree<C, kTileRows>(tile[thread % kTileRows][thread / kTileRows]);
  const long long column = first + thread / kTileRows;
  if (thread % kTileRows == 0 && column < columns) {
    if (slots)
      store_slot<C>(slots, column, x);
    else
      store_one<R>(result + column * stride, result_of<R>(rows > 0 ? x : C::empty()));
  }
  __syncthreads();
}

extern __shared__ uint4 shared_memory[];
)";

}  // namespace

const char* prelude() { return kPrelude; }

}  // namespace ingot::codegen::cuda
