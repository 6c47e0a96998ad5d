// Where random numbers come from: draw i is a function of (seed, i), made by the kernels of the random ops.
#pragma once
#include <cstdint>
#include <memory>

#include "base/error.h"
#include "base/export.h"

namespace ingot {

class Tensor;
namespace eager {
/// Draws [offset, offset + count) under a seed.
struct Draws {
  uint64_t seed, offset;
};
/// Reserves `count` draws of the default generator.
Draws take_draws(int64_t count);
}  // namespace eager

/// A sequence of draws and the place in it: one for each worker gives each its own numbers. Copies share. Threads may
/// share one.
///
///   Generator g(1);
///   Tensor x = randn({3}, {}, g);
class INGOT_API Generator {
 public:
  explicit Generator(uint64_t seed = 0);
  /// Starts the numbers anew.
  void manual_seed(uint64_t seed) const;
  uint64_t current_seed() const;
  /// Seed and place, as i64 [2]; a later set_state() goes on from there.
  Tensor get_state() const;
  void set_state(const Tensor& state, Location location = Location()) const;
  /// One of its own that goes on from here.
  Generator clone() const;
  /// Reserves `count` draws.
  eager::Draws take(int64_t count) const;

  struct Source;

 private:
  friend Generator default_generator();
  explicit Generator(std::shared_ptr<Source> source) : source_(std::move(source)) {}
  std::shared_ptr<Source> source_;
};
/// The one of the process, which random ops draw from unless they are given another.
INGOT_API Generator default_generator();

}  // namespace ingot
