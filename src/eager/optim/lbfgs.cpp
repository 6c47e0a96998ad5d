#include "eager/optim/lbfgs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/float_environment.h"
#include "eager/autograd/autograd.h"
#include "eager/call/call.h"
#include "eager/ops/factories.h"
#include "eager/ops/functions.h"
#include "eager/optim/state_reader.h"

namespace ingot::optim {
namespace {

int64_t most_evaluations(const LBFGSOptions& o) { return o.max_eval.value_or(o.max_iter + o.max_iter / 4); }
double largest(const Tensor& vector) { return vector.numel() ? vector.abs().max().item<double>() : 0; }

/// The lowest place of the cubic through two places of a line with their losses and slopes, within these bounds; their
/// middle where it has none.
struct Cubic {
  double x1, f1, g1, x2, f2, g2;

  double lowest(double from, double to) const {
    const double d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2), square = d1 * d1 - g1 * g2;
    if (!(square >= 0)) return (from + to) / 2;
    const double d2 = std::sqrt(square);
    const double x = x1 <= x2 ? x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
                              : x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2));
    return std::min(std::max(x, from), to);
  }
};

}  // namespace

LBFGS::LBFGS(const std::vector<Tensor>& params, const LBFGSOptions& options, Location location) : options_(options) {
  check(options_, location);
  options_.max_eval = most_evaluations(options);
  check_params(params, location);
  add_params(params);
}

void LBFGS::check(const LBFGSOptions& o, Location location) {
  auto refuse = [&](const char* option, const std::string& got, const char* expected) {
    eager::fail("LBFGS", option, got, expected, location);
  };
  for (auto [option, value] :
       {std::pair{"lr", o.lr}, {"tolerance_grad", o.tolerance_grad}, {"tolerance_change", o.tolerance_change}})
    if (!(value >= 0)) refuse(option, short_text(value), "no negative number");
  for (auto [option, value] :
       {std::pair{"max_iter", o.max_iter}, {"max_eval", o.max_eval.value_or(1)}, {"history_size", o.history_size}})
    if (value < 1) refuse(option, std::to_string(value), "a positive number");
  if (o.line_search_fn && *o.line_search_fn != "strong_wolfe")
    refuse("line_search_fn", '"' + *o.line_search_fn + '"', "\"strong_wolfe\", or none");
}

std::vector<Entry> LBFGS::entries(LBFGSOptions& o, bool& strong_wolfe) {
  o.max_eval = most_evaluations(o);
  return {{"lr", &o.lr},
          {"max_iter", &o.max_iter},
          {"max_eval", &*o.max_eval},
          {"tolerance_grad", &o.tolerance_grad},
          {"tolerance_change", &o.tolerance_change},
          {"history_size", &o.history_size},
          {"line_search_fn", &strong_wolfe}};
}
std::vector<Entry> LBFGS::entries(State& s) {
  std::vector<Entry> all = {{"func_evals", &s.func_evals}, {"n_iter", &s.n_iter}};
  if (s.n_iter == 0) return all;
  for (const Entry& e : {Entry{"t", &s.t},
                         {"prev_loss", &s.prev_loss},
                         {"d", &s.d},
                         {"prev_flat_grad", &s.prev_flat_grad},
                         {"H_diag", &s.H_diag}})
    all.push_back(e);
  for (auto [name, list] : {std::pair{"old_dirs.", &s.old_dirs}, {"old_stps.", &s.old_stps}, {"ro.", &s.ro}})
    for (size_t i = 0; i < list->size(); ++i) all.push_back({name + std::to_string(i), &(*list)[i]});
  return all;
}
std::vector<Entry> LBFGS::options_of(size_t) {
  strong_wolfe_ = options_.line_search_fn.has_value();
  return entries(options_, strong_wolfe_);
}
std::vector<Entry> LBFGS::state_of(size_t param) {
  // All of it stands with the first parameter.
  return param == 0 ? entries(state_) : std::vector<Entry>();
}

