#include "lower_support.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "codegen/generate.h"

namespace ingot::codegen::test {
namespace {

class Runner {
 public:
  Runner(const Program& program, std::vector<char*> buffers, std::vector<int64_t> sizes,
         std::span<const ir::ReferenceScalar> scalars)
      : program_(program), buffers_(std::move(buffers)), sizes_(std::move(sizes)), scalars_(scalars) {}

  void run(const Step& step) {
    switch (step.kind) {
      case Step::Kind::loop:
        return run(step.loop);
      case Step::Kind::column:
        return run(step.column);
      case Step::Kind::matmul:
        return run(step.matmul);
      case Step::Kind::library:
        FAIL() << "library step " << step.library.name;
    }
  }

 private:
  int64_t value(Dim d) const { return DimTable::value_of(d, sizes_); }
  Ints values(std::span<const Dim> dims) const {
    Ints result;
    for (Dim d : dims) result.push_back(value(d));
    return result;
  }
  char* base(const Argument& a) const { return buffers_[a.buffer] + value(a.offset); }

  std::vector<uint64_t> scalar_bits(const std::vector<ScalarSource>& sources) const {
    std::vector<uint64_t> bits;
    for (const ScalarSource& s : sources) {
      ir::ReferenceScalar x;
      if (s.kind == ScalarSource::Kind::size)
        x = ir::ReferenceScalar(value(s.size));
      else
        x = scalars_[s.number];
      bool floating = x.category == Category::floating;
      double number = floating ? x.number : static_cast<double>(x.integer);
      int64_t integer = floating ? static_cast<int64_t>(x.number) : x.integer;
      switch (s.type) {
        case DType::f32:
          bits.push_back(std::bit_cast<uint32_t>(static_cast<float>(number)));
          break;
        case DType::f64:
          bits.push_back(std::bit_cast<uint64_t>(number));
          break;
        case DType::i32:
          bits.push_back(static_cast<uint32_t>(integer));
          break;
        case DType::bool_:
          bits.push_back(number != 0);
          break;
        default:
          bits.push_back(static_cast<uint64_t>(integer));
          break;
      }
    }
    return bits;
  }

  /// Calls fn with the index of each point of the space.
  template <class F>
  static void each(const Ints& space, F fn) {
    int64_t total = 1;
    for (int64_t n : space) total *= n;
    Ints index(space.size(), 0);
    for (int64_t i = 0; i < total; ++i) {
      fn(index);
      for (size_t d = space.size(); d-- > 0;) {
        if (++index[d] < space[d]) break;
        index[d] = 0;
      }
    }
  }

  static void call(const KernelSource& kernel, const void* frame) { kernel.interpret(frame); }

  void run(const LoopStep& step) {
    Ints space = values(step.space);
    size_t rank = space.size();
    Ints outer(space.begin(), space.end() - 2);
    std::vector<int64_t> row, column, index;
    for (const Argument& a : step.arguments) {
      ASSERT_EQ(a.strides.size(), rank);
      row.push_back(value(a.strides[rank - 2]));
      column.push_back(value(a.strides[rank - 1]));
      index.push_back(value(a.index_stride));
    }
    int64_t scratch_bytes = step.kernel->scratch_bytes + 64, padded = (space[rank - 1] + 15) / 16 * 16;
    for (int64_t b : step.local_bytes) scratch_bytes += padded * b;
    std::vector<char> scratch(static_cast<size_t>(scratch_bytes) + 64);
    char* aligned = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
    std::vector<uint64_t> scalars = scalar_bits(step.scalars);
    each(outer, [&](const Ints& at) {
      std::vector<char*> buffers;
      for (const Argument& a : step.arguments) {
        char* p = base(a);
        for (size_t d = 0; d < at.size(); ++d) p += at[d] * value(a.strides[d]);
        buffers.push_back(p);
      }
      std::vector<int64_t> inside_out(at.begin(), at.end());
      std::reverse(inside_out.begin(), inside_out.end());
      KernelFrame f{buffers.data(),
                    row.data(),
                    column.data(),
                    index.data(),
                    scalars.data(),
                    space[rank - 2],
                    space[rank - 1],
                    aligned,
                    0,
                    0,
                    inside_out.data(),
                    step.kernel->context.get()};
      call(*step.kernel, &f);
    });
  }

