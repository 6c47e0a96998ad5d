#include "eager/checkpoint.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "eager/nn/layers.h"
#include "eager/ops/factories.h"
#include "eager/ops/functions.h"
#include "eager/ops/random.h"
#include "eager/optim/optimizers.h"

namespace ingot {
namespace {

struct Training {
  nn::Linear net{4, 3};
  optim::AdamW opt{net->parameters(), {.lr = 0.1}};
  optim::ExponentialLR rate{opt, 0.5};
  Generator generator{9};

  void step() {
    for (const Tensor& p : net->parameters()) p.set_grad(randn(p.sizes().vec(), {}, generator));
    opt.step();
    rate.step();
  }
  Checkpoint parts() {
    return {.model = &*net, .optimizer = &opt, .scheduler = &rate, .generator = generator, .numbers = {}};
  }
  bool is(const Training& other) const {
    return equal(net->weight, other.net->weight) && equal(net->bias, other.net->bias) &&
           rate.get_last_lr() == other.rate.get_last_lr();
  }
};

class CheckpointTest : public testing::Test {
 protected:
  std::string folder_ = testing::TempDir() + "ingot-checkpoint-" + std::to_string(getpid());
  std::string path_ = folder_ + "/run.ckpt";
  CheckpointTest() { std::filesystem::create_directory(folder_); }
  ~CheckpointTest() override { std::filesystem::remove_all(folder_); }

  std::string refusal(Training& run, const Checkpoint& parts) const {
    const Tensor weight = run.net->weight.clone(), moments = run.opt.state_dict().at("state.0.exp_avg").clone();
    const std::vector<double> rates = run.rate.get_last_lr();
    std::string said = "no error";
    try {
      load_checkpoint(path_, parts);
    } catch (const Error& e) {
      said = e.what();
    }
    EXPECT_TRUE(equal(run.net->weight, weight));
    EXPECT_TRUE(equal(run.opt.state_dict().at("state.0.exp_avg"), moments));
    EXPECT_EQ(run.rate.get_last_lr(), rates);
    EXPECT_NE(said.find(path_), std::string::npos) << said;
    EXPECT_NE(said.find("checkpoint_test.cpp"), std::string::npos) << said;
    return said;
  }
};

TEST_F(CheckpointTest, ARunGoesOnWhereItWas) {
  Training a;
  for (int i = 0; i < 3; ++i) a.step();
  Checkpoint parts = a.parts();
  parts.numbers = {{"epoch", 3}, {"best loss", 0.1}};
  save_checkpoint(path_, parts);
  Training b;
  const auto numbers = load_checkpoint(path_, b.parts());
  EXPECT_EQ(numbers, parts.numbers);
  EXPECT_TRUE(b.is(a));
  for (int i = 0; i < 3; ++i) a.step(), b.step();
  EXPECT_TRUE(b.is(a));
  EXPECT_TRUE(b.net->weight.requires_grad() && b.net->weight.is_leaf());
}

TEST_F(CheckpointTest, PartsMayBeAbsent) {
  Training a, b;
  save_checkpoint(path_, {.model = &*a.net});
  load_checkpoint(path_, {.model = &*b.net});
  EXPECT_TRUE(equal(a.net->weight, b.net->weight));
}

TEST_F(CheckpointTest, WhatDoesNotFitChangesNothing) {
  Training run;
  run.step();
  auto expect = [](const std::string& said, const char* part) {
    EXPECT_NE(said.find(part), std::string::npos) << said;
  };
  expect(refusal(run, run.parts()), "run.ckpt");  // there is none yet
  save(run.net->state_dict(), path_);
  expect(refusal(run, run.parts()), "which save_checkpoint did not write");

  save_checkpoint(path_, run.parts());
  run.step();
  expect(refusal(run, {.model = &*run.net}), "no optimizer, which the file has");
  Checkpoint parts = run.parts();
  const StateDict whole = load(path_, {.mapped = false});
  const auto metadata = load_metadata(path_);
  auto changed = [&](const char* name, const Tensor& instead) {
    StateDict state = whole;
    if (instead.defined())
      state[name] = instead;
    else
      state.erase(name);
    save(state, path_, metadata);
    return refusal(run, run.parts());
  };
  expect(changed("model.weight", {}), "no tensor for weight");
  expect(changed("model.weight", ones({4, 4})), "weight: [4, 4] for [3, 4]");
  expect(changed("model.more", ones({1})), "does not have: more");
  expect(changed("optimizer.state.1.exp_avg", {}), "no tensor for state.1.exp_avg");
  expect(changed("optimizer.state.0.exp_avg", ones({2})), "state.0.exp_avg with sizes [2]");
  expect(changed("scheduler.last_epoch", {}), "a file without scheduler");
  expect(changed("scheduler.other", ones({1})), "other");
  expect(changed("generator.state", ones({1})), "set_state: state");
  expect(changed("stranger", ones({1})), "stranger");
  expect(changed("numbers.epoch", ones({2})), "epoch with 2 elements");

  save_checkpoint(path_, run.parts());
  for (int64_t bytes = static_cast<int64_t>(std::filesystem::file_size(path_)) - 1; bytes >= 0; bytes /= 3) {
    std::filesystem::resize_file(path_, static_cast<uintmax_t>(bytes));
    refusal(run, run.parts());
    if (bytes == 0) break;
  }
}

// A child saves one checkpoint after the other and is killed at any moment: what is there is whole, and no older than
// what the child had told of.
TEST_F(CheckpointTest, AKilledProcessLeavesAWholeOne) {
  constexpr int kKills = 200;
  Training run;
  run.step();
  Checkpoint parts = run.parts();
  parts.numbers["round"] = -1;
  save_checkpoint(path_, parts);
  double last = -1;
  for (int kill_number = 0; kill_number < kKills; ++kill_number) {
    int told[2];
    ASSERT_EQ(pipe(told), 0);
    const pid_t child = fork();
    if (child == 0) {
      for (;;) {
        {
          const NoGradGuard no_grad;
          run.net->weight.fill_(++last);
          parts.numbers["round"] = last;
        }
        save_checkpoint(path_, parts);
        if (write(told[1], &last, sizeof last) != sizeof last) _exit(1);
      }
    }
    close(told[1]);
    double seen = last;
    // At least one whole round every tenth time; otherwise anywhere in the first.
    if (kill_number % 10 == 0) ASSERT_EQ(read(told[0], &seen, sizeof seen), static_cast<ssize_t>(sizeof seen));
    usleep(static_cast<useconds_t>(kill_number * 7919 % 3000));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
    for (double more; read(told[0], &more, sizeof more) == static_cast<ssize_t>(sizeof more);) seen = more;
    close(told[0]);
    Training back;
    const double round = load_checkpoint(path_, back.parts()).at("round");
    EXPECT_GE(round, seen);
    EXPECT_LE(round, seen + 1);
    if (round >= 0) EXPECT_TRUE(equal(back.net->weight, full({3, 4}, round)));
    last = round;
  }
  EXPECT_GE(last, kKills / 10);
}

}  // namespace
}  // namespace ingot
