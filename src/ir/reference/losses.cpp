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
  c.out().real[0] = static_cast<double>(c.mode("reduction") == "mean" ? sum / divisor : sum);
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
  const ReferenceTensor &input = c.tensor("input"), &target = c.tensor("target");
  Ints shape(std::max(input.shape.size(), target.shape.size()), 1);
  for (const ReferenceTensor* t : {&input, &target})
    for (size_t d = 0; d < t->shape.size(); ++d) {
      int64_t& size = shape[shape.size() - t->shape.size() + d];
      if (t->shape[d] != 1) size = t->shape[d];
    }
  std::vector<int64_t> a = broadcast_positions(input.shape, shape), b = broadcast_positions(target.shape, shape);
  std::vector<long double> losses(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    long double apart = static_cast<long double>(input.at(a[i])) - target.at(b[i]);
    losses[i] = apart * apart;
  }
  reduce_losses(c, losses, static_cast<long double>(losses.size()));
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
