// Runs generated code on memory between guard pages, and beside it the scalar executor: both must give the same bits.
#pragma once
#include <Zydis/Zydis.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/half.h"
#include "codegen/builder.h"
#include "codegen/generate.h"
#include "uniform.h"

namespace ingot::codegen::test {

/// Memory that faults on the first byte behind its end, or before its start.
class Guarded {
 public:
  Guarded(size_t bytes, bool flush_end) : size_(bytes) {
    const size_t page = 4096, body = (bytes + page - 1) / page * page + page;
    mapped_ = body + 2 * page;
    map_ = static_cast<char*>(mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    INGOT_CHECK(map_ != MAP_FAILED);
    INGOT_CHECK(mprotect(map_ + page, body, PROT_READ | PROT_WRITE) == 0);
    data_ = flush_end ? map_ + page + body - bytes : map_ + page;
  }
  Guarded(const Guarded&) = delete;
  ~Guarded() { munmap(map_, mapped_); }
  char* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  size_t size_, mapped_;
  char *map_, *data_;
};

/// Generated code in executable memory.
class Code {
 public:
  explicit Code(const KernelSource& source) : size_(source.code.size()) {
    map_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    INGOT_CHECK(map_ != MAP_FAILED);
    std::memcpy(map_, source.code.data(), size_);
    INGOT_CHECK(mprotect(map_, size_, PROT_READ | PROT_EXEC) == 0);
  }
  Code(const Code&) = delete;
  ~Code() { munmap(map_, size_); }
  KernelEntry entry() const { return reinterpret_cast<KernelEntry>(map_); }

 private:
  size_t size_;
  void* map_;
};

inline bool cpu_has(Isa isa) {
  if (isa == Isa::avx2) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}

/// How many instructions of a kernel need more than AVX2: EVEX, or a register of AVX-512. -1: some bytes are no code.
inline int instructions_of_avx512(const KernelSource& source) {
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  int count = 0;
  for (int64_t at = 0; at < source.code_bytes;) {
    ZydisDecodedInstruction instruction;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, source.code.data() + at,
                                             static_cast<ZyanUSize>(source.code_bytes - at), &instruction, operands)))
      return -1;
    bool wide = instruction.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX;
    for (int i = 0; i < instruction.operand_count; ++i)
      if (operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER) {
        ZydisRegisterClass c = ZydisRegisterGetClass(operands[i].reg.value);
        wide |= c == ZYDIS_REGCLASS_ZMM || c == ZYDIS_REGCLASS_MASK;
      }
    count += wide;
    at += instruction.length;
  }
  return count;
}

/// Tests that run on each instruction set which this processor has.
class X86 : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!cpu_has(GetParam())) GTEST_SKIP() << "this processor has no " << name(GetParam());
  }
  static std::string name(Isa isa) { return isa == Isa::avx512 ? "avx512" : "avx2"; }
  Target target() const { return {GetParam(), false}; }
};
#define INGOT_X86_SUITE(suite)                                                  \
  INSTANTIATE_TEST_SUITE_P(Isa, suite, testing::Values(Isa::avx512, Isa::avx2), \
                           [](const auto& info) { return info.param == Isa::avx512 ? "avx512" : "avx2"; })

/// Values that meet every special case now and then.
inline double interesting(std::mt19937_64& random, DType d) {
  static const double special[] = {0.0,    -0.0,   1,      -1,  INFINITY, -INFINITY, NAN,    1e-40,
                                   -1e-45, 3.4e38, 1e-310, 0.5, 2.5,      1e30,      -65504, 70000};
  if (random() % 8 == 0 && is_floating(d)) return special[random() % std::size(special)];
  double x = ingot::test::uniform<double>(random, -10, 10);
  return random() % 4 ? x : x * std::exp2(static_cast<double>(random() % 40) - 20);
}

inline void put(char* p, DType d, std::mt19937_64& random) {
  auto write = [&](auto x) { std::memcpy(p, &x, sizeof x); };
  switch (d) {
    case DType::f64:
      return write(interesting(random, d));
    case DType::f32:
      return write(static_cast<float>(interesting(random, d)));
    case DType::f16:
      return write(f16_from_f32(static_cast<float>(interesting(random, d))));
    case DType::bf16:
      return write(bf16_from_f32(static_cast<float>(interesting(random, d))));
    case DType::i64:
      return write(static_cast<int64_t>(random() % 3 ? static_cast<int64_t>(random() % 64) - 32
                                                     : static_cast<int64_t>(random())));
    case DType::i32:
      return write(static_cast<int32_t>(random() % 3 ? static_cast<int32_t>(random() % 64) - 32
                                                     : static_cast<int32_t>(random())));
    case DType::i16:
      return write(static_cast<int16_t>(random()));
    case DType::bool_:
      return write(static_cast<uint8_t>(random() % 2 ? random() % 256 : 0));
    default:
      return write(static_cast<uint8_t>(random()));
  }
}

