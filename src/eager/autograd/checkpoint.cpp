#include "eager/autograd/checkpoint.h"

#include "eager/autograd/rerun.h"
#include "eager/call/batch.h"
#include "eager/call/call.h"
#include "eager/nn/layers.h"

namespace ingot::autograd {

void detail::checkpoint(std::function<void(const std::vector<Tensor>&, void*)> function,
                        const std::vector<Tensor>& inputs, void* results, Location location) {
  // Slices of a vmap are gone when a backward pass comes; a region around the vmap runs all of it again.
  if (!GradMode::is_enabled() || eager::Batch::current()) return function(inputs, results);
  std::make_shared<Region>(std::move(function), inputs, location)->run(inputs, results);
}

Tensor checkpoint_sequential(const nn::Sequential& modules, int64_t segments, const TensorArg& input) {
  const std::vector<nn::SequentialImpl::Named>& all = modules->modules;
  const int64_t count = static_cast<int64_t>(all.size());
  if (segments < 1 || segments > count)
    eager::fail("checkpoint_sequential", "segments", std::to_string(segments),
                "from 1 to the number of modules, " + std::to_string(count), input.location);
  const int64_t length = count / segments;
  auto run = [location = input.location](std::vector<nn::SequentialImpl::Named> part, const Tensor& x) {
    Tensor y = x;
    for (const auto& [name, module] : part) y = module(TensorArg(y, location));
    return y;
  };
  Tensor y = input.get();
  for (int64_t s = 0; s + 1 < segments; ++s) {
    const std::vector<nn::SequentialImpl::Named> part(all.begin() + s * length, all.begin() + (s + 1) * length);
    y = checkpoint([run, part](const Tensor& x) { return run(part, x); }, TensorArg(y, input.location));
  }
  return run({all.begin() + (segments - 1) * length, all.end()}, y);
}

}  // namespace ingot::autograd
