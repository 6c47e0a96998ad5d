// Losses. Classes lie in dim 1, or in the only dim.
#include "ir/reference/elementwise.h"

namespace ingot::ir::reference {
namespace {

/// Losses one by one and the weights that their mean divides by.
void reduce_losses(ReferenceContext& c, const std::vector<long double>& losses, long double divisor) {
  if (c.mode("reduction") == "none") {
    for (size_t i = 0; i < losses.size(); ++i) c.out().real[i] = static_cast<double>(losses[i]);
    return;
  }
  long double sum = 0;
  for (long double l : losses) sum += l;
  c.out().real[0] = static_cast<double>(c.mode("reduction") == "sum" ? sum : sum / divisor);
}

/// An optional weight, broadcast to the input; 1 where it is absent.
std::vector<long double> broadcast_values(const ReferenceContext& c, std::string_view name, long double otherwise) {
  const Ints& shape = c.tensor("input").shape;
  std::vector<long double> values(product(shape), otherwise);
  const ReferenceTensor* given = c.optional(name);
  if (!given) return values;
  std::vector<int64_t> at = broadcast_positions(given->shape, shape);
  for (size_t i = 0; i < values.size(); ++i) values[i] = given->at(at[i]);
  return values;
}

/// loss(position, input, target) for every element of both together.
template <class Loss>
void pair_loss(ReferenceContext& c, Loss loss) {
  const ReferenceTensor &input = c.tensor("input"), &target = c.tensor("target");
  Ints shape(std::max(input.shape.size(), target.shape.size()), 1);
  for (const ReferenceTensor* t : {&input, &target})
    for (size_t d = 0; d < t->shape.size(); ++d) {
      int64_t& size = shape[shape.size() - t->shape.size() + d];
      if (t->shape[d] != 1) size = t->shape[d];
    }
  std::vector<int64_t> a = broadcast_positions(input.shape, shape), b = broadcast_positions(target.shape, shape);
  std::vector<long double> losses(a.size());
  for (size_t i = 0; i < a.size(); ++i) losses[i] = loss(i, input.at(a[i]), target.at(b[i]));
  int64_t batch = input.shape.empty() ? 1 : input.shape[0];
  reduce_losses(c, losses, static_cast<long double>(c.mode("reduction") == "batchmean" ? batch : product(shape)));
}

/// Log-probabilities by sample and class.
struct Scores {
  int64_t classes, samples, plane;
  std::vector<long double> value;

