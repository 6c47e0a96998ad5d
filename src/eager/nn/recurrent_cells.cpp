#include "eager/nn/recurrent_cells.h"

#include "eager/call/call.h"
#include "eager/nn/initial.h"

namespace ingot::nn {
using detail::shape_of;

RecurrentCellImpl::RecurrentCellImpl(const char* layer, int64_t gates, int64_t input, int64_t hidden, RNNCellOptions o)
    : input_size(detail::not_negative(layer, "input_size", input)),
      hidden_size(detail::positive(layer, "hidden_size", hidden)),
      options(std::move(o)),
      layer_(layer) {
  if (options.nonlinearity != "tanh" && options.nonlinearity != "relu")
    detail::refuse(layer, "nonlinearity", "\"" + options.nonlinearity + "\"", "\"tanh\" or \"relu\"");
  weight_ih = detail::uniform({gates * hidden, input}, hidden);
  weight_hh = detail::uniform({gates * hidden, hidden}, hidden);
  if (!options.bias) return;
  bias_ih = detail::uniform(gates * hidden, hidden);
  bias_hh = detail::uniform(gates * hidden, hidden);
}

Tensor RecurrentCellImpl::gates(const TensorArg& input) const {
  const Tensor& x = eager::present(layer_, "input", input);
  if ((x.dim() != 1 && x.dim() != 2) || x.size(-1) != input_size)
    eager::fail(layer_, "input", shape_of(x), "one or two dims, the last of them " + std::to_string(input_size),
                input.location);
  return linear(x.dim() == 2 ? x.unsqueeze(0) : x.reshape({1, 1, -1}), weight_ih, bias_ih);
}

Tensor RecurrentCellImpl::state(const TensorArg& input, const TensorArg& given, const Tensor& gates) const {
  if (!given.tensor || !given.tensor->defined()) return zeros({gates.size(1), hidden_size}, gates.dtype());
  const Tensor& h = *given.tensor;
  const bool batched = input.tensor->dim() == 2;
  if (h.dim() != input.tensor->dim() || h.size(-1) != hidden_size || (batched && h.size(0) != gates.size(1)))
    eager::fail(layer_, "state", shape_of(h),
                "[" + (batched ? std::to_string(gates.size(1).value()) + ", " : "") + std::to_string(hidden_size) + "]",
                input.location);
  return batched ? h : h.unsqueeze(0);
}

Tensor RecurrentCellImpl::step(const TensorArg& input, const Tensor& states) {
  const Tensor all = states.select(0, 0);
  return input.tensor->dim() == 2 ? all : all.squeeze(0);
}

RNNCellImpl::RNNCellImpl(int64_t input, int64_t hidden, RNNCellOptions o)
    : RecurrentCellImpl("RNNCell", 1, input, hidden, std::move(o)) {}
Tensor RNNCellImpl::forward(const TensorArg& input, const TensorArg& hx) const {
  const Tensor x = gates(input);
  return step(input, rnn_sequence(x, state(input, hx, x), weight_hh, bias_hh, options.nonlinearity));
}

GRUCellImpl::GRUCellImpl(int64_t input, int64_t hidden, RNNCellOptions o)
    : RecurrentCellImpl("GRUCell", 3, input, hidden, std::move(o)) {}
Tensor GRUCellImpl::forward(const TensorArg& input, const TensorArg& hx) const {
  const Tensor x = gates(input);
  return step(input, gru_sequence(x, state(input, hx, x), weight_hh, bias_hh));
}

LSTMCellImpl::LSTMCellImpl(int64_t input, int64_t hidden, RNNCellOptions o)
    : RecurrentCellImpl("LSTMCell", 4, input, hidden, std::move(o)) {}
LSTMCellImpl::States LSTMCellImpl::forward(const TensorArg& input, const std::optional<States>& hx) const {
  const Tensor x = gates(input);
  const auto& [h, c] = hx ? *hx : States();
  const auto [hidden, cell] = lstm_sequence(x, state(input, h, x), state(input, c, x), weight_hh, bias_hh);
  return {step(input, hidden), step(input, cell)};
}

}  // namespace ingot::nn
