#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "compile/compile.h"
#include "ingot.h"
#include "runtime/cpu.h"

namespace ingot::test {

inline ::testing::AssertionResult same_bits(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype()) return ::testing::AssertionFailure() << "dtypes differ";
  if (!(a.sizes() == b.sizes())) return ::testing::AssertionFailure() << "sizes " << a.sizes() << " and " << b.sizes();
  Tensor x = a.contiguous(), y = b.contiguous();
  // NaNs are equal whatever their bits.
  if (is_floating(a.dtype())) {
    x = x.masked_fill(x.isnan(), 12345);
    y = y.masked_fill(y.isnan(), 12345);
  }
  if (std::memcmp(x.data_ptr(), y.data_ptr(), static_cast<size_t>(x.nbytes())) != 0)
    return ::testing::AssertionFailure() << "\n" << a << "\nis not\n" << b;
  return ::testing::AssertionSuccess();
}

inline ::testing::AssertionResult same_strides(const Tensor& a, const Tensor& b) {
  if (a.strides() == b.strides()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << a.strides() << " and " << b.strides();
}

/// n rows of 8 numbers, the same for the same step.
inline Tensor batch(int64_t n, int64_t step) {
  manual_seed(static_cast<uint64_t>(100 + step));
  return randn({n, 8});
}

/// For suites that record no gradients: `using Suite = test::Inference;`, then TEST_F.
struct Inference : testing::Test {
  const NoGradGuard no_grad;
};

/// Puts processor, threads and numerics back as they were.
struct RestoredSettings {
  RestoredSettings() {}  // not defaulted: it may be a const member
  RestoredSettings(const RestoredSettings&) = delete;
  ~RestoredSettings() {
    set_num_threads(threads);
    set_numerics(level);
    runtime::set_host_target(std::nullopt);
  }
  const int threads = num_threads();
  const Numerics level = numerics();
};

/// Runs `body` with the code of every instruction set that the processor has, on each of these numbers of threads.
template <class Body>
void on_every_target(std::initializer_list<int> threads, Body body) {
  const RestoredSettings restored;
  for (Isa isa : {Isa::avx512, Isa::avx2, Isa::none}) {
    if (isa > runtime::detected_target().isa) continue;
    runtime::set_host_target(runtime::target_of(isa));
    for (int count : threads) {
      SCOPED_TRACE(runtime::target_of(isa).str() + ", " + std::to_string(count) + " threads");
      set_num_threads(count);
      body();
    }
  }
}

/// The text of the Error that f throws; empty if it throws none.
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return {};
}
/// Without the line of the caller.
inline std::string without_line(const std::string& error) { return error.substr(0, error.find(" (")); }

}  // namespace ingot::test
