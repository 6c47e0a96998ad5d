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

/// On one line, whatever it says.
std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

double per_second(const TrainReport& r, double ms) {
  return static_cast<double>(r.recipe.batch * r.units_each) / ms * 1e3;
}

nlohmann::json step_json(const TrainStep& s, const TrainReport& r) {
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

int run_train(const TrainOptions& given) {
  if (given.threads) set_num_threads(given.threads);
  TrainOptions options = given;
  if (options.json && options.sample_every < 0) options.sample_every = 0;
  const double start = now_us();
  int64_t begun = 0;
  const TrainReport report = train(options, [&](const TrainStep& s, const TrainReport& r) {
    if (options.json) {
      fmt::print("{}\n", step_json(s, r).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace));
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
