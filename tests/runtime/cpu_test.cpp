#include "runtime/cpu.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>

#include "base/error.h"

namespace ingot::runtime {
namespace {

// host_target() reads the environment once a process, so each case has a process of its own.
int target_with(const char* isa) {
  setenv("INGOT_ISA", isa, 1);
  try {
    return 10 + static_cast<int>(host_target().isa);
  } catch (const Error& error) {
    std::string text = error.what();
    return text.find(isa) != std::string::npos && text.find("none") != std::string::npos ? 1 : 2;
  }
}

TEST(CpuDeathTest, EnvironmentForcesALevel) {
  for (Isa isa : {Isa::none, Isa::avx2, Isa::avx512}) {
    bool supported = isa <= detected_target().isa;
    int expected = supported ? 10 + static_cast<int>(isa) : 1;
    EXPECT_EXIT(std::_Exit(target_with(Target{.isa = isa}.str().c_str())), testing::ExitedWithCode(expected), "");
  }
  EXPECT_EXIT(std::_Exit(target_with("avx1024")), testing::ExitedWithCode(1), "");
}

TEST(Cpu, ReplacingTheTarget) {
  set_host_target(Target{.isa = Isa::none});
  EXPECT_EQ(host_target().isa, Isa::none);
  set_host_target(std::nullopt);
  EXPECT_LE(host_target().isa, detected_target().isa);
}

TEST(Cpu, CachesGrowOutwards) {
  const CacheSizes& caches = cache_sizes();
  EXPECT_GE(caches.l1, 8 << 10);
  EXPECT_GT(caches.l2, caches.l1);
  EXPECT_GT(caches.l3, caches.l2);
  // The system's own figure, where it has one.
  std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index3/size");
  int64_t kilobytes = 0;
  if (file >> kilobytes) EXPECT_EQ(caches.l3, kilobytes << 10);
}

TEST(Cpu, AffinityLimitsTheProcessors) {
  EXPECT_GE(usable_processors(), 1);
  cpu_set_t all, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &all)) {
      CPU_SET(cpu, &one);
      break;
    }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(usable_processors(), 1);
  sched_setaffinity(0, sizeof all, &all);
}

}  // namespace
}  // namespace ingot::runtime
