// Recurrent layers, one number after the other.
#include <cmath>

#include "ir/reference/context.h"

namespace ingot::ir::reference {
namespace {

double gate_of(long double x) { return static_cast<double>(1 / (1 + std::exp(-x))); }

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

/// Calls f(gates of the input, those of the hidden state, states, their gradients, slopes), the last of which takes the
/// gradients of the first three, one after another, for each number of each state from the last step back.
template <class F>
void for_each_step_back(const ReferenceContext& c, const std::vector<std::string>& states, F f) {
  const ReferenceTensor &input = c.tensor("input"), &gates = c.tensor("gates"), &weight = c.tensor("weight");
  const int64_t steps = input.shape[0], batch = input.shape[1], width = weight.shape[1], rows = weight.shape[0];
  if (width == 0) return;
  const size_t count = static_cast<size_t>(rows / width), kinds = c.outputs.size() - states.size();
  std::vector<std::vector<double>> carried(states.size(), std::vector<double>(batch * width));
  for (int64_t i = 0; i < steps; ++i) {
    const int64_t time = c.flag("reverse") ? steps - 1 - i : i;
    std::vector<double> slopes_of_hidden(batch * rows);
    for (int64_t n = 0; n < batch; ++n)
      for (int64_t j = 0; j < width; ++j) {
        const int64_t number = n * width + j, at = time * batch * width + number;
        std::vector<double> x, h, state, cotangent;
        for (size_t g = 0; g < count; ++g) {
          const int64_t gate = (time * batch + n) * rows + static_cast<int64_t>(g) * width + j;
          x.push_back(input.real[gate]), h.push_back(gates.real[gate]);
        }
        for (size_t s = 0; s < states.size(); ++s) {
          const ReferenceTensor* given = c.optional("grad_" + states[s]);
          state.push_back(c.tensor(states[s]).real[at]);
          cotangent.push_back((given ? given->real[at] : 0) + carried[s][number]);
        }
        std::vector<double> slopes(2 * count + states.size());
        f(x, h, state, cotangent, slopes);
        for (size_t g = 0; g < count; ++g) {
          const int64_t in_step = n * rows + static_cast<int64_t>(g) * width + j;
          for (size_t k = 0; k < kinds; ++k) c.outputs[k].real[time * batch * rows + in_step] = slopes[k * count + g];
          slopes_of_hidden[in_step] = slopes[count + g];
        }
        for (size_t s = 0; s < states.size(); ++s) carried[s][number] = slopes[2 * count + s];
      }
    for (int64_t n = 0; n < batch; ++n)
      for (int64_t k = 0; k < width; ++k) {
        long double sum = carried[0][n * width + k];
        for (int64_t row = 0; row < rows; ++row)
          sum += static_cast<long double>(slopes_of_hidden[n * rows + row]) * weight.real[row * width + k];
        carried[0][n * width + k] = static_cast<double>(sum);
      }
    for (size_t s = 0; s < states.size(); ++s)
      std::copy(carried[s].begin(), carried[s].end(), c.outputs[kinds + s].real.begin() + time * batch * width);
  }
}

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
    const double kept = gate_of(x[1] + h[1]) * cell[state];
    cell[state] = kept + gate_of(x[0] + h[0]) * std::tanh(x[2] + h[2]);
    c.outputs[1].real[at] = cell[state];
    return c.out().real[at] = gate_of(x[3] + h[3]) * std::tanh(cell[state]);
  });
}

void gru_sequence(ReferenceContext& c) {
  for_each_step(c, 3, [&](int64_t at, int64_t, const Gates& x, const Gates& h, double before) {
    const double update = gate_of(x[1] + h[1]), candidate = std::tanh(x[2] + gate_of(x[0] + h[0]) * h[2]);
    return c.out().real[at] = (1 - update) * candidate + update * before;
  });
}

// Infinities meet the factors that they meet in the gradients of the ops that a cell is made of.
void rnn_sequence_backward(ReferenceContext& c) {
  const bool relu = c.mode("nonlinearity") == "relu";
  for_each_step_back(c, {"hidden"}, [&](const Gates& x, const Gates& h, const Gates&, const Gates& g, Gates& slopes) {
    const double sum = x[0] + h[0], value = std::tanh(sum);
    slopes[0] = slopes[1] = relu ? (sum <= 0 ? 0 : g[0]) : g[0] * (1 - value * value);
  });
}

void lstm_sequence_backward(ReferenceContext& c) {
  auto back = [&](const Gates& x, const Gates& h, const Gates& states, const Gates& g, Gates& slopes) {
    const double in = gate_of(x[0] + h[0]), forget = gate_of(x[1] + h[1]), candidate = std::tanh(x[2] + h[2]),
                 out = gate_of(x[3] + h[3]), cell = std::tanh(forget * states[1] + in * candidate);
    const double of_cell = g[1] + g[0] * out * (1 - cell * cell);
    slopes[0] = slopes[4] = of_cell * candidate * (in * (1 - in));
    slopes[1] = slopes[5] = of_cell * states[1] * (forget * (1 - forget));
    slopes[2] = slopes[6] = of_cell * in * (1 - candidate * candidate);
    slopes[3] = slopes[7] = g[0] * cell * (out * (1 - out));
    slopes[9] = of_cell * forget;
  };
  for_each_step_back(c, {"hidden", "cell"}, back);
}

void gru_sequence_backward(ReferenceContext& c) {
  auto back = [&](const Gates& x, const Gates& h, const Gates& states, const Gates& g, Gates& slopes) {
    const double reset = gate_of(x[0] + h[0]), update = gate_of(x[1] + h[1]),
                 candidate = std::tanh(x[2] + reset * h[2]);
    const double kept = g[0] * update, of_sum = (g[0] - kept) * (1 - candidate * candidate);
    slopes[0] = slopes[3] = of_sum * h[2] * (reset * (1 - reset));
    slopes[1] = slopes[4] = g[0] * (states[0] - candidate) * (update * (1 - update));
    slopes[2] = of_sum, slopes[5] = of_sum * reset;
    slopes[6] = kept;
  };
  for_each_step_back(c, {"hidden"}, back);
}

}  // namespace ingot::ir::reference