  /// Float and integer columns by one call of at most 256 rows each: blocks are few enough to combine in order of
  /// pairs.
  void run(const ColumnStep& step) {
    Ints space = values(step.space);
    size_t rank = space.size();
    int64_t rows = space[rank - 2], columns = space[rank - 1];
    ASSERT_LE(rows, 256) << "the test runner combines one block only";
    ASSERT_EQ(step.results.size(), 1u);
    const ColumnStep::Result& result = step.results[0];
    Ints outer(space.begin(), space.end() - 2);
    std::vector<int64_t> row, column, index;
    for (const Argument& a : step.arguments) {
      row.push_back(value(a.strides[rank - 2]));
      column.push_back(value(a.strides[rank - 1]));
      index.push_back(value(a.index_stride));
    }
    std::vector<double> storage(static_cast<size_t>(64 * columns + step.kernel->scratch_bytes + 64));
    char* scratch = reinterpret_cast<char*>(storage.data());
    scratch += (64 - reinterpret_cast<uintptr_t>(scratch) % 64) % 64;
    std::vector<uint64_t> scalars = scalar_bits(step.scalars);
    each(outer, [&](const Ints& at) {
      std::vector<char*> buffers;
      for (const Argument& a : step.arguments) {
        char* p = base(a);
        for (size_t d = 0; d < at.size(); ++d) p += at[d] * value(a.strides[d]);
        buffers.push_back(p);
      }
      std::vector<int64_t> inside_out(at.begin(), at.end());
      std::reverse(inside_out.begin(), inside_out.end());
      KernelFrame f{buffers.data(),
                    row.data(),
                    column.data(),
                    index.data(),
                    scalars.data(),
                    rows,
                    columns,
                    scratch,
                    0,
                    0,
                    inside_out.data(),
                    step.kernel->context.get()};
      call(*step.kernel, &f);
      char* out = base(result.out);
      for (size_t d = 0; d < at.size(); ++d) out += at[d] * value(result.out.strides[d]);
      finish_columns(result, scratch, out, columns);
    });
  }

  void finish_columns(const ColumnStep::Result& result, const char* part, char* out, int64_t columns) {
    ASSERT_EQ(result.type, DType::f32);
    const float* lanes = reinterpret_cast<const float*>(part);
    const int64_t* places = reinterpret_cast<const int64_t*>(part + 16 * columns * 4);
    int64_t stride = value(result.out.strides.back());
    for (int64_t c = 0; c < columns; ++c) {
      float lane[16];
      int64_t place[16];
      bool indexed = result.combiner == Combiner::argmax;
      for (int l = 0; l < 16; ++l) {
        lane[l] = lanes[l * columns + c];
        if (indexed) place[l] = places[l * columns + c];
      }
      for (int half = 8; half; half /= 2)
        for (int l = 0; l < half; ++l) switch (result.combiner) {
            case Combiner::sum:
              lane[l] += lane[l + half];
              break;
            case Combiner::max:
              lane[l] = std::max(lane[l], lane[l + half]);
              break;
            case Combiner::argmax:
              if (lane[l + half] > lane[l] || (lane[l + half] == lane[l] && place[l + half] < place[l]))
                lane[l] = lane[l + half], place[l] = place[l + half];
              break;
            default:
              FAIL() << "combiner";
          }
      if (indexed)
        std::memcpy(out + c * stride, place, 8);
      else
        std::memcpy(out + c * stride, lane, 4);
    }
  }

  double read(DType d, const char* p) const { return ir::ReferenceTensor::from_bytes(d, {}, p).at(0); }

