#include "cuda_trial.h"

#include <fmt/format.h>

#include "codegen/cuda/cuda.h"
#include "codegen/scalar/executor.h"
#include "codegen/scalar/reduce.h"

namespace ingot::codegen::test {
namespace {
constexpr int64_t kMargin = 64;  // bytes

/// A place on a 64-byte line inside of `bytes`, which has 64 more than asked for.
char* aligned(CudaVector<char>& bytes) { return bytes.data() + (-reinterpret_cast<intptr_t>(bytes.data()) & 63); }
}  // namespace

int64_t CudaTrial::planes() const {
  int64_t n = 1;
  for (int64_t size : outer) n *= size;
  return n;
}

CudaTrial::Memory CudaTrial::make() const {
  Memory m;
  std::mt19937_64 random(seed);
  for (size_t b = 0; b < kernel.buffers.size(); ++b) {
    Layout l;
    Access access = kernel.buffers[b].access;
    l.step = access == Access::dense ? 1 : access == Access::uniform ? 0 : 3;
    if (b < layouts.size()) l = layouts[b];
    const DType d = kernel.buffers[b].dtype;
    const int64_t size = size_of(d);
    const int64_t row = l.step == 0 ? 1 : std::max<int64_t>(columns * std::abs(l.step) - (std::abs(l.step) - 1), 0);
    const int64_t plane = l.turned ? columns * (rows + 1) : row * (l.one_row ? 1 : rows),
                  tables = std::max<int64_t>(l.index_count, 1);
    const int64_t elements = plane * planes() * tables + shift;
    m.bytes.emplace_back(static_cast<size_t>(elements * size + 2 * kMargin + 64), char{0x55});
    char* base = aligned(m.bytes.back()) + kMargin + shift * size;
    for (int64_t i = 0; i < elements - shift; ++i) put(base + i * size, d, random);
    CudaOperand o{l.step < 0 ? base + (row - 1) * size : base,
                  (l.one_row ? 0 : row) * size,
                  l.step * size,
                  plane * planes() * size,
                  {}};
    if (l.turned) o.row = size, o.column = (rows + 1) * size;
    int64_t stride = plane * size;
    o.outer.resize(outer.size());
    for (size_t i = outer.size(); i-- > 0; stride *= outer[i]) o.outer[i] = stride;
    m.operands.push_back(std::move(o));
  }
  return m;
}

DType CudaTrial::result_type(size_t r) const {
  return scalar::is_index(kernel.reductions[r].combiner) ? DType::i64
                                                         : memory_type(kernel.nodes[kernel.reductions[r].value].type);
}

CudaTrial::Memory CudaTrial::make_results() const {
  Memory m;
  for (size_t r = 0; r < kernel.reductions.size() && kernel.form == Form::columns; ++r) {
    const int64_t size = size_of(result_type(r));
    m.bytes.emplace_back(static_cast<size_t>(planes() * columns * size + 2 * kMargin + 64), char{0x55});
    CudaOperand o{aligned(m.bytes.back()) + kMargin, 0, size, 0, std::vector<int64_t>(outer.size())};
    int64_t stride = columns * size;
    for (size_t i = outer.size(); i-- > 0; stride *= outer[i]) o.outer[i] = stride;
    m.operands.push_back(std::move(o));
  }
  return m;
}

/// The scalar executor, plane by plane; form columns in calls of 256 rows whose lanes are joined in any order.
void CudaTrial::run_scalar(Memory& memory, Memory& results) const {
  KernelPtr plain = scalar::interpret(kernel, "test");
  const bool by_columns = kernel.form == Form::columns;
  int64_t scratch_bytes = 64 + static_cast<int64_t>(kernel.locals.size()) * (columns + 16) * 8 +
                          static_cast<int64_t>(kernel.reductions.size()) * 16 * columns * 16;
  std::vector<uint64_t> scratch(static_cast<size_t>(scratch_bytes) / 8 + 16);
  std::vector<int64_t> row_strides, column_strides, index_strides;
  for (const CudaOperand& o : memory.operands) {
    row_strides.push_back(o.row);
    column_strides.push_back(o.column);
    index_strides.push_back(o.index);
  }
  for (int64_t plane = 0; plane < planes(); ++plane) {
    std::vector<int64_t> inside_out, index(outer.size());
    int64_t rest = plane;
    for (size_t d = outer.size(); d-- > 0; rest /= outer[d]) inside_out.push_back(index[d] = rest % outer[d]);
    inside_out.resize(8);
    auto at = [&](const CudaOperand& o) {
      char* p = static_cast<char*>(o.at);
      for (size_t d = 0; d < outer.size(); ++d) p += index[d] * o.outer[d];
      return p;
    };
    std::vector<std::vector<scalar::Accumulator>> totals(kernel.reductions.size());
    for (size_t r = 0; r < kernel.reductions.size() && by_columns; ++r) {
      const Reduction& reduction = kernel.reductions[r];
      totals[r].assign(static_cast<size_t>(columns),
                       scalar::identity(reduction.combiner, kernel.nodes[reduction.value].type));
      if (rows == 0 && reduction.combiner == Combiner::sum)
        for (scalar::Accumulator& p : totals[r]) p.value = scalar::broadcast(kernel.nodes[reduction.value].type, 0);
    }
    const int64_t step = by_columns ? 256 : std::max<int64_t>(rows, 1);
    for (int64_t row = 0; row < rows; row += step) {
      std::vector<char*> bases;
      for (const CudaOperand& o : memory.operands) bases.push_back(at(o) + row * o.row);
      char* lanes = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(scratch.data()) + 63) & ~uintptr_t(63));
      KernelFrame f{bases.data(),
                    row_strides.data(),
                    column_strides.data(),
                    index_strides.data(),
                    scalars.data(),
                    std::min(step, rows - row),
                    columns,
                    lanes,
                    row,
                    0,
                    inside_out.data(),
                    plain->context.get()};
      plain->interpret(&f);
      for (size_t r = 0; r < kernel.reductions.size() && by_columns; ++r) {
        const Reduction& reduction = kernel.reductions[r];
        const Type type = kernel.nodes[reduction.value].type;
        const int64_t size = size_of(type);
        const bool indexed = scalar::is_index(reduction.combiner);
        char* indices = lanes + 16 * columns * size;
        for (int64_t i = 0; i < 16 * columns; ++i) {
          scalar::Accumulator next = scalar::identity(reduction.combiner, type);
          std::memcpy(&next.value, lanes + i * size, static_cast<size_t>(size));
          if (indexed) std::memcpy(&next.index, indices + i * 8, 8);
          scalar::combine(reduction.combiner, type, totals[r][static_cast<size_t>(i % columns)], next);
        }
        lanes = indices + (indexed ? 16 * columns * 8 : 0);
      }
    }
    for (size_t r = 0; r < results.operands.size(); ++r)
      for (int64_t c = 0; c < columns; ++c) {
        const scalar::Accumulator& total = totals[r][static_cast<size_t>(c)];
        const int64_t size = results.operands[r].column;
        const scalar::Lanes& value = scalar::is_index(kernel.reductions[r].combiner) ? total.index : total.value;
        std::memcpy(at(results.operands[r]) + c * size, &value, static_cast<size_t>(size));
      }
  }
}

