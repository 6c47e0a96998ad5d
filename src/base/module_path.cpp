#include "base/module_path.h"

#include <array>
#include <mutex>
#include <unordered_set>
#include <utility>

#include "base/first_use.h"
#include "base/hash.h"
#include "base/mutex.h"
#include "base/thread_object.h"

namespace ingot {
namespace {

// One string per thread that modules lengthen and cut; a pointer to it stays cheap.
struct Path {
  std::string text;
  const std::string* kept = nullptr;                // the same; null: not asked for since it changed
  std::array<const std::string*, 256> recent = {};  // kept ones, by hash
};
constinit thread_local ThreadObject<Path> path;

/// The kept paths of the process.
class KeptPaths {
 public:
  const std::string* keep(const std::string& text) {
    std::lock_guard lock(mutex_);
    if (auto found = texts_.find(text); found != texts_.end()) return &*found;
    return texts_.size() < kMost ? &*texts_.insert(text).first : &past_the_bound_;
  }

 private:
  static constexpr size_t kMost = 65536;
  Mutex mutex_;
  std::unordered_set<std::string> texts_;
  const std::string past_the_bound_ = "...";
};
constinit FirstUse<KeptPaths> kept_paths;

}  // namespace

const char* module_path() { return path->text.c_str(); }

const std::string* kept_module_path() {
  Path& mine = *path;
  if (mine.kept) return mine.kept;
  const std::string*& recent = mine.recent[hash_text(mine.text) % mine.recent.size()];
  if (!recent || *recent != mine.text) recent = kept_paths->keep(mine.text);
  return mine.kept = recent;
}

size_t push_module(const std::string& name) {
  Path& mine = *path;
  size_t length = mine.text.size();
  if (name.empty()) return length;
  if (length) mine.text += '.';
  mine.text += name;
  mine.kept = nullptr;
  return length;
}
void pop_module(size_t length) {
  path->text.resize(length);
  path->kept = nullptr;
}
ModulePathScope::ModulePathScope(std::string inner) : outer_(std::exchange(path->text, std::move(inner))) {
  path->kept = nullptr;
}
ModulePathScope::~ModulePathScope() {
  path->text = std::move(outer_);
  path->kept = nullptr;
}

}  // namespace ingot