/// Equal bits, or both NaN.
inline bool same(const char* a, const char* b, DType d) {
  if (std::memcmp(a, b, static_cast<size_t>(size_of(d))) == 0) return true;
  auto read = [](const char* p, auto x) {
    std::memcpy(&x, p, sizeof x);
    return x;
  };
  auto nan = [&](const char* p) {
    switch (d) {
      case DType::f64:
        return std::isnan(read(p, double()));
      case DType::f32:
        return std::isnan(read(p, float()));
      case DType::f16:
        return std::isnan(f32_from_f16(read(p, uint16_t())));
      case DType::bf16:
        return std::isnan(f32_from_bf16(read(p, uint16_t())));
      default:
        return false;
    }
  };
  return nan(a) && nan(b);
}

/// How a buffer lies in memory: `step` elements from column to column (0: uniform), rows side by side.
struct Layout {
  int64_t step = 1;
  bool one_row = false;     // all rows read the same one
  int64_t index_count = 0;  // > 0: a table of so many entries, each of a whole plane
  bool turned = false;      // CudaTrial: column by column, with a gap of an element between them
};

/// A call with random data, made twice: by the scalar executor and by generated code.
struct Trial {
  const Kernel& kernel;
  Target target;
  int64_t rows = 1, columns = 0;
  std::vector<Layout> layouts{};  // of the buffers; by their access where missing
  std::vector<uint64_t> scalars{};
  /// Overwrites random data of a buffer before the runs.
  std::function<void(size_t, char*, size_t)> fill{};
  uint64_t seed = 1;
  int64_t lanes = 16;  // KernelFrame::lanes, of a kernel that sums in registers

  void run() const {
    verify(kernel);
    KernelPtr code = generate(kernel, target, "test"), plain = generate(kernel, {}, "test");
    ASSERT_FALSE(code->code.empty());
    if (target.isa == Isa::avx2) {
      ASSERT_EQ(instructions_of_avx512(*code), 0) << print(kernel);
    }
    Code loaded(*code);
    for (bool flush_end : {true, false}) {
      std::vector<std::vector<char>> expected = call(*plain, plain->interpret, flush_end),
                                     got = call(*code, loaded.entry(), flush_end);
      for (size_t b = 0; b < expected.size(); ++b) compare(b, expected[b], got[b]);
      if (testing::Test::HasFailure()) {
        ADD_FAILURE() << rows << " x " << columns << (flush_end ? ", flush end" : ", flush start") << "\n"
                      << print(kernel);
        return;
      }
    }
  }

 private:
  Layout layout(size_t b) const {
    if (b < layouts.size()) return layouts[b];
    Layout l;
    Access access = kernel.buffers[b].access;
    l.step = access == Access::dense ? 1 : access == Access::uniform ? 0 : 3;
    return l;
  }

  std::vector<std::vector<char>> call(const KernelSource& source, KernelEntry entry, bool flush_end) const {
    std::mt19937_64 random(seed);
    std::vector<std::unique_ptr<Guarded>> memory;
    std::vector<char*> bases;
    std::vector<int64_t> row_strides, column_strides, index_strides, outer{5, 7, 11};
    for (size_t b = 0; b < kernel.buffers.size(); ++b) {
      Layout l = layout(b);
      const DType d = kernel.buffers[b].dtype;
      const int64_t size = size_of(d), span = l.step == 0 ? 1 : columns * std::abs(l.step) - (std::abs(l.step) - 1);
      const int64_t row = std::max<int64_t>(span, 0), planes = std::max<int64_t>(l.index_count, 1);
      const int64_t plane = row * (l.one_row ? 1 : rows);
      memory.push_back(
          std::make_unique<Guarded>(static_cast<size_t>(std::max<int64_t>(0, plane * planes) * size), flush_end));
      char* base = memory.back()->data();
      for (int64_t i = 0; i < plane * planes; ++i) put(base + i * size, d, random);
      if (fill) fill(b, base, memory.back()->size());
      bases.push_back(l.step < 0 ? base + (row - 1) * size : base);
      row_strides.push_back(l.one_row ? 0 : row * size);
      column_strides.push_back(l.step * size);
      index_strides.push_back(plane * size);
    }
    int64_t scratch = source.scratch_bytes + partial_bytes();
    for (Type t : kernel.locals) scratch += (columns + 15) / 16 * 16 * size_of(t);
    Guarded scratch_memory(static_cast<size_t>((scratch + 63) / 64 * 64), kernel.form == Form::rows);
    KernelFrame f{bases.data(),
                  row_strides.data(),
                  column_strides.data(),
                  index_strides.data(),
                  scalars.data(),
                  rows,
                  columns,
                  scratch_memory.data(),
                  100,
                  0,
                  outer.data(),
                  source.context.get()};
    f.lanes = lanes;
    entry(&f);
    std::vector<std::vector<char>> out;
    for (auto& m : memory) out.emplace_back(m->data(), m->data() + m->size());
    if (kernel.form == Form::columns) out.emplace_back(scratch_memory.data(), scratch_memory.data() + partial_bytes());
    return out;
  }

