#include "cli/report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "runtime/profiler.h"

namespace ingot::cli {
namespace {
constexpr int kMostProfiledCalls = 200, kLeastProfiledCalls = 5;
constexpr std::chrono::seconds kProfiled(3);
}  // namespace

std::vector<StepReport> time_steps(const std::function<void()>& call, const Roof& roof) {
  for (int warm = 0; warm < 3; ++warm) call();
  runtime::Profile profile;
  const auto end = std::chrono::steady_clock::now() + kProfiled;
  for (int i = 0; i < kMostProfiledCalls; ++i) {
    if (i >= kLeastProfiledCalls && std::chrono::steady_clock::now() > end) break;
    call();
  }
  std::vector<StepReport> reports;
  for (const runtime::StepTime& time : profile.steps()) {
    const Step& step = time.program->steps[time.step];
    const auto slices = static_cast<double>(time.program->dims.hint(slices_of(*time.program, time.step)));
    const double operations = slices * static_cast<double>(time.program->dims.hint(step.operations));
    const double bytes = slices * static_cast<double>(time.program->dims.hint(step.bytes));
    reports.push_back({step.name, step.kind_name(), time.total_ns / 1e3 / static_cast<double>(time.runs),
                       roof.floor_us(operations, bytes)});
  }
  return reports;
}

std::vector<StepLoss> largest_losses(const std::vector<StepReport>& steps) {
  constexpr size_t kMost = 3;
  std::map<std::pair<std::string, std::string>, StepLoss> sums;
  for (const StepReport& step : steps) {
    StepLoss& sum = sums[{step.name, step.kind}];
    sum.name = step.name, sum.kind = step.kind;
    ++sum.steps, sum.mean_us += step.mean_us, sum.roof_us += step.roof_us;
  }
  std::vector<StepLoss> losses;
  for (const auto& [name, sum] : sums)
    if (sum.lost_us() > 0) losses.push_back(sum);
  std::stable_sort(losses.begin(), losses.end(),
                   [](const StepLoss& a, const StepLoss& b) { return a.lost_us() > b.lost_us(); });
  if (losses.size() > kMost) losses.resize(kMost);
  return losses;
}

void print_steps(const std::vector<StepReport>& steps) {
  if (steps.empty()) return;
  fmt::print("  {:<58}{:>10}{:>10}   (us, mean; floor)\n", "step", "took", "floor");
  for (const StepReport& step : steps)
    fmt::print("  {:<58}{:>10.2f}{:>10.2f}\n", step.name, step.mean_us, step.roof_us);
  struct Sum {
    int steps = 0;
    double took = 0, floor = 0;
  };
  std::map<std::string, Sum> kinds;
  Sum all;
  for (const StepReport& step : steps)
    for (Sum* sum : {&kinds[step.kind], &all}) ++sum->steps, sum->took += step.mean_us, sum->floor += step.roof_us;
  auto show = [](const std::string& kind, const Sum& sum) {
    fmt::print("  {:<58}{:>10.2f}{:>10.2f}   {:.0f}%\n", fmt::format("{} of {}", sum.steps, kind), sum.took, sum.floor,
               100 * sum.floor / sum.took);
  };
  for (const auto& [kind, sum] : kinds) show(kind, sum);
  show("all", all);
  fmt::print("  largest losses, of steps of one name (above their floors; of the time of all)\n");
  for (const StepLoss& loss : largest_losses(steps))
    fmt::print("  {:<58}{:>10.2f}            {:.0f}%\n", fmt::format("{} of {}", loss.steps, loss.name), loss.lost_us(),
               100 * loss.lost_us() / all.took);
}

nlohmann::json to_json(const std::vector<StepReport>& steps) {
  nlohmann::json list = nlohmann::json::array();
  for (const StepReport& step : steps)
    list.push_back({{"name", step.name}, {"kind", step.kind}, {"mean_us", step.mean_us}, {"roof_us", step.roof_us}});
  return list;
}

nlohmann::json to_json(const std::vector<StepLoss>& losses) {
  nlohmann::json list = nlohmann::json::array();
  for (const StepLoss& loss : losses)
    list.push_back({{"name", loss.name},
                    {"kind", loss.kind},
                    {"steps", loss.steps},
                    {"mean_us", loss.mean_us},
                    {"roof_us", loss.roof_us},
                    {"lost_us", loss.lost_us()}});
  return list;
}

double modelled_us(const Explanation& explanation, const Roof& roof) {
  double us = 0;
  if (explanation.programs.empty()) return us;
  for (const auto& step : explanation.programs.back().steps) us += roof.floor_us(step.operations, step.bytes);
  return us;
}

double median(std::vector<double> of) {
  std::nth_element(of.begin(), of.begin() + static_cast<ptrdiff_t>(of.size() / 2), of.end());
  return of[of.size() / 2];
}

void progress(const std::string& text) {
  if (isatty(STDERR_FILENO)) fmt::print(stderr, "\r\033[K{}", text);
}

std::string bar(double part, int width) {
  const int full = std::clamp(static_cast<int>(std::lround(part * width)), 0, width);
  return "[" + std::string(full, '#') + std::string(width - full, '.') + "]";
}

std::string curve(const std::vector<double>& values, int indent) {
  constexpr size_t kRows = 8, kColumns = 64;
  const size_t columns = std::min(kColumns, values.size());
  if (!columns) return {};
  std::vector<double> means;
  for (size_t c = 0; c < columns; ++c) {
    const size_t begin = c * values.size() / columns, end = (c + 1) * values.size() / columns;
    double sum = 0;
    for (size_t i = begin; i < end; ++i) sum += values[i];
    means.push_back(sum / static_cast<double>(end - begin));
  }
  const auto [low, high] = std::minmax_element(means.begin(), means.end());
  const double step = std::max(*high - *low, 1e-9) / (kRows - 1);
  std::string text;
  for (size_t r = 0; r < kRows; ++r) {
    std::string row;
    for (double mean : means) row += std::lround((*high - mean) / step) == static_cast<long>(r) ? '*' : ' ';
    row.erase(row.find_last_not_of(' ') + 1);
    text += fmt::format("{:{}}{:8.4f} |{}\n", "", indent, *high - step * static_cast<double>(r), row);
  }
  return text + fmt::format("{:{}}{:8} +{}\n", "", indent, "", std::string(columns, '-'));
}

bool bitwise_equal(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Tensor& x, const Tensor& y) { return ingot::bitwise_equal(x, y); });
}

}  // namespace ingot::cli
