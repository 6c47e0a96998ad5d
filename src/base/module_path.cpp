#include "base/module_path.h"

#include <utility>

#include "base/thread_object.h"

namespace ingot {
namespace {

// One string per thread that modules lengthen and cut; a pointer to it stays cheap.
constinit thread_local ThreadObject<std::string> path;

}  // namespace

const char* module_path() { return path->c_str(); }

size_t push_module(const std::string& name) {
  std::string& whole = *path;
  size_t length = whole.size();
  if (!name.empty()) {
    if (length) whole += '.';
    whole += name;
  }
  return length;
}
void pop_module(size_t length) { path->resize(length); }
ModulePathScope::ModulePathScope(std::string inner) : outer_(std::exchange(*path, std::move(inner))) {}
ModulePathScope::~ModulePathScope() { *path = std::move(outer_); }

}  // namespace ingot
