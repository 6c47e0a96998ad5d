#include "eager/nn/recurrent_layers.h"

#include "eager/call/call.h"
#include "eager/call/check_values.h"
#include "eager/nn/initial.h"
#include "eager/ops/lists.h"

namespace ingot::nn {

using detail::shape_of;

namespace {

std::string name_of_state(const char* what, int64_t layer, bool reverse) {
  return what + std::string("_l") + std::to_string(layer) + (reverse ? "_reverse" : "");
}

const RNNOptions& checked_rnn(const char* layer, const RNNOptions& o) {
  detail::positive(layer, "num_layers", o.num_layers);
  detail::share(layer, "dropout", o.dropout);
  if (o.nonlinearity != "tanh" && o.nonlinearity != "relu")
    detail::refuse(layer, "nonlinearity", "\"" + o.nonlinearity + "\"", "\"tanh\" or \"relu\"");
  return o;
}

/// Rows of steps [T, N, C] that end before the others.
class Lengths {
 public:
  Lengths(const char* layer, const TensorArg& given, const Tensor& x, bool batched) {
    const Tensor& lengths = *given.tensor;
    const bool whole = lengths.dtype() == kInt64 || lengths.dtype() == kInt32;
    if (!batched || !whole || lengths.dim() != 1 || lengths.size(0) != x.size(1))
      eager::fail(layer, "lengths", std::string(name_of(lengths.dtype())) + ", " + shape_of(lengths),
                  batched ? "i64 or i32 [" + std::to_string(x.size(1).value()) + "], one for each row of the batch"
                          : "none without a batch",
                  given.location);
    eager::check_numbers(layer, "lengths", lengths, 0, x.size(0) + 1, given.location);
    const Tensor places = arange(x.size(0) + 1), place = places.unsqueeze(1), step = place.narrow(0, 0, x.size(0));
    const Tensor ends = places.index_select(0, given);  // positions are checked: 0 to T
    inside_ = (step < ends).unsqueeze(2);
    end_ = (place == ends).unsqueeze(2);
    flipped_ = (ends - 1 - step).where(step < ends, step).unsqueeze(2);
  }
  /// Zero behind the ends, whatever stands there: products of gradients with it are, too.
  Tensor cut(const Tensor& x) const { return x.where(inside_, 0); }
  /// Each row from its last step to its first; what is behind stays there.
  Tensor flipped(const Tensor& x) const { return x.gather(0, flipped_.expand({x.size(0), x.size(1), x.size(2)})); }
  /// Of the initial state [N, C] and those of all steps: the one behind a row's last step. A sum of one number.
  Tensor last(const Tensor& initial, const Tensor& steps) const {
    return cat({initial.unsqueeze(0), steps}, 0).where(end_, 0).sum(0);
  }

