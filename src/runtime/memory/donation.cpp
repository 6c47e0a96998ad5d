#include "runtime/memory/donation.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/work_count.h"
#include "runtime/memory/checked_memory.h"

namespace ingot::runtime {

Donations::Donations(const Program& program) : program_(program), outputs_(program.outputs), inputs_(program.inputs) {
  std::vector<uint32_t> first_write(program.buffers.size(), kNone), next_write = first_write, last_read = first_write;
  uint64_t work = program.buffers.size();
  for (uint32_t s = 0; s < program.steps.size(); ++s)
    for_each_argument(program.steps[s], [&](const Argument& a) {
      ++work;
      if (!a.read_only) {
        if (first_write[a.buffer] == kNone)
          first_write[a.buffer] = s;
        else if (next_write[a.buffer] == kNone && first_write[a.buffer] != s)
          next_write[a.buffer] = s;
      }
      last_read[a.buffer] = s;
    });
  for (uint32_t b = 0; b < program.buffers.size(); ++b) {
    const ProgramBuffer& buffer = program.buffers[b];
    if (buffer.place == Place::output) outputs_[buffer.number] = {b, first_write[b], next_write[b]};
    if (buffer.place == Place::input) inputs_[buffer.number] = {b, last_read[b]};
  }
  detail::count_work(work);
}

std::string Donations::step_text(uint32_t step) const {
  return "step " + std::to_string(step) + " (" + program_.steps[step].name + ")";
}

std::string Donations::refusal(uint32_t output, uint32_t input) const {
  Use to = outputs_[output];
  const Use& from = inputs_[input];
  if (to.step == kNone) return "no step stores it";
  if (from.step == kNone) return {};
  // What a slice writes, no later one reads. (Of a sequence the first step, which stands before the segment, writes
  // each result: what later steps read is read after that.)
  for (const Program::Segment& segment : program_.segments)
    if (!(segment.moved(to.buffer) == segment.moved(from.buffer)))
      return "it is read and written in different slices of a batch";
  const auto* first = std::get_if<LoopStep>(&program_.steps[to.step].work);
  if (first && first->copies && first->arguments[0].buffer == from.buffer &&
      may_write_over(program_.steps[to.step], to.buffer, from.buffer)) {
    if (to.after == kNone) return {};
    to.step = to.after;
  }
  if (from.step < to.step) return {};
  if (from.step > to.step)
    return step_text(from.step) + " reads what it held after " + step_text(to.step) + " has stored the new values";
  if (may_write_over(program_.steps[to.step], to.buffer, from.buffer)) return {};
  return step_text(to.step) + " reads other elements of it than the one that it stores";
}

void run_in_place(const LoadedProgram& program, const BoundProgram& bound, const CallData& data,
                  std::span<const int64_t> output_bytes) {
  auto is_input = [&](const void* output) { return std::ranges::find(data.inputs, output) != data.inputs.end(); };
  if (checks_memory() && std::ranges::any_of(data.outputs, is_input))
    run_judged(program, bound, data, output_bytes);
  else
    program.run(bound, data, true);
}

void run_judged(const LoadedProgram& program, const BoundProgram& bound, const CallData& data,
                std::span<const int64_t> output_bytes) {
  std::vector<StoragePtr> apart;
  std::vector<void*> outputs;
  for (int64_t bytes : output_bytes) outputs.push_back(apart.emplace_back(Storage::allocate(bytes))->data());
  program.run(bound, {data.inputs, data.identities, outputs, data.scalars});
  program.run(bound, data, true);
  for (size_t i = 0; i < outputs.size(); ++i)
    INGOT_CHECK(!output_bytes[i] || std::memcmp(outputs[i], data.outputs[i], output_bytes[i]) == 0,
                "output " + std::to_string(i) + " is not the same where the program writes over its inputs");
}

}  // namespace ingot::runtime