  void run(const MatmulStep& step) {
    ASSERT_TRUE(step.dtype == DType::f32 || step.dtype == DType::f64 || step.dtype == DType::bf16);
    int64_t m = value(step.m), n = value(step.n), k = value(step.k);
    int64_t raw = size_of(step.accumulate);
    std::vector<uint64_t> scalars = scalar_bits(step.epilogue_scalars);
    size_t rank = step.batch.size();
    each(values(step.batch), [&](const Ints& at) {
      auto start = [&](const Argument& x) {
        char* p = base(x);
        for (size_t d = 0; d < at.size(); ++d) p += at[d] * value(x.strides[d]);
        return p;
      };
      char *a = start(step.a), *b = start(step.b), *c = start(step.c);
      std::vector<char> tile(static_cast<size_t>(m * n * raw + 1));
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
          double sum = 0;
          for (int64_t kk = 0; kk < k; ++kk)
            sum += read(step.dtype, a + i * value(step.a.strides[rank]) + kk * value(step.a.strides[rank + 1])) *
                   read(step.dtype, b + kk * value(step.b.strides[rank]) + j * value(step.b.strides[rank + 1]));
          char* to = step.epilogue ? tile.data() + (i * n + j) * raw
                                   : c + i * value(step.c.strides[rank]) + j * value(step.c.strides[rank + 1]);
          if (raw == 8)
            std::memcpy(to, &sum, 8);
          else {
            float x = static_cast<float>(sum);
            std::memcpy(to, &x, 4);
          }
        }
      if (!step.epilogue) return;
      std::vector<char*> buffers{tile.data()};
      std::vector<int64_t> row{n * raw}, column{raw}, index{0};
      for (const Argument& x : step.epilogue_arguments) {
        ASSERT_EQ(x.strides.size(), rank + 2);
        buffers.push_back(start(x));
        row.push_back(value(x.strides[rank]));
        column.push_back(value(x.strides[rank + 1]));
        index.push_back(value(x.index_stride));
      }
      std::vector<char> scratch(static_cast<size_t>(step.epilogue->scratch_bytes) + 64);
      KernelFrame f{buffers.data(),
                    row.data(),
                    column.data(),
                    index.data(),
                    scalars.data(),
                    m,
                    n,
                    scratch.data(),
                    0,
                    0,
                    nullptr,
                    step.epilogue->context.get()};
      call(*step.epilogue, &f);
    });
  }

  const Program& program_;
  std::vector<char*> buffers_;
  std::vector<int64_t> sizes_;
  std::span<const ir::ReferenceScalar> scalars_;
};

Ints shape_of(const DimTable& dims, std::span<const Dim> shape, std::span<const int64_t> values) {
  Ints result;
  for (Dim d : shape) result.push_back(values.empty() ? dims.hint(d) : DimTable::value_of(d, values));
  return result;
}

std::vector<int64_t> sizes_of(const DimTable& dims, std::span<const int64_t> symbols) {
  if (!symbols.empty() || dims.symbol_count() == 0) return dims.evaluate(symbols);
  return {};
}

}  // namespace

LowerOptions interpreted() {
  LowerOptions options;
  return options;
}

