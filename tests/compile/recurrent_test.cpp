// Recurrent layers against PyTorch's in double (tools/recurrent_cases.py), compiled against eager to the bit, and what
// they refuse.
#include <set>
#include <sstream>

#include "compile/support.h"

namespace ingot {
namespace {

using test::same_bits;
using Tensors = std::vector<Tensor>;

/// A layer of any kind: input and initial states to output and last states.
struct AnyLayer {
  std::shared_ptr<nn::Module> module;
  std::function<Tensors(const Tensors&)> forward;
};
template <class L>
AnyLayer of_one_state(L layer) {
  return {layer.module(), [layer](const Tensors& in) {
            auto [output, h] = layer(in[0], in.size() > 1 ? in[1] : Tensor());
            return Tensors{output, h};
          }};
}
AnyLayer made(const std::string& kind, int64_t input, int64_t hidden, const nn::RNNOptions& o) {
  if (kind == "RNN") return of_one_state(nn::RNN(input, hidden, o));
  if (kind == "GRU") return of_one_state(nn::GRU(input, hidden, o));
  nn::LSTM layer(input, hidden, o);
  return {layer.module(), [layer](const Tensors& in) {
            std::optional<nn::LSTM::Impl::States> hx;
            if (in.size() > 1) hx.emplace(in[1], in[2]);
            auto [output, last] = layer(in[0], hx);
            return Tensors{output, std::get<0>(last), std::get<1>(last)};
          }};
}
nn::RNNOptions options_of(const std::string& words) {
  nn::RNNOptions o;
  std::istringstream in(words);
  for (std::string word; in >> word;) {
    const std::string key = word.substr(0, word.find('=')), value = word.substr(word.find('=') + 1);
    if (key == "num_layers") o.num_layers = std::stoll(value);
    if (key == "bias") o.bias = value == "true";
    if (key == "batch_first") o.batch_first = value == "true";
    if (key == "bidirectional") o.bidirectional = value == "true";
    if (key == "nonlinearity") o.nonlinearity = value;
  }
  return o;
}

struct Case {
  std::string name;
  StateDict weights, tensors;
  AnyLayer layer;
  Tensors inputs;
  Case(const std::string& which, const std::string& words, const StateDict& file, DType dtype) : name(which) {
    for (const auto& [key, t] : file) {
      if (!key.starts_with(name + "/")) continue;
      const std::string rest = key.substr(name.size() + 1);
      const Tensor x = t.to(dtype);
      if (rest.starts_with("weight/"))
        weights[rest.substr(7)] = x;
      else
        tensors[rest] = x;
    }
    layer = made(name.substr(0, name.find('/')), 3, 4, options_of(words));
    layer.module->to(dtype);
    layer.module->load_state_dict(weights);
    for (const char* given : {"input", "h_0", "c_0"})
      if (tensors.contains(given)) inputs.push_back(tensors.at(given).clone().requires_grad_());
  }
  static Tensor loss(const Tensors& results) {
    Tensor sum = results[0].square().sum() + results[1].sum();
    return results.size() > 2 ? sum + results[2].sum() * 2 : sum;
  }
  /// Gradients of parameters and inputs, and no more of them.
  StateDict gradients() {
    StateDict found;
    for (const auto& [parameter, p] : layer.module->named_parameters()) found["grad/" + parameter] = p.grad();
    constexpr const char* kInputs[] = {"input", "h_0", "c_0"};
    for (size_t i = 0; i < inputs.size(); ++i) found[std::string("grad/") + kInputs[i]] = inputs[i].grad();
    layer.module->zero_grad();
    for (Tensor& t : inputs) t.set_grad({});
    return found;
  }
};
std::vector<Case> cases(DType dtype) {
  const std::string path = INGOT_SOURCE_DIR "/tests/data/recurrent.safetensors";
  const StateDict file = load(path);
  std::vector<Case> all;
  for (const auto& [name, words] : load_metadata(path)) all.emplace_back(name, words, file, dtype);
  return all;
}

void near(const Tensor& got, const Tensor& expected, double bound, const std::string& what) {
  ASSERT_TRUE(got.defined() && got.sizes() == expected.sizes()) << what;
  EXPECT_LE((got - expected).abs().max().item<double>(), bound) << what;
}

TEST(Recurrent, GivesAndLearnsWhatPyTorchDoes) {
  std::vector<Case> all = cases(kFloat64);
  EXPECT_EQ(all.size(), 11U);
  for (Case& c : all) {
    const Tensors results = c.layer.forward(c.inputs);
    constexpr const char* kResults[] = {"output", "h_n", "c_n"};
    for (size_t i = 0; i < results.size(); ++i)
      near(results[i].detach(), c.tensors.at(kResults[i]), 1e-12, c.name + ": " + kResults[i]);
    Case::loss(results).backward();
    for (const auto& [name, g] : c.gradients()) near(g, c.tensors.at(name), 1e-11, c.name + ": " + name);
  }
}

TEST(Recurrent, CompiledHasTheBitsOfEager) {
  test::on_every_target({1, 2}, [] {
    for (DType dtype : {kFloat32, kBFloat16}) {
      for (Case& c : cases(dtype)) {
        SCOPED_TRACE(c.name);
        if (dtype != kFloat32 && c.inputs[0].size(0) > 64) continue;  // long programs, twice
        auto fast = compile(c.layer.forward);
        auto step = compile([&](const Tensors& inputs) {
          const Tensor loss = Case::loss(c.layer.forward(inputs));
          loss.backward();
          return loss.detach();
        });
        const Tensors expected = c.layer.forward(c.inputs);
        const Tensor loss = Case::loss(expected);
        loss.backward();
        const StateDict gradients = c.gradients();
        for (int call = 0; call < 3; ++call) {
          const Tensors got = fast(c.inputs);
          for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(same_bits(got[i].detach(), expected[i].detach()));
          Case::loss(got).backward();
          for (const auto& [name, g] : c.gradients()) EXPECT_TRUE(same_bits(g, gradients.at(name))) << name;
          EXPECT_TRUE(same_bits(step(c.inputs), loss.detach()));
          for (const auto& [name, g] : c.gradients()) EXPECT_TRUE(same_bits(g, gradients.at(name))) << name;
        }
        EXPECT_EQ(fast.stats().graph_breaks + fast.stats().fallbacks, 0) << fast.explain().str();
        EXPECT_EQ(step.stats().graph_breaks + step.stats().fallbacks, 0) << step.explain().str();
      }
    }
  });
}

// A sequence is the same as its steps one after the other, whatever its length; so is a batch as its rows.
TEST(Recurrent, IsTheSameStepByStepAndRowByRow) {
  const NoGradGuard no_grad;
  manual_seed(1);
  nn::LSTM layer(8, 17, nn::RNNOptions{.num_layers = 2});
  auto frozen = compile([&](const Tensor& x) { return std::get<0>(layer(x)); }, {.mode = CompileMode::frozen});
  for (int64_t steps : {1, 2, 63, 64, 65, 130}) {
    const Tensor x = randn({steps, 3, 8});
    auto [output, last] = layer(x);
    for (int call = 0; call < 3; ++call) EXPECT_TRUE(same_bits(frozen(x), output)) << steps;
    std::optional<nn::LSTM::Impl::States> states;
    for (int64_t t = 0; t < steps; ++t) {
      auto [one, next] = layer(x.narrow(0, t, 1), states);
      EXPECT_TRUE(same_bits(one.select(0, 0), output.select(0, t))) << steps << ": " << t;
      states = next;
    }
    EXPECT_TRUE(same_bits(std::get<0>(*states), std::get<0>(last)));
    EXPECT_TRUE(same_bits(std::get<1>(*states), std::get<1>(last)));
    EXPECT_TRUE(same_bits(std::get<0>(layer(x.narrow(1, 1, 1))), output.narrow(1, 1, 1))) << steps;
  }
}

// The layers share programs of a sequence only where all that a program holds for is the same.
TEST(Recurrent, ProgramsHoldForTheirSizesKindsAndViews) {
  const NoGradGuard no_grad;
  manual_seed(2);
  const Tensor whole = randn({6, 4, 12}), weight = randn({12, 3}), bias = randn({12}), state = randn({4, 3});
  auto parts = [&](const Tensor& x, const Tensor& h, const Tensor& c, const Tensor& w, const Tensor& b, bool reverse) {
    auto [hidden, cell] = lstm_sequence(x, h, c, w, b, reverse);
    return Tensors{hidden, cell};
  };
  auto both = [&](auto& fast, const Tensor& x, const Tensor& h, const Tensor& c, const Tensor& w, const Tensor& b,
                  bool reverse) {
    const Tensors one = parts(x, h, c, w, b, reverse), other = fast(x, h, c, w, b, reverse);
    for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(same_bits(one[i], other[i])) << x.sizes() << reverse;
    return one;
  };
  for (bool reverse : {false, true})
    for (int64_t steps : {1, 2, 6}) {
      auto fast = compile(parts, {.recompile_limit = 32});
      for (int64_t batch : {0, 1, 4}) {
        const Tensor x = whole.narrow(0, 6 - steps, steps).narrow(1, 0, batch), h = state.narrow(0, 0, batch);
        const Tensors given = both(fast, x, h, h, weight, bias, reverse);
        const Tensors copies =
            both(fast, x.contiguous(), h.clone(), h.clone(), weight.t().contiguous().t(), bias, reverse);
        for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(same_bits(given[i], copies[i]));
        both(fast, x, h, h, weight, {}, reverse);
      }
      EXPECT_EQ(fast.stats().fallbacks, 0);
    }
  // Without a bias, and with one of zeros, are the same but for what is absent.
  auto fast = compile(parts);
  EXPECT_TRUE(same_bits(both(fast, whole, state, state, weight, {}, false)[0],
                        both(fast, whole, state, state, weight, zeros({12}), false)[0]));
}

void expect_error(const std::function<void()>& f, const std::string& part) {
  try {
    f();
    ADD_FAILURE() << "no error: " << part;
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

TEST(Recurrent, RefusesWhatDoesNotFit) {
  using O = nn::RNNOptions;
  nn::GRU layer(3, 4, O{.num_layers = 2});
  expect_error(
      [&] {
        layer(ones({5, 2, 4}));
      },
      "GRU: input: got shape [5, 2, 4], expected two or three dims, the last of them 3");
  expect_error([&] { layer(ones({3})); }, "GRU: input: got shape [3]");
  expect_error([&] { layer(ones({0, 2, 3})); }, "at least one step");
  expect_error([&] { layer(ones({5, 2, 3}), ones({1, 2, 4})); }, "GRU: initial state: got shape [1, 2, 4]");
  expect_error([&] { layer(Tensor()); }, "GRU: input");
  expect_error([] { nn::LSTM(0, 4); }, "LSTM: input_size");
  expect_error([] { nn::LSTM(3, 4, O{.num_layers = 0}); }, "LSTM: num_layers");
  expect_error([] { nn::RNN(3, 4, O{.dropout = 2}); }, "RNN: dropout");
  expect_error([] { nn::RNN(3, 4, O{.nonlinearity = "gelu"}); }, "RNN: nonlinearity");
  expect_error([] { gru_sequence(ones({257, 1, 3}), ones({1, 1}), ones({3, 1})); }, "1 to 256 steps");
  expect_error([] { gru_sequence(ones({2, 1, 4}), ones({1, 1}), ones({3, 1})); }, "gru_sequence: input");
  expect_error(
      [] {
        rnn_sequence(ones({2, 1, 4}, kInt64), ones({1, 4}, kInt64), ones({4, 4}, kInt64));
      },
      "rnn_sequence: input");
}

// As PyTorch does: the results of all layers but the last.
TEST(Recurrent, DropsBetweenLayersInTraining) {
  const NoGradGuard no_grad;
  nn::RNN layer(3, 4, nn::RNNOptions{.num_layers = 2, .dropout = 1.0});
  const Tensor x = randn({5, 2, 3}), dropped = std::get<0>(layer(x));
  nn::RNN second(4, 4);
  StateDict state, whole = layer->state_dict();
  for (const char* name : {"weight_ih", "weight_hh", "bias_ih", "bias_hh"})
    state[std::string(name) + "_l0"] = whole.at(std::string(name) + "_l1");
  second->load_state_dict(state);
  EXPECT_TRUE(same_bits(dropped, std::get<0>(second(zeros({5, 2, 4})))));
  layer->eval();
  EXPECT_FALSE(equal(std::get<0>(layer(x)), dropped));
}

}  // namespace
}  // namespace ingot
