// Averages of models: PyTorch's numbers of a model with a weight and a batch norm.
#include "eager/optim/swa_utils.h"

#include <gtest/gtest.h>

#include "eager/nn/layers.h"
#include "eager/ops/factories.h"
#include "eager/ops/functions.h"
#include "eager/optim/optimizers.h"
#include "eager/support.h"

namespace ingot::optim::swa_utils {
namespace {

struct NetImpl : nn::Module {
  nn::Linear fc{1, 1};
  nn::BatchNorm1d norm{1};
  Tensor forward(const Tensor& x) { return norm(fc(x)); }
  /// One number for the weight, the running mean, and four times it for the count of batches.
  void set(double number) {
    const NoGradGuard no_grad;
    fc->weight.fill_(number), fc->bias.fill_(1);
    norm->running_mean.fill_(number);
    norm->num_batches_tracked.fill_(static_cast<int64_t>(number) * 4);
  }
};
INGOT_MODULE(Net, fc, norm);

/// The weight, the running mean and the count after each of three models.
std::vector<std::vector<double>> averages(const AveragedModelOptions& options) {
  Net net;
  AveragedModel<Net> average(net, options);
  std::vector<std::vector<double>> all;
  for (double number : {2.0, 3.0, 5.0}) {
    net->set(number);
    average->update_parameters(net);
    const Net& own = average->module;
    all.push_back({own->fc->weight.item<float>(), own->norm->running_mean.item<float>(),
                   static_cast<double>(own->norm->num_batches_tracked.item<int64_t>())});
  }
  EXPECT_EQ(average->n_averaged.item<int64_t>(), 3);
  return all;
}
void expect_near(const std::vector<std::vector<double>>& a, const std::vector<std::vector<double>>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = 0; j < a[i].size(); ++j) EXPECT_NEAR(a[i][j], b[i][j], 1e-6) << i << ", " << j;
}

TEST(AveragedModel, AveragesArePyTorchs) {
  const MultiAvgFn ema = get_ema_multi_avg_fn(0.9);
  expect_near(averages({}), {{2, 2, 8}, {2.5, 3, 12}, {10.0 / 3, 5, 20}});
  expect_near(averages({.use_buffers = true}), {{2, 2, 8}, {2.5, 2.5, 10}, {10.0 / 3, 10.0 / 3, 13}});
  expect_near(averages({.multi_avg_fn = ema}), {{2, 2, 8}, {2.1, 3, 12}, {2.39, 5, 20}});
  expect_near(averages({.multi_avg_fn = ema, .use_buffers = true}), {{2, 2, 8}, {2.1, 2.1, 8}, {2.39, 2.39, 9}});
  std::vector<int64_t> counts;
  auto sum = [&](const Tensor& averaged, const Tensor& current, int64_t count) {
    counts.push_back(count);
    return averaged + current;
  };
  expect_near(averages({.avg_fn = sum}), {{2, 2, 8}, {5, 3, 12}, {10, 5, 20}});
  EXPECT_EQ(counts, (std::vector<int64_t>{1, 1, 1, 1, 2, 2, 2, 2}));
}

TEST(AveragedModel, IsAModuleOfItsOwn) {
  Net net;
  AveragedModel average(net);
  net->set(3);
  EXPECT_NE(average->module->fc->weight.item<float>(), 3.f);
  average->update_parameters(net);
  average->eval(), net->eval();
  const Tensor x = tensor({{1.f}, {4.f}});
  EXPECT_TRUE(equal(average(x), net(x)));
  std::vector<std::string> names;
  for (const auto& [name, t] : average->state_dict()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"module.fc.bias", "module.fc.weight", "module.norm.bias",
                                             "module.norm.num_batches_tracked", "module.norm.running_mean",
                                             "module.norm.running_var", "module.norm.weight", "n_averaged"}));
  // What is loaded goes on as this one does.
  AveragedModel<Net> other(Net(), {.use_buffers = true});
  other->load_state_dict(average->state_dict());
  EXPECT_EQ(other->n_averaged.item<int64_t>(), 1);
  net->set(5);
  other->update_parameters(net);
  EXPECT_EQ(other->module->fc->weight.item<float>(), 4.f);
  const AveragedModel<Net> copy = other.clone();
  EXPECT_FALSE(copy->module->fc->weight.is_same(other->module->fc->weight));
}

TEST(UpdateBn, StatisticsAreThoseOfAllBatches) {
  Net net;
  net->set(2);
  AveragedModel<Net> average(net);
  average->eval();
  average->module->fc->train();
  std::vector<std::pair<Tensor, int>> batches;
  for (const auto& rows : {tensor({1.f, 2.f, 6.f}), tensor({0.f, 4.f, 5.f}), tensor({-1.f, 4.f})})
    batches.emplace_back(rows.unsqueeze(1), 0);
  for (int again = 0; again < 2; ++again) {
    update_bn(batches, average);
    const nn::BatchNorm& norm = average->module->norm;
    EXPECT_NEAR(norm->running_mean.item<float>(), 6, 1e-5);
    EXPECT_NEAR(norm->running_var.item<float>(), 35.333332, 1e-4);
    EXPECT_EQ(norm->num_batches_tracked.item<int64_t>(), 3);
    EXPECT_EQ(norm->momentum, 0.1);
    EXPECT_FALSE(average->is_training() || norm->is_training());
    EXPECT_TRUE(average->module->fc->is_training());
  }
  // Tensors themselves; where there are no batch norms, nothing is run.
  update_bn(std::vector<Tensor>{tensor({{1.f}, {3.f}})}, net);
  EXPECT_NEAR(net->norm->running_mean.item<float>(), 5, 1e-6);
  update_bn(std::vector<Tensor>{Tensor()}, nn::Linear(1, 1));
  EXPECT_NE(test::message_of([&] {
              update_bn(std::vector<Tensor>{ones({2, 3})}, nn::Sequential(nn::BatchNorm(4)));
            }).find("swa_utils_test.cpp"),
            std::string::npos);
}

TEST(AveragedModel, WhatIsRefusedIsNamed) {
  nn::Linear net(2, 3), other(3, 2);
  AveragedModel average(net);
  auto expect = [](const std::string& said, const char* part) {
    EXPECT_NE(said.find(part), std::string::npos) << said;
    EXPECT_NE(said.find("swa_utils_test.cpp"), std::string::npos) << said;
  };
  expect(test::message_of([&] { get_ema_multi_avg_fn(1.5); }), "get_ema_multi_avg_fn: decay: got 1.5");
  expect(test::message_of([&] { average->update_parameters(other); }),
         "update_parameters: model: got 2 parameters, expected");
  EXPECT_EQ(average->n_averaged.item<int64_t>(), 0);
  const AvgFn one = [](const Tensor& averaged, const Tensor&, int64_t) { return averaged; };
  expect(test::message_of(
             [&] { AveragedModel<nn::Linear>(net, {.avg_fn = one, .multi_avg_fn = get_swa_multi_avg_fn()}); }),
         "AveragedModel: avg_fn: got a function, and multi_avg_fn, too");
}

}  // namespace
}  // namespace ingot::optim::swa_utils
