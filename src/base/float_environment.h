// How this thread's vector unit computes.
#pragma once
#include <cfenv>
#include <cstdint>

namespace ingot {

/// While it lives, this thread computes as every thread of the library does: rounding to nearest, denormals kept, no
/// traps. A caller's own modes come back with its end. What runs kernels, or computes numbers on the host, stands in
/// one.
class FloatEnvironment {
 public:
  FloatEnvironment() : callers_(__builtin_ia32_stmxcsr()) {
    if (foreign()) __builtin_ia32_ldmxcsr(kDefault);
  }
  ~FloatEnvironment() {
    if (foreign()) __builtin_ia32_ldmxcsr(callers_);
  }
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
  static constexpr uint32_t kDefault = 0x1f80, kFlags = 0x3f;  // the processor's initial MXCSR; what merely tells
  bool foreign() const { return __builtin_expect((callers_ & ~kFlags) != kDefault, 0); }
  uint32_t callers_;
};

/// The same for all of a thread's arithmetic, also that by which the C library reads numbers. Slow.
class WholeFloatEnvironment {
 public:
  WholeFloatEnvironment() {
    std::fegetenv(&callers_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~WholeFloatEnvironment() { std::fesetenv(&callers_); }
  WholeFloatEnvironment(const WholeFloatEnvironment&) = delete;
  WholeFloatEnvironment& operator=(const WholeFloatEnvironment&) = delete;

 private:
  std::fenv_t callers_;
};

}  // namespace ingot