  explicit Scores(const ReferenceTensor& input) {
    bool single = input.shape.size() == 1;
    classes = input.shape[single ? 0 : 1];
    int64_t batch = single ? 1 : input.shape[0];
    plane = 1;
    for (size_t d = 2; d < input.shape.size(); ++d) plane *= input.shape[d];
    samples = batch * plane;
    for (double x : input.real) value.push_back(x);
  }
  int64_t at(int64_t sample, int64_t k) const { return (sample / plane * classes + k) * plane + sample % plane; }
  void log_softmax() {
    for (int64_t s = 0; s < samples; ++s) {
      long double top = -kInfinity, sum = 0;
      for (int64_t k = 0; k < classes; ++k)
        top = value[at(s, k)] > top || std::isnan(value[at(s, k)]) ? value[at(s, k)] : top;
      for (int64_t k = 0; k < classes; ++k) sum += std::exp(value[at(s, k)] - top);
      for (int64_t k = 0; k < classes; ++k) value[at(s, k)] -= top + std::log(sum);
    }
  }
};

/// Loss of class indices; `smoothing` spreads that share of each target over all classes.
void index_loss(ReferenceContext& c, const Scores& scores, double smoothing) {
  const ReferenceTensor& target = c.tensor("target");
  const ReferenceTensor* weight = c.optional("weight");
  int64_t ignored = c.integer("ignore_index");
  std::vector<long double> losses(scores.samples);
  long double total = 0;
  for (int64_t s = 0; s < scores.samples; ++s) {
    int64_t k = target.integer[s];
    if (k == ignored) continue;
    if (k < 0 || k >= scores.classes)
      c.refuse("target", std::to_string(k), "a class in 0.." + std::to_string(scores.classes - 1));
    auto share = [&](int64_t j) { return (weight ? weight->real[j] : 1) * -scores.value[scores.at(s, j)]; };
    long double smooth = 0;
    if (smoothing > 0)
      for (int64_t j = 0; j < scores.classes; ++j) smooth += share(j);
    losses[s] = (1 - static_cast<long double>(smoothing)) * share(k) +
                smoothing / static_cast<long double>(scores.classes) * smooth;
    total += weight ? weight->real[k] : 1;
  }
  reduce_losses(c, losses, total);
}

void probability_loss(ReferenceContext& c, const Scores& scores, double smoothing) {
  const ReferenceTensor& target = c.tensor("target");
  const ReferenceTensor* weight = c.optional("weight");
  std::vector<long double> losses(scores.samples);
  for (int64_t s = 0; s < scores.samples; ++s)
    for (int64_t k = 0; k < scores.classes; ++k) {
      long double share = target.real[scores.at(s, k)] * (1 - static_cast<long double>(smoothing)) +
                          smoothing / static_cast<long double>(scores.classes);
      losses[s] -= share * scores.value[scores.at(s, k)] * (weight ? weight->real[k] : 1);
    }
  reduce_losses(c, losses, static_cast<long double>(scores.samples));
}

}  // namespace

void mse_loss(ReferenceContext& c) {
  pair_loss(c, [](size_t, long double x, long double y) { return (x - y) * (x - y); });
}
void l1_loss(ReferenceContext& c) {
  pair_loss(c, [](size_t, long double x, long double y) { return std::fabs(x - y); });
}
void smooth_l1_loss(ReferenceContext& c) {
  long double beta = c.number("beta", c.out().dtype);
  pair_loss(c, [=](size_t, long double x, long double y) {
    long double apart = std::fabs(x - y);
    return apart < beta ? apart * apart / (2 * beta) : apart - beta / 2;
  });
}
void huber_loss(ReferenceContext& c) {
  long double delta = c.number("delta", c.out().dtype);
  pair_loss(c, [=](size_t, long double x, long double y) {
    long double apart = std::fabs(x - y);
    return apart <= delta ? apart * apart / 2 : delta * (apart - delta / 2);
  });
}
void soft_margin_loss(ReferenceContext& c) {
  pair_loss(c, [](size_t, long double x, long double y) { return std::log1p(std::exp(-x * y)); });
}
void kl_div(ReferenceContext& c) {
  bool logarithm = c.flag("log_target");
  pair_loss(c, [=](size_t, long double x, long double y) {
    if (logarithm) return std::exp(y) * (y - x);
    return (y == 0 ? 0 : y * std::log(y)) - y * x;
  });
}
void binary_cross_entropy(ReferenceContext& c) {
  std::vector<long double> weights = broadcast_values(c, "weight", 1);
  pair_loss(c, [&](size_t i, long double x, long double y) {
    long double yes = std::max<long double>(std::log(x), -100), no = std::max<long double>(std::log1p(-x), -100);
    return -weights[i] * (y * yes + (1 - y) * no);
  });
}
/// -weight * (pos_weight * y * log(sigmoid(x)) + (1 - y) * log(1 - sigmoid(x))) in PyTorch's form, which says what
/// infinite logits give: log(1 - sigmoid(x)) = log(sigmoid(x)) - x.
void binary_cross_entropy_with_logits(ReferenceContext& c) {
  std::vector<long double> weights = broadcast_values(c, "weight", 1), positive = broadcast_values(c, "pos_weight", 1);
  const bool given = c.has("pos_weight");
  pair_loss(c, [&](size_t i, long double x, long double y) {
    long double minus_log_sigmoid = std::max<long double>(-x, 0) + std::log1p(std::exp(-std::fabs(x)));
    const long double of_yes = given ? 1 + (positive[i] - 1) * y : 1;
    return weights[i] * ((1 - y) * x + of_yes * minus_log_sigmoid);
  });
}
void nll_loss(ReferenceContext& c) { index_loss(c, Scores(c.tensor("input")), 0); }
void cross_entropy(ReferenceContext& c) {
  Scores scores(c.tensor("input"));
  scores.log_softmax();
  double smoothing = c.number("label_smoothing");
  if (c.tensor("target").floating())
    probability_loss(c, scores, smoothing);
  else
    index_loss(c, scores, smoothing);
}

}  // namespace ingot::ir::reference
