#include "cli/kernel_cases.h"

#include <cmath>
#include <limits>

namespace ingot::cli {
namespace {

Tensor exp_of(const Tensor& x) { return exp(x); }
Tensor tanh_of(const Tensor& x) { return tanh(x); }
Tensor sigmoid_of(const Tensor& x) { return sigmoid(x); }
Tensor gelu_of(const Tensor& x) { return gelu(x); }

std::vector<Sizes> one_matrix(const Sizes& s) { return {s}; }

Tensor chain8(const Tensors& t, const Sizes&) {
  const Tensor &x = t[0], &y = t[1];
  Tensor z = x * y + 0.5;
  z = sigmoid(z) * x;
  z = tanh(z - y);
  return z * 2 + y;
}

double elements_of(const Sizes& s) {
  double n = 1;
  for (int64_t size : s) n *= static_cast<double>(size);
  return n;
}

// Sizes m, k, n.
double product_operations(const Sizes& s) { return 2 * elements_of(s); }
double product_bytes(const Sizes& s, double element) {
  const auto m = static_cast<double>(s[0]), k = static_cast<double>(s[1]), n = static_cast<double>(s[2]);
  return (m * k + k * n + m * n) * element;
}

// Sizes channels, results, height and width, kernel, stride, groups; then a bias, a relu6 and the largest of each
// channel: inside a graph, where images lie with their channels innermost. The largest read the results once more:
// those bytes are in the floor.
std::vector<Sizes> convolution_operands(const Sizes& s) {
  return {{1, s[2], s[2], s[0]}, {s[1], s[0] / s[5], s[3], s[3]}, {s[1]}};
}
Tensor convolution(const Tensors& t, const Sizes& s) {
  const Tensor y = conv2d(t[0].permute({0, 3, 1, 2}), t[1], t[2], s[4], s[3] / 2, 1, s[5]);
  return relu6(y).amax({2, 3});
}
Work convolution_work(const Sizes& s, double element) {
  const int64_t size = (s[2] + 2 * (s[3] / 2) - s[3]) / s[4] + 1;
  const double results = elements_of({s[1], size, size}), taps = elements_of({s[0] / s[5], s[3], s[3]});
  const double read = elements_of({s[0], s[2], s[2]}) + elements_of({s[1]}) * taps;
  return {2 * results * taps, {}, (read + 2 * results) * element};
}

// Sizes heads, positions, depth, causal.
Work attention_work(const Sizes& s, double element) {
  const auto heads = static_cast<double>(s[0]), n = static_cast<double>(s[1]), depth = static_cast<double>(s[2]);
  const double scores = heads * (s[3] ? n * (n + 1) / 2 : n * n);
  return {4 * scores * depth, {{exp_of, scores}}, 4 * heads * n * depth * element};
}

/// Sigmoid and tanh take an exponential each; what is read of the weights again and again lies in the caches.
Work lstm_work(const Sizes& s, double element) {
  const auto rows = static_cast<double>(s[0] * s[1]), width = static_cast<double>(s[2]);
  return {rows * width * (16 * width + 20), {{exp_of, 5 * rows * width}}, (2 * rows + 8 * width) * width * element};
}

std::vector<KernelBench> table() {
  const auto cubes = [](DType dtype, double tolerance) {
    std::vector<KernelCase> cases;
    for (int64_t n : {512, 1024, 2048}) cases.push_back({{n, n, n}, dtype, tolerance});
    return cases;
  };
  std::vector<KernelCase> matmuls = cubes(kFloat32, 1e-5);
  for (const KernelCase& c : cubes(kBFloat16, 1e-2)) matmuls.push_back(c);

  std::vector<KernelBench> list;
  list.push_back({"chain8",
                  "elements",
                  0.85,
                  {{{16 << 20}}, {{64 << 10}}},
                  [](const Sizes& s) {
                    return std::vector<Sizes>{s, s};
                  },
                  0,
                  chain8,
                  [](const Sizes& s, double element) {
                    const double n = elements_of(s);
                    return Work{6 * n, {{sigmoid_of, n}, {tanh_of, n}}, 3 * n * element};
                  }});
  list.push_back({"softmax",
                  "rows, columns",
                  0.8,
                  {{{16 << 10, 1024}}, {{64 << 10, 4}}},
                  one_matrix,
                  0,
                  [](const Tensors& t, const Sizes&) { return softmax(t[0], -1); },
                  [](const Sizes& s, double element) {
                    const double n = elements_of(s);
                    return Work{4 * n, {{exp_of, n}}, 2 * n * element};
                  }});
  list.push_back({"layer_norm",
                  "rows, columns",
                  0.8,
                  {{{16 << 10, 1024}}},
                  [](const Sizes& s) {
                    return std::vector<Sizes>{s, {s[1]}, {s[1]}};
                  },
                  2,
                  [](const Tensors& t, const Sizes& s) { return layer_norm(t[0], {s[1]}, t[1], t[2]); },
                  [](const Sizes& s, double element) {
                    const double n = elements_of(s);
                    return Work{8 * n, {}, 2 * n * element};
                  }});
  const auto reads = [](const Sizes& s, double element) {
    const double n = elements_of(s);
    return Work{n, {}, n * element, CeilingLoop::read};
  };
  list.push_back({"rowsum",
                  "rows, columns",
                  0.8,
                  {{{16 << 10, 1024}}, {{64 << 10, 4}}},
                  one_matrix,
                  0,
                  [](const Tensors& t, const Sizes&) { return sum(t[0], {1}); },
                  reads});
  list.push_back({"colsum",
                  "rows, columns",
                  0.8,
                  {{{16 << 10, 1024}}, {{4, 64 << 10}}},
                  one_matrix,
                  0,
                  [](const Tensors& t, const Sizes&) { return sum(t[0], {0}); },
                  reads});
  list.push_back({"fullsum",
                  "elements",
                  0.8,
                  {{{16 << 20}}},
                  one_matrix,
                  0,
                  [](const Tensors& t, const Sizes&) { return sum(t[0]); },
                  reads});
  list.push_back({"transpose_copy",
                  "rows, columns",
                  0.8,
                  {{{4096, 4096}, kFloat32, 0}},
                  one_matrix,
                  0,
                  [](const Tensors& t, const Sizes&) { return t[0].t().contiguous(); },
                  [](const Sizes& s, double element) {
                    return Work{0, {}, 2 * elements_of(s) * element, CeilingLoop::copy_lines};
                  }});
  const auto product_operands = [](const Sizes& s) { return std::vector<Sizes>{{s[0], s[1]}, {s[1], s[2]}}; };
  const auto product_work = [](const Sizes& s, double element) {
    return Work{product_operations(s), {}, product_bytes(s, element)};
  };
  list.push_back({"matmul", "m, k, n", 0.92, matmuls, product_operands, 0,
                  [](const Tensors& t, const Sizes&) { return matmul(t[0], t[1]); }, product_work});
  list.push_back({"linear_gelu",
                  "m, k, n",
                  0.9,
                  {{{512, 768, 3072}}},
                  [](const Sizes& s) {
                    return std::vector<Sizes>{{s[0], s[1]}, {s[2], s[1]}, {s[2]}};
                  },
                  2,
                  [](const Tensors& t, const Sizes&) { return gelu(linear(t[0], t[1], t[2])); },
                  [](const Sizes& s, double element) {
                    const double outputs = static_cast<double>(s[0]) * static_cast<double>(s[2]);
                    return Work{product_operations(s), {{gelu_of, outputs}}, product_bytes(s, element)};
                  }});
  // Stacks of matrices that nothing comes again of: products of one column, single rows, and small ones.
  list.push_back({"bmm",
                  "batch, m, k, n",
                  0.5,
                  {{{256, 1, 512, 1}},
                   {{2048, 1, 128, 1}},
                   {{512, 4, 128, 1}},
                   {{256, 64, 512, 1}},
                   {{1, 1024, 512, 1}},
                   {{64, 1, 64, 512}},
                   {{64, 1, 512, 64}},
                   {{64, 32, 32, 32}},
                   {{16384, 2, 2, 2}}},
                  [](const Sizes& s) {
                    return std::vector<Sizes>{{s[0], s[1], s[2]}, {s[0], s[2], s[3]}};
                  },
                  0,
                  [](const Tensors& t, const Sizes&) { return bmm(t[0], t[1]); },
                  [](const Sizes& s, double element) {
                    const Sizes one{s[1], s[2], s[3]};
                    const auto batch = static_cast<double>(s[0]);
                    return Work{batch * product_operations(one), {}, batch * product_bytes(one, element)};
                  }});
  list.push_back({"gemv",
                  "m, k, n",
                  0.9,
                  {{{1, 4096, 4096}},
                   {{1, 4096, 8192}, kFloat16, 2e-3},
                   {{1, 4096, 8192}, kBFloat16, 1e-2},
                   {{1, 4096, 16384}, kFloat32, 1e-5, kInt8}},
                  [](const Sizes& s) {
                    return std::vector<Sizes>{{s[0], s[1]}, {s[2], s[1]}};
                  },
                  1,
                  [](const Tensors& t, const Sizes&) { return linear(t[0], t[1].to(t[0].dtype())); },
                  [](const Sizes& s, double element) {
                    return Work{product_operations(s), {}, product_bytes(s, element), CeilingLoop::read};
                  }});
  // The layers of transformers from one token to a short prompt. Of several weights, which together are larger than the
  // caches, each is read from memory.
  const auto rows = [] {
    std::vector<KernelCase> cases;
    for (const Sizes& layer : {Sizes{768, 3072, 1}, {3072, 768, 1}, {768, 3072, 16}})
      for (int64_t m : {1, 2, 4, 8, 16, 32, 64, 128, 256}) cases.push_back({{m, layer[0], layer[1], layer[2]}});
    return cases;
  };
  list.push_back({"linear", "m, k, n, weights", 0.9, rows(),
                  [](const Sizes& s) {
                    std::vector<Sizes> operands{{s[0], s[1]}};
                    operands.resize(1 + static_cast<size_t>(s[3]), {s[2], s[1]});
                    return operands;
                  },
                  -1,
                  [](const Tensors& t, const Sizes&) {
                    Tensor y = linear(t[0], t[1]);
                    for (size_t i = 2; i < t.size(); ++i) y = y + linear(t[0], t[i]);
                    return y;
                  },
                  [](const Sizes& s, double element) {
                    const auto weights = static_cast<double>(s[3]);
                    return Work{weights * product_operations({s[0], s[1], s[2]}),
                                {},
                                weights * product_bytes({s[0], s[1], s[2]}, element),
                                CeilingLoop::read};
                  }});
  // The gradients of their weights: a product over all positions.
  list.push_back({"linear_backward",
                  "positions, inputs, results",
                  0.9,
                  {{{256, 128, 512}},
                   {{1024, 128, 512}},
                   {{4096, 128, 512}},
                   {{4096, 512, 128}},
                   {{4096, 384, 128}},
                   {{1024, 768, 3072}},
                   {{4096, 768, 3072}}},
                  [](const Sizes& s) {
                    return std::vector<Sizes>{{s[0], s[1]}, {s[0], s[2]}};
                  },
                  0,
                  [](const Tensors& t, const Sizes&) { return matmul(t[0].t(), t[1]); },
                  [](const Sizes& s, double element) {
                    const Sizes product{s[1], s[0], s[2]};
                    return Work{product_operations(product), {}, product_bytes(product, element)};
                  }});
  const char* const convolution_sizes = "channels, results, height and width, kernel, stride, groups";
  list.push_back({"conv",
                  convolution_sizes,
                  0.9,
                  {{{64, 64, 56, 3, 1, 1}},
                   {{128, 128, 28, 3, 1, 1}},
                   {{256, 256, 14, 3, 1, 1}},
                   {{512, 512, 7, 3, 1, 1}},
                   {{256, 64, 56, 1, 1, 1}},
                   {{24, 144, 56, 1, 1, 1}},
                   {{3, 64, 224, 7, 2, 1}}},
                  convolution_operands,
                  2,
                  convolution,
                  convolution_work});
  list.push_back(
      {"depthwise",
       convolution_sizes,
       0.8,
       {{{96, 96, 112, 3, 2, 96}}, {{144, 144, 56, 3, 1, 144}}, {{384, 384, 14, 3, 1, 384}}, {{96, 96, 56, 7, 1, 96}}},
       convolution_operands,
       2,
       convolution,
       convolution_work});
  list.push_back({"attention",
                  "heads, positions, depth, causal",
                  0.75,
                  {{{12, 512, 64, 0}}, {{12, 512, 64, 1}}},
                  [](const Sizes& s) {
                    return std::vector<Sizes>(3, {1, s[0], s[1], s[2]});
                  },
                  0,
                  [](const Tensors& t, const Sizes& s) {
                    return scaled_dot_product_attention(t[0], t[1], t[2], {}, 0.0, s[3] != 0);
                  },
                  attention_work});
  list.push_back(
      {"attention_by_hand", list.back().sizes, list.back().target, list.back().cases, list.back().operands, 0,
       [](const Tensors& t, const Sizes& s) {
         Tensor scores = matmul(t[0], t[1].transpose(-2, -1)) / std::sqrt(static_cast<double>(s[2]));
         if (s[3])
           scores = scores.masked_fill(~ones({s[1], s[1]}, kBool).tril(), -std::numeric_limits<double>::infinity());
         return matmul(softmax(scores, -1), t[2]);
       },
       attention_work});
  // A token after many: every key and value is read once.
  list.push_back({"one_query",
                  "heads, keys, depth",
                  0.8,
                  {{{12, 1024, 64}}, {{12, 4096, 64}}},
                  [](const Sizes& s) {
                    return std::vector<Sizes>{{1, s[0], 1, s[2]}, {1, s[0], s[1], s[2]}, {1, s[0], s[1], s[2]}};
                  },
                  0,
                  [](const Tensors& t, const Sizes&) { return scaled_dot_product_attention(t[0], t[1], t[2]); },
                  [](const Sizes& s, double element) {
                    const double n = elements_of(s);
                    return Work{4 * n, {}, 2 * n * element, CeilingLoop::read};
                  }});
  // Query, key and value from a weight each, or from one of all three, and attention over them.
  list.push_back({"query_key_value",
                  "positions, heads, depth, weights",
                  0.8,
                  {{{1, 12, 64, 3}},
                   {{1, 12, 64, 1}},
                   {{16, 12, 64, 3}},
                   {{16, 12, 64, 1}},
                   {{128, 12, 64, 3}},
                   {{128, 12, 64, 1}},
                   {{512, 12, 64, 3}},
                   {{512, 12, 64, 1}}},
                  [](const Sizes& s) {
                    const int64_t width = s[1] * s[2];
                    std::vector<Sizes> operands{{s[0], width}};
                    operands.resize(1 + static_cast<size_t>(s[3]), {3 * width / s[3], width});
                    return operands;
                  },
                  -1,
                  [](const Tensors& t, const Sizes& s) {
                    Tensors parts;
                    for (size_t i = 1; i < t.size(); ++i) parts.push_back(linear(t[0], t[i]));
                    if (parts.size() == 1) parts = chunk(parts[0], 3, 1);
                    for (Tensor& part : parts) part = part.view({1, s[0], s[1], s[2]}).transpose(1, 2);
                    return scaled_dot_product_attention(parts[0], parts[1], parts[2]);
                  },
                  [](const Sizes& s, double element) {
                    const int64_t width = s[1] * s[2];
                    Work work = attention_work({s[1], s[0], s[2], 0}, element);
                    work.operations += product_operations({s[0], width, 3 * width});
                    work.bytes = product_bytes({s[0], width, 3 * width}, element);
                    return work;
                  }});
  list.push_back({"lstm",
                  "steps, batch, width",
                  0.5,
                  {{{256, 1, 32}}, {{256, 1, 64}}, {{256, 1, 128}}, {{256, 1, 512}}, {{256, 16, 64}}, {{256, 32, 256}}},
                  [](const Sizes& s) {
                    return std::vector<Sizes>{{s[0], s[1], s[2]}, {4 * s[2], s[2]}, {4 * s[2], s[2]}};
                  },
                  2,
                  [](const Tensors& t, const Sizes& s) {
                    const Tensor state = zeros({s[1], s[2]}, t[0].dtype());
                    return std::get<0>(lstm_sequence(linear(t[0], t[1]), state, state, t[2]));
                  },
                  lstm_work});
  list.push_back({"attention_backward",
                  "heads, positions, depth, causal",
                  0.6,
                  {{{12, 512, 64, 0}}, {{12, 512, 64, 1}}, {{32, 128, 32, 1}}},
                  [](const Sizes& s) {
                    return std::vector<Sizes>(4, {1, s[0], s[1], s[2]});
                  },
                  0,
                  // The sum of the three gradients; compiled, the forward pass is not computed.
                  [](const Tensors& t, const Sizes& s) {
                    const EnableGradGuard records;
                    Tensors x;
                    for (int i : {0, 1, 2}) x.push_back(t[i].detach().requires_grad_());
                    const Tensor y = scaled_dot_product_attention(x[0], x[1], x[2], {}, 0.0, s[3] != 0);
                    const auto gradients = autograd::grad({y}, x, {t[3]});
                    return gradients[0] + gradients[1] + gradients[2];
                  },
                  [](const Sizes& s, double element) {
                    const auto heads = static_cast<double>(s[0]), n = static_cast<double>(s[1]),
                               depth = static_cast<double>(s[2]);
                    const double scores = heads * (s[3] ? n * (n + 1) / 2 : n * n);
                    return Work{10 * scores * depth, {{exp_of, scores}}, 11 * heads * n * depth * element};
                  }});
  list.push_back({"embedding_backward",
                  "rows of the table, width, positions",
                  0.5,
                  {{{256, 128, 1024}}, {{256, 128, 16384}}, {{8192, 512, 8192}}, {{32768, 768, 1024}}},
                  [](const Sizes& s) {
                    return std::vector<Sizes>{{s[2], s[1]}, {s[2]}, {s[0], s[1]}};
                  },
                  1,
                  // More positions at the first rows than at the last, as in a text. Rows are a power of two, so that
                  // positions are the same in f64.
                  [](const Tensors& t, const Sizes& s) {
                    const EnableGradGuard records;
                    const Tensor at = (t[1].abs() * (static_cast<double>(s[0]) / 4)).clamp_max(s[0] - 1).to(kInt64);
                    const Tensor table = t[2].detach().requires_grad_();
                    return autograd::grad({embedding(table, at)}, {table}, {t[0]})[0];
                  },
                  [](const Sizes& s, double element) {
                    const double read = elements_of({s[2], s[1]}), positions = elements_of({s[2]});
                    return Work{read, {}, (read + elements_of({s[0], s[1]}) + positions) * element + 8 * positions};
                  }});
  return list;
}

}  // namespace

const std::vector<KernelBench>& kernel_benches() {
  static const std::vector<KernelBench> list = table();
  return list;
}

const KernelBench* find_kernel_bench(const std::string& name) {
  for (const KernelBench& bench : kernel_benches())
    if (name == bench.name) return &bench;
  return nullptr;
}

}  // namespace ingot::cli
