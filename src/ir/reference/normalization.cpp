// Softmax, norms and attention.
#include <algorithm>

#include "ir/reference/elementwise.h"

namespace ingot::ir::reference {
namespace {

using Row = std::vector<int64_t>;

/// exp(x - max) over their sum, or the logarithm of it, in place.
void softmax_of(std::vector<long double>& x, bool logarithm) {
  long double top = -kInfinity, sum = 0;
  for (long double v : x) top = std::isnan(v) || std::isnan(top) ? static_cast<long double>(kNaN) : std::max(top, v);
  for (long double v : x) sum += std::exp(v - top);
  for (long double& v : x) v = logarithm ? v - top - std::log(sum) : std::exp(v - top) / sum;
}

void softmax_rows(ReferenceContext& c, ReferenceTensor x, bool logarithm) {
  ReferenceTensor& out = c.out();
  Ints walked;
  if (!x.shape.empty()) walked.push_back(c.integer("dim"));
  Split split(x.shape, walked);
  std::vector<long double> row(split.walked.size());
  for (int64_t base : split.kept) {
    for (size_t i = 0; i < row.size(); ++i) row[i] = x.real[base + split.walked[i]];
    softmax_of(row, logarithm);
    for (size_t i = 0; i < row.size(); ++i) out.real[base + split.walked[i]] = static_cast<double>(row[i]);
  }
}

struct RowMoments {
  long double mean = 0, variance = 0;  // of the population
};
RowMoments row_moments(const ReferenceTensor& x, const Row& row) {
  RowMoments m;
  for (int64_t p : row) m.mean += x.real[p];
  m.mean /= static_cast<long double>(row.size());
  for (int64_t p : row) m.variance += (x.real[p] - m.mean) * (x.real[p] - m.mean);
  m.variance /= static_cast<long double>(row.size());
  return m;
}

double scaled(long double x, const ReferenceTensor* weight, const ReferenceTensor* bias, int64_t at) {
  if (weight) x *= weight->real[at];
  if (bias) x += bias->real[at];
  return static_cast<double>(x);
}

/// 16-bit floats have f32's: it computes in that.
double epsilon_of(DType dtype) { return dtype == DType::f64 ? 0x1p-52 : 0x1p-23; }

/// The rows that a norm over the last dims works on.
Split trailing(const Ints& shape, size_t count) {
  Ints walked;
  for (size_t d = shape.size() - count; d < shape.size(); ++d) walked.push_back(static_cast<int64_t>(d));
  return Split(shape, walked);
}

}  // namespace

void softmax(ReferenceContext& c) { softmax_rows(c, cast_to(c, c.tensor("self"), c.out().dtype), false); }
void log_softmax(ReferenceContext& c) { softmax_rows(c, cast_to(c, c.tensor("self"), c.out().dtype), true); }
void softmin(ReferenceContext& c) {
  ReferenceTensor x = c.tensor("input");
  for (double& v : x.real) v = -v;
  for (int64_t& v : x.integer) v = wrap_to(x.dtype, minus(0, v));
  softmax_rows(c, cast_to(c, x, c.out().dtype), false);
}

void layer_norm(ReferenceContext& c) {
  const ReferenceTensor& x = c.tensor("input");
  double eps = c.number("eps", x.dtype);
  Split split = trailing(x.shape, c.list("normalized_shape").size());
  for (int64_t base : split.kept) {
    Row row;
    for (int64_t w : split.walked) row.push_back(base + w);
    RowMoments m = row_moments(x, row);
    for (size_t i = 0; i < row.size(); ++i)
      c.out().real[row[i]] = scaled((x.real[row[i]] - m.mean) / std::sqrt(m.variance + eps), c.optional("weight"),
                                    c.optional("bias"), static_cast<int64_t>(i));
  }
}
void rms_norm(ReferenceContext& c) {
  const ReferenceTensor& x = c.tensor("input");
  double eps = c.has("eps") ? c.number("eps", x.dtype) : epsilon_of(x.dtype);
  Split split = trailing(x.shape, c.list("normalized_shape").size());
  for (int64_t base : split.kept) {
    long double squares = 0;
    for (int64_t w : split.walked) squares += static_cast<long double>(x.real[base + w]) * x.real[base + w];
    long double root = std::sqrt(squares / static_cast<long double>(split.walked.size()) + eps);
    for (size_t i = 0; i < split.walked.size(); ++i) {
      int64_t p = base + split.walked[i];
      c.out().real[p] = scaled(x.real[p] / root, c.optional("weight"), nullptr, static_cast<int64_t>(i));
    }
  }
}
/// Statistics of the batch in training, else the running ones.
void batch_norm(ReferenceContext& c) {
  const ReferenceTensor& x = c.tensor("input");
  double eps = c.number("eps", x.dtype);
  if (x.size() == 0) return;
  Ints walked;
  for (size_t d = 0; d < x.shape.size(); ++d)
    if (d != 1) walked.push_back(static_cast<int64_t>(d));
  Split split(x.shape, walked);
  for (size_t channel = 0; channel < split.kept.size(); ++channel) {
    Row row;
    for (int64_t w : split.walked) row.push_back(split.kept[channel] + w);
    RowMoments m = c.flag("training")
                       ? row_moments(x, row)
                       : RowMoments{c.tensor("running_mean").real[channel], c.tensor("running_var").real[channel]};
    for (int64_t p : row)
      c.out().real[p] = scaled((x.real[p] - m.mean) / std::sqrt(m.variance + eps), c.optional("weight"),
                               c.optional("bias"), static_cast<int64_t>(channel));
  }
}
void group_norm(ReferenceContext& c) {
  const ReferenceTensor& x = c.tensor("input");
  double eps = c.number("eps", x.dtype);
  if (x.size() == 0) return;
  int64_t channels = x.shape[1], groups = c.integer("num_groups");
  int64_t plane = x.size() / (x.shape[0] * channels), group_size = channels / groups * plane;
  for (int64_t base = 0; base < x.size(); base += group_size) {
    Row row;
    for (int64_t i = 0; i < group_size; ++i) row.push_back(base + i);
    RowMoments m = row_moments(x, row);
    for (int64_t p : row)
      c.out().real[p] = scaled((x.real[p] - m.mean) / std::sqrt(m.variance + eps), c.optional("weight"),
                               c.optional("bias"), p / plane % channels);
  }
}

/// Statistics of each channel of each sample, or the running ones.
void instance_norm(ReferenceContext& c) {
  const ReferenceTensor& x = c.tensor("input");
  double eps = c.number("eps", x.dtype);
  if (x.size() == 0) return;
  int64_t channels = x.shape[1], plane = x.size() / (x.shape[0] * channels);
  for (int64_t base = 0; base < x.size(); base += plane) {
    int64_t channel = base / plane % channels;
    Row row;
    for (int64_t i = 0; i < plane; ++i) row.push_back(base + i);
    RowMoments m = c.flag("use_input_stats")
                       ? row_moments(x, row)
                       : RowMoments{c.tensor("running_mean").real[channel], c.tensor("running_var").real[channel]};
    for (int64_t p : row)
      c.out().real[p] =
          scaled((x.real[p] - m.mean) / std::sqrt(m.variance + eps), c.optional("weight"), c.optional("bias"), channel);
  }
}

/// The mean is over `size` channels, those outside counted as 0; the squares of integers and their mean are integers.
void local_response_norm(ReferenceContext& c) {
  const ReferenceTensor& x = c.tensor("input");
  int64_t size = c.integer("size"), channels = x.shape[1];
  if (x.size() == 0) return;
  int64_t plane = x.size() / (x.shape[0] * channels);
  double alpha = c.number("alpha", c.out().dtype), beta = c.number("beta", c.out().dtype),
         k = c.number("k", c.out().dtype);
  for (int64_t p = 0; p < x.size(); ++p) {
    int64_t channel = p / plane % channels;
    long double squares = 0;
    int64_t whole = 0;
    for (int64_t at = std::max<int64_t>(channel - size / 2, 0); at < std::min(channel + (size + 1) / 2, channels);
         ++at) {
      int64_t q = p + (at - channel) * plane;
      squares += static_cast<long double>(x.at(q)) * x.at(q);
      if (!x.floating()) whole = plus(whole, wrap_to(x.dtype, times(x.integer[q], x.integer[q])));
    }
    long double mean = x.floating() ? squares / size : static_cast<long double>(whole / size);
    c.out().real[p] = static_cast<double>(x.at(p) / std::pow(k + alpha * mean, static_cast<long double>(beta)));
  }
}

namespace {

/// The operands of attention, and their matrices for each one of the result. With GQA, neighbouring query heads share a
/// head of keys and values.
class Attention {
 public:
  /// `composed`: as the ops of composed_attention give it.
  explicit Attention(ReferenceContext& c, bool composed = false)
      : query(c.tensor("query")),
        key(c.tensor("key")),
        value(c.tensor("value")),
        rows(query.shape[query.shape.size() - 2]),
        depth(query.shape.back()),
        keys(key.shape[key.shape.size() - 2]),
        width(value.shape.back()),
        scale(c.has("scale") ? c.number("scale", query.dtype)
                             : 1 / std::sqrt(std::max(static_cast<double>(depth), 1.0))),
        mask_(c.optional("attn_mask")),
        composed_(composed),
        divided_(composed && c.flag("divided")),
        causal_(c.flag("is_causal")),
        fill_(composed ? c.number("fill", query.dtype) : -kInfinity) {}

