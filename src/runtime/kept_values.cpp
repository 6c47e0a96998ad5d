#include "runtime/kept_values.h"

#include <algorithm>

#include "base/pieces.h"
#include "runtime/memory/allocator.h"

namespace ingot::runtime {

KeptValues::KeptValues(const Program& program, std::span<const uint32_t> first_scalars) : makes_(program.steps.size()) {
  for (uint32_t i = 0; i < program.buffers.size(); ++i) {
    if (program.buffers[i].place != Place::kept) continue;
    parts_.push_back({i, bytes_});
    bytes_ += round_up(program.buffers[i].bytes.code, 64);
  }
  if (!any()) return;
  for (uint32_t s = 0; s < program.steps.size(); ++s) {
    bool makes = false;
    for_each_argument(program.steps[s], [&](const Argument& a) {
      makes = makes || (!a.read_only && program.buffers[a.buffer].place == Place::kept);
    });
    if (!makes) continue;
    makes_[s] = true;
    for_each_argument(program.steps[s], [&](const Argument& a) {
      if (program.buffers[a.buffer].place == Place::input) inputs_.push_back(program.buffers[a.buffer].number);
    });
    uint32_t scalar = first_scalars[s];
    for_each_scalar(program.steps[s], [&](const ScalarSource&) { scalars_.push_back(scalar++); });
  }
  std::sort(inputs_.begin(), inputs_.end());
  inputs_.erase(std::unique(inputs_.begin(), inputs_.end()), inputs_.end());
}

void KeptValues::begin(RunState& state, std::span<void* const> inputs,
                       std::span<const InputIdentity> identities) const {
  if (!any()) return;
  KeptMemory& kept = state.kept;
  if (!kept.memory) {
    kept.memory = static_cast<char*>(allocate(bytes_)), kept.bytes = bytes_;
    kept.sources.resize(inputs_.size()), kept.scalars.resize(scalars_.size());
  }
  for (const Part& part : parts_) state.buffers[part.buffer] = kept.memory + part.offset;
  bool known = !identities.empty(), same = kept.complete;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const InputIdentity identity = known ? identities[inputs_[i]] : InputIdentity{};
    known = known && identity.storage;
    const KeptMemory::Source now{inputs[inputs_[i]], identity.storage ? identity.storage->id() : 0, identity.version};
    same = same && now == kept.sources[i];
    kept.sources[i] = now;
  }
  for (size_t i = 0; i < scalars_.size(); ++i) {
    const uint64_t now = state.scalars[scalars_[i]];
    same = same && now == kept.scalars[i];
    kept.scalars[i] = now;
  }
  kept.known = known;
  kept.current = known && same;
  kept.complete = kept.current;
}

void KeptValues::end(RunState& state) const { state.kept.complete = state.kept.known; }

}  // namespace ingot::runtime
