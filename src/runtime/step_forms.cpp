#include "runtime/step_forms.h"

#include <algorithm>
#include <unordered_map>

#include "base/hash.h"

namespace ingot::runtime {
namespace {

// Of what most often differs; the names of kernels are long.
uint64_t quick_hash(const Step& form) {
  uint64_t hash = form.work.index();
  for_each_dim(form, [&](Dim d) { hash = hash_combine(hash, static_cast<uint64_t>(d.code)); });
  for_each_argument(form, [&](const Argument& a) { hash = hash_combine(hash, a.buffer); });
  for_each_kernel(form, [&](const KernelPtr& kernel) { hash = hash_combine(hash, std::hash<KernelPtr>()(kernel)); });
  return hash;
}

}  // namespace

StepForms::StepForms(const Program& program) {
  std::unordered_multimap<uint64_t, uint32_t> known;
  for (const Step& step : program.steps) {
    Step form = step;
    form.name.clear();
    const auto first = static_cast<uint32_t>(buffers_.size());
    for_each_argument(form, [&](Argument& a) {
      const auto begin = buffers_.begin() + first, it = std::find(begin, buffers_.end(), a.buffer);
      const auto number = static_cast<uint32_t>(it - begin);
      if (it == buffers_.end()) buffers_.push_back(a.buffer);
      a.buffer = number;
    });
    buffers_.push_back(static_cast<uint32_t>(program.buffers.size() + steps_.size()));
    for_each_scalar(form, [](ScalarSource& s) { s = {ScalarSource::Kind::call, 0, 0, s.type}; });

    const uint64_t hash = quick_hash(form);
    const auto [begin, end] = known.equal_range(hash);
    const auto same = std::find_if(begin, end, [&](const auto& one) { return forms_[one.second] == form; });
    uint32_t number = static_cast<uint32_t>(forms_.size());
    if (same != end) {
      number = same->second;
    } else {
      known.emplace(hash, number);
      forms_.push_back(std::move(form));
    }
    steps_.push_back({number, first});
  }
}

}  // namespace ingot::runtime
