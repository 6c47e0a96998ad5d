#include "eager/checkpoint.h"

#include <functional>

#include "eager/call/call.h"
#include "eager/ops/factories.h"

namespace ingot {
namespace {

constexpr const char* kFormat = "ingot.checkpoint";
constexpr const char* kVersion = "1";

constexpr const char *kModel = "model", *kOptimizer = "optimizer", *kScheduler = "scheduler", *kGenerator = "generator",
                     *kNumbers = "numbers";

void put_part(StateDict& all, const std::string& part, const StateDict& state) {
  for (const auto& [name, t] : state) all[part + "." + name] = t;
}

/// What stands below a part's name.
StateDict part_of(const StateDict& all, const std::string& part) {
  StateDict state;
  const std::string prefix = part + ".";
  for (auto at = all.lower_bound(prefix); at != all.end() && at->first.starts_with(prefix); ++at)
    state[at->first.substr(prefix.size())] = at->second;
  return state;
}

bool is_part(std::string_view name) {
  for (const char* part : {kModel, kOptimizer, kScheduler, kGenerator, kNumbers})
    if (name == part) return true;
  return false;
}

}  // namespace

void save_checkpoint(const std::string& path, const Checkpoint& parts, Location location) {
  const NoGradGuard no_grad;
  StateDict all;
  if (parts.model) put_part(all, kModel, parts.model->state_dict());
  if (parts.optimizer) put_part(all, kOptimizer, parts.optimizer->state_dict());
  if (parts.scheduler) put_part(all, kScheduler, parts.scheduler->state_dict());
  if (parts.generator) put_part(all, kGenerator, {{"state", parts.generator->get_state()}});
  for (const auto& [name, number] : parts.numbers) all[std::string(kNumbers) + "." + name] = tensor(number, kFloat64);
  save(all, path, {{kFormat, kVersion}}, location);
}

std::map<std::string, double> load_checkpoint(const std::string& path, const Checkpoint& parts, Location location) {
  const NoGradGuard no_grad;
  const std::map<std::string, std::string> metadata = load_metadata(path, location);
  if (auto at = metadata.find(kFormat); at == metadata.end() || at->second != kVersion)
    eager::fail("load_checkpoint", "path", path + ", which save_checkpoint did not write", "a checkpoint", location);
  // Not mapped: a checkpoint that is written meanwhile takes this one's place.
  const StateDict all = load(path, {.mapped = false}, location);
  std::vector<std::function<void()>> changes;
  std::map<std::string, double> numbers;
  auto load_part = [&](const char* part, bool wanted, auto&& change) {
    const StateDict state = part_of(all, part);
    if (wanted == state.empty())
      eager::fail("load_checkpoint", "parts",
                  wanted ? std::string("a file without ") + part : std::string("no ") + part + ", which the file has",
                  "the parts that were saved", location);
    if (wanted) changes.push_back(change(state));
  };
  try {
    load_part(kModel, parts.model, [&](const StateDict& s) { return parts.model->loading(s, location); });
    load_part(kOptimizer, parts.optimizer, [&](const StateDict& s) { return parts.optimizer->loading(s, location); });
    load_part(kScheduler, parts.scheduler, [&](const StateDict& s) { return parts.scheduler->loading(s, location); });
    load_part(kGenerator, parts.generator.has_value(), [&](const StateDict& s) -> std::function<void()> {
      auto state = s.find("state");
      if (state == s.end() || s.size() > 1)
        eager::fail("load_checkpoint", "generator", "other tensors", "one: generator.state", location);
      Generator().set_state(state->second, location);
      return [g = *parts.generator, t = state->second] { g.set_state(t); };
    });
    for (const auto& [name, t] : part_of(all, kNumbers)) {
      if (t.numel() != 1)
        eager::fail("load_checkpoint", "numbers", name + " with " + std::to_string(t.numel()) + " elements", "one",
                    location);
      numbers[name] = t.item<double>(location);
    }
    for (const auto& [name, t] : all)
      if (!is_part(name.substr(0, name.find('.'))))
        eager::fail("load_checkpoint", "path", "a tensor " + name, "those of a checkpoint", location);
  } catch (const Error& e) {
    throw Error(path + ": " + e.what());
  }
  for (const auto& change : changes) change();
  return numbers;
}

}  // namespace ingot