std::function<void()> LBFGS::loading(const StateDict& state, Location location) {
  const NoGradGuard no_grad;
  StateReader reader(name(), state, location);
  LBFGSOptions options;
  bool strong_wolfe = false;
  const std::string prefix = group_name(0), own = state_name(0);
  reader.read(prefix, entries(options, strong_wolfe));
  if (strong_wolfe) options.line_search_fn = "strong_wolfe";
  check(options, location);
  check_group(reader.numbers(prefix + ".params"), 0, location);
  std::optional<double> initial_lr;
  if (reader.has(prefix + ".initial_lr")) initial_lr = reader.number(prefix + ".initial_lr");
  State loaded;
  if (reader.has(own + ".")) {
    loaded.n_iter = static_cast<int64_t>(reader.number(own + ".n_iter"));
    if (loaded.n_iter > 0) {
      const Tensor like = flat_gradient();
      loaded.d = zeros_like(like), loaded.prev_flat_grad = zeros_like(like), loaded.H_diag = like.new_zeros({});
      for (size_t i = 0; reader.has(own + ".old_dirs." + std::to_string(i)); ++i) {
        loaded.old_dirs.push_back(zeros_like(like));
        loaded.old_stps.push_back(zeros_like(like));
        loaded.ro.push_back(like.new_zeros({}));
      }
    }
    reader.read(own, entries(loaded));
  }
  reader.finish();
  return [this, options, loaded, initial_lr] {
    options_ = options;
    state_ = loaded;
    initial_lr_[0] = initial_lr;
  };
}

Tensor LBFGS::flat_gradient() const {
  std::vector<Tensor> parts;
  for (const Param& p : params_) {
    const Tensor gradient = p.tensor.grad();
    parts.push_back((gradient.defined() ? gradient : zeros_like(p.tensor)).detach().reshape({-1}));
  }
  return cat(parts);
}
LBFGS::Point LBFGS::evaluate(const Closure& closure, Location location) {
  const Tensor loss = evaluated(closure, location);
  return {loss.item<double>(location), flat_gradient()};
}
void LBFGS::move(double t, const Tensor& direction) {
  int64_t start = 0;
  for (const Param& p : params_) {
    const int64_t count = p.tensor.numel();
    p.tensor.add_(direction.slice(0, start, start + count).view_as(p.tensor), t);
    start += count;
  }
}

Tensor LBFGS::direction(const Tensor& gradient) {
  State& s = state_;
  if (s.n_iter == 1) {
    s.H_diag = gradient.new_ones({});
    return gradient.neg();
  }
  const Tensor y = gradient - s.prev_flat_grad, way = s.d * s.t, ys = y.dot(way);
  // A pair that says little of the curvature, or that it is not positive, is left out.
  if (ys.item<double>() > 1e-10) {
    const auto most = static_cast<size_t>(options_.history_size);
    auto add = [&](std::vector<Tensor>& list, const Tensor& t) {
      if (list.size() >= most) list.erase(list.begin(), list.end() - static_cast<ptrdiff_t>(most - 1));
      list.push_back(t);
    };
    add(s.old_dirs, y), add(s.old_stps, way), add(s.ro, ys.reciprocal());
    s.H_diag = ys / y.dot(y);
  }
  Tensor q = gradient.neg();
  std::vector<Tensor> alpha(s.ro.size());
  for (size_t i = s.ro.size(); i-- > 0;) {
    alpha[i] = s.old_stps[i].dot(q) * s.ro[i];
    q.sub_(s.old_dirs[i] * alpha[i]);
  }
  q.mul_(s.H_diag);
  for (size_t i = 0; i < s.ro.size(); ++i) q.add_(s.old_stps[i] * (alpha[i] - s.old_dirs[i].dot(q) * s.ro[i]));
  return q;
}

void LBFGS::step(Location location) {
  eager::fail(name(), "closure", "none", "one that computes gradients and loss: step(closure)", location);
}