  int64_t partial_bytes() const {
    int64_t bytes = 0;
    for (size_t r = 0; r < kernel.reductions.size() && kernel.form == Form::columns; ++r)
      for (DType d : partial_types(r)) bytes += 16 * columns * size_of(d);
    return bytes;
  }
  std::vector<DType> partial_types(size_t r) const {
    static constexpr DType of[] = {DType::f32, DType::f64, DType::i32, DType::i64, DType::bool_};
    std::vector<DType> out{of[static_cast<int>(kernel.nodes[kernel.reductions[r].value].type)]};
    if (kernel.reductions[r].combiner >= Combiner::argmax) out.push_back(DType::i64);
    return out;
  }

  void compare(size_t b, const std::vector<char>& expected, const std::vector<char>& got) const {
    auto piece = [&](DType d, size_t begin, size_t bytes) {
      const size_t size = static_cast<size_t>(size_of(d));
      for (size_t i = 0; i < bytes / size; ++i)
        if (!same(&expected[begin + i * size], &got[begin + i * size], d)) {
          ADD_FAILURE() << "buffer " << b << " element " << i << " of " << bytes / size << ": expected "
                        << text(&expected[begin + i * size], d) << ", got " << text(&got[begin + i * size], d);
          return;
        }
    };
    if (b < kernel.buffers.size()) return piece(kernel.buffers[b].dtype, 0, expected.size());
    size_t at = 0;
    for (size_t r = 0; r < kernel.reductions.size(); ++r)
      for (DType d : partial_types(r)) {
        piece(d, at, static_cast<size_t>(lanes * columns * size_of(d)));
        at += static_cast<size_t>(16 * columns * size_of(d));
      }
  }
  static std::string text(const char* p, DType d) {
    auto read = [&](auto x) {
      std::memcpy(&x, p, sizeof x);
      return std::to_string(x);
    };
    char hex[40];
    uint64_t bits = 0;
    std::memcpy(&bits, p, static_cast<size_t>(size_of(d)));
    std::snprintf(hex, sizeof hex, " (0x%llx)", static_cast<unsigned long long>(bits));
    return (d == DType::f32   ? read(float())
            : d == DType::f64 ? read(double())
            : d == DType::i64 ? read(int64_t())
                              : std::string()) +
           hex;
  }
};

inline const int64_t kSizes[] = {0, 1, 15, 16, 17, 63, 64, 65, 255, 256, 257, 2047, 2048, 2049, 4097};

/// A kernel in the making: buffers in order of use.
struct KernelBuilder {
  Kernel kernel;
  Builder b{kernel};
  Expr input(DType d, Access a = Access::dense) {
    kernel.buffers.push_back({d, a, false});
    return b.load(static_cast<uint32_t>(kernel.buffers.size() - 1));
  }
  uint32_t table(DType d, Access a) {
    kernel.buffers.push_back({d, a, false});
    return static_cast<uint32_t>(kernel.buffers.size() - 1);
  }
  Store to(DType d, Expr x, Access a = Access::dense) {
    kernel.buffers.push_back({d, a, true});
    return {static_cast<uint32_t>(kernel.buffers.size() - 1), x.value};
  }
  void output(DType d, Expr x, Access a = Access::dense) {
    if (kernel.phases.empty()) kernel.phases.emplace_back();
    kernel.phases.back().stores.push_back(to(d, x, a));
  }
  Expr reduce(Combiner c, Expr x) {
    if (kernel.phases.empty()) kernel.phases.emplace_back();
    kernel.reductions.push_back({c, x.value});
    uint32_t r = static_cast<uint32_t>(kernel.reductions.size() - 1);
    kernel.phases.back().reductions.push_back(r);
    return b.reduced(r);
  }
  void row_output(DType d, Expr x) { kernel.phases.back().row_stores.push_back(to(d, x, Access::uniform)); }
};

}  // namespace ingot::codegen::test
