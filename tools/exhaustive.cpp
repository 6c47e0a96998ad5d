// Checks every f32 input of each unary function whose row states a bound, against the reference interpreter (the C
// library in double). Exit code 1 where a bound is not kept.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/accuracy.h"
#include "runtime/cpu.h"

namespace {

using namespace ingot;
using namespace ingot::cli;

constexpr uint64_t kInputs = uint64_t(1) << 32, kPiece = uint64_t(1) << 24;

/// All pieces of the input range, by `threads` workers; `step` 1 takes every input.
Accuracy check(const UnaryFunction& function, uint64_t step, int threads, bool progress) {
  std::atomic<uint64_t> next = 0;
  std::vector<Accuracy> parts(static_cast<size_t>(threads));
  std::vector<std::thread> workers;
  for (Accuracy& part : parts)
    workers.emplace_back([&] {
      const UnaryKernel kernel(function, runtime::host_target());
      for (uint64_t first; (first = next.fetch_add(kPiece)) < kInputs;) {
        // The inputs are the multiples of step, whatever the pieces are.
        part.join(measure(function, kernel, (first + step - 1) / step * step, first + kPiece, step));
        if (progress) fmt::print(stderr, "\r{:<16}{:>4}%", function.name, 100 * (first + kPiece) / kInputs);
      }
    });
  for (std::thread& worker : workers) worker.join();
  if (progress) fmt::print(stderr, "\r{:24}\r", "");
  Accuracy all;
  for (const Accuracy& part : parts) all.join(part);
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Accuracy of the unary functions in f32, over all inputs"};
  std::vector<std::string> names;
  uint64_t step = 1;
  int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  bool json = false;
  app.add_option("--function", names, "only these functions");
  app.add_option("--sample", step, "only every Nth input")->check(CLI::Range(uint64_t(1), kInputs));
  app.add_option("--threads", threads, "workers")->check(CLI::Range(1, 1024));
  app.add_flag("--json", json, "one JSON object a function");
  app.footer("example: exhaustive --function exp --function gelu(none)");
  CLI11_PARSE(app, argc, argv);

  std::vector<UnaryFunction> functions = unary_functions();
  for (const std::string& name : names)
    if (std::none_of(functions.begin(), functions.end(), [&](const auto& f) { return f.name == name; })) {
      fmt::print(stderr, "{}: no function of the op table that states a bound; there are:", name);
      for (const UnaryFunction& function : functions) fmt::print(stderr, " {}", function.name);
      fmt::print(stderr, "\n");
      return 2;
    }
  bool kept = true;
  if (!json)
    fmt::print("{:<16}{:>12}{:>8}{:>8}{:>10}{:>18}{:>9}\n", "function", "inputs", "ulp", "bound", "beyond", "at",
               "seconds");
  for (const UnaryFunction& function : functions) {
    if (!names.empty() && std::find(names.begin(), names.end(), function.name) == names.end()) continue;
    const auto start = std::chrono::steady_clock::now();
    const Accuracy a = check(function, step, threads, !json);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    kept = kept && a.over == 0;
    if (json)
      fmt::print("{}\n", nlohmann::json{{"function", function.name},
                                        {"inputs", a.inputs},
                                        {"max_ulp", a.worst},
                                        {"bound", function.bound},
                                        {"of_operand", function.of_operand},
                                        {"beyond", a.over},
                                        {"input", fmt::format("{:a}", a.input)},
                                        {"result", fmt::format("{:a}", a.result)},
                                        {"exact", a.exact},
                                        {"seconds", seconds}}
                             .dump());
    else
      fmt::print("{:<16}{:>12}{:>8.3f}{:>8.1f}{:>10}{:>18a}{:>9.1f}\n", function.name, a.inputs, a.worst,
                 function.bound, a.over, a.input, seconds);
    std::fflush(stdout);
  }
  return kept ? 0 : 1;
}
