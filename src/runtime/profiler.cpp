#include "runtime/profiler.h"

#include <algorithm>

#include "base/first_use.h"
#include "base/mutex.h"
namespace ingot::runtime {
namespace {

constinit Mutex profiles_mutex;
constinit FirstUse<std::vector<Profile*>> active_profiles;

}  // namespace

std::atomic<int> detail::profiles{0};

struct Profile::Impl {
  std::vector<StepTime> steps;
  BindingTime bindings;
};

Profile::Profile() : impl_(std::make_unique<Impl>()) {
  std::lock_guard lock(profiles_mutex);
  active_profiles->push_back(this);
  detail::profiles.fetch_add(1);
}

Profile::~Profile() {
  std::lock_guard lock(profiles_mutex);
  std::erase(*active_profiles, this);
  detail::profiles.fetch_sub(1);
}

std::vector<StepTime> Profile::steps() const {
  std::lock_guard lock(profiles_mutex);
  return impl_->steps;
}

BindingTime Profile::bindings() const {
  std::lock_guard lock(profiles_mutex);
  return impl_->bindings;
}

void record_binding(int64_t steps, double ns) {
  std::lock_guard lock(profiles_mutex);
  for (Profile* profile : *active_profiles) {
    BindingTime& bindings = profile->impl_->bindings;
    ++bindings.bindings;
    bindings.steps += steps;
    bindings.total_ns += ns;
  }
}

void record_step(const std::shared_ptr<const Program>& program, uint32_t step, double ns) {
  std::lock_guard lock(profiles_mutex);
  for (Profile* profile : *active_profiles) {
    auto& steps = profile->impl_->steps;
    auto it = std::find_if(steps.begin(), steps.end(),
                           [&](const StepTime& t) { return t.program == program && t.step == step; });
    if (it == steps.end()) it = steps.insert(steps.end(), {program, step, 0, 0, ns});
    ++it->runs;
    it->total_ns += ns;
    it->least_ns = std::min(it->least_ns, ns);
  }
}

}  // namespace ingot::runtime
