#include "runtime/cpu.h"

#include <cpuid.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string>

#include "base/error.h"
#include "base/first_use.h"
#include "runtime/code/executable_memory.h"
#include "runtime/control_group.h"

namespace ingot::runtime {
namespace {

constexpr uint32_t kIntel = 0x756e6547;  // how the vendor's name begins in ebx

struct Registers {
  uint32_t a = 0, b = 0, c = 0, d = 0;
};
Registers cpuid(uint32_t leaf, uint32_t subleaf = 0) {
  Registers r;
  if (__get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d) == 0) return {};
  return r;
}
bool bit(uint32_t value, int n) { return value >> n & 1u; }

// Which register states the operating system saves at a context switch (XCR0).
uint64_t enabled_states() {
  if (!bit(cpuid(1).c, 27)) return 0;
  uint32_t low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<uint64_t>(high) << 32 | low;
}

Target detect() {
  Registers basic = cpuid(1), extended = cpuid(7);
  uint64_t states = enabled_states();
  bool fma = bit(basic.c, 12), avx = bit(basic.c, 28), f16c = bit(basic.c, 29);
  bool bmi1 = bit(extended.b, 3), avx2 = bit(extended.b, 5), bmi2 = bit(extended.b, 8);
  if (!executable_memory_available()) return {};
  if (!(avx && fma && f16c && avx2 && bmi1 && bmi2) || (states & 0x6) != 0x6) return {};
  bool avx512 = bit(extended.b, 16) && bit(extended.b, 17) && bit(extended.b, 28) && bit(extended.b, 30) &&
                bit(extended.b, 31);  // F, DQ, CD, BW, VL
  if (!avx512 || (states & 0xe6) != 0xe6) return {.isa = Isa::avx2};
  // Intel's processors do vdpbf16ps at half the rate of f32 multiply-adds: there bf16 is widened.
  return {.isa = Isa::avx512, .bf16_dot = bit(cpuid(7, 1).a, 5) && cpuid(0).b != kIntel};
}

constexpr Isa kLevels[] = {Isa::none, Isa::avx2, Isa::avx512};

std::string level_list() {
  std::string list;
  for (Isa isa : kLevels)
    if (isa <= detected_target().isa) list += (list.empty() ? "" : ", ") + Target{.isa = isa}.str();
  return list;
}

Target default_target() {
  const char* name = std::getenv("INGOT_ISA");
  if (!name || !*name) return detected_target();
  for (Isa isa : kLevels)
    if (Target{.isa = isa}.str() == name) return target_of(isa);
  throw Error("INGOT_ISA: unknown instruction set '" + std::string(name) + "'; this machine has: " + level_list());
}

// Targets are few and live for ever, so that host_target() is one load.
std::atomic<const Target*> current_target{nullptr};

int64_t cache_bytes(int name, int64_t fallback) {
  int64_t bytes = sysconf(name);
  return bytes > 0 ? bytes : fallback;
}

/// What a core shares. By cpuid, as glibc (2.36) tells that of all cores of an AMD processor, which no core has.
int64_t l3_bytes() {
  constexpr uint32_t kFeatures = 0x80000001, kAmd = 0x8000001d, kIntelCaches = 4;
  const bool amd = bit(cpuid(kFeatures).c, 22);
  const uint32_t leaf = amd ? kAmd : kIntelCaches;
  for (uint32_t i = 0; i < 8; ++i) {
    const Registers r = cpuid(leaf, i);
    const uint32_t type = r.a & 31, level = r.a >> 5 & 7;
    if (type == 0) break;
    if (level != 3) continue;
    const int64_t ways = (r.b >> 22) + 1, partitions = (r.b >> 12 & 1023) + 1, line = (r.b & 4095) + 1;
    return ways * partitions * line * (int64_t{r.c} + 1);
  }
  return cache_bytes(_SC_LEVEL3_CACHE_SIZE, 16 << 20);
}

// The CPU limit of our control group in processors, 0 if there is none (cgroup version 2, else version 1).
double control_group_limit() {
  double limit = 0;
  auto narrow = [&](double processors) { limit = limit > 0 ? std::min(limit, processors) : processors; };
  each_control_group("cpu", [&](const std::string& folder, bool version2) {
    if (version2) {
      std::istringstream text(first_line(folder + "/cpu.max"));
      std::string quota;
      double period = 0;
      if (text >> quota >> period && quota != "max" && period > 0) narrow(std::atof(quota.c_str()) / period);
    } else {
      double quota = std::atof(first_line(folder + "/cpu.cfs_quota_us").c_str());
      double period = std::atof(first_line(folder + "/cpu.cfs_period_us").c_str());
      if (quota > 0 && period > 0) narrow(quota / period);
    }
  });
  return limit;
}

}  // namespace

Target detected_target() {
  static constinit FirstUse<const Target> target;
  return target.get(detect);
}

Target target_of(Isa isa) {
  Target best = detected_target();
  if (isa > best.isa)
    throw Error("instruction set '" + Target{.isa = isa}.str() +
                "' is not supported here; this machine has: " + level_list());
  return isa == best.isa ? best : Target{.isa = isa};
}

const Target& host_target() {
  const Target* target = current_target.load(std::memory_order_acquire);
  if (target) return *target;
  static constinit FirstUse<const Target> initial;
  const Target* none = nullptr;
  current_target.compare_exchange_strong(none, &initial.get(default_target));
  return *current_target.load(std::memory_order_acquire);
}

void set_host_target(std::optional<Target> target) {
  if (!target) {
    current_target.store(nullptr);
    return;
  }
  target_of(target->isa);
  static constexpr Target all[] = {{Isa::none, false}, {Isa::none, true},    {Isa::avx2, false},
                                   {Isa::avx2, true},  {Isa::avx512, false}, {Isa::avx512, true}};
  for (const Target& t : all)
    if (t == *target) current_target.store(&t, std::memory_order_release);
}

const CacheSizes& cache_sizes() {
  static constinit FirstUse<const CacheSizes> sizes;
  return sizes.get([] {
    return CacheSizes{cache_bytes(_SC_LEVEL1_DCACHE_SIZE, 32 << 10), cache_bytes(_SC_LEVEL2_CACHE_SIZE, 1 << 20),
                      l3_bytes(), cache_bytes(_SC_LEVEL2_CACHE_ASSOC, 16)};
  });
}

bool lines_conflict(int64_t stride, int64_t count) {
  const int64_t ways = cache_sizes().l2_ways, way = cache_sizes().l2 / ways;
  const int64_t step = std::max(std::gcd(stride, way), kCacheLine);
  return 2 * count > std::max<int64_t>(way / step, 1) * ways;
}

int usable_processors() {
  int count = static_cast<int>(std::max(1l, sysconf(_SC_NPROCESSORS_ONLN)));
  for (int capacity = 1024; capacity <= (1 << 20); capacity *= 4) {
    cpu_set_t* set = CPU_ALLOC(capacity);
    size_t bytes = CPU_ALLOC_SIZE(capacity);
    bool known = sched_getaffinity(0, bytes, set) == 0;
    if (known) count = CPU_COUNT_S(bytes, set);
    CPU_FREE(set);
    if (known) break;
  }
  double limit = control_group_limit();
  if (limit > 0) count = std::min(count, static_cast<int>(std::ceil(limit)));
  return std::max(count, 1);
}

}  // namespace ingot::runtime
