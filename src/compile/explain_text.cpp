// The explanation as a page for a person: first what happened, then what runs and why, then what was asked for.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "compile/compare.h"
#include "compile/explain.h"
#include "eager/call/call.h"

namespace ingot {
namespace {

constexpr int kBar = 24;  // cells of a bar

std::string amount(double bytes) {
  if (bytes < 1024) return fmt::format("{:.0f} B", bytes);
  if (bytes < 1024 * 1024) return fmt::format("{:.1f} KB", bytes / 1024);
  return fmt::format("{:.1f} MB", bytes / 1024 / 1024);
}

std::string times(int64_t count, const char* one, const char* many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

// Eighths of a cell, so that small shares differ too.
std::string bar(double share, int cells = kBar) {
  constexpr const char* parts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  auto eighths = static_cast<int>(std::clamp(share, 0.0, 1.0) * cells * 8 + 0.5);
  if (!eighths && share > 0) eighths = 1;
  std::string text;
  for (int i = 0; i < eighths / 8; ++i) text += "█";
  return text + parts[eighths % 8];
}

std::string shortened(std::string text, size_t most) {
  if (text.size() <= most) return text;
  text.resize(most - 3);
  return text + "...";
}

bool wanted(const std::optional<std::string>& filter, const Explanation::Kernel& kernel) {
  if (!filter) return false;
  // The tiles of products come in one form for each edge: shown if asked for by name.
  if (filter->empty()) return !kernel.product_form();
  return kernel.name.find(*filter) != std::string::npos;
}

/// The program that is shown in full; of the way back there may be fewer than of the function: the last one then.
const Explanation::Program* shown_of(const Explanation& e, const ReportOptions& options) {
  if (e.programs.empty()) return nullptr;
  const size_t last = e.programs.size() - 1;
  return &e.programs[options.program < 0 ? last : std::min(static_cast<size_t>(options.program), last)];
}

/// Throws Error where it has no kernel with this in its name, nor has the way back.
void check_kernels(const Explanation& e, const ReportOptions& options, const char* option,
                   const std::optional<std::string>& filter, Location location) {
  if (!filter || filter->empty()) return;
  constexpr size_t kMost = 12;
  std::vector<std::string> names;
  auto found = [&](const Explanation& one) {
    const Explanation::Program* shown = shown_of(one, options);
    if (!shown) return false;
    for (const Explanation::Kernel& k : shown->kernels) {
      if (wanted(filter, k)) return true;
      if (!k.product_form() && !std::count(names.begin(), names.end(), k.name)) names.push_back(k.name);
    }
    return false;
  };
  if (found(e) || std::any_of(e.backward.begin(), e.backward.end(), found)) return;
  const size_t more = names.size() - std::min(names.size(), kMost);
  names.resize(names.size() - more);
  eager::fail("explain", option, "\"" + *filter + "\"",
              names.empty() ? std::string("nothing: there are no kernels")
                            : fmt::format("a part of one of these names: {}{}", fmt::join(names, ", "),
                                          more ? fmt::format(", ... and {} more", more) : ""),
              location);
}

void check(const Explanation& e, const ReportOptions& options, Location location) {
  const auto count = static_cast<int>(e.programs.size());
  if (options.program != -1 && (options.program < 0 || options.program >= count))
    eager::fail("explain", "program", std::to_string(options.program),
                count ? "a number from 0 to " + std::to_string(count - 1) : "none: no program was compiled", location);
  check_kernels(e, options, "kernel_ir", options.kernel_ir, location);
  check_kernels(e, options, "assembly", options.assembly, location);
}

class Report {
 public:
  Report(const Explanation& e, const ReportOptions& options) : e_(e), options_(options) {}

  std::string text() {
    overview();
    notices("Graph breaks", "the recorded prefix ran, then recording went on", e_.breaks);
    notices("Fallbacks", "ran op by op", e_.fallbacks);
    recompiles();
    programs();
    if (const Explanation::Program* shown = shown_of(e_, options_))
      program(*shown, static_cast<size_t>(shown - e_.programs.data()));
    for (const Explanation& e : e_.backward) text_ += "\n" + Report(e, options_).text();
    return std::move(text_);
  }

 private:
  template <class... T>
  void line(fmt::format_string<T...> format, T&&... values) {
    std::string text = fmt::format(format, std::forward<T>(values)...);
    text.erase(text.find_last_not_of(' ') + 1);
    text_ += text + "\n";
  }
  void heading(const std::string& title, const std::string& rest = {}) {
    text_ += "\n" + (options_.color ? "\033[1m" + title + "\033[0m" : title) + (rest.empty() ? "" : "  " + rest) + "\n";
  }

  void overview() {
    const Statistics& s = e_.statistics;
    text_ += (options_.color ? "\033[1m" + e_.name + "\033[0m" : e_.name) + ": ";
    line("{}, of which {} recorded or compiled nothing new ({})", times(s.calls, "call", "calls"), s.hits, e_.target);
    line("  compiled   {} in {:.2f} ms, from {}; {}, {}", times(s.compilations, "program", "programs"), s.compile_ms,
         times(s.ops_traced, "op", "ops"), times(s.kernels, "kernel", "kernels"),
         times(s.host_steps, "host op", "host ops"));
    auto count = [](int64_t n) { return n ? std::to_string(n) : std::string("no"); };
    line("  otherwise  {} graph break{}, {} fallback{}, {} path{} refused by the recompile limit",
         count(s.graph_breaks), s.graph_breaks == 1 ? "" : "s", count(s.fallbacks), s.fallbacks == 1 ? "" : "s",
         count(s.recompile_limit_hits), s.recompile_limit_hits == 1 ? "" : "s");
    if (!e_.frozen.empty()) line("  frozen     {}", e_.frozen);
  }

  void weights(const Explanation::Program& p) {
    std::map<std::string, int64_t> fates;
    for (const auto& step : p.steps)
      if (!step.weight.empty()) ++fates[step.weight];
    if (fates.empty()) return;
    heading("Weights", "kept in the order in which their steps read them, or packed at each use");
    for (const auto& [fate, count] : fates) line("  {:>4} x  {}", count, fate);
  }

  void writes(const Explanation::Program& p) {
    if (p.writes.empty()) return;
    heading("Writes", "tensors from outside, in place or apart and copied at the end");
    constexpr size_t kMost = 8;
    const auto in_place = std::ranges::count_if(p.writes, [](const auto& w) { return w.in_place; });
    if (in_place) line("  {:>4} x  in place", in_place);
    size_t apart = 0;
    for (const auto& w : p.writes)
      if (!w.in_place && ++apart <= kMost)
        line("  apart    {:<12} {:<24} {} ({})", shortened(w.op.empty() ? w.input : w.op, 12), shortened(w.type, 24),
             w.reason, w.location);
    if (apart > kMost) line("  ... and {} more", apart - kMost);
  }

  void notices(const char* title, const char* meaning, const std::vector<Explanation::Notice>& list) {
    if (list.empty()) return;
    heading(title, meaning);
    for (const auto& n : list)
      line("  {:>4} x  {} (at {}{})", n.count, n.reason, n.op, n.location.empty() ? "" : ", " + n.location);
  }

  void recompiles() {
    if (e_.recompiles.empty()) return;
    heading("Recompiles", "the first guard that failed each time");
    for (const auto& r : e_.recompiles) {
      line("  {}", r.guard);
      line("      was {}, is {}{}", r.before, r.after, r.location.empty() ? "" : "   (" + r.location + ")");
    }
  }

  void programs() {
    if (e_.programs.size() < 2) return;
    heading("Programs", "one for each path and set of guards");
    for (size_t i = 0; i < e_.programs.size(); ++i) {
      const auto& p = e_.programs[i];
      line("  {:<3} {:<46} {:>8}  {:>9}  compiled in {:.2f} ms", fmt::format("#{}", i), shortened(arguments(p), 46),
           times(p.hits, "run", "runs"), times(static_cast<int64_t>(p.steps.size()), "step", "steps"), p.compile_ms);
    }
  }

  // Types of what the caller brings; parameters are told apart.
  static std::string arguments(const Explanation::Program& p) {
    std::string text;
    for (const auto& input : p.inputs)
      if (!input.constant) text += (text.empty() ? "" : ", ") + input.type;
    return text.empty() ? "no arguments" : text;
  }

  void program(const Explanation::Program& p, size_t number) {
    text_ += "\n" + std::string(100, '-') + "\n";
    line("Program #{}: {}{}", number, arguments(p), p.guards.empty() ? "" : ", where " + p.guards);
    line("{}", p.summary());
    steps(p);
    trace(p);
    weights(p);
    writes(p);
    fusion(p);
    backward(p);
    guards(p);
    stages(p);
    kernels(p);
  }

  void trace(const Explanation::Program& p) {
    heading("Trace",
            fmt::format("{} as you wrote them", times(static_cast<int64_t>(p.traced_ops.size()), "op", "ops")));
    if (options_.ir) {
      text_ += p.trace;
      heading("Trace after the passes", times(static_cast<int64_t>(p.ops.size()), "op", "ops"));
      text_ += p.primitives;
      return;
    }
    // One line for each run of ops of one module.
    for (size_t i = 0; i < p.traced_ops.size();) {
      const Explanation::Op& first = p.traced_ops[i];
      std::string ops;
      size_t end = i;
      for (; end < p.traced_ops.size() && p.traced_ops[end].module == first.module &&
             (first.module.empty() ? end - i < 6 : true);
           ++end)
        ops += (ops.empty() ? "" : " ") + p.traced_ops[end].op;
      line("  {:<14} {:<44} -> {:<22} {}", first.module.empty() ? "." : first.module, shortened(ops, 44),
           p.traced_ops[end - 1].type, first.location);
      i = end;
    }
  }

  void steps(const Explanation::Program& p) {
    constexpr size_t kMost = 10;
    const double total = p.mean_us();
    const bool timed = total > 0;
    std::vector<uint32_t> order = p.longest();
    // A few more are no list to be cut.
    const bool cut = timed && !options_.steps && order.size() > kMost + 4;
    if (cut) order.resize(kMost);
    if (options_.steps) std::sort(order.begin(), order.end());
    heading(cut ? "The ten longest steps" : "Steps",
            std::string(timed ? "the mean of each in turn" : "what runs") +
                (options_.steps || !timed ? ", as they run" : ", the longest first"));
    double most = 0, shown = 0;
    auto weight = [&](const Explanation::Step& s) { return timed ? s.mean_us : s.bytes; };
    for (const auto& s : p.steps) most = std::max(most, weight(s));
    line("  {:<3} {:<28} {:<22} {:<30} {:>8} {:>9} {:>9}", "", "ops", "from", "over", "Mflop", "memory",
         timed ? "time" : "");
    for (uint32_t number : order) {
      const Explanation::Step& s = p.steps[number];
      shown += s.mean_us;
      line("  {:<3} {:<28} {:<22} {:<30} {:>8.2f} {:>9} {:>9} {}", number,
           shortened(fmt::format("{}", fmt::join(s.ops, " ")), 28),
           shortened(fmt::format("{}", fmt::join(s.modules, ", ")), 22), shortened(s.space, 30), s.operations / 1e6,
           amount(s.bytes), timed ? duration(s.mean_us) : "",
           bar(most > 0 ? weight(s) / most : 0, 12) + (timed ? fmt::format(" {:.0f}%", 100 * s.mean_us / total) : "") +
               (s.algorithm.empty() ? "" : "  " + s.algorithm));
    }
    if (cut) line("  and {} more in {}", p.steps.size() - kMost, duration(total - shown));
  }

  void fusion(const Explanation::Program& p) {
    double saved = p.bytes_saved(), moved = p.bytes_moved();
    heading("Fusion", fmt::format("{} of memory traffic avoided, {} left", amount(saved), amount(moved)));
    if (saved + moved > 0) {
      double share = moved / (saved + moved);
      std::string full = bar(share, 60);
      auto cells = static_cast<int>(share * 60 + 0.5);
      line("  {}{}", full, [&] {
        std::string rest;
        for (int i = cells; i < 60; ++i) rest += "░";
        return rest;
      }());
    }
    for (bool taken : {true, false}) {
      std::map<std::string, std::vector<const Explanation::Decision*>> by_reason;
      for (const auto& d : p.decisions)
        if (d.fused == taken) by_reason[d.reason].push_back(&d);
      if (by_reason.empty()) continue;
      auto bytes = [&](const std::vector<const Explanation::Decision*>& list) {
        double sum = 0;
        for (const auto* d : list) sum += static_cast<double>(taken ? d->bytes_saved : d->bytes);
        return sum;
      };
      std::vector<std::pair<std::string, std::vector<const Explanation::Decision*>>> order(by_reason.begin(),
                                                                                           by_reason.end());
      std::stable_sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
        return std::pair(bytes(a.second), a.second.size()) > std::pair(bytes(b.second), b.second.size());
      });
      line("  {}", taken ? "fused, and what that saves:" : "kept apart, and what is stored:");
      for (const auto& [reason, list] : order) {
        if (taken)
          line("  {:>4} x  {:<64} {:>9} {}", list.size(), reason, amount(bytes(list)),
               bar(saved > 0 ? bytes(list) / saved : 0, 14));
        else
          line("  {:>4} x  {:<64} {:>9} {}", list.size(), reason, amount(bytes(list)), shortened(names(list), 40));
        if (options_.fusion)
          for (const auto* d : list)
            line("             {:<24} {:<24} {}{}", d->op, d->module, d->location,
                 d->bytes_saved ? ", saves " + amount(static_cast<double>(d->bytes_saved)) : "");
      }
    }
    for (const std::string& note : p.notes) line("  {}", note);
  }

