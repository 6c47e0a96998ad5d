// CUDA text, run on the processor or a device (cuda_unit.h), against the scalar executor.
#include <bit>
#include <cmath>
#include <deque>

#include "base/half.h"
#include "codegen/cuda/cuda.h"
#include "cuda_graphs.h"
#include "cuda_program.h"
#include "cuda_trial.h"
#include "lower_support.h"

namespace ingot::codegen::test {
namespace {

const Target kCuda{.cuda_arch = 90};

TEST(CudaText, RandomKernelsGiveTheBitsOfTheScalarExecutor) {
  std::deque<RandomKernel> makers;
  std::vector<KernelPtr> texts;
  for (uint64_t seed = 1; seed <= 48; ++seed) {
    RandomKernel& maker = makers.emplace_back(seed, /*ordered=*/false);
    seed % 4 == 0 ? maker.make_columns() : maker.make();
    texts.push_back(generate(maker.kernel().kernel, kCuda, "random", seed % 2 ? 2 : 3));
  }
  const auto unit = cuda_unit(texts);
  for (size_t i = 0; i < makers.size(); ++i) {
    const uint64_t seed = i + 1;
    RandomKernel& maker = makers[i];
    const Kernel& kernel = maker.kernel().kernel;
    std::vector<Layout> layouts;
    for (const Buffer& b : kernel.buffers)
      layouts.push_back({b.access == Access::dense ? 1 : b.access == Access::uniform ? 0 : maker.below(2) ? 2 : -1});
    for (uint32_t t : maker.tables_) layouts[t].index_count = 4;
    const int64_t sizes[] = {1, 16, 37, 300, 1024, 2050};
    int64_t rows = 1 + static_cast<int64_t>(seed % 7), columns = sizes[seed % 6];
    if (seed % 5 == 0) {  // in tiles, where it is a loop
      rows += 16;
      for (size_t b = 0; b < layouts.size(); ++b)
        if (kernel.buffers[b].access == Access::strided && layouts[b].index_count == 0) layouts[b] = {.turned = true};
    }
    if (kernel.form == Form::columns) rows = sizes[seed / 4 % 6], columns = 1 + static_cast<int64_t>(seed * 7 % 90);
    std::vector<int64_t> outer{2, 1};
    if (seed % 2 == 0) outer = {1, 2, 2};
    const int64_t least = kernel.form == Form::columns ? 9000 : 600;  // shared memory that a block may have, in bytes
    for (const CudaDevice& device : {CudaDevice{}, CudaDevice{8, least}})
      CudaTrial{kernel,
                *texts[i],
                *unit,
                rows,
                columns,
                outer,
                layouts,
                {0x3fc00000, 0x4004000000000000, 5, 7, seed & 1},
                seed,
                device,
                static_cast<int64_t>(seed % 3)}
          .run();
    if (HasFailure()) {
      ADD_FAILURE() << "seed " << seed;
      return;
    }
  }
}

/// Every operation that takes this type, and every conversion from it.
Kernel all_operations(Type type) {
  KernelBuilder k;
  const DType d = memory_type(type);
  Expr a = k.input(d), b = k.input(d), c = k.input(d);
  auto out = [&](Expr x) { k.output(memory_type(x.type()), x); };
  if (type != Type::f32 && type != Type::f64)
    for (Expr x : {a & b, a | b, a ^ b}) out(x);
  for (Type to : {Type::f32, Type::f64, Type::i32, Type::i64})
    if (to != type) out(convert(a, to));
  if (type == Type::mask) return k.kernel;
  for (Expr x : {a + b, a - b, a * b, a / b, min(a, b), max(a, b), bitcast(a), select(a < b, c, a)}) out(x);
  for (Expr x : {eq(a, b), ne(a, b), a < b, a <= b}) out(x);
  out(k.b.rare(b < c, a, [&] { return a * c - b; }));
  if (type == Type::f32 || type == Type::f64) {
    for (Expr x :
         {fma(a, b, c), sqrt(a), round_even(a), floor(a), ceil(a), trunc(a), scale(a, round_even(b)),
          scale_normal(a, select(eq(b, b), max(min(round_even(b), 100), -100), 0.0)),
          scale_near_one(max(min(abs(a), 2), 0.5), select(eq(b, b), max(min(round_even(b * 16), 250), -250), 0.0)),
          scale_near_one(max(min(a, 2), 0.5), select(eq(c, c), max(min(round_even(c), 1), 0), 0.0) - 127)})
      out(x);
    if (type == Type::f32)
      for (DType half : {DType::f16, DType::bf16}) out(round_to(a, half));
    return k.kernel;
  }
  Expr by = b & (type == Type::i32 ? 31 : 63);
  for (Expr x : {a << by, shift_right_logical(a, by), shift_right_arithmetic(a, by)}) out(x);
  if (type == Type::i32)
    for (DType narrow : {DType::i16, DType::i8, DType::u8}) out(wrap(a, narrow));
  return k.kernel;
}

TEST(CudaText, EveryOperationOfEveryType) {
  std::deque<Kernel> makers;
  std::vector<KernelPtr> texts;
  std::vector<bool> seen(kOpCount);
  for (Type type : kTypes) {
    makers.push_back(all_operations(type));
    const Kernel& kernel = makers.back();
    for (const Node& n : kernel.nodes) seen[static_cast<size_t>(n.op)] = true;
    texts.push_back(generate(kernel, kCuda, name_of(type)));
  }
  for (Op op : {Op::scalar, Op::local, Op::index, Op::reduced}) seen[static_cast<size_t>(op)] = true;  // other tests'
  for (int op = 0; op < kOpCount; ++op) EXPECT_TRUE(seen[static_cast<size_t>(op)]) << name_of(static_cast<Op>(op));
  const auto unit = cuda_unit(texts);
  for (size_t i = 0; i < texts.size(); ++i) CudaTrial{makers[i], *texts[i], *unit, 1, 6000, {}, {}, {}, 77 + i}.run();
}

/// All 65,536 values of both 16-bit floats, and what rounds to each of them.
TEST(CudaText, SixteenBitFloats) {
  std::deque<KernelBuilder> makers;
  std::vector<KernelPtr> texts;
  for (DType half : {DType::f16, DType::bf16}) {
    KernelBuilder& up = makers.emplace_back();
    up.output(DType::f32, up.input(half));
    KernelBuilder& down = makers.emplace_back();
    down.output(half, down.input(DType::f32));
    texts.push_back(generate(up.kernel, kCuda, "up"));
    texts.push_back(generate(down.kernel, kCuda, "down"));
  }
  const auto unit = cuda_unit(texts);
  for (size_t i = 0; i < texts.size(); i += 2) {
    const bool bf16 = i > 0;
    CudaVector<uint16_t> halves(65536);
    for (size_t h = 0; h < halves.size(); ++h) halves[h] = static_cast<uint16_t>(h);
    CudaVector<float> floats(halves.size());
    unit->run(*texts[i], {1, 65536, {}, {{halves.data(), 0, 2, 0, {}}, {floats.data(), 0, 4, 0, {}}}, {}, {}});
    CudaVector<float> near;
    for (size_t h = 0; h < halves.size(); ++h) {
      float expected = bf16 ? f32_from_bf16(halves[h]) : f32_from_f16(halves[h]);
      ASSERT_TRUE(same(reinterpret_cast<char*>(&floats[h]), reinterpret_cast<char*>(&expected), DType::f32)) << h;
      // Each value, the middle to the next one, and one unit in the last place beside that.
      uint32_t bits = std::bit_cast<uint32_t>(expected), middle = bits + (bf16 ? 0x8000u : 0x1000u);
      for (uint32_t x : {bits, middle - 1, middle, middle + 1}) near.push_back(std::bit_cast<float>(x));
    }
    CudaVector<uint16_t> rounded(near.size());
    const auto n = static_cast<int64_t>(near.size());
    unit->run(*texts[i + 1], {1, n, {}, {{near.data(), 0, 4, 0, {}}, {rounded.data(), 0, 2, 0, {}}}, {}, {}});
    for (size_t h = 0; h < near.size(); ++h) {
      uint16_t expected = bf16 ? bf16_from_f32(near[h]) : f16_from_f32(near[h]);
      const DType d = bf16 ? DType::bf16 : DType::f16;
      ASSERT_TRUE(same(reinterpret_cast<char*>(&rounded[h]), reinterpret_cast<char*>(&expected), d)) << near[h];
    }
  }
}

/// x in local row buffer 0, in a phase of its own.
Expr in_local(KernelBuilder& k, Expr x) {
  k.kernel.locals.push_back(x.type());
  k.kernel.phases.emplace_back();
  k.kernel.phases.back().local_stores.push_back({0, x.value});
  return x;
}

/// Rows that keep values, on devices with much shared memory, little, and next to none: then they are read and computed
/// again.
TEST(CudaText, RowsWithoutRoom) {
  KernelBuilder k;
  Expr x = k.input(DType::f32);
  Expr top = k.reduce(Combiner::max, x);
  Expr low = k.reduce(Combiner::min, in_local(k, x - top));
  k.kernel.phases.emplace_back();
  k.output(DType::f32, k.b.local(0) * low + x);
  KernelPtr text = generate(k.kernel, kCuda, "rows");
  EXPECT_EQ(text->cuda->mapping.kept_bytes, 8);
  const auto unit = cuda_unit({text});
  int kept = 0;
  for (int64_t shared : {200000, 16000, 2000})
    for (int64_t columns : {1000, 3000}) {
      CudaDevice device{1, shared};
      kept += plan_launches(text->cuda->mapping, 1, 7, columns, device).launches[0].keep != 0;
      CudaTrial{k.kernel, *text, *unit, 7, columns, {}, {}, {}, 5, device}.run();
    }
  EXPECT_EQ(kept, 3);
}

/// What ends as a local row buffer begins gives it its place, where there is room for either and where there is none.
TEST(CudaText, LocalsTakeThePlaceOfLoads) {
  KernelBuilder k;
  Expr x = k.input(DType::f32);
  Expr top = k.reduce(Combiner::max, x);
  Expr low = k.reduce(Combiner::min, in_local(k, (x - top) * 0.5));
  k.kernel.phases.emplace_back();
  k.output(DType::bf16, k.b.local(0) * low);
  KernelPtr text = generate(k.kernel, kCuda, "rows");
  EXPECT_EQ(text->cuda->mapping.kept_bytes, 4);
  const auto unit = cuda_unit({text});
  for (int64_t shared : {200000, 16000, 2000})
    for (int64_t columns : {0, 1, 255, 768, 1000, 1024, 3000, 4096})
      CudaTrial{k.kernel, *text, *unit, 7, columns, {}, {}, {}, 5, {1, shared, 2}}.run();
}

/// Nothing, single elements, and rows that begin off a 16-byte line.
TEST(CudaText, EdgesOfALoop) {
  KernelBuilder k;
  k.output(DType::bf16, k.input(DType::bf16) + k.input(DType::f32, Access::uniform));
  KernelPtr text = generate(k.kernel, kCuda, "loop");
  EXPECT_EQ(text->cuda->mapping.vector, 8);
  const auto unit = cuda_unit({text});
  for (int64_t shift : {0, 1})
    for (int64_t columns : {0, 1, 7, 8, 9, 2047, 2048, 2049, 4100})
      for (int64_t rows : {0, 1, 3})
        CudaTrial{k.kernel, *text, *unit, rows, columns, {}, {}, {}, 9, {1, 0, columns == 4100 ? 1 : 1024}, shift}
            .run();
}

/// Long rows that are few: each phase is a launch of many blocks, which keep nothing for one another but partial
/// results.
TEST(CudaText, PhasesOfLongRows) {
  KernelBuilder k;
  Expr x = k.input(DType::f32);
  Expr top = k.reduce(Combiner::max, x), where = k.reduce(Combiner::argmin, x);
  k.row_output(DType::f32, top * 2.0);
  Expr low = k.reduce(Combiner::min, in_local(k, x - top));
  k.kernel.phases.emplace_back();
  k.output(DType::f32, k.b.local(0) * low + x);
  KernelBuilder finishing = k;
  finishing.kernel.phases.back().row_stores.clear();
  finishing.row_output(DType::i64, where);
  for (KernelBuilder* maker : {&k, &finishing}) {
    KernelPtr text = generate(maker->kernel, kCuda, "rows");
    const CudaMapping& mapping = text->cuda->mapping;
    EXPECT_EQ(mapping.stages, maker == &k ? 3 : 4);
    const auto unit = cuda_unit({text});
    for (int64_t columns : {40'000, 70'001})
      for (int64_t rows : {1, 3}) {
        CudaDevice device{8, 40'000};
        CudaPlan plan = plan_launches(mapping, 1, rows, columns, device);
        // Up to 64 partial results a row are joined where they are needed, more of them by a launch after each phase.
        const int folds = columns > 64 * 1024 ? mapping.stages - 1 : 0;
        EXPECT_EQ(plan.launches.size(), static_cast<size_t>(mapping.stages + folds));
        EXPECT_GT(plan.launches[0].grid[1], 1u);
        EXPECT_EQ(plan.launches.back().grid[1] > 1, maker == &k);
        CudaTrial{maker->kernel, *text, *unit, rows, columns, {}, {}, {}, 5, device}.run();
      }
  }
}

/// Operands that are dense along the rows: tiles through shared memory, of every size of elements, beside operands of
/// other layouts, in planes, at all edges; and layouts that tiles are not for.
TEST(CudaText, TurnedOperands) {
  std::deque<KernelBuilder> makers;
  std::vector<KernelPtr> texts;
  for (DType d : {DType::u8, DType::bf16, DType::f32, DType::f64}) {
    KernelBuilder& k = makers.emplace_back();
    Expr turned = k.input(d, Access::strided), other = k.input(DType::f32, Access::strided);
    Expr dense = k.input(DType::f32), of_row = k.input(DType::i32, Access::uniform);
    const Type type = turned.type() == Type::f64 ? Type::f64 : Type::f32;
    Expr place = convert(k.b.index(0) - k.b.index(1), type);
    k.output(d == DType::u8 ? DType::f32 : d,
             convert(turned, type) + convert(dense * other, type) + convert(of_row, type) + place);
    texts.push_back(generate(k.kernel, kCuda, "turned", 2));
    EXPECT_EQ(texts.back()->cuda->mapping.turning.size(), 2u);
  }
  const auto unit = cuda_unit(texts);
  const Layout turned{.turned = true}, spread{.step = 3};
  for (size_t i = 0; i < texts.size(); ++i)
    for (auto [rows, columns] : {std::pair<int64_t, int64_t>{64, 64}, {130, 65}, {16, 200}, {63, 17}, {5, 100}})
      for (const Layout& second : {turned, spread}) {
        const CudaDevice device{1, 99 << 10, rows == 130 ? 2 : 1024};
        CudaTrial{makers[i].kernel, *texts[i], *unit, rows, columns, {2, 3}, {turned, second}, {}, i, device}.run();
        CudaTrial{makers[i].kernel, *texts[i], *unit, rows, columns, {1, 1}, {spread, second}, {}, i}.run();
      }
  // More of them than shared memory has room for.
  KernelBuilder many;
  Expr sum = many.input(DType::f64, Access::strided);
  sum = sum + many.input(DType::f64, Access::strided);
  many.output(DType::f64, sum);
  KernelPtr text = generate(many.kernel, kCuda, "many");
  EXPECT_TRUE(text->cuda->mapping.turning.empty());
  CudaTrial{many.kernel, *text, *cuda_unit({text}), 70, 70, {}, {turned, turned}}.run();
}

/// Kernel IR names no block and no thread, no lane and no instruction set: it is the same for both kinds of target.
TEST(CudaText, KernelIrIsTheSameForAProcessor) {
  int compared = 0;
  for (const CudaGraph& sample : cuda_graphs()) {
    ir::Graph graph = sample.make();
    Program device = lower(graph, kCuda).program, host = lower(graph, Target{}).program;
    if (device.steps.size() != host.steps.size()) continue;  // a product with an epilogue of its own
    for (size_t s = 0; s < device.steps.size(); ++s) {
      const auto* loop = std::get_if<LoopStep>(&host.steps[s].work);
      if (loop && !loop->transposing.kernels.empty()) continue;  // panels have another access
      KernelPtr on_host, on_device;
      for_each_kernel(host.steps[s], [&](const KernelPtr& kernel) { on_host = kernel; });
      for_each_kernel(device.steps[s], [&](const KernelPtr& kernel) { on_device = kernel; });
      ASSERT_TRUE(on_host && on_device) << sample.name;
      EXPECT_EQ(on_host->text, on_device->text) << sample.name;
      ++compared;
    }
  }
  EXPECT_GE(compared, 9);
}

/// The graphs of the golden texts as programs, against the reference interpreter.
TEST(CudaText, ProgramsAgreeWithTheReference) {
  std::vector<KernelPtr> kernels;
  std::vector<std::pair<ir::Graph, Program>> programs;
  for (const CudaGraph& sample : cuda_graphs()) {
    ir::Graph graph = sample.make();
    Program program = lower(graph, kCuda).program;
    bool ours = true;
    for (const Step& step : program.steps) {
      ours = ours && (step.is<LoopStep>() || step.is<ColumnStep>());
      for_each_kernel(step, [&](const KernelPtr& kernel) { kernels.push_back(kernel); });
    }
    if (ours) programs.emplace_back(std::move(graph), std::move(program));
  }
  EXPECT_EQ(programs.size() + 1, cuda_graphs().size());  // one has a product
  const auto unit = cuda_unit(kernels);
  for (const auto& [graph, program] : programs)
    for (auto [even, odd] : {std::pair{37, 38}, {3, 1500}, {1500, 3}}) {
      std::vector<int64_t> symbols;
      for (int64_t s = 0; s < program.dims.symbol_count(); ++s) symbols.push_back(s == 0 ? even : s == 1 ? odd : 5);
      SCOPED_TRACE(ir::print(graph));
      std::vector<ir::ReferenceTensor> inputs;
      for (size_t i = 0; i < graph.inputs.size(); ++i)
        inputs.push_back(random_tensor(graph, graph.inputs[i].value, static_cast<uint32_t>(i + 1), 7, symbols));
      std::vector<double> scalars(graph.scalars.size(), 0.75);
      std::vector<ir::ReferenceScalar> reference_scalars(graph.scalars.size());
      for (ir::ReferenceScalar& s : reference_scalars) s.category = Category::floating, s.number = 0.75;
      auto got = run_cuda_program(*unit, graph, program, inputs, scalars, symbols);
      auto expected = ir::interpret(graph, inputs, reference_scalars, {.symbols = symbols});
      for (size_t o = 0; o < got.size(); ++o)
        for (int64_t i = 0; i < got[o].size(); ++i) {
          double bound = is_half(got[o].dtype) ? 0.02 : is_floating(got[o].dtype) ? 4e-6 : 0;
          ASSERT_NEAR(got[o].at(i), expected[o].at(i), bound * (1 + std::abs(expected[o].at(i))))
              << "output " << o << " element " << i;
        }
      if (HasFailure()) return;
    }
}

}  // namespace
}  // namespace ingot::codegen::test
