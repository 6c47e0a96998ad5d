// Schedulers that are made of others.
#include "eager/call/call.h"
#include "eager/optim/schedulers.h"

namespace ingot::optim {

SchedulerList::SchedulerList(const char* name, Optimizer& optimizer, Schedulers schedulers, Location location)
    : LRScheduler(name, optimizer), schedulers_(std::move(schedulers)) {
  check(!schedulers_.empty(), "schedulers", 0, "at least one", location);
  for (const auto& scheduler : schedulers_) {
    if (!scheduler) refuse("schedulers", "a null pointer", "a scheduler", location);
    if (scheduler->optimizer_ != &optimizer) refuse("schedulers", "one of another optimizer", "this one's", location);
  }
}
Optimizer& SchedulerList::optimizer_of(const char* name, const Schedulers& schedulers, Location location) {
  if (schedulers.empty() || !schedulers[0])
    eager::fail(name, "schedulers", schedulers.empty() ? "0" : "a null pointer", "at least one scheduler", location);
  return *schedulers[0]->optimizer_;
}
StateDict SchedulerList::state_dict() const {
  StateDict state = LRScheduler::state_dict();
  for (size_t i = 0; i < schedulers_.size(); ++i)
    for (const auto& [name, t] : schedulers_[i]->state_dict())
      state["_schedulers." + std::to_string(i) + "." + name] = t;
  return state;
}
std::function<void()> SchedulerList::loading(const StateDict& state, Location location) {
  StateDict own;
  std::vector<StateDict> parts(schedulers_.size());
  for (const auto& [name, t] : state) {
    bool taken = false;
    for (size_t i = 0; i < parts.size() && !taken; ++i)
      if (const std::string prefix = "_schedulers." + std::to_string(i) + "."; (taken = name.starts_with(prefix)))
        parts[i][name.substr(prefix.size())] = t;
    if (!taken) own[name] = t;
  }
  std::vector<std::function<void()>> all{LRScheduler::loading(own, location)};
  for (size_t i = 0; i < parts.size(); ++i) all.push_back(schedulers_[i]->loading(parts[i], location));
  return [all] {
    for (const auto& one : all) one();
  };
}

SequentialLR::SequentialLR(Optimizer& optimizer, std::vector<std::shared_ptr<LRScheduler>> schedulers,
                           std::vector<int64_t> milestones, Location location)
    : SchedulerList("SequentialLR", optimizer, std::move(schedulers), location), milestones_(std::move(milestones)) {
  check(milestones_.size() + 1 == count(), "milestones", static_cast<double>(milestones_.size()),
        "one less than schedulers", location);
  restart(location);
}
void SequentialLR::rewind(Location location) {
  last_epoch_ = 0;
  rewind_one(0, location);
}
void SequentialLR::step(Location location) {
  ++last_epoch_;
  const auto after = std::upper_bound(milestones_.begin(), milestones_.end(), last_epoch_);
  LRScheduler& now = (*this)[static_cast<size_t>(after - milestones_.begin())];
  if (after != milestones_.begin() && after[-1] == last_epoch_)
    now.restart(location);
  else
    now.step(location);
}

ChainedScheduler::ChainedScheduler(std::vector<std::shared_ptr<LRScheduler>> schedulers, Location location)
    : SchedulerList("ChainedScheduler", optimizer_of("ChainedScheduler", schedulers, location), schedulers, location) {
  last_epoch_ = 0;
}
void ChainedScheduler::rewind(Location location) {
  last_epoch_ = 0;
  for (size_t i = 0; i < count(); ++i) rewind_one(i, location);
}
void ChainedScheduler::step(Location location) {
  ++last_epoch_;
  for (size_t i = 0; i < count(); ++i) (*this)[i].step(location);
}

}  // namespace ingot::optim
