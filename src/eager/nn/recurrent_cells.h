// One step of a recurrent layer, with PyTorch's names and initial values: weight_ih, weight_hh, bias_ih, bias_hh.
#pragma once
#include <optional>
#include <tuple>

#include "eager/nn/checks.h"
#include "eager/nn/functional.h"
#include "eager/nn/module.h"

namespace ingot::nn {

struct RNNCellOptions {
  bool bias = true;
  std::string nonlinearity = "tanh";  // or "relu"; of RNNCell alone
};

/// What cells hold. Input: [N, input_size], or [input_size] without a batch; states: [N, hidden_size] or
/// [hidden_size], zeros where they are absent. A sequence of steps has the numbers of the layer that cells belong to.
struct INGOT_API RecurrentCellImpl : Layer {
  int64_t input_size, hidden_size;
  RNNCellOptions options;
  Tensor weight_ih, weight_hh, bias_ih, bias_hh;

 protected:
  RecurrentCellImpl(const char* layer, int64_t gates, int64_t input, int64_t hidden, RNNCellOptions o);
  /// What the recurrent ops take of an input: the input's share of all gates [1, N, gates * hidden_size].
  Tensor gates(const TensorArg& input) const;
  /// A state as they take it: [N, hidden_size].
  Tensor state(const TensorArg& input, const TensorArg& given, const Tensor& gates) const;
  /// Their only step, with a batch as the input has one.
  static Tensor step(const TensorArg& input, const Tensor& states);

 private:
  const char* layer_;
};
/// tanh(W_ih x + b_ih + W_hh h + b_hh), or relu.
struct INGOT_API RNNCellImpl : RecurrentCellImpl {
  RNNCellImpl(int64_t input_size, int64_t hidden_size, RNNCellOptions o = {});
  Tensor forward(const TensorArg& input, const TensorArg& hx = {}) const;
};
/// Gates r, z, n; gives the next h.
struct INGOT_API GRUCellImpl : RecurrentCellImpl {
  GRUCellImpl(int64_t input_size, int64_t hidden_size, RNNCellOptions o = {});
  Tensor forward(const TensorArg& input, const TensorArg& hx = {}) const;
};
/// Gates i, f, g, o; gives the next (h, c).
struct INGOT_API LSTMCellImpl : RecurrentCellImpl {
  using States = std::tuple<Tensor, Tensor>;
  LSTMCellImpl(int64_t input_size, int64_t hidden_size, RNNCellOptions o = {});
  States forward(const TensorArg& input, const std::optional<States>& hx = {}) const;
};
#define INGOT_RECURRENT_CELL(NAME)                                                           \
  class NAME : public HandleFrom<NAME, NAME##Impl, From<int64_t, int64_t, RNNCellOptions>> { \
   public:                                                                                   \
    using HandleFrom::HandleFrom;                                                            \
    INGOT_MODULE_FIELDS(NAME, weight_ih, weight_hh, bias_ih, bias_hh)                        \
  }
INGOT_RECURRENT_CELL(RNNCell);
INGOT_RECURRENT_CELL(GRUCell);
INGOT_RECURRENT_CELL(LSTMCell);
#undef INGOT_RECURRENT_CELL

}  // namespace ingot::nn
