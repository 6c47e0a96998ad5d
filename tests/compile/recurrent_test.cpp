// Recurrent layers against PyTorch's in double (tools/recurrent_cases.py), compiled against eager to the bit, and what
// they refuse.
#include <cmath>
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

/// A layer of any kind, with an end for each row.
Tensors with_lengths(const std::string& kind, const nn::Module& module, const Tensors& in, const Tensor& lengths) {
  auto of_one = [&](const auto& impl) {
    auto [output, h] = impl.forward(in[0], in[1], lengths);
    return Tensors{output, h};
  };
  if (kind == "RNN") return of_one(static_cast<const nn::RNNImpl&>(module));
  if (kind == "GRU") return of_one(static_cast<const nn::GRUImpl&>(module));
  auto [output, last] =
      static_cast<const nn::LSTMImpl&>(module).forward(in[0], nn::LSTMImpl::States(in[1], in[2]), lengths);
  return {output, std::get<0>(last), std::get<1>(last)};
}

// With lengths, each row is what it is alone, without what stands behind its end; so are its gradients.
TEST(Recurrent, RowsEndWhereTheirLengthsSay) {
  for (const std::string kind : {"RNN", "GRU", "LSTM"})
    for (const bool both : {false, true})
      for (const int64_t longest : {7, 70}) {
        SCOPED_TRACE(kind + (both ? ", both directions, " : ", ") + std::to_string(longest));
        manual_seed(3);
        const nn::RNNOptions options{.num_layers = 2, .batch_first = longest == 7, .bidirectional = both};
        const AnyLayer layer = made(kind, 3, 5, options);
        const std::vector<int64_t> ends = {longest, 1, longest - 3, 2};
        const int64_t rows = 4, batch_dim = options.batch_first ? 0 : 1, step_dim = 1 - batch_dim;
        const IntList sizes = options.batch_first ? IntList{rows, longest, 3} : IntList{longest, rows, 3};
        Tensors in = {randn(sizes)};
        for (int i = 0; i < (kind == "LSTM" ? 2 : 1); ++i) in.push_back(randn({both ? 4 : 2, rows, 5}));
        for (size_t r = 0; r < ends.size(); ++r)  // nothing of it may be seen
          in[0].select(batch_dim, static_cast<int64_t>(r)).narrow(0, ends[r], longest - ends[r]).fill_(NAN);
        const Tensor lengths = tensor(ends);
        auto loss_of = [](const Tensors& results) {
          Tensor sum = results[0].square().sum();
          for (size_t s = 1; s < results.size(); ++s) sum = sum + results[s].sin().sum();
          return sum;
        };
        auto gradients = [&] {
          Tensors found;
          for (const Tensor& p : layer.module->parameters()) found.push_back(p.grad());
          layer.module->zero_grad();
          return found;
        };
        auto call = [&](const Tensors& given, const Tensor& l) { return with_lengths(kind, *layer.module, given, l); };
        const Tensors results = call(in, lengths);
        loss_of(results).backward();
        const Tensors learned = gradients();
        for (size_t r = 0; r < ends.size(); ++r) {
          const auto row = static_cast<int64_t>(r);
          Tensors alone = {in[0].narrow(batch_dim, row, 1).narrow(step_dim, 0, ends[r])};
          for (size_t s = 1; s < in.size(); ++s) alone.push_back(in[s].narrow(1, row, 1));
          const Tensors expected = layer.forward(alone);
          loss_of(expected).backward();
          const Tensor output = results[0].narrow(batch_dim, row, 1);
          EXPECT_TRUE(same_bits(output.narrow(step_dim, 0, ends[r]).detach(), expected[0].detach())) << row;
          EXPECT_TRUE((output.narrow(step_dim, ends[r], longest - ends[r]) == 0).all().item<bool>()) << row;
          for (size_t s = 1; s < in.size(); ++s)
            EXPECT_TRUE(equal(results[s].narrow(1, row, 1), expected[s])) << row << ", state " << s;
        }
        const Tensors summed = gradients();
        for (size_t p = 0; p < learned.size(); ++p)
          EXPECT_TRUE(allclose(learned[p], summed[p], 1e-4, 1e-5)) << p << ": " << learned[p] << summed[p];

        auto fast = compile(call);
        for (const Tensor& other : {lengths, lengths.flip(0), lengths, tensor(ends).to(kInt32)}) {
          const Tensors got = fast(in, other), eager = call(in, other);
          for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(same_bits(got[i].detach(), eager[i].detach()));
        }
        EXPECT_EQ(fast.stats().graph_breaks + fast.stats().fallbacks, 0) << fast.explain().str();
        EXPECT_LE(fast.stats().compilations, 2);  // of i64, and of i32
      }
}

TEST(Recurrent, LengthsMayBeZeroAndPaddedInputsShareAProgram) {
  const NoGradGuard no_grad;
  manual_seed(4);
  nn::GRU layer(3, 5);
  const Tensor x = randn({4, 2, 3}), h = randn({1, 2, 5});
  auto [output, last] = layer(x, h, tensor(std::vector<int64_t>{0, 4}));
  EXPECT_TRUE(equal(last.select(1, 0), h.select(1, 0)));
  EXPECT_TRUE((output.select(1, 0) == 0).all().item<bool>());

  auto frozen =
      compile([&](const Tensor& x, const Tensor& lengths) { return std::get<0>(layer(x, Tensor(), lengths)); },
              {.mode = CompileMode::frozen});
  for (int64_t length = 1; length <= 16; ++length) {
    const Tensor exact = randn({length, 1, 3}), padded = cat({exact, zeros({16 - length, 1, 3})}, 0);
    EXPECT_TRUE(same_bits(frozen(padded, tensor(std::vector<int64_t>{length})).narrow(0, 0, length),
                          std::get<0>(layer(exact))));
  }
  EXPECT_EQ(frozen.stats().compilations, 1);
  EXPECT_GT(frozen.stats().frozen_calls, 0) << frozen.explain().frozen;
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
  const Tensor x = ones({5, 2, 3});
  expect_error([&] { layer(x, Tensor(), ones({3}, kInt64)); },
               "GRU: lengths: got i64, shape [3], expected i64 or i32 [2], one for each row of the batch");
  expect_error([&] { layer(x, Tensor(), ones({2})); }, "GRU: lengths: got f32, shape [2]");
  expect_error([&] { layer(x.select(1, 0), Tensor(), ones({1}, kInt64)); }, "expected none without a batch");
  expect_error([&] { layer(x, Tensor(), tensor({5, 6})); }, "GRU: lengths: got 6, expected numbers from 0 to 5");
  expect_error([&] { layer(x, Tensor(), tensor({-1, 5})); }, "GRU: lengths: got -1, expected numbers from 0 to 5");
  expect_error([] { nn::LSTM(0, 4); }, "LSTM: input_size");
  expect_error([] { nn::LSTM(3, 4, O{.num_layers = 0}); }, "LSTM: num_layers");
  expect_error([] { nn::RNN(3, 4, O{.dropout = 2}); }, "RNN: dropout");
  expect_error([] { nn::RNN(3, 4, O{.nonlinearity = "gelu"}); }, "RNN: nonlinearity");
  expect_error([] { gru_sequence(ones({0, 1, 3}), ones({1, 1}), ones({3, 1})); }, "at least one step");
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
