#include "runtime/memory/donation.h"

#include <gtest/gtest.h>

#include <bit>

#include "base/error.h"
#include "runtime/bound_program.h"
#include "runtime/hand_kernels.h"

namespace ingot::runtime {
namespace {

using namespace testing_kernels;

constexpr int64_t kCount = 100;

/// Two outputs, each the input times a scalar, the first before the second.
std::shared_ptr<Program> two_readers() {
  auto p = std::make_shared<Program>();
  p->inputs = 1, p->outputs = 2;
  p->scalars = {Category::floating};
  p->buffers = {input(0), output(0), output(1)};
  for (uint32_t i = 0; i < 2; ++i) {
    Step step = costly_step<LoopStep>("scale");
    LoopStep& loop = step.as<LoopStep>();
    loop.kernel = loop_kernel([](const KernelFrame& f) {
      for (int64_t c = 0; c < f.columns; ++c)
        element<float>(f, 1, 0, c) = element<float>(f, 0, 0, c) * scalar_f32(f, 0);
    });
    loop.space = {1, kCount};
    loop.arguments = {{0, 0, {kCount * 4, 4}, 0}, {i + 1, 0, {kCount * 4, 4}, 0}};
    loop.scalars = {{ScalarSource::Kind::call, 0, 0, DType::f32}};
    p->steps.push_back(step);
  }
  return p;
}

TEST(Donation, IsGrantedToTheLastReaderAndJudged) {
  const std::shared_ptr<Program> program = two_readers();
  const Donations donations(*program);
  EXPECT_EQ(donations.refusal(0, 0),
            "step 1 (scale) reads what it held after step 0 (scale) has stored the new values");
  EXPECT_EQ(donations.refusal(1, 0), "");
  const LoadedProgram loaded(program);
  const BoundProgramPtr bound = loaded.bind({});
  const int64_t bytes[] = {kCount * 4, kCount * 4};
  const uint64_t scalars[] = {std::bit_cast<uint64_t>(3.0)};
  for (size_t over : {0, 1}) {
    std::vector<float> x = random_floats(kCount, 1), other(kCount);
    const std::vector<float> given = x;
    void* const inputs[] = {x.data()};
    void* outputs[] = {other.data(), other.data()};
    outputs[over] = x.data();
    const CallData data{inputs, {}, outputs, scalars};
    if (over == 0) {
      EXPECT_THROW(run_judged(loaded, *bound, data, bytes), InternalError);
      continue;
    }
    run_judged(loaded, *bound, data, bytes);
    for (size_t i = 0; i < kCount; ++i) {
      EXPECT_EQ(x[i], given[i] * 3);
      EXPECT_EQ(other[i], given[i] * 3);
    }
  }
}

// A step may write over what it reads itself only where it reads no more of it than the element that it stores.
TEST(Donation, IsRefusedWhereAStepReadsOtherElements) {
  const std::shared_ptr<Program> program = two_readers();
  program->steps.erase(program->steps.begin());  // output 0 is stored by nobody
  EXPECT_EQ(Donations(*program).refusal(0, 0), "no step stores it");
  EXPECT_EQ(Donations(*program).refusal(1, 0), "");
  program->steps[0].as<LoopStep>().arguments[0].strides = {kCount * 4, 8};
  EXPECT_EQ(Donations(*program).refusal(1, 0), "step 0 (scale) reads other elements of it than the one that it stores");
  program->inputs = 2;
  program->buffers.push_back(input(1));  // nobody reads it
  EXPECT_EQ(Donations(*program).refusal(1, 1), "");
  program->segments = {{0, 1, 4, false, {{2, 100}}}};
  EXPECT_EQ(Donations(*program).refusal(1, 0), "it is read and written in different slices of a batch");
}

}  // namespace
}  // namespace ingot::runtime
