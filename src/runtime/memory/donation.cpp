#include "runtime/memory/donation.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "runtime/memory/checked_memory.h"

namespace ingot::runtime {
namespace {

std::optional<uint32_t> buffer_of(const Program& program, Place place, uint32_t number) {
  for (uint32_t i = 0; i < program.buffers.size(); ++i)
    if (program.buffers[i].place == place && program.buffers[i].number == number) return i;
  return std::nullopt;
}

}  // namespace

bool may_write_over(const Program& program, uint32_t output, uint32_t input) {
  const std::optional<uint32_t> to = buffer_of(program, Place::output, output),
                                from = buffer_of(program, Place::input, input);
  if (!to) return false;
  // What a slice writes, no later one reads.
  if (!program.segments.empty() && from && !(program.buffers[*to].slice_bytes == program.buffers[*from].slice_bytes))
    return false;
  bool written = false;
  for (const Step& step : program.steps) {
    bool writes = false, reads = false;
    for_each_argument(step, [&](const Argument& a) {
      writes = writes || (a.buffer == *to && !a.read_only);
      reads = reads || (from && a.buffer == *from);
    });
    if (reads && (written || (writes && !may_write_over(step, *to, *from)))) return false;
    written = written || writes;
  }
  return written;
}

void run_in_place(const LoadedProgram& program, const BoundProgram& bound, const CallData& data,
                  std::span<const int64_t> output_bytes) {
  auto is_input = [&](const void* output) { return std::ranges::find(data.inputs, output) != data.inputs.end(); };
  if (checks_memory() && std::ranges::any_of(data.outputs, is_input))
    run_judged(program, bound, data, output_bytes);
  else
    program.run(bound, data);
}

void run_judged(const LoadedProgram& program, const BoundProgram& bound, const CallData& data,
                std::span<const int64_t> output_bytes) {
  std::vector<StoragePtr> apart;
  std::vector<void*> outputs;
  for (int64_t bytes : output_bytes) outputs.push_back(apart.emplace_back(Storage::allocate(bytes))->data());
  program.run(bound, {data.inputs, data.identities, outputs, data.scalars});
  program.run(bound, data);
  for (size_t i = 0; i < outputs.size(); ++i)
    INGOT_CHECK(!output_bytes[i] || std::memcmp(outputs[i], data.outputs[i], output_bytes[i]) == 0,
                "output " + std::to_string(i) + " is not the same where the program writes over its inputs");
}

}  // namespace ingot::runtime