  void backward(const Explanation::Program& p) {
    if (p.saved.empty() && p.recomputed.empty()) return;
    heading("Backward", fmt::format("{} of the forward pass are saved for it, in {} values; {} are computed again",
                                    amount(static_cast<double>(p.bytes_saved_for_backward())), p.saved.size(),
                                    p.recomputed.size()));
    std::vector<const Explanation::Decision*> saved;
    for (const auto& d : p.saved) saved.push_back(&d);
    std::stable_sort(saved.begin(), saved.end(), [](const auto* a, const auto* b) { return a->bytes > b->bytes; });
    constexpr size_t kMost = 12;
    for (size_t i = 0; i < saved.size() && (options_.fusion || i < kMost); ++i)
      line("  saved    {:<24} {:<18} {:>9}  {}", saved[i]->op, saved[i]->module,
           amount(static_cast<double>(saved[i]->bytes)), saved[i]->location);
    if (!options_.fusion && saved.size() > kMost) line("  ... and {} more", saved.size() - kMost);
    std::map<std::string, std::vector<const Explanation::Decision*>> by_reason;
    for (const auto& d : p.recomputed) by_reason[d.reason].push_back(&d);
    for (const auto& [reason, list] : by_reason)
      line("  again    {:>4} x  {:<60} {}", list.size(), reason, shortened(names(list), 40));
  }

