
#include "canonical_sum.h"
#include "codegen/x86_harness.h"
#include "uniform.h"

namespace ingot::codegen::test {
namespace {

class X86Reduce : public X86 {};
INGOT_X86_SUITE(X86Reduce);
using ingot::test::canonical_sum;

/// `step`: elements from one to the next.
template <class T>
void sums_like_the_definition(DType d, const Target& target, int64_t step = 1) {
  KernelBuilder k;
  Expr sum = k.reduce(Combiner::sum, k.input(d, step == 1 ? Access::dense : Access::strided));
  k.row_output(d, sum);
  KernelPtr source = generate(k.kernel, target, "sum");
  Code code(*source);
  std::vector<char> scratch(static_cast<size_t>(source->scratch_bytes));
  std::mt19937_64 random(3);
  for (int64_t n :
       {0,   1,    2,    15,   16,   17,   48,   63,   64,   65,   80,   255,  256,  257,  304,   511,   512,  513,
        768, 1023, 1024, 1025, 1280, 1500, 1792, 2047, 2048, 2049, 4095, 4096, 4097, 6200, 16384, 20000, 70001}) {
    std::vector<T> x(static_cast<size_t>(2 * n)), apart(static_cast<size_t>(2 * n * step));
    for (T& v : x) v = static_cast<T>(ingot::test::uniform<double>(random, -1, 1));
    for (size_t i = 0; i < x.size(); ++i) apart[i * static_cast<size_t>(step)] = x[i];
    T out[2] = {1, 1};
    char* buffers[] = {reinterpret_cast<char*>(apart.data()), reinterpret_cast<char*>(out)};
    int64_t rows[] = {n * step * size_of(d), size_of(d)}, columns[] = {step * size_of(d), 0}, none[2] = {};
    KernelFrame f{buffers, rows, columns, none, nullptr, 2, n, scratch.data(), 0, 0, nullptr, nullptr};
    code.entry()(&f);
    for (int row = 0; row < 2; ++row) {
      T expected = canonical_sum(x.data() + row * n, n);
      EXPECT_EQ(std::memcmp(&expected, &out[row], sizeof(T)), 0) << n << ": " << expected << " " << out[row];
    }
  }
}

TEST_P(X86Reduce, SumsInTheCanonicalOrder) {
  for (int64_t step : {1, 3}) {
    sums_like_the_definition<float>(DType::f32, target(), step);
    sums_like_the_definition<double>(DType::f64, target(), step);
  }
}

// 16-bit floats are summed as f32, and what other reductions of the same row do changes nothing.
TEST_P(X86Reduce, SumsOf16BitFloatsInTheCanonicalOrder) {
  for (DType d : {DType::bf16, DType::f16}) {
    KernelBuilder k;
    Expr x = k.input(d);
    k.kernel.phases.emplace_back();
    const Expr results[] = {k.reduce(Combiner::sum, x), k.reduce(Combiner::max, x), k.reduce(Combiner::sum, x * x)};
    for (const Expr& r : results) k.row_output(DType::f32, r);
    const KernelPtr source = generate(k.kernel, target(), "sums");
    Code code(*source);
    std::vector<char> scratch(static_cast<size_t>(source->scratch_bytes));
    std::mt19937_64 random(4);
    for (int64_t n : {1, 63, 64, 65, 255, 256, 257, 511, 512, 513, 1023, 1024, 1025, 3000}) {
      std::vector<uint16_t> bits(static_cast<size_t>(n));
      std::vector<float> wide(bits.size()), squares(bits.size());
      for (size_t i = 0; i < bits.size(); ++i) {
        const float v = ingot::test::uniform<float>(random, -1, 1);
        bits[i] = d == DType::bf16 ? bf16_from_f32(v) : f16_from_f32(v);
        wide[i] = d == DType::bf16 ? f32_from_bf16(bits[i]) : f32_from_f16(bits[i]);
        squares[i] = wide[i] * wide[i];
      }
      float out[3] = {1, 1, 1};
      char* buffers[] = {reinterpret_cast<char*>(bits.data()), reinterpret_cast<char*>(out),
                         reinterpret_cast<char*>(out + 1), reinterpret_cast<char*>(out + 2)};
      int64_t none[4] = {};
      KernelFrame f{buffers, none, none, none, nullptr, 1, n, scratch.data(), 0, 0, nullptr, nullptr};
      code.entry()(&f);
      const float expected[] = {canonical_sum(wide.data(), n), *std::max_element(wide.begin(), wide.end()),
                                canonical_sum(squares.data(), n)};
      EXPECT_EQ(std::memcmp(expected, out, sizeof out), 0) << name_of(d) << " " << n;
    }
  }
}

TEST_P(X86Reduce, EveryCombinerOfEveryType) {
  for (DType d : {DType::f32, DType::f64, DType::i32, DType::i64, DType::bf16, DType::u8})
    for (int64_t n : kSizes) {
      KernelBuilder k;
      Expr x = k.input(d);
      DType wide = is_half(d) ? DType::f32 : d == DType::u8 ? DType::i32 : d;
      k.kernel.phases.emplace_back();
      std::vector<Expr> results;
      for (Combiner c :
           {Combiner::sum, Combiner::prod, Combiner::max, Combiner::min, Combiner::argmax, Combiner::argmin})
        results.push_back(k.reduce(c, x));
      Expr any = k.reduce(Combiner::any, x < 0), all = k.reduce(Combiner::all, x < 30);
      for (size_t i = 0; i < 6; ++i) k.row_output(i < 4 ? wide : DType::i64, results[i]);
      k.row_output(DType::bool_, any);
      k.row_output(DType::bool_, all);
      Trial{k.kernel, target(), 3, n, {}, {}, {}, static_cast<uint64_t>(n)}.run();
      if (HasFailure()) return;
    }
}

TEST_P(X86Reduce, ExtremesAmongEqualsNanAndInfinities) {
  for (double only :
       {static_cast<double>(-INFINITY), static_cast<double>(INFINITY), static_cast<double>(NAN), 0.0, -0.0})
    for (int64_t n : {1, 5, 16, 40, 300}) {
      KernelBuilder k;
      Expr x = k.input(DType::f32);
      for (Combiner c : {Combiner::max, Combiner::min}) k.reduce(c, x);
      for (Combiner c : {Combiner::argmax, Combiner::argmin}) k.reduce(c, x);
      for (uint32_t r = 0; r < 4; ++r) k.row_output(r < 2 ? DType::f32 : DType::i64, k.b.reduced(r));
      auto fill = [&](size_t b, char* p, size_t bytes) {
        for (size_t i = 0; b == 0 && i < bytes / 4; ++i) {
          float v = i % 7 == 3 ? -static_cast<float>(only) : static_cast<float>(only);
          std::memcpy(p + 4 * i, &v, 4);
        }
      };
      Trial{k.kernel, target(), 2, n, {}, {}, fill}.run();
      if (HasFailure()) return;
    }
}

TEST_P(X86Reduce, SoftmaxLikePhasesShareARowThroughALocal) {
  for (DType d : {DType::f32, DType::f64, DType::f16})
    for (int64_t n : kSizes) {
      KernelBuilder k;
      Expr x = k.input(d);
      Type t = register_type(d);
      Expr most = k.reduce(Combiner::max, x);
      k.kernel.phases.emplace_back();
      k.kernel.locals = {t, Type::mask};
      Expr e = fma(x - most, 0.25, 1.0);
      k.kernel.phases[1].local_stores = {{0, e.value}, {1, (x < most).value}};
      Expr sum = k.reduce(Combiner::sum, e * e), count = k.reduce(Combiner::sum, convert(x < most, t));
      k.row_output(DType::bool_, most < sum);
      k.row_output(d, sum * 0.5);
      k.kernel.phases.emplace_back();
      Expr scale = 1 / sum;
      k.output(d, k.b.local(0) * scale + count);
      k.output(DType::bool_, k.b.local(1));
      Trial{k.kernel, target(), 3, n}.run();
      if (HasFailure()) return;
    }
}

TEST_P(X86Reduce, LongChainsAreSummedInOrder) {
  for (DType d : {DType::f32, DType::f64})
    for (int64_t n : kSizes) {
      KernelBuilder k;
      Expr x = k.input(d), y = x;
      for (int i = 0; i < 6; ++i) y = fma(y, x, 0.5 * i);
      Expr sum = k.reduce(Combiner::sum, y), most = k.reduce(Combiner::max, y);
      k.row_output(d, most);
      k.kernel.phases.emplace_back();
      k.output(d, y * sum);
      Trial{k.kernel, target(), 3, n}.run();
      if (HasFailure()) return;
    }
}

TEST_P(X86Reduce, LightSumsRunBlocksSideBySide) {
  for (DType d : {DType::f32, DType::f64})
    for (int64_t n : {512, 768, 1024, 1793, 2048, 2049, 4096, 5000, 9999}) {
      KernelBuilder k;
      Expr x = k.input(d), y = k.input(d);
      Expr dot = k.reduce(Combiner::sum, x * y), most = k.reduce(Combiner::max, x);
      Expr last = k.reduce(Combiner::sum, convert(k.b.index(0), x.type()));
      for (Expr e : {dot, most, last}) k.row_output(d, e);
      k.output(d, x + y);
      Trial{k.kernel, target(), 2, n}.run();
      if (HasFailure()) return;
    }
}

TEST_P(X86Reduce, ColumnsWriteSixteenPartialLanes) {
  for (DType d : {DType::f32, DType::f64, DType::i32, DType::i64, DType::f16})
    for (int64_t rows : {0, 1, 15, 16, 17, 63, 64, 65, 200, 256})
      for (int64_t n : {1, 16, 35}) {
        KernelBuilder k;
        k.kernel.form = Form::columns;
        Expr x = k.input(d), y = k.input(d, Access::uniform);
        k.kernel.phases.emplace_back();
        for (Combiner c :
             {Combiner::sum, Combiner::prod, Combiner::max, Combiner::argmax, Combiner::argmin, Combiner::min})
          k.reduce(c, x);
        k.reduce(Combiner::sum, x * y + convert(k.b.index(1), x.type()));
        k.reduce(Combiner::any, x < y);
        k.reduce(Combiner::all, x < 9);
        Trial{k.kernel, target(), rows, n, {}, {}, {}, static_cast<uint64_t>(rows * 100 + n)}.run();
        if (HasFailure()) return;
      }
}

TEST_P(X86Reduce, ColumnsOfManyBuffersAndStrides) {
  for (int64_t rows : {5, 64, 100})
    for (int64_t n : {1, 16, 35}) {
      KernelBuilder k;
      k.kernel.form = Form::columns;
      Expr sum = k.input(DType::f32) + k.input(DType::f32, Access::strided);
      for (int i = 0; i < 8; ++i) sum = sum + k.input(DType::bf16);
      k.kernel.phases.emplace_back();
      k.reduce(Combiner::sum, sum);
      k.reduce(Combiner::max, sum * 2);
      Trial{k.kernel, target(), rows, n}.run();
      if (HasFailure()) return;
    }
}

}  // namespace
}  // namespace ingot::codegen::test
