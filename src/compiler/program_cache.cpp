#include "compiler/program_cache.h"

#include "base/first_use.h"

namespace ingot::compiler {

ProgramCache& ProgramCache::instance() {
  static constinit FirstUse<ProgramCache> cache;
  return *cache;
}

CompiledGraphPtr ProgramCache::find(std::string_view key) {
  std::lock_guard lock(mutex_);
  auto found = by_key_.find(key);
  if (found == by_key_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return entries_.front().program;
}

CompiledGraphPtr ProgramCache::keep(CompiledGraphPtr program) {
  const int64_t bytes = program->bytes();
  if (bytes > kMostBytes / 4) return program;  // it would drive out too many
  std::list<Entry> dropped;                    // destroyed without the lock
  std::lock_guard lock(mutex_);
  if (auto found = by_key_.find(program->key); found != by_key_.end()) return found->second->program;
  while (!entries_.empty() && (entries_.size() >= kMostEntries || bytes_ + bytes > kMostBytes)) {
    by_key_.erase(entries_.back().program->key);
    bytes_ -= entries_.back().bytes;
    ++evictions_;
    dropped.splice(dropped.begin(), entries_, std::prev(entries_.end()));
  }
  entries_.push_front({program, bytes});
  by_key_.emplace(program->key, entries_.begin());
  bytes_ += bytes;
  return program;
}

ProgramCache::Figures ProgramCache::figures() {
  std::lock_guard lock(mutex_);
  return {static_cast<int64_t>(entries_.size()), bytes_, evictions_};
}

void ProgramCache::clear() {
  std::list<Entry> dropped;
  std::lock_guard lock(mutex_);
  by_key_.clear();
  dropped.swap(entries_);
  bytes_ = 0;
}

}  // namespace ingot::compiler
