// PyTorch's operator cases against eager, interpreted and compiled code.
#pragma once
#include <string>
#include <vector>

namespace ingot::conformance {

struct Options {
  std::string path;                // folder of *.safetensors, or one file
  std::string require_ops;         // file with op names, one a line, that must not be missing; empty: none
  std::string filter;              // only ops whose name has this in it
  std::vector<std::string> modes;  // by name; empty: all
  int shard = 0, shards = 1;       // every shards-th op from `shard` on
  bool quiet = false;              // no progress on stderr
};

struct Failure {
  std::string op, name, mode, why;
};

struct Report {
  int64_t passed = 0, failed = 0;  // cases; one passes if it does in every mode, one of them at least
  int64_t not_run = 0;             // cases that none of the modes has a form for
  int64_t runs = 0;                // of a case in a mode
  int64_t grad_cases = 0, grad_passed = 0, grad_failed = 0;  // the same of those whose gradients a mode asked for
  int64_t sizes_varied = 0;                                  // dims along which one compiled function met three sizes
  int64_t cases_of_missing_ops = 0;
  std::vector<std::string> ops_missing, required_missing;
  int64_t executed[5] = {};  // by what made the result, in the order of Source
  std::vector<Failure> failures;
  std::vector<std::pair<std::string, std::string>> modes_unavailable;  // name and reason
  bool good() const { return passed > 0 && failed == 0 && required_missing.empty(); }
};

/// Of the ops that the case files of a folder call, how many there are and which are not in the table.
struct CaseOps {
  int64_t count = 0;
  std::vector<std::string> missing;
};
CaseOps case_ops(const std::string& path);

std::string mode_names();
/// Throws Error where the folder, a file, a mode's name or the shard is wrong, or no op matches the filter.
Report run(const Options& options);

}  // namespace ingot::conformance
