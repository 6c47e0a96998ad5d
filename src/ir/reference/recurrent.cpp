// Recurrent layers, one number after the other.
#include <cmath>

#include "ir/reference/context.h"

namespace ingot::ir::reference {
namespace {

double sigmoid_of(long double x) { return static_cast<double>(1 / (1 + std::exp(-x))); }

/// Calls f(position of the state in the output, position in the batch times the width, gates of the input, gates of the
/// hidden state), the last two `gates` numbers each, for each number of each state in the order of time. `hidden` is
/// the state [N, H] before the step, and takes what f gives.
template <class F>
void for_each_step(const ReferenceContext& c, size_t gates, F f) {
  const ReferenceTensor &input = c.tensor("input"), &weight = c.tensor("weight");
  const ReferenceTensor* bias = c.optional("bias");
  const int64_t steps = input.shape[0], batch = input.shape[1], width = weight.shape[1];
  std::vector<double> hidden = c.tensor("hidden").real;
  for (int64_t i = 0; i < steps; ++i) {
    const int64_t time = c.flag("reverse") ? steps - 1 - i : i;
    std::vector<double> next = hidden;
    for (int64_t n = 0; n < batch; ++n)
      for (int64_t j = 0; j < width; ++j) {
        std::vector<double> x(gates), h(gates);
        for (size_t g = 0; g < gates; ++g) {
          const int64_t row = static_cast<int64_t>(g) * width + j;
          long double sum = bias ? bias->real[row] : 0;
          for (int64_t k = 0; k < width; ++k)
            sum += static_cast<long double>(weight.real[row * width + k]) * hidden[n * width + k];
          h[g] = static_cast<double>(sum);
          x[g] = input.real[(time * batch + n) * static_cast<int64_t>(gates) * width + row];
        }
        next[n * width + j] = f((time * batch + n) * width + j, n * width + j, x, h, hidden[n * width + j]);
      }
    hidden = next;
  }
}
using Gates = std::vector<double>;

}  // namespace

void rnn_sequence(ReferenceContext& c) {
  const bool relu = c.mode("nonlinearity") == "relu";
  for_each_step(c, 1, [&](int64_t at, int64_t, const Gates& x, const Gates& h, double) {
    const double sum = x[0] + h[0];
    return c.out().real[at] = relu ? (sum < 0 ? 0 : sum) : std::tanh(sum);
  });
}

void lstm_sequence(ReferenceContext& c) {
  std::vector<double> cell = c.tensor("cell").real;
  for_each_step(c, 4, [&](int64_t at, int64_t state, const Gates& x, const Gates& h, double) {
    const double kept = sigmoid_of(x[1] + h[1]) * cell[state];
    cell[state] = kept + sigmoid_of(x[0] + h[0]) * std::tanh(x[2] + h[2]);
    c.outputs[1].real[at] = cell[state];
    return c.out().real[at] = sigmoid_of(x[3] + h[3]) * std::tanh(cell[state]);
  });
}

void gru_sequence(ReferenceContext& c) {
  for_each_step(c, 3, [&](int64_t at, int64_t, const Gates& x, const Gates& h, double before) {
    const double update = sigmoid_of(x[1] + h[1]), candidate = std::tanh(x[2] + sigmoid_of(x[0] + h[0]) * h[2]);
    return c.out().real[at] = (1 - update) * candidate + update * before;
  });
}

}  // namespace ingot::ir::reference
