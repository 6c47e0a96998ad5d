// Batches of a data set, in its order or shuffled, under LibTorch's and Python's names.
//
//   data::DataLoader loader(data::TensorDataset(images, labels), {.batch_size = 64, .shuffle = true});
//   for (int epoch = 0; epoch < 10; ++epoch)
//     for (const auto& [x, y] : loader) step(x, y);
#pragma once
#include <array>
#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "eager/ops/generator.h"
#include "eager/read_ahead.h"
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
  int64_t num_workers = 0;                  // threads that make batches ahead; 0: each is made when it is asked for
  int64_t prefetch_factor = 2;              // batches that are ready or being made, for each of them
};

/// What is drawn for one time through a data set.
struct Epoch {
  Tensor order;       // positions of all examples, i64; undefined: as they stand
  uint64_t seed = 0;  // of the generators of its batches
};

/// The order of examples in one epoch, and how it is cut.
class INGOT_API BatchSampler {
 public:
  /// Throws Error for options out of range.
  BatchSampler(int64_t size, const DataLoaderOptions& options, Location location);
  int64_t batches() const { return batches_; }
  /// Shuffled anew each time; with a seed where batches have generators.
  Epoch epoch(bool with_generators) const;
  /// Positions of one batch.
  Tensor positions(const Epoch& epoch, int64_t batch) const;
  /// Of one batch: what it draws is the same whoever makes it, and when.
  Generator generator(const Epoch& epoch, int64_t batch) const;
  /// Null without workers.
  std::shared_ptr<ingot::detail::ReadAhead> workers(ingot::detail::ReadAhead::Make make) const;

 private:
  int64_t size_, batches_;
  DataLoaderOptions options_;
};

/// Goes through a data set in batches, once for each `for`: what it shuffles it shuffles anew then. A data set has
/// size() and either get_batch(positions), i64 [batch], which may give anything, or get(i), which gives a Tensor or a
/// std::array of them: those of a batch are stacked. Either may take a `const Generator&` behind: one of the batch, so
/// that what is drawn of it is the same for any number of workers.
///
/// Batches are made one by one, on the thread that asks; with num_workers by so many threads, ahead, which call the
/// data set's function at once with each other. They come in the same order, with the same numbers; what one threw is
/// thrown where it is asked for. The loader stays where it is while a `for` goes through it. The threads have no region
/// of autocast, use one processor each, and end with the `for`.
///
/// Shuffling draws from the generator, so a run that restores its state goes on with the next epoch as it would have;
/// the orders are not PyTorch's.
template <class Dataset>
class DataLoader {
  // In front, as the iterator keeps what batch() gives.
  static constexpr bool kDrawsBatch = requires(const Dataset& d, const Tensor& positions, const Generator& g) {
    d.get_batch(positions, g);
  };
  static constexpr bool kDrawsExample = requires(const Dataset& d, const Generator& g) { d.get(int64_t{}, g); };
  static constexpr bool kDraws = kDrawsBatch || kDrawsExample;

  auto batch(const Epoch& epoch, int64_t number) const {
    const Tensor positions = sampler_.positions(epoch, number);
    if constexpr (kDrawsBatch) {
      return dataset_.get_batch(positions, sampler_.generator(epoch, number));
    } else if constexpr (requires { dataset_.get_batch(positions); }) {
      return dataset_.get_batch(positions);
    } else if constexpr (kDrawsExample) {
      const Generator generator = sampler_.generator(epoch, number);
      return collated(positions, [&](int64_t i) { return dataset_.get(i, generator); });
    } else {
      return collated(positions, [&](int64_t i) { return dataset_.get(i); });
    }
  }
  template <class Get>
  static auto collated(const Tensor& positions, Get get) {
    using Example = std::remove_cvref_t<decltype(get(int64_t{}))>;
    const int64_t* const at = positions.data_ptr<int64_t>();
    std::vector<Example> examples;
    for (int64_t i = 0; i < positions.numel(); ++i) examples.push_back(get(at[i]));
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

 public:
  explicit DataLoader(Dataset dataset, const DataLoaderOptions& options = {}, Location location = Location())
      : dataset_(std::move(dataset)), sampler_(dataset_.size(), options, location) {}
  /// Batches in an epoch.
  int64_t size() const { return sampler_.batches(); }
  const Dataset& dataset() const { return dataset_; }

  class Iterator {
   public:
    explicit Iterator(const DataLoader& loader)
        : loader_(&loader),
          epoch_(loader.sampler_.epoch(kDraws)),
          workers_(loader.sampler_.workers([loader = loader_, epoch = epoch_](int64_t number) {
            return std::make_shared<Batch>(loader->batch(epoch, number));
          })) {}
    /// The batch, which lives until the next one.
    auto& operator*() {
      if (!batch_ && workers_)
        if (const std::shared_ptr<void> made = workers_->take(at_))
          batch_.emplace(std::move(*static_cast<Batch*>(made.get())));
      if (!batch_) batch_.emplace(loader_->batch(epoch_, at_));
      return *batch_;
    }
    Iterator& operator++() {
      batch_.reset();
      return ++at_, *this;
    }
    bool operator==(std::nullptr_t) const { return at_ == loader_->size(); }

   private:
    using Batch = decltype(std::declval<const DataLoader&>().batch(Epoch(), 0));
    const DataLoader* loader_;
    Epoch epoch_;
    std::shared_ptr<ingot::detail::ReadAhead> workers_;
    int64_t at_ = 0;
    std::optional<Batch> batch_;
  };
  Iterator begin() const { return Iterator(*this); }
  std::nullptr_t end() const { return nullptr; }

 private:
  Dataset dataset_;
  BatchSampler sampler_;
};

}  // namespace ingot::data
