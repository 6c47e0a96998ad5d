#include "cli/replay_bench.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "cli/report.h"
#include "ingot.h"

namespace ingot::cli {
namespace {

// What an op costs is the slope between these: the call itself costs nothing then.
constexpr int kShortChain = 128, kLongChain = 384;
constexpr int64_t kFewElements = 16;

/// An op of a chain: x is what the op before it gave, y comes from outside.
struct Chain {
  const char* name;
  const char* what;
  Tensor (*op)(int number, const Tensor& x, const Tensor& y);
  bool y_has_gradient;
};
constexpr Chain kChains[] = {
    {"product", "x * y", [](int, const Tensor& x, const Tensor& y) { return x * y; }, true},
    {"scaled", "x * y, y without gradient", [](int, const Tensor& x, const Tensor& y) { return x * y; }, false},
    {"tanh", "tanh(x)", [](int, const Tensor& x, const Tensor&) { return tanh(x); }, false},
    {"both", "x * y and tanh(x) in turns",
     [](int number, const Tensor& x, const Tensor& y) { return number % 2 ? tanh(x) : x * y; }, true}};

/// How much is recorded of an op.
enum class Recorded { op, tape, derivative };
constexpr std::array<const char*, 3> kRecorded = {"op", "tape", "derivative"};

using Function = std::function<std::vector<Tensor>(const Tensor&, const Tensor&)>;

Function function_of(const Chain& chain, int ops, Recorded recorded) {
  return [&chain, ops, recorded](const Tensor& x, const Tensor& y) {
    const EnableGradGuard tape;  // written where operands require grad
    Tensor z = x;
    for (int i = 0; i < ops; ++i) z = chain.op(i, z, y);
    if (recorded != Recorded::derivative) return std::vector<Tensor>{z.detach()};
    std::vector<Tensor> leaves{x};
    if (chain.y_has_gradient) leaves.push_back(y);
    return autograd::grad({z}, leaves, {ones({kFewElements})});
  };
}

/// Nanoseconds an op.
struct OpTimes {
  double compiled_ns = 0, eager_ns = 0;
  bool good = true;  // the same bits, one program without a break or fallback
};

OpTimes measure_ops(const Chain& chain, Recorded recorded, double seconds) {
  Tensor x = linspace(0.5, 1, kFewElements), y = linspace(0.99, 1.01, kFewElements);
  if (recorded != Recorded::op) x.requires_grad_(), y.requires_grad_(chain.y_has_gradient);
  const Function few = function_of(chain, kShortChain, recorded), many = function_of(chain, kLongChain, recorded);
  auto fast_few = compile(few), fast_many = compile(many);
  OpTimes times;
  for (int call = 0; call < 3; ++call)
    times.good = times.good && bitwise_equal(fast_few(x, y), few(x, y)) && bitwise_equal(fast_many(x, y), many(x, y));
  const auto taken = interleave({[&] { (void)fast_few(x, y); }, [&] { (void)fast_many(x, y); },
                                 [&] { (void)few(x, y); }, [&] { (void)many(x, y); }},
                                seconds);
  for (const Statistics& s : {fast_few.stats(), fast_many.stats()})
    times.good = times.good && s.compilations == 1 && s.graph_breaks == 0 && s.fallbacks == 0;
  auto slope = [&](size_t first) {
    return 1e3 * (taken[first + 1].median - taken[first].median) / (kLongChain - kShortChain);
  };
  times.compiled_ns = slope(0), times.eager_ns = slope(2);
  return times;
}

}  // namespace

int bench_replay(const BenchOptions& options) {
  nlohmann::json rows = nlohmann::json::array();
  bool good = true;
  if (!options.json)
    fmt::print(
        "ns an op of {} floats: slope between chains of {} and {} ops, {} threads\n"
        "{:<30}{:>16}{:>16}{:>22}\n",
        kFewElements, kShortChain, kLongChain, num_threads(), "compiled, checked (eager)", "recorded", "and its tape",
        "and its derivative");
  for (const Chain& chain : kChains) {
    nlohmann::json row = {{"name", chain.name}, {"what", chain.what}};
    std::string line = fmt::format("{:<30}", chain.what);
    for (const Recorded recorded : {Recorded::op, Recorded::tape, Recorded::derivative}) {
      const OpTimes times =
          measure_ops(chain, recorded, options.seconds / static_cast<double>(std::size(kChains) * kRecorded.size()));
      good = good && times.good;
      const std::string name = kRecorded[static_cast<size_t>(recorded)];
      row[name + "_ns"] = times.compiled_ns, row["eager_" + name + "_ns"] = times.eager_ns;
      line += fmt::format("{:>{}}", fmt::format("{:.0f} ({:.0f})", times.compiled_ns, times.eager_ns),
                          recorded == Recorded::derivative ? 22 : 16);
    }
    rows.push_back(row);
    if (!options.json) fmt::print("{}\n", line);
  }
  if (options.json)
    fmt::print("{}\n", nlohmann::json{{"name", "replay"},
                                      {"threads", num_threads()},
                                      {"elements", kFewElements},
                                      {"ops", {kShortChain, kLongChain}},
                                      {"ns_per_op", rows[0]["op_ns"]},
                                      {"rows", rows},
                                      {"bitwise_equal", good}}
                           .dump());
  else
    fmt::print("{}\n", good ? "same bits as eager" : "BITS DIFFER, or more than one program");
  return good ? 0 : 1;
}

}  // namespace ingot::cli
