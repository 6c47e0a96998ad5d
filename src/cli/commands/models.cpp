// `ingot models` and `ingot models check`.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/models.h"
#include "cli/models_check.h"
#include "cli/report.h"
#include "cli/zoo.h"

namespace ingot::cli {

int run_models(const CommonOptions& options) {
  nlohmann::json list = nlohmann::json::array();
  auto add = [&](const std::string& name, const std::string& title, const std::string& input, nn::Module& module) {
    int64_t parameters = 0;
    for (const Tensor& p : module.parameters()) parameters += p.numel();
    list.push_back({{"name", name}, {"model", title}, {"input", input}, {"parameters", parameters}});
  };
  const nn::SkipInit skip;
  for (const ZooRow& row : zoo_rows()) add(row.name, row.title, row.input, *row.make(nullptr).module);
  for (const DemoRow& row : demo_rows()) add(row.name, row.title, row.input, *row.make());
  if (options.json) {
    fmt::print("{}\n", nlohmann::json{{"models", list}}.dump());
    return 0;
  }
  fmt::print("{:<18}{:<34}{:>13}  {}\n", "name", "model", "parameters", "input");
  for (const auto& m : list)
    fmt::print("{:<18}{:<34}{:>13}  {}\n", m["name"].get<std::string>(), m["model"].get<std::string>(),
               m["parameters"].get<int64_t>(), m["input"].get<std::string>());
  fmt::print("\n`ingot bench NAME` runs one, `ingot models check FOLDER` judges them.\n");
  return 0;
}

int run_models_check(const CommonOptions& options, const std::string& folder) {
  if (options.threads) set_num_threads(options.threads);
  const ModelChecks checks = check_models(folder, [](const std::string& name) { progress("checking " + name); });
  progress("");
  if (options.json) {
    nlohmann::json failures = nlohmann::json::array();
    for (const ModelFailure& f : checks.failures)
      failures.push_back({{"model", f.model}, {"mode", f.mode}, {"name", f.name}, {"error", f.error}});
    const nlohmann::json result = {{"models", checks.models.size()}, {"model_names", checks.models},
                                   {"skipped", checks.skipped},      {"checks", checks.checks},
                                   {"failures", failures},           {"threads", num_threads()}};
    fmt::print("{}\n", result.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    for (const ModelFailure& f : checks.failures)
      fmt::print("FAILED {} ({}) {}: {}\n", f.model, f.mode, f.name, f.error);
    for (const std::string& name : checks.skipped) fmt::print("{}: no model, but optimizers' steps\n", name);
    fmt::print("{} models, {} checks, {} failures\n", checks.models.size(), checks.checks, checks.failures.size());
  }
  return checks.failures.empty() && !checks.models.empty() ? 0 : 1;
}

}  // namespace ingot::cli
