#include "eager/call/dispatch.h"

#include <bit>
#include <utility>

#include "eager/autograd/tape.h"
#include "eager/execute/execute.h"
#include "runtime/memory/storage.h"

namespace ingot::eager {
namespace {

constexpr uint32_t bit_of(Stage stage) { return 1u << static_cast<int>(stage); }

/// Gradients are recorded, as long as nobody says otherwise.
constinit thread_local Chain chain{bit_of(Stage::autograd), {nullptr, nullptr, nullptr, &autograd::lasting_tape.tape}};

/// The first one that stands at one of `stages`, or null.
Interceptor* first_of(uint32_t stages) { return stages ? chain.at[std::countr_zero(stages)] : nullptr; }
/// All that stand behind this stage.
uint32_t behind(Stage stage) { return chain.stages & ~(2 * bit_of(stage) - 1); }

void pass(uint32_t stages, const OpCall& call, std::span<Tensor> outputs) {
  if (Interceptor* next = first_of(stages)) return next->call(call, outputs);
  execute(call, outputs);
}
std::vector<Tensor> pass(uint32_t stages, const OpaqueCall& call) {
  if (Interceptor* next = first_of(stages)) return next->call(call);
  return call.body();
}

template <class F>
void for_each_interceptor(F f) {
  for (uint32_t stages = chain.stages; stages; stages &= stages - 1) f(*first_of(stages));
}

}  // namespace

std::vector<Tensor> Interceptor::call(const OpaqueCall& call) {
  flush(call.name.c_str(), call.location);
  return proceed(call);
}
void Interceptor::proceed(const OpCall& call, std::span<Tensor> outputs) const { pass(behind(stage_), call, outputs); }
std::vector<Tensor> Interceptor::proceed(const OpaqueCall& call) const { return pass(behind(stage_), call); }

Interceptor* interceptor(Stage stage) { return chain.at[static_cast<size_t>(stage)]; }
Interceptor* set_interceptor(Stage stage, Interceptor* next) {
  chain.stages = next ? chain.stages | bit_of(stage) : chain.stages & ~bit_of(stage);
  return std::exchange(chain.at[static_cast<size_t>(stage)], next);
}
bool intercepted() {
  return chain.stages &
         (bit_of(Stage::checkpoint) | bit_of(Stage::batch) | bit_of(Stage::observe) | bit_of(Stage::record));
}
uint64_t Interceptor::writes_to(const detail::TensorImpl& tensor) const {
  return tensor.storage ? tensor.storage->version() : 0;
}
uint64_t writes_to(const detail::TensorImpl& tensor) {
  if (const Interceptor* recorder = interceptor(Stage::record)) return recorder->writes_to(tensor);
  return tensor.storage ? tensor.storage->version() : 0;
}

void flush(const char* reason, Location location) {
  for_each_interceptor([&](Interceptor& i) { i.flush(reason, location); });
}
void hand_out(const detail::TensorImpl& tensor, bool writable) {
  for_each_interceptor([&](Interceptor& i) { i.hand_out(tensor, writable); });
}

WithoutInterceptors::WithoutInterceptors(Stage from) : chain_(chain) {
  for (int i = static_cast<int>(from); i < static_cast<int>(Stage::count_); ++i)
    set_interceptor(static_cast<Stage>(i), nullptr);
}
WithoutInterceptors::~WithoutInterceptors() { chain = chain_; }

void dispatch(const OpCall& call, std::span<Tensor> outputs) { pass(chain.stages, call, outputs); }
std::vector<Tensor> dispatch(const OpaqueCall& call) { return pass(chain.stages, call); }

}  // namespace ingot::eager
