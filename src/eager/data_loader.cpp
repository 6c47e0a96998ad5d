#include "eager/data_loader.h"

#include <algorithm>
#include <string>

#include "eager/call/call.h"
#include "eager/ops/factories.h"
#include "eager/ops/functions.h"

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
  const int64_t each = options.batch_size;
  if (each < 1) eager::fail("DataLoader", "batch_size", std::to_string(each), "one or more", location);
  batches_ = size / each + (size % each && !options.drop_last);
}

Tensor BatchSampler::order() const { return options_.shuffle ? randperm(size_, {}, options_.generator) : Tensor(); }

Tensor BatchSampler::positions(const Tensor& order, int64_t batch) const {
  const int64_t first = batch * options_.batch_size, last = std::min(first + options_.batch_size, size_);
  return order.defined() ? order.narrow(0, first, last - first) : arange(first, last);
}

}  // namespace ingot::data
