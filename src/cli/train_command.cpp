// `ingot train`: a bar with loss, speed and time left, samples on the way, a curve at the end; or a JSON line a step.
#include <fmt/format.h>

#include "cli/report.h"
#include "cli/train_run.h"
#include "runtime/cpu.h"

namespace ingot::cli {
namespace {

std::string time_left(double seconds) {
  const auto s = static_cast<int64_t>(seconds + 0.5);
  return s < 3600 ? fmt::format("{}:{:02}", s / 60, s % 60)
                  : fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

std::string megabytes(int64_t bytes) { return fmt::format("{:.1f} MB", static_cast<double>(bytes) / (1 << 20)); }

/// On one line, whatever it says.
std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

double per_second(const TrainReport& r, double ms) {
  return static_cast<double>(r.recipe.batch * r.units_each) / ms * 1e3;
}

nlohmann::json to_json(const TrainStep& s, const TrainReport& r) {
  nlohmann::json line = {{"step", s.step}, {"loss", s.of.back().loss}, {"lr", s.lr}, {"ms", s.of.back().ms}};
  line[r.unit + "_per_s"] = per_second(r, s.of.back().ms);
  if (s.of.back().norm) line["gradient_norm"] = *s.of.back().norm;
  if (s.of.size() > 1)
    line.update({{"loss_eager", s.of[0].loss},
                 {"loss_compiled", s.of[1].loss},
                 {"eager_ms", s.of[0].ms},
                 {"compiled_ms", s.of[1].ms},
                 {"bitwise_equal", s.bitwise_equal}});
  if (!s.sample.empty()) line["sample"] = s.sample;
  return line;
}

std::string line_of(const TrainStep& s, const TrainReport& r) {
  std::string line = fmt::format("step {:>5}  ", s.step);
  if (s.of.size() > 1)
    line += fmt::format("loss eager {:.6f}  compiled {:.6f}  {}", s.of[0].loss, s.of[1].loss,
                        s.bitwise_equal ? "same bits" : "BITS DIFFER");
  else
    line += fmt::format("loss {:.6f}", s.of[0].loss);
  return line + fmt::format("  {:.0f} {}/s", per_second(r, s.of.back().ms), r.unit);
}

}  // namespace

nlohmann::json to_json(const TrainReport& r) {
  nlohmann::json all = {{"name", r.name},           {"mode", r.mode},
                        {"threads", num_threads()}, {"isa", runtime::host_target().str()},
                        {"steps", r.recipe.steps},  {"batch", r.recipe.batch},
                        {"seed", r.recipe.seed},    {"loss", r.losses.back()},
                        {r.metric, r.value},        {"scratch_bytes", memory_stats().scratch_bytes}};
  if (r.mode != "compile")
    all.update({{"eager_ms_per_step", r.eager_ms},
                {"peak_bytes_eager", r.peak_bytes_eager},
                {"step_bytes_eager", r.step_bytes_eager}});
  if (r.mode != "eager")
    all.update({{"compiled_ms_per_step", r.compiled_ms},
                {"first_compiled_ms", r.compiled_first_ms},
                {"compile_ms", r.statistics.compile_ms},
                {"compilations", r.statistics.compilations},
                {"graph_breaks", r.statistics.graph_breaks},
                {"fallbacks", r.statistics.fallbacks},
                {"peak_bytes_compiled", r.peak_bytes_compiled},
                {"step_bytes_compiled", r.step_bytes_compiled}});
  if (r.mode == "compare") all.update({{"bitwise_equal", r.bitwise_equal}, {"speedup", r.speedup()}});
  return all;
}

void print_training(const TrainReport& r) {
  const bool both = r.mode == "compare";
  fmt::print("{}", curve(r.losses, 2));
  fmt::print("  {} after {} steps: {}\n", "loss " + fmt::format("{:.4f}", r.losses.back()), r.losses.size(),
             r.best_of ? fmt::format("{:.0f} of {} test images right", r.value, r.best_of)
                       : fmt::format("{:.4f} bits a byte", r.value));
  auto show = [&](const char* who, double ms, int64_t peak, const std::string& more) {
    const int width = std::max(1, static_cast<int>(30 * ms / std::max(r.eager_ms, r.compiled_ms)));
    fmt::print("  {:<9}{:<31}{:>10} a step  {:>10} at most  {}\n", who, std::string(width, '#'), duration(ms * 1e3),
               megabytes(peak), more);
  };
  if (r.mode != "compile") show("eager", r.eager_ms, r.peak_bytes_eager, "");
  if (r.mode != "eager")
    show("compiled", r.compiled_ms, r.peak_bytes_compiled,
         both ? fmt::format("{:.2f}x  {}", r.speedup(), r.bitwise_equal ? "same bits" : "BITS DIFFER") : "");
  if (r.mode != "eager")
    fmt::print("  compiled in {:.1f} ms: {} compilations, {} graph breaks, {} fallbacks\n", r.statistics.compile_ms,
               r.statistics.compilations, r.statistics.graph_breaks, r.statistics.fallbacks);
}

int run_train(const TrainOptions& given) {
  if (given.threads) set_num_threads(given.threads);
  TrainOptions options = given;
  if (options.json && options.sample_every < 0) options.sample_every = 0;
  const double start = now_us();
  int64_t begun = 0;
  const TrainReport report = train(options, [&](const TrainStep& s, const TrainReport& r) {
    if (options.json) {
      fmt::print("{}\n", to_json(s, r).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace));
      std::fflush(stdout);
      return;
    }
    if (!begun) {
      begun = s.step;
      fmt::print("{}: {} steps of {}, {} threads, {}; {}\n", r.name, r.recipe.steps, r.recipe.batch, num_threads(),
                 runtime::host_target().str(), r.mode);
    }
    const int64_t last = options.until ? options.until : r.recipe.steps;
    const double each = (now_us() - start) / 1e6 / static_cast<double>(s.step - begun + 1);
    progress(fmt::format("{} {}/{}  loss {:.4f}  {:.0f} {}/s  {} left",
                         bar(static_cast<double>(s.step) / static_cast<double>(last), 30), s.step, last,
                         s.of.back().loss, per_second(r, s.of.back().ms), r.unit,
                         time_left(each * static_cast<double>(last - s.step))));
    if (s.step != begun && s.step != last && s.step % std::max<int64_t>(1, last / 12)) return;
    progress("");
    fmt::print("{}{}\n", line_of(s, r), s.sample.empty() ? "" : "  " + quoted(s.sample));
    std::fflush(stdout);
  });
  if (options.json) {
    fmt::print("{}\n", to_json(report).dump());
  } else {
    progress("");
    print_training(report);
  }
  return report.bitwise_equal ? 0 : 1;
}

}  // namespace ingot::cli
