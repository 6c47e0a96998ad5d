// Batches of a data set, in its order or shuffled, under LibTorch's and Python's names.
//
//   data::DataLoader loader(data::TensorDataset(images, labels), {.batch_size = 64, .shuffle = true});
//   for (int epoch = 0; epoch < 10; ++epoch)
//     for (const auto& [x, y] : loader) step(x, y);
#pragma once
#include <array>
#include <concepts>
#include <cstddef>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "eager/ops/generator.h"
#include "eager/tensor.h"

namespace ingot::data {

namespace detail {
/// Throws Error unless all have a first dim, of one size, which it gives.
INGOT_API int64_t common_size(std::span<const Tensor> tensors, Location location);
INGOT_API Tensor rows_of(const Tensor& tensor, const Tensor& positions);
/// One behind the other along a new first dim.
INGOT_API Tensor collated(const std::vector<Tensor>& examples);
}  // namespace detail

/// Tensors whose first dim counts the examples.
template <size_t N>
class TensorDataset {
 public:
  /// Throws Error for tensors of different first sizes, and for one without dims.
  template <class... Tensors>
  requires(sizeof...(Tensors) + 1 == N && (std::is_convertible_v<const Tensors&, const Tensor&> &&
                                           ...)) explicit TensorDataset(const TensorArg& first, const Tensors&... more)
      : tensors_{first.get(), more...}, size_(detail::common_size(tensors_, first.location)) {}
  int64_t size() const { return size_; }
  const std::array<Tensor, N>& tensors() const { return tensors_; }
  /// Examples at these positions, i64 [batch].
  std::array<Tensor, N> get_batch(const Tensor& positions) const {
    std::array<Tensor, N> batch;
    for (size_t i = 0; i < N; ++i) batch[i] = detail::rows_of(tensors_[i], positions);
    return batch;
  }

 private:
  std::array<Tensor, N> tensors_;
  int64_t size_;
};
template <class First, class... Tensors>
TensorDataset(const First&, const Tensors&...) -> TensorDataset<1 + sizeof...(Tensors)>;

struct DataLoaderOptions {
  int64_t batch_size = 1;
  bool shuffle = false;
  bool drop_last = false;                   // a last batch of fewer examples
  std::optional<Generator> generator = {};  // that shuffles; absent: the one of the process
};

/// The order of examples in one epoch, and how it is cut.
class INGOT_API BatchSampler {
 public:
  /// Throws Error for less than one example a batch.
  BatchSampler(int64_t size, const DataLoaderOptions& options, Location location);
  int64_t batches() const { return batches_; }
  /// Positions of all examples, i64; undefined: as they stand. Shuffled anew each time.
  Tensor order() const;
  /// Those of one batch.
  Tensor positions(const Tensor& order, int64_t batch) const;

 private:
  int64_t size_, batches_;
  DataLoaderOptions options_;
};

/// Goes through a data set in batches, once for each `for`: what it shuffles it shuffles anew then. A data set has
/// size() and either get_batch(positions), i64 [batch], which may give anything, or get(i), which gives a Tensor or a
/// std::array of them: those of a batch are stacked. Batches are made one by one, on the thread that asks. Shuffling
/// draws from the generator, so a run that restores its state goes on with the next epoch as it would have; the orders
/// are not PyTorch's.
template <class Dataset>
class DataLoader {
 public:
  explicit DataLoader(Dataset dataset, const DataLoaderOptions& options = {}, Location location = Location())
      : dataset_(std::move(dataset)), sampler_(dataset_.size(), options, location) {}
  /// Batches in an epoch.
  int64_t size() const { return sampler_.batches(); }
  const Dataset& dataset() const { return dataset_; }

  class Iterator {
   public:
    explicit Iterator(const DataLoader& loader) : loader_(&loader), order_(loader.sampler_.order()) {}
    auto operator*() const { return loader_->batch(loader_->sampler_.positions(order_, at_)); }
    Iterator& operator++() { return ++at_, *this; }
    bool operator==(std::nullptr_t) const { return at_ == loader_->size(); }

   private:
    const DataLoader* loader_;
    Tensor order_;
    int64_t at_ = 0;
  };
  Iterator begin() const { return Iterator(*this); }
  std::nullptr_t end() const { return nullptr; }

 private:
  auto batch(const Tensor& positions) const {
    if constexpr (requires { dataset_.get_batch(positions); }) {
      return dataset_.get_batch(positions);
    } else {
      using Example = std::remove_cvref_t<decltype(dataset_.get(int64_t{}))>;
      const int64_t* const at = positions.data_ptr<int64_t>();
      std::vector<Example> examples;
      for (int64_t i = 0; i < positions.numel(); ++i) examples.push_back(dataset_.get(at[i]));
      if constexpr (std::is_same_v<Example, Tensor>) {
        return detail::collated(examples);
      } else {
        Example result;
        for (size_t i = 0; i < result.size(); ++i) {
          std::vector<Tensor> column;
          for (const Example& example : examples) column.push_back(example[i]);
          result[i] = detail::collated(column);
        }
        return result;
      }
    }
  }

  Dataset dataset_;
  BatchSampler sampler_;
};

}  // namespace ingot::data