std::vector<ir::ReferenceTensor> run_program(const ir::Graph& graph, const Program& program,
                                             std::span<const ir::ReferenceTensor> inputs,
                                             std::span<const ir::ReferenceScalar> scalars,
                                             std::span<const int64_t> symbols) {
  std::vector<int64_t> sizes = program.dims.evaluate(symbols);
  std::vector<std::vector<char>> memory;
  std::vector<char*> buffers;
  std::vector<ir::ReferenceTensor> outputs;
  for (ir::ValueId v : graph.outputs)
    outputs.emplace_back(graph.type(v).dtype, shape_of(program.dims, graph.type(v).shape, sizes));
  for (const ProgramBuffer& b : program.buffers) {
    int64_t bytes = 0;
    if (b.place == Place::arena) bytes = DimTable::value_of(b.bytes, sizes);
    if (b.place == Place::output) bytes = outputs[b.number].size() * size_of(outputs[b.number].dtype);
    if (b.place == Place::input) {
      const ir::InputInfo& info = graph.inputs[b.number];
      const ir::ReferenceTensor& from = inputs[b.number];
      int64_t element = size_of(from.dtype), last = 0;
      for (size_t d = 0; d < info.strides.size(); ++d)
        last += std::max<int64_t>(from.shape[d] - 1, 0) * DimTable::value_of(info.strides[d], sizes);
      memory.emplace_back(static_cast<size_t>((last + 1) * element + 64));
      std::vector<char> dense(static_cast<size_t>(from.size() * element + 1));
      from.to_bytes(dense.data());
      for (int64_t i = 0; i < from.size(); ++i) {
        int64_t rest = i, at = 0;
        for (size_t d = from.shape.size(); d-- > 0;) {
          at += rest % from.shape[d] * DimTable::value_of(info.strides[d], sizes);
          rest /= from.shape[d];
        }
        std::memcpy(memory.back().data() + at * element, dense.data() + i * element, static_cast<size_t>(element));
      }
    } else {
      memory.emplace_back(static_cast<size_t>(bytes) + 64, static_cast<char>(0x7e));
    }
  }
  for (auto& m : memory) buffers.push_back(m.data());
  Runner runner(program, buffers, sizes, scalars);
  for (const Step& step : program.steps) runner.run(step);
  for (size_t i = 0; i < program.buffers.size(); ++i)
    if (program.buffers[i].place == Place::output) {
      ir::ReferenceTensor& out = outputs[program.buffers[i].number];
      out = ir::ReferenceTensor::from_bytes(out.dtype, out.shape, buffers[i]);
    }
  return outputs;
}

ir::ReferenceTensor random_tensor(const ir::Graph& graph, ir::ValueId v, uint32_t seed, int64_t bound,
                                  std::span<const int64_t> symbols) {
  std::vector<int64_t> sizes = sizes_of(graph.dims, symbols);
  ir::ReferenceTensor t(graph.type(v).dtype, shape_of(graph.dims, graph.type(v).shape, sizes));
  std::mt19937 random(seed);
  for (double& x : t.real) x = ir::round_to(t.dtype, static_cast<double>(random() % 4096) / 1024.0 - 2.0);
  for (int64_t& x : t.integer)
    x = t.dtype == DType::bool_ ? random() % 2 : static_cast<int64_t>(random() % static_cast<uint32_t>(bound));
  return t;
}

LowerResult check_against_reference(const ir::Graph& graph, double tolerance, LowerOptions options,
                                    std::vector<int64_t> symbols, std::vector<ir::ReferenceScalar> scalars) {
  LowerResult result = lower(graph, Target{}, options);
  std::vector<ir::ReferenceTensor> inputs;
  for (size_t i = 0; i < graph.inputs.size(); ++i)
    inputs.push_back(random_tensor(graph, graph.inputs[i].value, static_cast<uint32_t>(i + 1), 7, symbols));
  std::vector<ir::ReferenceTensor> got = run_program(graph, result.program, inputs, scalars, symbols);
  ir::ReferenceOptions reference;
  reference.symbols = symbols;
  std::vector<ir::ReferenceTensor> expected = ir::interpret(graph, inputs, scalars, reference);
  for (size_t o = 0; o < expected.size(); ++o) {
    EXPECT_EQ(got[o].shape, expected[o].shape);
    double largest = 1e-30;
    for (int64_t i = 0; i < expected[o].size(); ++i)
      if (std::isfinite(expected[o].at(i))) largest = std::max(largest, std::abs(expected[o].at(i)));
    int wrong = 0;
    for (int64_t i = 0; i < expected[o].size() && wrong < 3; ++i) {
      double a = got[o].at(i), b = expected[o].at(i);
      bool same = std::isnan(b) ? std::isnan(a) : a == b || std::abs(a - b) <= tolerance * largest;
      if (!same) {
        ++wrong;
        ADD_FAILURE() << "output " << o << " element " << i << ": " << a << ", expected " << b << "\n"
                      << ir::print(graph) << result.explanation.str(graph, result.program);
      }
    }
  }
  return result;
}

int count_steps(const Program& program, Step::Kind kind) {
  int count = 0;
  for (const Step& s : program.steps) count += s.kind == kind;
  return count;
}

}  // namespace ingot::codegen::test
