// Compiling takes as long an op in a long function as in a short one: counted in steps of searches, which are the same
// on every machine.
#include <gtest/gtest.h>

#include "base/work_count.h"
#include "cli/compile_bench.h"
#include "ingot.h"

namespace ingot::cli {
namespace {

uint64_t work_of(const CompileForm& form, int ops) {
  clear_caches();
  const Tensor x = ones({8, 16});
  auto fast = compile(form.make(ops));
  const uint64_t before = ingot::detail::counted_work();
  static_cast<void>(fast(x));
  return ingot::detail::counted_work() - before;
}

// Less than a microsecond an op: what is alive at the same time is looked at one by one where the arena is planned. A
// search of the groups at each question took thousands.
TEST(CompileGrowth, SearchesTakeFewStepsAnOpInLongFunctions) {
  constexpr int kOps = 8000;
  for (const CompileForm& form : compile_forms()) {
    const uint64_t work = work_of(form, kOps);
    EXPECT_GT(work, 0u) << form.name;
    EXPECT_LE(work, 640u * kOps) << form.name;
    RecordProperty(form.name, std::to_string(work));
  }
}

}  // namespace
}  // namespace ingot::cli
