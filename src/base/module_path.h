// The path of the modules being called on this thread ("h.3.mlp_up"), which recorded ops and errors carry.
#pragma once
#include <cstddef>
#include <string>

namespace ingot {

const char* module_path();
/// The path as it is now, for as long as the process runs. Past 65,536 of them: "...".
const std::string* kept_module_path();
/// Appends a name; returns the length to go back to. An empty name changes nothing.
size_t push_module(const std::string& name);
void pop_module(size_t length);
/// Another path while it lives.
class ModulePathScope {
 public:
  explicit ModulePathScope(std::string path);
  ~ModulePathScope();
  ModulePathScope(const ModulePathScope&) = delete;

 private:
  std::string outer_;
};

}  // namespace ingot
