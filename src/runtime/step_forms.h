// What the steps of a program are apart from which buffers and scalars they are given.
#pragma once
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "base/program.h"

namespace ingot::runtime {

/// Steps of the same form, as the layers of a model have them, are bound once: a driver knows its form alone, and a run
/// gives it the buffers of each step.
class StepForms {
 public:
  explicit StepForms(const Program& program);

  /// The number of a step's form.
  uint32_t of(uint32_t step) const { return steps_[step].form; }
  size_t size() const { return forms_.size(); }
  /// A step whose arguments name their buffers by numbers of its own, in the order in which they come, and whose
  /// scalars come from nowhere.
  const Step& form(uint32_t number) const { return forms_[number]; }
  /// Which of the program's buffers a step's numbers stand for; behind them what it needs for itself, whose number is
  /// that of the program's last buffer and one more for each step.
  std::span<const uint32_t> buffers(uint32_t step) const {
    const uint32_t end = step + 1 < steps_.size() ? steps_[step + 1].first_buffer : buffers_.size();
    return std::span(buffers_).subspan(steps_[step].first_buffer, end - steps_[step].first_buffer);
  }
  uint32_t first_buffer(uint32_t step) const { return steps_[step].first_buffer; }
  /// Those of all steps, in order.
  std::span<const uint32_t> buffers() const { return buffers_; }

 private:
  struct StepOf {
    uint32_t form, first_buffer;
  };
  std::vector<StepOf> steps_;
  std::vector<uint32_t> buffers_;
  std::deque<Step> forms_;  // drivers refer to them
};

}  // namespace ingot::runtime
