// The command in a process of its own, as a user runs it.
#pragma once
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

namespace ingot::test {

struct Outcome {
  int code;
  std::string out, error;
  nlohmann::json json() const { return nlohmann::json::parse(out); }
};

/// Runs `ingot` with these arguments, as a shell reads them.
inline Outcome command(const std::string& arguments) {
  const std::string errors = testing::TempDir() + "/ingot_stderr_" + std::to_string(getpid());
  FILE* pipe = popen((INGOT_COMMAND " " + arguments + " 2>" + errors).c_str(), "r");
  Outcome run;
  char buffer[4096];
  while (size_t n = fread(buffer, 1, sizeof buffer, pipe)) run.out.append(buffer, n);
  run.code = WEXITSTATUS(pclose(pipe));
  std::ifstream file(errors);
  run.error.assign(std::istreambuf_iterator<char>(file), {});
  std::remove(errors.c_str());
  return run;
}

}  // namespace ingot::test