 private:
  Tensor inside_, end_, flipped_;
};

}  // namespace

RecurrentImpl::RecurrentImpl(const char* layer, int64_t gates, int64_t input, int64_t hidden, RNNOptions o)
    : input_size(detail::positive(layer, "input_size", input)),
      hidden_size(detail::positive(layer, "hidden_size", hidden)),
      options(checked_rnn(layer, o)),
      layer_(layer) {
  const int64_t directions = options.bidirectional ? 2 : 1;
  for (int64_t l = 0; l < options.num_layers; ++l)
    for (bool reverse : {false, true}) {
      if (reverse && !options.bidirectional) continue;
      auto make = [&](const char* what, const IntList& sizes) {
        tensors.emplace_back(name_of_state(what, l, reverse), detail::uniform(sizes, hidden));
      };
      make("weight_ih", {gates * hidden, l == 0 ? input : directions * hidden});
      make("weight_hh", {gates * hidden, hidden});
      if (options.bias) make("bias_ih", gates * hidden), make("bias_hh", gates * hidden);
    }
}

/// One of weight_ih, weight_hh, bias_ih, bias_hh.
Tensor RecurrentImpl::tensor(int64_t layer, bool reverse, size_t which) const {
  const size_t each = options.bias ? 4 : 2, directions = options.bidirectional ? 2 : 1;
  return which < each ? tensors[(static_cast<size_t>(layer) * directions + reverse) * each + which].second : Tensor();
}

std::vector<Tensor> RecurrentImpl::run(const TensorArg& input, const std::vector<Tensor>& initial,
                                       const TensorArg& lengths, Sequence sequence) const {
  const Location at = input.location;
  if (!input.tensor || !input.tensor->defined()) eager::fail(layer_, "input", "nothing", "a tensor", at);
  Tensor x = *input.tensor;
  const bool batched = x.dim() == 3;
  if ((x.dim() != 2 && !batched) || x.size(-1) != input_size)
    eager::fail(layer_, "input", shape_of(x), "two or three dims, the last of them " + std::to_string(input_size), at);
  const bool transposed = batched && options.batch_first;
  if (transposed) x = x.transpose(0, 1);
  if (!batched) x = x.unsqueeze(1);
  const int64_t directions = options.bidirectional ? 2 : 1;
  if (x.size(0) == 0) eager::fail(layer_, "input", shape_of(*input.tensor), "at least one step", at);

  std::vector<Tensor> begin = initial;
  for (Tensor& state : begin) {
    if (!state.defined()) {
      state = zeros({options.num_layers * directions, x.size(1), hidden_size}, x.dtype());
      continue;
    }
    const Tensor given = state;
    if (!batched && given.dim() == 2) state = given.unsqueeze(1);
    if (state.dim() != 3 || state.size(0) != options.num_layers * directions || state.size(1) != x.size(1) ||
        state.size(2) != hidden_size)
      eager::fail(layer_, "initial state", shape_of(given),
                  "[" + std::to_string(options.num_layers * directions) + (batched ? ", batch, " : ", ") +
                      std::to_string(hidden_size) + "], one for each layer and direction",
                  at);
  }

  std::optional<Lengths> ends;
  if (lengths.tensor && lengths.tensor->defined()) ends.emplace(layer_, lengths, x, batched), x = ends->cut(x);
  std::vector<std::vector<Tensor>> last(begin.size());
  for (int64_t l = 0; l < options.num_layers; ++l) {
    std::vector<Tensor> outputs;
    for (int64_t d = 0; d < directions; ++d) {
      // Rows that end apart are turned round before and behind.
      const bool second = d == 1, reverse = second && !ends;
      const Tensor gates = linear(second && ends ? ends->flipped(x) : x, tensor(l, second, 0), tensor(l, second, 2));
      std::vector<Tensor> first;
      for (const Tensor& state : begin) first.push_back(state.select(0, l * directions + d));
      const std::vector<Tensor> all =
          sequence(options, gates, first, tensor(l, second, 1), tensor(l, second, 3), reverse);
      outputs.push_back(second && ends ? ends->flipped(all[0]) : all[0]);
      for (size_t s = 0; s < all.size(); ++s)
        last[s].push_back(ends ? ends->last(first[s], all[s]) : all[s].select(0, reverse ? 0 : -1));
    }
    x = directions == 1 ? outputs[0] : cat(outputs, -1);
    if (l + 1 < options.num_layers) x = functional::dropout(x, options.dropout, is_training());
  }
  if (ends) x = ends->cut(x);
  std::vector<Tensor> results = {transposed ? x.transpose(0, 1) : batched ? x : x.squeeze(1)};
  for (const std::vector<Tensor>& states : last) {
    const Tensor all = stack(states, 0);
    results.push_back(batched ? all : all.squeeze(1));
  }
  return results;
}

RNNImpl::RNNImpl(int64_t input, int64_t hidden, RNNOptions o) : RecurrentImpl("RNN", 1, input, hidden, std::move(o)) {}
std::tuple<Tensor, Tensor> RNNImpl::forward(const TensorArg& input, const TensorArg& h_0,
                                            const TensorArg& lengths) const {
  std::vector<Tensor> r =
      run(input, {h_0.tensor ? *h_0.tensor : Tensor()}, lengths,
          [](const RNNOptions& o, const Tensor& gates, const std::vector<Tensor>& states, const Tensor& weight,
             const Tensor& bias, bool reverse) {
            return std::vector<Tensor>{rnn_sequence(gates, states[0], weight, bias, o.nonlinearity, reverse)};
          });
  return {r[0], r[1]};
}

GRUImpl::GRUImpl(int64_t input, int64_t hidden, RNNOptions o) : RecurrentImpl("GRU", 3, input, hidden, std::move(o)) {}
std::tuple<Tensor, Tensor> GRUImpl::forward(const TensorArg& input, const TensorArg& h_0,
                                            const TensorArg& lengths) const {
  std::vector<Tensor> r = run(input, {h_0.tensor ? *h_0.tensor : Tensor()}, lengths,
                              [](const RNNOptions&, const Tensor& gates, const std::vector<Tensor>& states,
                                 const Tensor& weight, const Tensor& bias, bool reverse) {
                                return std::vector<Tensor>{gru_sequence(gates, states[0], weight, bias, reverse)};
                              });
  return {r[0], r[1]};
}

LSTMImpl::LSTMImpl(int64_t input, int64_t hidden, RNNOptions o)
    : RecurrentImpl("LSTM", 4, input, hidden, std::move(o)) {}
std::tuple<Tensor, LSTMImpl::States> LSTMImpl::forward(const TensorArg& input, const std::optional<States>& hx,
                                                       const TensorArg& lengths) const {
  const States states = hx.value_or(States());
  std::vector<Tensor> r = run(input, {std::get<0>(states), std::get<1>(states)}, lengths,
                              [](const RNNOptions&, const Tensor& gates, const std::vector<Tensor>& given,
                                 const Tensor& weight, const Tensor& bias, bool reverse) {
                                auto [hidden, cell] = lstm_sequence(gates, given[0], given[1], weight, bias, reverse);
                                return std::vector<Tensor>{hidden, cell};
                              });
  return {r[0], {r[1], r[2]}};
}

}  // namespace ingot::nn