Tensor LBFGS::step(const Closure& closure, Location location) {
  check(options_, location);
  const NoGradGuard no_grad;
  const CallerLine line(location);
  const FloatEnvironment environment;
  restore_if_refused(0);
  const LBFGSOptions& o = options_;
  State& s = state_;
  const int64_t most = most_evaluations(o);
  const Tensor first = evaluated(closure, location);
  Point now{first.item<double>(location), flat_gradient()};
  ++s.func_evals;
  int64_t evaluations = 1;
  if (largest(now.gradient) <= o.tolerance_grad) return first;

  for (int64_t i = 1;; ++i) {
    ++s.n_iter;
    s.d = direction(now.gradient);
    s.prev_flat_grad = now.gradient;
    s.prev_loss = now.loss;
    // Nothing is known of the scale yet.
    s.t = s.n_iter == 1 ? std::min(1.0, 1 / now.gradient.abs().sum().item<double>()) * o.lr : o.lr;
    const double slope = now.gradient.dot(s.d).item<double>();
    if (slope > -o.tolerance_change) break;
    int64_t more = 0;
    if (o.line_search_fn) {
      const Trial found = search(closure, {0, now, slope}, s.t, more, location);
      s.t = found.t;
      now = found.at;
      move(s.t, s.d);
    } else {
      move(s.t, s.d);
      if (i < o.max_iter) now = evaluate(closure, location), ++more;
    }
    evaluations += more;
    s.func_evals += more;
    if (i >= o.max_iter || evaluations >= most) break;
    if (largest(now.gradient) <= o.tolerance_grad || largest(s.d * s.t) <= o.tolerance_change) break;
    if (std::abs(now.loss - s.prev_loss) < o.tolerance_change) break;
  }
  return first;
}

LBFGS::Trial LBFGS::search(const Closure& closure, const Trial& start, double t, int64_t& evaluations,
                           Location location) {
  constexpr double kDecrease = 1e-4, kCurvature = 0.9;  // Wolfe's two constants, as for all quasi-Newton methods
  constexpr double kSmallest = 1e-9;                    // of a bracket, as a change of a parameter
  constexpr int kMostTrials = 25;
  std::vector<Tensor> kept;
  for (const Param& p : params_) kept.push_back(p.tensor.clone());
  auto tried = [&](double length) {
    move(length, state_.d);
    ++evaluations;
    const Point at = evaluate(closure, location);
    for (size_t i = 0; i < params_.size(); ++i) params_[i].tensor.copy_(kept[i]);
    return Trial{length, at, at.gradient.dot(state_.d).item<double>()};
  };
  auto too_high = [&](const Trial& x) { return x.at.loss > start.at.loss + kDecrease * x.t * start.slope; };
  auto flat = [&](const Trial& x) { return std::abs(x.slope) <= -kCurvature * start.slope; };
  auto between = [](const Trial& a, const Trial& b, double from, double to) {
    return Cubic{a.t, a.at.loss, a.slope, b.t, b.at.loss, b.slope}.lowest(from, to);
  };

  // Longer and longer, until two trials have a good length between them.
  Trial before = start, now = tried(t);
  int trials = 0;
  for (; !too_high(now) && !(trials > 1 && now.at.loss >= before.at.loss); ++trials) {
    if (flat(now)) return now;
    if (now.slope >= 0) break;
    const double next = between(before, now, now.t + 0.01 * (now.t - before.t), now.t * 10);
    before = std::exchange(now, tried(next));
    if (trials + 1 == kMostTrials) return start.at.loss <= now.at.loss ? start : now;
  }

  // Closer and closer: `low` is the better end of the two.
  std::array<Trial, 2> ends = {before, now};
  auto better = [&] { return ends[0].at.loss <= ends[1].at.loss ? 0 : 1; };
  int low = better();
  const double size = largest(state_.d);
  for (bool near_an_end = false; trials < kMostTrials; ++trials) {
    const double from = std::min(ends[0].t, ends[1].t), to = std::max(ends[0].t, ends[1].t);
    if ((to - from) * size < kSmallest) break;
    double next = between(ends[0], ends[1], from, to);
    // A place close to an end shrinks the bracket by little: it is taken once, then one a tenth further in.
    const double margin = 0.1 * (to - from);
    const bool near = std::min(to - next, next - from) < margin;
    const bool moved = near && (near_an_end || next >= to || next <= from);
    if (moved) next = to - next < next - from ? to - margin : from + margin;
    near_an_end = near && !moved;
    const Trial trial = tried(next);
    if (too_high(trial) || trial.at.loss >= ends[low].at.loss) {
      ends[1 - low] = trial;
      low = better();
      continue;
    }
    if (flat(trial)) return trial;
    if (trial.slope * (ends[1 - low].t - ends[low].t) >= 0) ends[1 - low] = ends[low];
    ends[low] = trial;
  }
  return ends[low];
}

}  // namespace ingot::optim
