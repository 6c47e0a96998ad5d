#include "runtime/step_forms.h"

#include <gtest/gtest.h>

#include <bit>
#include <functional>

#include "runtime/bound_program.h"
#include "runtime/hand_kernels.h"

namespace ingot::runtime {
namespace {

using namespace testing_kernels;

Argument dense(uint32_t buffer, Dim row_bytes) { return {buffer, 0, {row_bytes, 4}, 0}; }

// out = a * scalar + b
KernelPtr multiply_add() {
  return loop_kernel([](const KernelFrame& f) {
    for (int64_t r = 0; r < f.rows; ++r)
      for (int64_t c = 0; c < f.columns; ++c)
        element<float>(f, 2, r, c) = element<float>(f, 0, r, c) * scalar_f32(f, 0) + element<float>(f, 1, r, c);
  });
}

Step multiply_add_step(const KernelPtr& kernel, Dim rows, uint32_t a, uint32_t b, uint32_t out, uint32_t scalar) {
  Step step = costly_step<LoopStep>("step of " + std::to_string(a));
  LoopStep& loop = step.as<LoopStep>();
  loop.kernel = kernel;
  loop.space = {rows, 8};
  loop.arguments = {dense(a, 32), dense(b, 32), dense(out, 32)};
  loop.scalars = {{ScalarSource::Kind::call, scalar, 0, DType::f32}};
  return step;
}

TEST(StepForms, BuffersScalarsAndNamesAreNotPartOfAForm) {
  Program p;
  const Dim rows = p.dims.symbol(3);
  p.buffers = std::vector<ProgramBuffer>(9, input(0));
  const KernelPtr kernel = multiply_add();
  p.steps = {multiply_add_step(kernel, rows, 7, 2, 5, 0), multiply_add_step(kernel, rows, 1, 8, 3, 1)};
  p.steps.push_back(p.steps[0]);
  p.steps[2].as<LoopStep>().scalars = {{ScalarSource::Kind::size, 0, rows, DType::f32}};
  const StepForms forms(p);
  EXPECT_EQ(forms.size(), 1u);
  for (uint32_t i = 0; i < 3; ++i) EXPECT_EQ(forms.of(i), 0u);
  // In the order in which the arguments come, then its own.
  EXPECT_TRUE(std::ranges::equal(forms.buffers(0), std::vector<uint32_t>{7, 2, 5, 9}));
  EXPECT_TRUE(std::ranges::equal(forms.buffers(1), std::vector<uint32_t>{1, 8, 3, 10}));
  EXPECT_TRUE(std::ranges::equal(forms.buffers(2), std::vector<uint32_t>{7, 2, 5, 11}));
  const auto& arguments = forms.form(0).as<LoopStep>().arguments;
  for (uint32_t i = 0; i < 3; ++i) EXPECT_EQ(arguments[i].buffer, i);
}

TEST(StepForms, AnythingElseIs) {
  Program p;
  const Dim rows = p.dims.symbol(3), other = p.dims.symbol(3);
  p.buffers = std::vector<ProgramBuffer>(9, input(0));
  const KernelPtr kernel = multiply_add();
  const Step step = multiply_add_step(kernel, rows, 7, 2, 5, 0);
  auto changed = [&](const std::function<void(LoopStep&)>& change) {
    Step s = step;
    change(s.as<LoopStep>());
    p.steps.push_back(s);
  };
  p.steps = {step};
  changed([&](LoopStep& s) { s.kernel = multiply_add(); });
  changed([&](LoopStep& s) { s.space[0] = other; });
  changed([&](LoopStep& s) { s.space[0] = 3; });
  changed([&](LoopStep& s) { s.arguments[1].buffer = 7; });  // reads one buffer twice
  changed([&](LoopStep& s) { s.arguments[2].buffer = 7; });  // in place
  changed([&](LoopStep& s) { s.arguments[2].buffer = 2; });
  changed([&](LoopStep& s) { s.arguments[1].offset = 4; });
  changed([&](LoopStep& s) { s.arguments[1].strides[0] = 64; });
  changed([&](LoopStep& s) { s.arguments[1].index_stride = 4; });
  changed([&](LoopStep& s) { s.arguments[1].read_only = true; });
  changed([&](LoopStep& s) { s.scalars[0].type = DType::i32; });
  changed([&](LoopStep& s) { s.scalars.push_back(s.scalars[0]); });
  changed([&](LoopStep& s) { s.copies = true; });
  changed([&](LoopStep& s) { s.rows_whole = true; });
  changed([&](LoopStep& s) { s.local_bytes = {4}; });
  p.steps.push_back(step), p.steps.back().operations = 1;
  p.steps.push_back(step), p.steps.back().bytes = 1;
  EXPECT_EQ(StepForms(p).size(), p.steps.size());
}

// Two layers through one driver: each has its own inputs, scalar, place in the arena and weight.
TEST(StepForms, StepsOfOneFormShareADriverAndNothingElse) {
  auto p = std::make_shared<Program>();
  const Dim rows = p->dims.symbol(3), bytes = p->dims.mul(rows, 32);
  p->inputs = 4, p->outputs = 2;
  p->scalars = {Category::floating, Category::floating};
  p->buffers = {input(0),  input(1), input(2), input(3), {Place::arena, 0, bytes, 0, 1}, {Place::arena, 0, bytes, 1, 2},
                output(0), output(1)};
  const KernelPtr kernel = multiply_add();
  p->steps = {multiply_add_step(kernel, rows, 0, 1, 4, 0), multiply_add_step(kernel, rows, 4, 1, 5, 1)};
  const auto kernels = std::make_shared<const ProductKernels>(product_kernels());
  for (uint32_t i = 0; i < 2; ++i) {
    MatmulStep mm;
    mm.batch = {1}, mm.m = rows, mm.n = 8, mm.k = 8;
    mm.a = {5, 0, {bytes, 32, 4}, 0}, mm.b = {2 + i, 0, {256, 32, 4}, 0};
    mm.b_is_weight = true, mm.kernels = kernels;
    mm.epilogue.arguments = {{6 + i, 0, {bytes, 32, 4}, 0}};
    p->steps.push_back(costly_step("product", std::move(mm)));
  }
  p->buffers[5].last_step = 3;
  for (int threads : kThreadCounts) {
    Threads scope(threads);
    LoadedProgram program(p);
    for (int64_t n : {3, 5, 0, 1, 200, 3}) {
      const auto size = static_cast<size_t>(n * 8);
      std::vector<float> a = random_floats(size, 1), b = random_floats(size, 2), u(size), v(size);
      std::vector<float> weights[2] = {random_floats(64, 3), random_floats(64, 4)};
      const StoragePtr storages[2] = {storage_of(weights[0]), storage_of(weights[1])};
      for (int again = 0; again < 3; ++again) {
        const BoundProgramPtr bound = program.bind(std::vector<int64_t>{n});
        EXPECT_EQ(bound->steps[0], bound->steps[1]);
        EXPECT_EQ(bound->steps[2], bound->steps[3]);
        std::vector<InputIdentity> identities(4);
        for (size_t i = 0; i < 2; ++i) identities[2 + i] = {storages[i].get(), storages[i]->version()};
        run(program, {n}, {a.data(), b.data(), weights[0].data(), weights[1].data()}, {u.data(), v.data()},
            {std::bit_cast<uint64_t>(3.0), std::bit_cast<uint64_t>(-0.5)}, identities);
        for (size_t i = 0; i < size; ++i)
          for (int w = 0; w < 2; ++w) {
            float sum = 0;
            for (size_t k = 0; k < 8; ++k) {
              const size_t at = i / 8 * 8 + k;
              const float y = (a[at] * 3.0f + b[at]) * -0.5f + b[at];
              sum = std::fma(y, weights[w][k * 8 + i % 8], sum);
            }
            ASSERT_EQ((w == 0 ? u : v)[i], sum);
          }
      }
    }
  }
}

}  // namespace
}  // namespace ingot::runtime
