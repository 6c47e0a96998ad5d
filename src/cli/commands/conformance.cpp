// `ingot conformance`.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "conformance/modes.h"

namespace ingot::cli {
namespace {

using conformance::Failure;
using conformance::kSourceNames;
using conformance::Report;

void print_json(const Report& report) {
  nlohmann::json j;
  j["passed"] = report.passed;
  j["failed"] = report.failed;
  j["not_run"] = report.not_run;
  j["runs"] = report.runs;
  j["grad_cases"] = report.grad_cases;
  j["grad_passed"] = report.grad_passed;
  j["grad_failed"] = report.grad_failed;
  j["sizes_varied"] = report.sizes_varied;
  j["cases_of_missing_ops"] = report.cases_of_missing_ops;
  j["ops_missing"] = report.ops_missing;
  j["required_missing"] = report.required_missing;
  for (size_t i = 0; i < std::size(report.executed); ++i) j["executed"][kSourceNames[i]] = report.executed[i];
  j["failures"] = nlohmann::json::array();
  for (const Failure& f : report.failures)
    j["failures"].push_back({{"op", f.op}, {"case", f.name}, {"mode", f.mode}, {"why", f.why}});
  j["modes_unavailable"] = nlohmann::json::object();
  for (const auto& [name, reason] : report.modes_unavailable) j["modes_unavailable"][name] = reason;
  std::printf("%s\n", j.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

void print_table(const Report& report) {
  for (const Failure& f : report.failures)
    std::printf("FAILED %s %s (%s): %s\n", f.op.c_str(), f.name.c_str(), f.mode.c_str(), f.why.c_str());
  if (!report.ops_missing.empty()) {
    std::printf("missing ops (%lld cases):", static_cast<long long>(report.cases_of_missing_ops));
    for (const std::string& op : report.ops_missing) std::printf(" %s", op.c_str());
    std::printf("\n");
  }
  for (const std::string& op : report.required_missing) std::printf("REQUIRED BUT MISSING %s\n", op.c_str());
  for (const auto& [name, reason] : report.modes_unavailable)
    std::printf("not run here: %s (%s)\n", name.c_str(), reason.c_str());
  std::printf("compiled results came from:");
  for (size_t i = 0; i < std::size(report.executed); ++i)
    std::printf(" %s %lld", kSourceNames[i], static_cast<long long>(report.executed[i]));
  std::printf("\n%lld cases passed, %lld failed, %lld not run, in %lld runs; %lld dims with varying sizes\n",
              static_cast<long long>(report.passed), static_cast<long long>(report.failed),
              static_cast<long long>(report.not_run), static_cast<long long>(report.runs),
              static_cast<long long>(report.sizes_varied));
  if (report.grad_cases)
    std::printf("%lld of them have gradients: %lld passed, %lld failed\n", static_cast<long long>(report.grad_cases),
                static_cast<long long>(report.grad_passed), static_cast<long long>(report.grad_failed));
}

}  // namespace

int run_conformance(const conformance::Options& options, bool json) {
  const Report report = conformance::run(options);
  if (json)
    print_json(report);
  else
    print_table(report);
  return report.good() ? 0 : 1;
}

}  // namespace ingot::cli