void CudaTrial::run() const {
  verify(kernel);
  Memory expected = make(), got = make(), expected_results = make_results(), got_results = make_results();
  run_scalar(expected, expected_results);
  unit.run(text, {rows, columns, outer, got.operands, got_results.operands, scalars}, device);
  if (testing::Test::HasFatalFailure()) return;
  auto compare = [&](Memory& a, Memory& b, const char* what, auto dtype_of) {
    for (size_t i = 0; i < a.bytes.size(); ++i) {
      const DType d = dtype_of(i);
      const int64_t size = size_of(d);
      const char *x = aligned(a.bytes[i]), *y = aligned(b.bytes[i]);
      const int64_t end = static_cast<int64_t>(a.bytes[i].size()) - 64;
      for (int64_t at = 0; at + size <= end; at += size)
        if (!same(x + at, y + at, d)) {
          ADD_FAILURE() << what << " " << i << ", byte " << at - kMargin << " of " << end - 2 * kMargin << ": expected "
                        << fmt::format("{:02x}, got {:02x}", fmt::join(std::vector<uint8_t>(x + at, x + at + size), ""),
                                       fmt::join(std::vector<uint8_t>(y + at, y + at + size), ""))
                        << "\n"
                        << planes() << " x " << rows << " x " << columns << "\n"
                        << print(kernel) << text.cuda->source;
          return;
        }
    }
  };
  compare(expected, got, "buffer", [&](size_t i) { return kernel.buffers[i].dtype; });
  compare(expected_results, got_results, "result", [&](size_t i) { return result_type(i); });
}

}  // namespace ingot::codegen::test
