#include "runtime/memory/donation.h"

#include <optional>

namespace ingot::runtime {
namespace {

std::optional<uint32_t> buffer_of(const Program& program, Place place, uint32_t number) {
  for (uint32_t i = 0; i < program.buffers.size(); ++i)
    if (program.buffers[i].place == place && program.buffers[i].number == number) return i;
  return std::nullopt;
}

bool same_elements(const Argument& a, const Argument& b) {
  return a.offset == b.offset && a.strides == b.strides && a.index_stride == Dim(0) && b.index_stride == Dim(0);
}

/// A kernel that does one element after the other stores each after it has loaded what it needs of it
/// (codegen/x86/body.cpp, codegen/scalar/executor.cpp). One that reduces, keeps rows or turns tiles reads ahead.
bool element_by_element(const Step& step) {
  const LoopStep* loop = std::get_if<LoopStep>(&step.work);
  return loop && !loop->rows_whole && loop->local_bytes.empty() && loop->pieces.reductions.empty() &&
         loop->turning.kernels.empty();
}

}  // namespace

bool may_write_over(const Program& program, uint32_t output, uint32_t input) {
  const std::optional<uint32_t> to = buffer_of(program, Place::output, output),
                                from = buffer_of(program, Place::input, input);
  if (!to) return false;
  bool written = false;
  for (const Step& step : program.steps) {
    const Argument* writes = nullptr;
    int writers = 0;
    bool reads = false;
    for_each_argument(step, [&](const Argument& a) {
      if (a.buffer == *to && !a.read_only) writes = &a, ++writers;
      reads = reads || (from && a.buffer == *from);
    });
    if (reads && written) return false;
    if (!writers) continue;
    written = true;
    if (!reads) continue;
    if (writers > 1 || !element_by_element(step)) return false;
    bool same = true;
    for_each_argument(step, [&](const Argument& a) {
      if (a.buffer == *from) same = same && same_elements(a, *writes);
    });
    if (!same) return false;
  }
  return written;
}

}  // namespace ingot::runtime
