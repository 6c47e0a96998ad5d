// Recurrent layers, with PyTorch's names and initial values: weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, those
// of the second direction with `_reverse` after it.
#pragma once
#include <map>
#include <tuple>

#include "eager/nn/checks.h"
#include "eager/nn/functional.h"
#include "eager/nn/module.h"

namespace ingot::nn {

struct RNNOptions {
  int64_t num_layers = 1;
  bool bias = true;
  bool batch_first = false;  // [N, T, C] instead of [T, N, C]
  double dropout = 0;        // share of each layer's results, but the last layer's, that is zero in training
  bool bidirectional = false;
  std::string nonlinearity = "tanh";  // or "relu"; of RNN alone
};

/// What recurrent layers hold. Inputs are [T, N, input_size] ([N, T, input_size] with batch_first; [T, input_size]
/// without a batch), T from 1, all of them one program; states are [num_layers * directions, N,
/// hidden_size] (no N without a batch).
/// `lengths`, i64 or i32 [N], from 0 to T: of each row that many steps count, as in PyTorch's packed sequences. What
/// stands behind them changes nothing, the output is zero there, and the last state is that of a row's last step.
struct INGOT_API RecurrentImpl : Layer {
  int64_t input_size, hidden_size;
  RNNOptions options;
  std::vector<std::pair<std::string, Tensor>> tensors;  // in the order of PyTorch's

 protected:
  RecurrentImpl(const char* layer, int64_t gates, int64_t input, int64_t hidden, RNNOptions o);
  /// One layer in one direction: all states, [T, N, hidden_size] each, of gates [T, N, gates * hidden_size].
  using Sequence = std::vector<Tensor> (*)(const RNNOptions& options, const Tensor& gates,
                                           const std::vector<Tensor>& states, const Tensor& weight, const Tensor& bias,
                                           bool reverse);
  /// Output, then the last states; `initial`: as many states, absent ones are zeros.
  std::vector<Tensor> run(const TensorArg& input, const std::vector<Tensor>& initial, const TensorArg& lengths,
                          Sequence sequence) const;

 private:
  Tensor tensor(int64_t layer, bool reverse, size_t which) const;
  const char* layer_;
};
template <class Self, class Impl>
class RecurrentHandle : public HandleFrom<Self, Impl, From<int64_t, int64_t, RNNOptions>> {
  using Base = HandleFrom<Self, Impl, From<int64_t, int64_t, RNNOptions>>;

 public:
  using Base::Base;
  static void fields(Impl& self, Fields& visit) {
    for (auto& [name, tensor] : self.tensors) visit(name, tensor);
  }
};

/// h = tanh(W_ih x + b_ih + W_hh h + b_hh); gives (output, last h).
struct INGOT_API RNNImpl : RecurrentImpl {
  RNNImpl(int64_t input_size, int64_t hidden_size, RNNOptions o = {});
  std::tuple<Tensor, Tensor> forward(const TensorArg& input, const TensorArg& h_0 = {},
                                     const TensorArg& lengths = {}) const;
};
/// Gates r, z, n; gives (output, last h).
struct INGOT_API GRUImpl : RecurrentImpl {
  GRUImpl(int64_t input_size, int64_t hidden_size, RNNOptions o = {});
  std::tuple<Tensor, Tensor> forward(const TensorArg& input, const TensorArg& h_0 = {},
                                     const TensorArg& lengths = {}) const;
};
/// Gates i, f, g, o; gives (output, (last h, last c)).
struct INGOT_API LSTMImpl : RecurrentImpl {
  using States = std::tuple<Tensor, Tensor>;
  LSTMImpl(int64_t input_size, int64_t hidden_size, RNNOptions o = {});
  std::tuple<Tensor, States> forward(const TensorArg& input, const std::optional<States>& hx = {},
                                     const TensorArg& lengths = {}) const;
};
#define INGOT_RECURRENT(NAME)                                    \
  class NAME : public RecurrentHandle<NAME, NAME##Impl> {        \
   public:                                                       \
    using RecurrentHandle::RecurrentHandle;                      \
    static constexpr const char* module_type() { return #NAME; } \
  }
INGOT_RECURRENT(RNN);
INGOT_RECURRENT(GRU);
INGOT_RECURRENT(LSTM);
#undef INGOT_RECURRENT

}  // namespace ingot::nn
