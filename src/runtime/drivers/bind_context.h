// Binding a step: its sizes and its arguments worked out, and where its driver lives.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/program.h"
#include "runtime/code/kernel_cache.h"
#include "runtime/drivers/driver_memory.h"
#include "runtime/drivers/run_state.h"

namespace ingot::runtime {

/// An argument with its numbers worked out.
struct BoundArgument {
  uint32_t buffer = 0;
  int64_t offset = 0;
  std::span<const int64_t> strides;
  int64_t index_stride = 0;
  char* at(const StepState& state) const { return state.buffers[buffer] + offset; }
};

/// The kernels of a program, each once.
using KernelTable = std::unordered_map<const KernelSource*, const LoadedKernel*>;

/// What the drivers of one form of step have in common, whatever the sizes.
struct StepConstants {
  MadeOnce constants, weight_format;
};

/// What binding a step needs to know. It notes which sizes it is asked for: while they stay, so does the driver.
class BindContext {
 public:
  BindContext(std::span<const int64_t> values, int threads, const KernelTable& kernels, StepConstants& constants,
              DriverMemory& memory)
      : threads(threads), values_(values), kernels_(kernels), constants_(constants), memory_(memory) {}

  const int threads;  // for which work is divided; any number may run it

  int64_t value(Dim d) const {
    if (d.is_constant()) return d.code;
    asked_ |= mark(static_cast<size_t>(d.index()));
    return values_[static_cast<size_t>(d.index())];
  }
  std::span<int64_t> values_of(std::span<const Dim> dims) const;
  BoundArgument argument(const Argument& a) const;
  const LoadedKernel& kernel(const KernelPtr& source) const { return *kernels_.at(source.get()); }

  /// What make() gives for this step at its first binding.
  template <class Make>
  const auto& constants(Make make) const {
    return constants_.constants.get(make);
  }
  template <class Make>
  const std::shared_ptr<const WeightFormat>& weight_format(Make make) const {
    return constants_.weight_format.get(make);
  }

  /// A driver, or what one owns. Lasts as long as the drivers do.
  template <class T, class... Arguments>
  T* make(Arguments&&... arguments) const {
    return memory_.make<T>(std::forward<Arguments>(arguments)...);
  }
  template <class T>
  std::span<T> array(size_t n) const {
    return memory_.array<T>(n);
  }
  std::span<const int64_t> list(std::initializer_list<int64_t> numbers) const;

  /// One bit an expression, where there are more than 64 one for several.
  static uint64_t mark(size_t expression) { return uint64_t{1} << (expression % 64); }
  uint64_t asked() const { return asked_; }

 private:
  std::span<const int64_t> values_;  // of the program's expressions
  const KernelTable& kernels_;
  StepConstants& constants_;
  DriverMemory& memory_;
  mutable uint64_t asked_ = 0;
};

/// The numbers of some arguments over one space: a line of buffers, of offsets, of index strides, and of the strides of
/// each dim, one number an argument. Side by side they are read at once; in a step they are apart.
struct ArgumentTable {
  ArgumentTable(std::initializer_list<const Argument*> first, const std::vector<Argument>& rest, size_t rank);
  size_t count, rank;
  std::vector<Dim> numbers;
  static constexpr size_t kOffsets = 1, kIndexStrides = 2, kStrides = 3;  // lines
};

/// Such a table with its numbers worked out.
class BoundArguments {
 public:
  BoundArguments() = default;
  BoundArguments(const ArgumentTable& table, const BindContext& context);
  /// To be followed by set() of each.
  BoundArguments(size_t count, size_t rank, const BindContext& context);
  /// With these strides instead of its own.
  void set(size_t i, const BoundArgument& a, std::initializer_list<int64_t> strides);

  size_t size() const { return count_; }
  size_t rank() const { return rank_; }
  int64_t stride(size_t i, size_t dim) const { return strides(dim)[i]; }
  /// One an argument.
  const int64_t* index_strides() const { return line(ArgumentTable::kIndexStrides); }
  const int64_t* strides(size_t dim) const { return line(ArgumentTable::kStrides + dim); }
  const int64_t* row_strides() const { return strides(rank_ - 2); }
  const int64_t* column_strides() const { return strides(rank_ - 1); }
  char* at(const StepState& state, size_t i) const {
    return state.buffers[static_cast<size_t>(numbers_[i])] + line(ArgumentTable::kOffsets)[i];
  }

 private:
  const int64_t* line(size_t number) const { return numbers_ + number * count_; }
  int64_t* numbers_ = nullptr;
  size_t count_ = 0, rank_ = 0;
};

}  // namespace ingot::runtime
