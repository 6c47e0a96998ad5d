#include "eager/data_loader.h"

#include <algorithm>
#include <string>

#include "base/hash.h"
#include "eager/call/call.h"
#include "eager/ops/factories.h"
#include "eager/ops/functions.h"
#include "runtime/thread_pool.h"

namespace ingot::data {

int64_t detail::common_size(std::span<const Tensor> tensors, Location location) {
  for (const Tensor& t : tensors) {
    ingot::detail::checked_impl(t.impl(), "TensorDataset", location);
    if (t.dim() == 0)
      eager::fail("TensorDataset", "tensors", "one without dims", "a first dim that counts the examples", location);
    if (const int64_t size = t.size(0), expected = tensors[0].size(0); size != expected)
      eager::fail("TensorDataset", "tensors", std::to_string(size) + " examples in one",
                  std::to_string(expected) + ", as in the first", location);
  }
  return tensors[0].size(0);
}

Tensor detail::rows_of(const Tensor& tensor, const Tensor& positions) { return tensor.index_select(0, positions); }
Tensor detail::collated(const std::vector<Tensor>& examples) { return stack(examples); }

BatchSampler::BatchSampler(int64_t size, const DataLoaderOptions& options, Location location)
    : size_(size), options_(options) {
  constexpr int64_t kMostBatches = 1 << 20;  // of all workers
  const auto check = [&](const char* option, int64_t given, int64_t least, int64_t most) {
    if (given < least || given > most)
      eager::fail("DataLoader", option, std::to_string(given),
                  "a number from " + std::to_string(least) + " to " + std::to_string(most), location);
  };
  if (options.batch_size < 1)
    eager::fail("DataLoader", "batch_size", std::to_string(options.batch_size), "one or more", location);
  check("num_workers", options.num_workers, 0, kMostThreads);
  check("prefetch_factor", options.prefetch_factor, 1, kMostBatches / std::max<int64_t>(options.num_workers, 1));
  batches_ = size / options.batch_size + (size % options.batch_size && !options.drop_last);
}

Epoch BatchSampler::epoch(bool with_generators) const {
  Epoch epoch;
  if (options_.shuffle) epoch.order = randperm(size_, {}, options_.generator);
  if (options_.num_workers && options_.shuffle)
    (void)epoch.order.data_ptr();  // other threads read it: no recording's value
  if (with_generators) {
    const eager::Draws draw = options_.generator ? options_.generator->take(1) : eager::take_draws(1);
    epoch.seed = hash_combine(draw.seed, draw.offset);
  }
  return epoch;
}

Tensor BatchSampler::positions(const Epoch& epoch, int64_t batch) const {
  const int64_t first = batch * options_.batch_size, last = std::min(first + options_.batch_size, size_);
  return epoch.order.defined() ? epoch.order.narrow(0, first, last - first) : arange(first, last);
}

Generator BatchSampler::generator(const Epoch& epoch, int64_t batch) const {
  return Generator(hash_combine(epoch.seed, static_cast<uint64_t>(batch)));
}

std::shared_ptr<ingot::detail::ReadAhead> BatchSampler::workers(ingot::detail::ReadAhead::Make make) const {
  const int64_t threads = std::min(options_.num_workers, batches_);
  if (threads == 0) return nullptr;
  return std::make_shared<ingot::detail::ReadAhead>(batches_, threads, threads * options_.prefetch_factor,
                                                    std::move(make));
}

}  // namespace ingot::data