  static std::string names(const std::vector<const Explanation::Decision*>& list) {
    std::map<std::string, int> count;
    for (const auto* d : list) ++count[d->op];
    std::string text;
    for (const auto& [op, n] : count) text += (text.empty() ? "" : ", ") + (n > 1 ? fmt::format("{} {}", n, op) : op);
    return text;
  }

  void guards(const Explanation::Program& p) {
    heading("Guards", "what a call must bring for this program to run");
    size_t parameters = 0, arguments = 0;
    for (const auto& input : p.inputs) {
      parameters += input.constant;
      if (!input.constant)
        line("  {:<12} {:<24} {:<30} {}", fmt::format("argument {}", arguments++), input.type,
             input.strides.empty() ? "row-major" : "strides [" + input.strides + "]", "first read by " + input.used_by);
    }
    if (parameters)
      line("  and {} that the function holds: the same dtypes, sizes and strides",
           times(static_cast<int64_t>(parameters), "tensor", "tensors"));
    bool symbols = p.shapes.find('s') != std::string::npos;
    if (!p.guards.empty() || symbols) line("  where {}", p.guards.empty() ? "s0, s1, ... may be any size" : p.guards);
  }

  void stages(const Explanation::Program& p) {
    heading("Compiling",
            fmt::format("{:.2f} ms; the key is {} of IR", p.compile_ms, amount(static_cast<double>(p.key.size()))));
    for (const auto& stage : p.stages)
      line("  {:<14} {:>8.3f} ms  {:<24} {}", stage.name, stage.ms,
           bar(p.compile_ms > 0 ? stage.ms / p.compile_ms : 0, 24), times(stage.ops, "op", "ops"));
  }

