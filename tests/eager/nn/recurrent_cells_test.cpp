// Cells against PyTorch 2.15 in double, and against the layers that they are a step of.
#include "eager/nn/recurrent_cells.h"

#include "eager/nn/pytorchs.h"
#include "eager/nn/recurrent_layers.h"
#include "eager/ops/lists.h"
#include "eager/support.h"

namespace ingot {
namespace {

using test::input;
using test::message_of;

template <class M>
M filled(M cell) {
  cell->to(kFloat64);
  const NoGradGuard no_grad;
  int64_t number = 0;
  for (const Tensor& p : cell->parameters())
    p.copy_((arange(p.numel()).to(kFloat64) * 0.37 + static_cast<double>(number++)).sin().reshape(p.sizes().vec()) *
            0.4);
  return cell;
}
std::vector<Tensor> with_parameters(std::vector<Tensor> inputs, const std::vector<Tensor>& parameters) {
  inputs.insert(inputs.end(), parameters.begin(), parameters.end());
  return inputs;
}

struct RecurrentCells : testing::Test {
  const Tensor x = input({3, 4}), h = input({3, 5}, 0.3), c = input({3, 5}, 0.9);
};

TEST_F(RecurrentCells, ArePyTorchs) {
  const auto rnn = filled(nn::RNNCell(4, 5)), clipped = filled(nn::RNNCell(4, 5, {.nonlinearity = "relu"}));
  const auto gru = filled(nn::GRUCell(4, 5)), bare = filled(nn::GRUCell(4, 5, {.bias = false}));
  const auto lstm = filled(nn::LSTMCell(4, 5));
  EXPECT_PYTORCHS(rnn(x, h), (with_parameters({x, h}, rnn->parameters())), -0.4276478163853561, 0.48115501347267536,
                  0.8593484211790234, -1.8493057818035925, -0.6939227896653481, 1.2316318992685948, 1.2316318992685948);
  EXPECT_PYTORCHS(rnn(x), (), -0.11055381836294531);
  EXPECT_PYTORCHS(rnn(x[1], h[1]), ({x, h}), -0.46108464813019756, -0.034065471103121685, 0.01597018563655362);
  EXPECT_PYTORCHS(clipped(x, h), (with_parameters({x, h}, clipped->parameters())), -1.138897296279097,
                  3.4035808781688126, 1.5665440238231927, -0.9373199469834194, -1.009259360886683, -0.7976142804069886,
                  -0.7976142804069886);
  EXPECT_PYTORCHS(gru(x, h), (with_parameters({x, h}, gru->parameters())), -0.10885092853878181, -1.8406719846261144,
                  4.698043035689095, -2.291748311394967, 0.8481049575508305, -0.15424960801027726, -0.0780098839076041);
  EXPECT_PYTORCHS(gru(x), (), 0.2928357372536655);
  EXPECT_PYTORCHS(gru(x[1], h[1]), ({x, h}), -0.04364177789054553, 0.5687489237902843, -0.11206818371598068);
  EXPECT_PYTORCHS(bare(x, h), (with_parameters({x, h}, bare->parameters())), -0.21235471873478878, -1.37170808081663,
                  6.085785746043313, -1.6030926333076634, 0.8397744385647224);
  const auto joined = [](const std::tuple<Tensor, Tensor>& states) {
    return cat({std::get<0>(states), std::get<1>(states)}, -1);
  };
  EXPECT_PYTORCHS(joined(lstm(x, std::tuple(h, c))), (with_parameters({x, h, c}, lstm->parameters())),
                  0.5361201499040015, 0.18845721128217852, -0.5407050611385995, -0.5623197303520134, 6.122770920064644,
                  -0.5832862409289163, -1.7421458090011481, -1.7421458090011481);
  EXPECT_PYTORCHS(joined(lstm(x)), (), -0.3110252783307318);
  EXPECT_PYTORCHS(joined(lstm(x[1], std::tuple(h[1], c[1]))), ({x, h}), -0.0856085001840763, 0.028915188962084448,
                  0.12913108854950503);
}

TEST_F(RecurrentCells, NamesAreThoseOfStateDicts) {
  const nn::LSTMCell lstm(4, 5);
  std::vector<std::string> names;
  for (const auto& [name, p] : lstm->named_parameters()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"weight_ih", "weight_hh", "bias_ih", "bias_hh"}));
  EXPECT_EQ(lstm->weight_ih.sizes(), (std::vector<int64_t>{20, 4}));
  EXPECT_EQ(lstm->weight_hh.sizes(), (std::vector<int64_t>{20, 5}));
  EXPECT_EQ(nn::GRUCell(4, 5)->bias_hh.sizes(), (std::vector<int64_t>{15}));
  EXPECT_EQ(nn::RNNCell(4, 5, {.bias = false})->parameters().size(), 2u);
  EXPECT_LE(lstm->weight_ih.abs().max().item<float>(), 1 / std::sqrt(5.0f));
}

TEST_F(RecurrentCells, StepsAreThoseOfTheLayer) {
  const nn::LSTM layer(4, 5);
  const nn::LSTMCell cell(4, 5);
  const NoGradGuard no_grad;
  for (size_t i = 0; i < 4; ++i) cell->parameters()[i].copy_(layer->parameters()[i]);
  const Tensor steps = input({6, 3, 4}).detach().to(kFloat32);
  const auto [output, last] = layer(steps);
  std::optional<std::tuple<Tensor, Tensor>> states;
  for (int64_t t = 0; t < 6; ++t) {
    states = cell(steps[t], states);
    EXPECT_TRUE(equal(std::get<0>(*states), output[t])) << t;
  }
  EXPECT_TRUE(equal(std::get<1>(*states), std::get<1>(last)[0]));
}

TEST_F(RecurrentCells, AnEmptyBatch) {
  EXPECT_EQ(nn::RNNCell(4, 5)(zeros({0, 4})).sizes(), (std::vector<int64_t>{0, 5}));
  EXPECT_EQ(nn::GRUCell(4, 5)(zeros({0, 4})).sizes(), (std::vector<int64_t>{0, 5}));
  EXPECT_EQ(std::get<1>(nn::LSTMCell(4, 5)(zeros({0, 4}))).sizes(), (std::vector<int64_t>{0, 5}));
}

TEST_F(RecurrentCells, RefuseWhatIsWrong) {
  const auto expect = [&](const std::string& words, const std::function<void()>& f) {
    EXPECT_EQ(message_of(f).rfind(words, 0), 0u) << message_of(f);
  };
  const nn::RNNCell rnn(4, 5);
  const nn::LSTMCell lstm(4, 5);
  const Tensor one = ones({3, 4}), state = ones({3, 5});
  expect("RNNCell: input: got shape [1, 3, 4], expected one or two dims, the last of them 4",
         [&] { rnn(one.unsqueeze(0)); });
  expect("RNNCell: input: got shape [3, 5]", [&] { rnn(state); });
  expect("RNNCell: input: got", [&] { rnn(Tensor()); });
  expect("RNNCell: state: got shape [2, 5], expected [3, 5]", [&] { rnn(one, ones({2, 5})); });
  expect("RNNCell: state: got shape [3, 5], expected [5]", [&] { rnn(one[0], state); });
  expect("LSTMCell: state: got shape [3, 4], expected [3, 5]", [&] { lstm(one, std::tuple(state, one)); });
  expect("GRUCell: hidden_size: got 0", [&] { nn::GRUCell(4, 0); });
  expect("RNNCell: nonlinearity: got \"sine\"", [&] { nn::RNNCell(4, 5, {.nonlinearity = "sine"}); });
}

}  // namespace
}  // namespace ingot
