#include "eager/nn/ctc_loss.h"

#include <algorithm>
#include <limits>

#include "base/function_scope.h"
#include "eager/autograd/autograd.h"
#include "eager/call/check_values.h"
#include "eager/nn/checks.h"
#include "eager/nn/reduction.h"
#include "eager/ops/lists.h"

namespace ingot::nn::functional {
namespace {

using detail::Reduction;
using detail::shape_of;
using eager::fail;
using eager::present;

constexpr const char* kOp = "ctc_loss";
// The logarithm of a probability of 0, but finite: differences of two are no NaN, and a sum over all steps is finite.
constexpr double kNever = -1e30;

bool is_integer(DType dtype) { return !is_floating(dtype) && dtype != kBool; }

/// i64 [N], each from 0 to `most`.
Tensor lengths_of(const char* argument, const Tensor& given, const Size& rows, bool batched, const Size& most,
                  Location at) {
  if (!is_integer(given.dtype()))
    fail(kOp, argument, "a tensor of " + std::string(name_of(given.dtype())), "integers", at);
  if (given.dim() > 1 || (batched && given.dim() == 0) || given.numel() != rows.value())
    fail(kOp, argument, shape_of(given), "[" + std::to_string(rows.value()) + "], one for each row of the batch", at);
  eager::require_numbers({kOp, argument, "a length that is negative or too large", "lengths of what is given"}, given,
                         0, most + 1, at);
  return given.reshape({-1}).to(kInt64);
}

/// Rows that lie behind each other in one dim as [N, longest].
Tensor rows_of(const Tensor& joined, const Tensor& lengths, int64_t longest) {
  eager::require({kOp, "targets", "more or fewer numbers", "as many as the sum of target_lengths"},
                 lengths.sum() == joined.size(0));
  if (longest == 0) return zeros({lengths.size(0), 0}, kInt64);
  const Tensor start = (lengths.cumsum(0) - lengths).unsqueeze(1);
  const Tensor place = clamp_max(start + arange(longest), joined.size(0) - 1);
  return joined.index_select(0, place.reshape({-1})).view({lengths.size(0), longest});
}

struct Batch {
  Tensor log_probs;                      // [T, N, C]
  Tensor labels;                         // [N, S], blanks behind the ends
  Tensor input_lengths, target_lengths;  // i64 [N]
};

/// Minus the logarithms of the targets' probabilities [N]; of what has none, at least -kNever. An extended label is a
/// label or one of the blanks around and between them, L = 2 S + 1 of them; a path stays, goes on by one, or leaves the
/// blank between two labels that differ out.
Tensor negative_log_likelihood(const Batch& batch, const Tensor& running, int64_t blank) {
  const Tensor &x = batch.log_probs, &labels = batch.labels;
  const Size rows = x.size(1), count = labels.size(1), extended = 2 * count + 1;
  const int64_t steps = x.size(0);
  const Tensor last_blank = full({rows, 1}, blank, kInt64);
  Tensor label = last_blank;
  if (count != 0)
    label = cat({stack({full({rows, count}, blank, kInt64), labels}, 2).reshape({rows, 2 * count}), last_blank}, 1);
  const Tensor emitted = clamp_min(x.gather(2, label.unsqueeze(0).expand({x.size(0), rows, extended})), kNever);

  const auto behind = [&](const Tensor& t, int64_t by, Scalar fill) { return constant_pad_nd(t, {by, 0}, fill); };
  const Tensor skips = label != behind(label, 2, blank).narrow(1, 0, extended);
  const Tensor skipping = where(skips, 0.0, kNever).to(x.dtype());
  Tensor paths = where(arange(extended) == 0, 0.0, kNever).to(x.dtype()).expand({rows, extended});
  for (int64_t t = 0; t < steps; ++t) {
    const Tensor wide = behind(paths, 2, kNever);
    const Tensor by_one = logaddexp(paths, wide.narrow(1, 1, extended));
    const Tensor by_two = logaddexp(by_one, wide.narrow(1, 0, extended) + skipping);
    paths = where(running.select(0, t), by_two + emitted.select(0, t), paths);
  }
  const Tensor end = 2 * batch.target_lengths.unsqueeze(1);
  const Tensor on_label = where(end > 0, paths.gather(1, clamp_min(end - 1, 0)), kNever);
  return -logaddexp(paths.gather(1, end), on_label).squeeze(1);
}

Tensor loss_of(const TensorArg& log_probs, const TensorArg& given_targets, const Tensor& input_lengths,
               const Tensor& target_lengths, std::optional<int64_t> longest, int64_t blank, Reduction reduction,
               bool zero_infinity) {
  const Location at = log_probs.location;
  const Tensor &given = *log_probs.tensor, &targets = present(kOp, "targets", given_targets);
  const bool batched = given.dim() == 3;
  if (!batched && given.dim() != 2) fail(kOp, "log_probs", shape_of(given), "[T, N, C] or [T, C]", at);
  if (!is_floating(given.dtype()))
    fail(kOp, "log_probs", "a tensor of " + std::string(name_of(given.dtype())), "floating point numbers", at);
  if (given.numel() == 0) fail(kOp, "log_probs", shape_of(given), "elements", at);
  Batch batch;
  batch.log_probs = given.to(working_dtype(given.dtype()));
  if (!batched) batch.log_probs = batch.log_probs.unsqueeze(1);
  const Tensor& x = batch.log_probs;
  const Size rows = x.size(1);
  const int64_t classes = x.size(2).value();
  if (blank < 0 || blank >= classes)
    fail(kOp, "blank", std::to_string(blank), "a class from 0 to " + std::to_string(classes - 1), at);
  if (!is_integer(targets.dtype()))
    fail(kOp, "targets", "a tensor of " + std::string(name_of(targets.dtype())), "integers", at);
  const bool padded = targets.dim() == 2;
  if ((!padded && targets.dim() != 1) || (padded && targets.size(0) != rows))
    fail(kOp, "targets", shape_of(targets),
         "[" + std::to_string(rows.value()) + ", S], or all targets joined in one dim", at);
  batch.input_lengths = lengths_of("input_lengths", input_lengths, rows, batched, x.size(0), at);
  batch.target_lengths = lengths_of("target_lengths", target_lengths, rows, batched, targets.size(padded ? 1 : 0), at);
  Tensor labels = targets.to(kInt64);
  if (!padded) {
    // One row is as long as there are numbers.
    if (!batched) longest = targets.size(0).value();
    if (!longest) longest = batch.target_lengths.amax().item<int64_t>();
    labels = rows_of(labels, batch.target_lengths, *longest);
  }
  labels = where(arange(labels.size(1)) < batch.target_lengths.unsqueeze(1), labels, blank);
  eager::check_numbers(kOp, "targets", labels, 0, classes, at);
  batch.labels = labels;

  const Tensor running = (arange(x.size(0)).unsqueeze(1) < batch.input_lengths).unsqueeze(2);
  Tensor losses = negative_log_likelihood(batch, running, blank);
  const Tensor impossible = losses > -0.5 * kNever;
  if (GradMode::is_enabled() && x.requires_grad()) {
    // Adds 0, whose gradient is that of each step's sum of probabilities: 1, of what is given.
    const Tensor total = where(running, exp(x), 0).sum({0, 2});
    losses = losses + (total - total.detach());
  }
  losses = where(impossible, zero_infinity ? 0 : std::numeric_limits<double>::infinity(), losses);
  if (reduction == Reduction::mean) losses = losses / clamp_min(batch.target_lengths, 1);
  if (!batched) losses = losses.squeeze(0);
  return detail::reduced(losses, reduction).to(given.dtype());
}

std::optional<int64_t> most_of(const IntList& list) {
  std::optional<int64_t> most;
  for (int64_t n : list.items()) most = std::max(most.value_or(n), n);
  return most;
}
Tensor tensor_of(const IntList& list) { return tensor(std::vector<int64_t>(list.items().begin(), list.items().end())); }

}  // namespace

Tensor ctc_loss(const TensorArg& log_probs, const TensorArg& targets, const TensorArg& input_lengths,
                const TensorArg& target_lengths, int64_t blank, Word word, bool zero_infinity) {
  const FunctionScope scope(kOp, log_probs.location);
  const Reduction reduction = detail::reduction_of(kOp, word, log_probs.location);
  present(kOp, "log_probs", log_probs);
  return loss_of(log_probs, targets, present(kOp, "input_lengths", input_lengths),
                 present(kOp, "target_lengths", target_lengths), {}, blank, reduction, zero_infinity);
}
Tensor ctc_loss(const TensorArg& log_probs, const TensorArg& targets, const IntList& input_lengths,
                const IntList& target_lengths, int64_t blank, Word word, bool zero_infinity) {
  const FunctionScope scope(kOp, log_probs.location);
  const Reduction reduction = detail::reduction_of(kOp, word, log_probs.location);
  present(kOp, "log_probs", log_probs);
  return loss_of(log_probs, targets, tensor_of(input_lengths), tensor_of(target_lengths), most_of(target_lengths),
                 blank, reduction, zero_infinity);
}

}  // namespace ingot::nn::functional
