// Batches of data sets: what they hold, in which order, errors.
#include "eager/data_loader.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>

#include "eager/ops/functions.h"
#include "eager/ops/random.h"
#include "eager/support.h"

namespace ingot {
namespace {

using namespace data;
using test::message_of;
using Numbers = std::vector<int64_t>;

Numbers numbers_of(const Tensor& t) {
  const Tensor flat = t.contiguous();
  return {flat.data_ptr<int64_t>(), flat.data_ptr<int64_t>() + flat.numel()};
}

TEST(DataLoader, GoesThroughTensorsInTheirOrder) {
  const Tensor x = arange(14).view({7, 2}), y = arange(7) * 10;
  const DataLoader loader(TensorDataset(x, y), {.batch_size = 3});
  EXPECT_EQ(loader.size(), 3);
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::vector<Numbers> xs, ys;
    for (const auto& [a, b] : loader) xs.push_back(numbers_of(a)), ys.push_back(numbers_of(b));
    EXPECT_EQ(xs, (std::vector<Numbers>{{0, 1, 2, 3, 4, 5}, {6, 7, 8, 9, 10, 11}, {12, 13}}));
    EXPECT_EQ(ys, (std::vector<Numbers>{{0, 10, 20}, {30, 40, 50}, {60}}));
  }
  // LibTorch's loop: a batch may be written to.
  int64_t sum = 0;
  for (auto& batch : loader) {
    batch[1] = batch[1] + 1;
    sum += batch[1].sum().item<int64_t>();
  }
  EXPECT_EQ(sum, 217);
  int batches = 0;
  for (const auto& [a] : DataLoader(TensorDataset(x), {.batch_size = 3, .drop_last = true})) {
    EXPECT_EQ(a.size(0), 3);
    ++batches;
  }
  EXPECT_EQ(batches, 2);
}

TEST(DataLoader, ShufflesByItsGenerator) {
  auto epochs = [](const Generator& generator, int count) {
    const DataLoader loader(TensorDataset(arange(20)), {.batch_size = 6, .shuffle = true, .generator = generator});
    std::vector<Numbers> all;
    for (int i = 0; i < count; ++i) {
      all.emplace_back();
      for (const auto& [x] : loader)
        for (int64_t n : numbers_of(x)) all.back().push_back(n);
    }
    return all;
  };
  const std::vector<Numbers> first = epochs(Generator(3), 2), again = epochs(Generator(3), 2);
  EXPECT_EQ(first, again);
  EXPECT_NE(first[0], first[1]);
  EXPECT_NE(first, epochs(Generator(4), 2));
  for (Numbers order : first) {
    EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
    std::sort(order.begin(), order.end());
    EXPECT_EQ(order, numbers_of(arange(20)));
  }
  // From where a run was interrupted.
  const Generator one(5), two(5);
  const std::vector<Numbers> whole = epochs(one, 3);
  epochs(two, 1);
  const Generator resumed(0);
  resumed.set_state(two.get_state());
  EXPECT_EQ(epochs(resumed, 2), (std::vector<Numbers>{whole[1], whole[2]}));
  // Without one of its own, from that of the process.
  manual_seed(1);
  const DataLoader loader(TensorDataset(arange(5)), {.batch_size = 5, .shuffle = true});
  const Tensor order = (*loader.begin())[0];
  manual_seed(1);
  EXPECT_TRUE(equal(order, randperm(5)));
}

struct Squares {
  int64_t size() const { return 5; }
  std::array<Tensor, 2> get(int64_t i) const { return {full({2}, i, kInt64), tensor(i * i)}; }
};
struct Ranges {
  int64_t size() const { return 3; }
  Tensor get(int64_t i) const { return arange(i, i + 2); }
};

TEST(DataLoader, StacksExamplesOfADataSetOfOnesOwn) {
  std::vector<Numbers> xs, ys;
  for (const auto& [x, y] : DataLoader(Squares(), {.batch_size = 2})) {
    xs.push_back(numbers_of(x)), ys.push_back(numbers_of(y));
    EXPECT_EQ(x.dim(), 2);
    EXPECT_EQ(y.dim(), 1);
  }
  EXPECT_EQ(xs, (std::vector<Numbers>{{0, 0, 1, 1}, {2, 2, 3, 3}, {4, 4}}));
  EXPECT_EQ(ys, (std::vector<Numbers>{{0, 1}, {4, 9}, {16}}));
  std::vector<Numbers> ranges;
  for (const Tensor& x : DataLoader(Ranges())) ranges.push_back(numbers_of(x));
  EXPECT_EQ(ranges, (std::vector<Numbers>{{0, 1}, {1, 2}, {2, 3}}));
}

/// Draws numbers, waits a while, and may refuse an example.
struct Noise {
  int64_t size() const { return 23; }
  std::array<Tensor, 2> get(int64_t i, const Generator& generator) const {
    std::this_thread::sleep_for(std::chrono::microseconds((i * 7) % 5 * 200));
    if (i == refused) throw std::out_of_range("example 12");
    return {rand({3}, {}, generator), tensor(i)};
  }
  int64_t refused = -1;
};

TEST(DataLoader, WorkersChangeNothing) {
  const auto batches = [](auto dataset, int64_t workers, int64_t ahead) {
    const data::DataLoader loader(dataset, {.batch_size = 4,
                                            .shuffle = true,
                                            .generator = Generator(5),
                                            .num_workers = workers,
                                            .prefetch_factor = ahead});
    std::vector<Tensor> all;
    for (int epoch = 0; epoch < 2; ++epoch)
      for (const auto& [x, y] : loader) all.push_back(x), all.push_back(y);
    return all;
  };
  const auto same = [](const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
    return a.size() == b.size() &&
           std::equal(a.begin(), a.end(), b.begin(), [](auto& x, auto& y) { return equal(x, y); });
  };
  const TensorDataset tensors(arange(46).view({23, 2}), arange(23));
  for (auto [workers, ahead] : {std::pair<int64_t, int64_t>{1, 1}, {1, 2}, {2, 2}, {5, 1}, {3, 100}}) {
    EXPECT_TRUE(same(batches(tensors, 0, 1), batches(tensors, workers, ahead)));
    EXPECT_TRUE(same(batches(Noise(), 0, 1), batches(Noise(), workers, ahead)));
  }
  // Each batch, and each epoch, has numbers of its own.
  const std::vector<Tensor> drawn = batches(Noise(), 2, 2);
  EXPECT_FALSE(equal(drawn[0], drawn[2]));
  EXPECT_FALSE(equal(drawn[0], drawn[12]));
}

TEST(DataLoader, WorkersErrorsAreTheCallers) {
  for (int64_t workers : {0, 1, 3}) {
    const data::DataLoader loader(Noise{12}, {.batch_size = 5, .num_workers = workers});
    int seen = 0;
    EXPECT_THROW(
        {
          for (const auto& [x, y] : loader) seen += static_cast<int>(y.size(0));
        },
        std::out_of_range);
    EXPECT_EQ(seen, 10);
    // What is not looked at throws nothing, and an epoch may be left.
    auto at = loader.begin();
    for (int i = 0; i < 3; ++i) ++at;
    EXPECT_EQ(numbers_of((*at)[1]), (Numbers{15, 16, 17, 18, 19}));
    EXPECT_EQ(numbers_of((*at)[1]), (Numbers{15, 16, 17, 18, 19}));
  }
}

TEST(DataLoader, WorkersStopWithTheirEpoch) {
  struct Counts {
    std::shared_ptr<std::atomic<int>> inside = std::make_shared<std::atomic<int>>(0);
    int64_t size() const { return 1000; }
    Tensor get(int64_t i) const {
      ++*inside;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      --*inside;
      return tensor(i);
    }
  };
  const data::DataLoader loader(Counts(), {.num_workers = 3});
  for (const Tensor& x : loader)
    if (x.item<int64_t>() == 4) break;
  EXPECT_EQ(loader.dataset().inside->load(), 0);
}

// In a child made by fork() there are no workers: it makes what is left itself.
TEST(DataLoader, AnEpochGoesOnInAChild) {
  const data::DataLoader loader(TensorDataset(arange(40)), {.batch_size = 2, .num_workers = 2});
  auto at = loader.begin();
  EXPECT_EQ(numbers_of((*at)[0]), (Numbers{0, 1}));
  const pid_t child = fork();
  if (child == 0) {
    Numbers rest;
    while (!(++at == nullptr))
      for (int64_t n : numbers_of((*at)[0])) rest.push_back(n);
    _exit(rest == numbers_of(arange(2, 40)) ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ++at;
  EXPECT_EQ(numbers_of((*at)[0]), (Numbers{2, 3}));
}

TEST(DataLoader, OfNothing) {
  for (bool shuffle : {false, true}) {
    const DataLoader loader(TensorDataset(zeros({0, 3})), {.batch_size = 4, .shuffle = shuffle});
    EXPECT_EQ(loader.size(), 0);
    for (const auto& [x] : loader) ADD_FAILURE() << x;
    for (const auto& [x] : DataLoader(TensorDataset(zeros({0, 3})), {.num_workers = 2})) ADD_FAILURE() << x;
    const DataLoader one(TensorDataset(zeros({1, 3})), {.batch_size = 4, .shuffle = shuffle});
    for (const auto& [x] : one) EXPECT_EQ(x.size(0), 1);
  }
}

TEST(DataLoader, Errors) {
  auto says = [](const std::function<void()>& f, const std::string& text) {
    const std::string message = message_of(f);
    EXPECT_NE(message.find(text), std::string::npos) << message;
    EXPECT_NE(message.find("data_loader_test.cpp"), std::string::npos) << message;
  };
  says([] { DataLoader(Ranges(), {.batch_size = 0}); }, "DataLoader: batch_size: got 0, expected one or more");
  says([] { DataLoader(Ranges(), {.num_workers = -1}); }, "DataLoader: num_workers: got -1, expected a number from 0");
  says([] { DataLoader(Ranges(), {.num_workers = 2, .prefetch_factor = 0}); }, "DataLoader: prefetch_factor: got 0");
  says(
      [] {
        TensorDataset(zeros({3, 2}), zeros({2}));
      },
      "TensorDataset: tensors: got 2 examples in one, expected 3, as in the first");
  says([] { TensorDataset(tensor(1)); }, "TensorDataset: tensors: got one without dims");
  says([] { TensorDataset{Tensor()}; }, "TensorDataset");
}

}  // namespace
}  // namespace ingot
