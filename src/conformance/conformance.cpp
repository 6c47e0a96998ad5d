#include "conformance/conformance.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/error.h"
#include "conformance/functions.h"
#include "conformance/judge.h"
#include "conformance/modes.h"
#include "ir/op.h"

namespace ingot::conformance {
namespace {

std::vector<std::filesystem::path> files_of(const Options& options) {
  namespace fs = std::filesystem;
  if (options.shards < 1 || options.shard < 0 || options.shard >= options.shards)
    throw Error("conformance: got shard " + std::to_string(options.shard) + " of " + std::to_string(options.shards) +
                ", expected one of at least one");
  std::vector<fs::path> files;
  auto add = [&](const fs::path& p) {
    if (p.stem().string().find(options.filter) != std::string::npos) files.push_back(p);
  };
  if (fs::is_directory(options.path)) {
    for (const auto& entry : fs::directory_iterator(options.path))
      if (entry.path().extension() == ".safetensors") add(entry.path());
  } else if (fs::exists(options.path)) {
    add(options.path);  // what is no file of cases is refused as it is read
  } else {
    throw Error("conformance: no folder or file " + options.path);
  }
  std::sort(files.begin(), files.end());
  if (files.empty()) throw Error("conformance: no *.safetensors of " + options.path + " matches");
  std::vector<fs::path> mine;
  for (size_t i = static_cast<size_t>(options.shard); i < files.size(); i += options.shards) mine.push_back(files[i]);
  return mine;
}

std::vector<Mode> modes_of(const Options& options) {
  std::vector<Mode> all = modes(), chosen;
  for (const std::string& name : options.modes) {
    auto found = std::find_if(all.begin(), all.end(), [&](const Mode& m) { return m.name == name; });
    if (found == all.end()) throw Error("conformance: no mode " + name + "; there are " + mode_names());
    chosen.push_back(*found);
  }
  return options.modes.empty() ? all : chosen;
}

/// Why a result may not come from there, or nothing.
std::string forbidden(const Case& c, const Mode& mode, const Outcome& outcome) {
  if (!outcome.compiled || outcome.source == Source::generated) return {};
  // The gradient of an op may be one of a view, or of a host op.
  if (mode.gradients && (outcome.source == Source::view || outcome.source == Source::host)) return {};
  const Function* function = mode.inplace ? find_inplace_function(c) : find_function(c);
  const ir::OpInfo* row = function ? nullptr : ir::find_op(c.op);
  bool allowed = false;
  if (outcome.source == Source::view) allowed = function || row->kind == ir::OpKind::view;
  if (outcome.source == Source::host) {
    const ir::OpInfo* op = ir::find_op(c.op);
    allowed = (function && includes(function->may, May::use_host)) || (op && op->has(ir::kHost));
  }
  if (outcome.source == Source::graph_break)
    allowed = function ? includes(function->may, May::break_graph) : row->has(ir::kMayBreak);
  if (allowed) return {};
  return std::string("came from a ") + kSourceNames[static_cast<int>(outcome.source)] +
         (outcome.reason.empty() ? "" : ": " + outcome.reason);
}

void run_case(const Case& c, const std::vector<Mode>& modes, Report& report) {
  const size_t failures_before = report.failures.size();
  const int64_t runs_before = report.runs;
  bool gradients = false, wrong_gradients = false;
  for (const Mode& mode : modes) {
    if (!mode.unavailable.empty() || (mode.takes && !mode.takes(c))) continue;
    std::string why;
    try {
      BoundCase bound = mode.inplace ? bind_inplace(c) : bind(c);
      if (!bound) continue;
      Outcome outcome = mode.run(c, bound);
      report.sizes_varied += outcome.sizes_varied;
      if (outcome.compiled) ++report.executed[static_cast<int>(outcome.source)];
      if (!outcome.judged) why = judge(c, outcome.results);
      if (why.empty()) why = forbidden(c, mode, outcome);
    } catch (const std::exception& e) {
      why = std::string("threw: ") + e.what();
    }
    ++report.runs;
    gradients |= mode.gradients;
    wrong_gradients |= mode.gradients && !why.empty();
    if (!why.empty()) report.failures.push_back({c.op, c.name, mode.name, why});
  }
  ++(report.failures.size() != failures_before ? report.failed
     : report.runs != runs_before              ? report.passed
                                               : report.not_run);
  report.grad_cases += gradients;
  if (gradients) ++(wrong_gradients ? report.grad_failed : report.grad_passed);
}

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Error("conformance: cannot read " + path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back()))) line.pop_back();
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

}  // namespace

std::string mode_names() {
  std::string names;
  for (const Mode& m : modes()) names += (names.empty() ? "" : ", ") + m.name;
  return names;
}

Report run(const Options& options) {
  Report report;
  std::vector<Mode> modes = modes_of(options);
  for (const Mode& m : modes)
    if (!m.unavailable.empty()) report.modes_unavailable.emplace_back(m.name, m.unavailable);
  std::vector<std::filesystem::path> files = files_of(options);
  for (size_t i = 0; i < files.size(); ++i) {
    std::vector<Case> cases = read_cases(files[i].string());
    if (!options.quiet) std::fprintf(stderr, "[%zu/%zu] %s\n", i + 1, files.size(), cases[0].op.c_str());
    if (!knows_op(cases[0].op)) {
      report.ops_missing.push_back(cases[0].op);
      report.cases_of_missing_ops += static_cast<int64_t>(cases.size());
      continue;
    }
    for (const Case& c : cases) run_case(c, modes, report);
  }
  if (!options.require_ops.empty())
    for (const std::string& op : lines_of(options.require_ops))
      if (!knows_op(op)) report.required_missing.push_back(op);
  return report;
}

CaseOps case_ops(const std::string& path) {
  Options options;
  options.path = path;
  CaseOps ops;
  for (const std::filesystem::path& file : files_of(options)) {
    const std::string op = read_cases(file.string())[0].op;
    ++ops.count;
    if (!knows_op(op)) ops.missing.push_back(op);
  }
  return ops;
}

}  // namespace ingot::conformance