  void kernels(const Explanation::Program& p) {
    size_t forms = 0;
    for (const auto& k : p.kernels) forms += k.product_form();
    heading("Kernels", fmt::format("{} of machine code", amount(static_cast<double>(p.code_bytes))));
    for (size_t i = 0; i < p.kernels.size(); ++i) {
      const Explanation::Kernel& k = p.kernels[i];
      if (k.product_form()) continue;
      std::string steps;
      for (size_t s = 0; s < p.steps.size(); ++s)
        if (std::count(p.steps[s].kernels.begin(), p.steps[s].kernels.end(), static_cast<uint32_t>(i)))
          steps += (steps.empty() ? "" : " ") + std::to_string(s);
      line("  {:<58} {:>7} B   step {}", k.name, k.code_bytes, shortened(steps, 24));
    }
    if (forms) line("  and {} tiles and packs of matrix products, one for each edge", forms);
    for (const auto& k : p.kernels) {
      bool ir = wanted(options_.kernel_ir, k), assembly = wanted(options_.assembly, k);
      if (ir || assembly) heading("kernel " + k.name, fmt::format("{} bytes", k.code_bytes));
      if (ir) text_ += k.text + (k.text.ends_with('\n') ? "" : "\n");
      if (assembly) text_ += k.assembly();
    }
  }

  const Explanation& e_;
  const ReportOptions& options_;
  std::string text_;
};

}  // namespace

std::string Explanation::str(const ReportOptions& options, Location location) const {
  check(*this, options, location);
  return Report(*this, options).text();
}

}  // namespace ingot