  /// For results with these dims before the rows.
  void place(const Ints& batch, bool shared_heads) {
    auto matrices = [&](const ReferenceTensor& t) {
      Ints own(t.shape.begin(), t.shape.end() - 2);
      if (!shared_heads || own.empty() || own.back() == batch.back()) return broadcast_positions(own, batch);
      Ints outer = batch;
      outer.back() = own.back();
      std::vector<int64_t> heads = broadcast_positions(own, outer), result;
      for (int64_t h : heads) result.insert(result.end(), batch.back() / own.back(), h);
      return result;
    };
    q = matrices(query), k = matrices(key), v = matrices(value);
    Ints scores_shape = batch;
    scores_shape.push_back(rows);
    scores_shape.push_back(keys);
    if (mask_) mask_at_ = broadcast_positions(mask_->shape, scores_shape);
  }

  /// Of row i of matrix b; nothing where it has nothing to look at.
  std::vector<long double> probabilities(size_t b, int64_t i) const {
    std::vector<long double> scores(keys);
    for (int64_t j = 0; j < keys; ++j) {
      for (int64_t e = 0; e < depth; ++e)
        scores[j] += static_cast<long double>(query.real[(q[b] * rows + i) * depth + e]) *
                     key.real[(k[b] * keys + j) * depth + e];
      scores[j] = divided_ ? scores[j] / scale : scores[j] * scale;
      if (causal_ && j > i) scores[j] = -kInfinity;
      if (!mask_) continue;
      int64_t at = mask_at_[(static_cast<int64_t>(b) * rows + i) * keys + j];
      if (mask_->floating())
        scores[j] += mask_->real[at];
      else if (!mask_->integer[at])
        scores[j] = fill_;
    }
    if (!composed_ && std::all_of(scores.begin(), scores.end(), [](long double s) { return s == -kInfinity; }))
      return {};
    softmax_of(scores, false);
    return scores;
  }

