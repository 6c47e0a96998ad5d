// The programs of the process, by key: who asks for one that was compiled before is given it.
#pragma once
#include <list>
#include <string_view>
#include <unordered_map>

#include "base/mutex.h"
#include "compiler/compiled_graph.h"

namespace ingot::compiler {

/// Bounded; what was not asked for the longest goes first. Who was given a program keeps it.
class ProgramCache {
 public:
  static ProgramCache& instance();

  /// The program with this key, or null.
  CompiledGraphPtr find(std::string_view key);
  /// Keeps it, and returns it, or the one with its key that another thread brought meanwhile.
  CompiledGraphPtr keep(CompiledGraphPtr program);
  void clear();

  static constexpr size_t kMostEntries = 4096;
  static constexpr int64_t kMostBytes = int64_t{64} << 20;
  struct Figures {
    int64_t programs = 0, bytes = 0, evictions = 0;
  };
  Figures figures();

 private:
  struct Entry {
    CompiledGraphPtr program;
    int64_t bytes;
  };
  Mutex mutex_;
  std::list<Entry> entries_;  // the latest used first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> by_key_;
  int64_t bytes_ = 0, evictions_ = 0;
};

}  // namespace ingot::compiler