  /// Whether row i of matrix b does not see key j.
  bool hidden(size_t b, int64_t i, int64_t j) const {
    if (causal_ && j > i) return true;
    if (!mask_) return false;
    const int64_t at = mask_at_[(static_cast<int64_t>(b) * rows + i) * keys + j];
    return mask_->floating() ? mask_->real[at] == -kInfinity : !mask_->integer[at];
  }

  const ReferenceTensor &query, &key, &value;
  const int64_t rows, depth, keys, width;
  const double scale;
  std::vector<int64_t> q, k, v;

 private:
  const ReferenceTensor* mask_;
  const bool composed_, divided_, causal_;
  const double fill_;  // the score of what the mask hides
  std::vector<int64_t> mask_at_;
};

void attend(ReferenceContext& c, Attention a) {
  ReferenceTensor& out = c.out();
  INGOT_CHECK(out.shape.size() >= 2);
  a.place({out.shape.begin(), out.shape.end() - 2}, c.flag("enable_gqa"));
  for (size_t b = 0; b < a.q.size(); ++b)
    for (int64_t i = 0; i < a.rows; ++i) {
      const std::vector<long double> scores = a.probabilities(b, i);
      if (scores.empty()) continue;
      for (int64_t e = 0; e < a.width; ++e) {
        long double sum = 0;
        for (int64_t j = 0; j < a.keys; ++j) sum += scores[j] * a.value.real[(a.v[b] * a.keys + j) * a.width + e];
        out.real[(static_cast<int64_t>(b) * a.rows + i) * a.width + e] = static_cast<double>(sum);
      }
    }
}

}  // namespace

/// softmax(query key' scale + mask) value. A row with nothing to look at gives 0.
void scaled_dot_product_attention(ReferenceContext& c) { attend(c, Attention(c)); }
void composed_attention(ReferenceContext& c) { attend(c, Attention(c, true)); }

/// Every probability p = e^s / sum moves with its score by p and with all scores of its row by -p times theirs. What is
/// hidden has no part in it, NaN as well.
void scaled_dot_product_attention_backward(ReferenceContext& c) {
  const ReferenceTensor& slope = c.tensor("grad_output");
  Attention a(c);
  a.place({slope.shape.begin(), slope.shape.end() - 2}, c.flag("enable_gqa"));
  std::vector<long double> sums[3];
  for (size_t i = 0; i < 3; ++i) sums[i].resize(c.outputs[i].real.size());
  for (size_t b = 0; b < a.q.size(); ++b)
    for (int64_t i = 0; i < a.rows; ++i) {
      std::vector<long double> p = a.probabilities(b, i);
      p.resize(a.keys);  // a row that attends to nothing: zeros, which an infinite operand makes NaN
      const double* g = &slope.real[(static_cast<int64_t>(b) * a.rows + i) * a.width];
      std::vector<long double> change(a.keys);  // of the result, with each probability
      for (int64_t j = 0; j < a.keys; ++j)
        for (int64_t e = 0; e < a.width; ++e) {
          const int64_t at = (a.v[b] * a.keys + j) * a.width + e;
          if (!a.hidden(b, i, j)) change[j] += static_cast<long double>(g[e]) * a.value.real[at];
          sums[2][at] += p[j] * g[e];
        }
      for (int64_t j = 0; j < a.keys; ++j) {
        long double score = 0;
        for (int64_t other = 0; other < a.keys && !a.hidden(b, i, j); ++other)
          score += p[other] * ((other == j) - p[j]) * change[other];
        for (int64_t e = 0; e < a.depth; ++e) {
          const int64_t row = (a.q[b] * a.rows + i) * a.depth + e, at = (a.k[b] * a.keys + j) * a.depth + e;
          sums[0][row] += score * a.scale * a.key.real[at];
          sums[1][at] += score * a.scale * a.query.real[row];
        }
      }
    }
  for (size_t i = 0; i < 3; ++i) std::copy(sums[i].begin(), sums[i].end(), c.outputs[i].real.begin());
}

}  // namespace ingot::ir::reference
