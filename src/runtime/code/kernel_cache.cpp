#include "runtime/code/kernel_cache.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "base/first_use.h"
#include "base/hash.h"
#include "base/log.h"
#include "runtime/code/disassemble.h"

namespace ingot::runtime {

size_t KernelCache::Hash::operator()(std::string_view key) const { return hash_text(key); }

KernelCache& KernelCache::instance() {
  static constinit FirstUse<KernelCache> cache;
  return *cache;
}

LoadedKernelPtr KernelCache::find(std::string_view key) {
  std::lock_guard lock(mutex_);
  auto it = kernels_.find(key);
  if (it == kernels_.end()) return nullptr;
  it->second->hits.fetch_add(1, std::memory_order_relaxed);
  it->second->latest = ++uses_;
  return it->second;
}

KernelPtr KernelCache::source(std::string_view key) {
  std::lock_guard lock(mutex_);
  auto it = kernels_.find(key);
  return it == kernels_.end() ? nullptr : it->second->source;
}

LoadedKernelPtr KernelCache::load(const KernelPtr& source, double compile_ns) {
  if (LoadedKernelPtr known = find(source->key)) return known;
  auto start = std::chrono::steady_clock::now();
  auto kernel = std::make_shared<LoadedKernel>();
  kernel->source = source;
  kernel->context = source->context.get();
  if (source->code.empty()) {
    INGOT_CHECK(source->interpret != nullptr, source->text);
    kernel->entry = source->interpret;
  } else {
    kernel->code = ExecutableBlock(source->code, source->name);
    kernel->entry = reinterpret_cast<KernelEntry>(const_cast<void*>(kernel->code.address()));
  }
  kernel->compile_ns =
      compile_ns + std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
  if (log_enabled(Topic::cache))
    log(Topic::cache, "new kernel " + source->name + ": " + std::to_string(source->code.size()) + " bytes");
  if (log_enabled(Topic::kernels))
    log(Topic::kernels, source->name + ": " + std::to_string(source->code.size()) + " bytes\n" + source->text);
  if (log_enabled(Topic::asm_))
    log(Topic::asm_, source->name + (source->code.empty() ? ": interpreted, no code" : "") + "\n" +
                         disassemble(source->code, source->code_bytes));
  std::lock_guard lock(mutex_);
  kernel->latest = ++uses_;
  fresh_bytes_ += static_cast<int64_t>(source->code.size());
  if (++fresh_ > kMostUnused / 2 || fresh_bytes_ > kMostUnusedBytes / 2) drop_unused();
  return kernels_.try_emplace(source->key, std::move(kernel)).first->second;  // another thread may have been first
}

// Down to half of what may be kept; the other half fills up until it is called again.
void KernelCache::drop_unused() {
  std::vector<LoadedKernelPtr*> unused;
  for (auto& [key, kernel] : kernels_)
    if (kernel.use_count() == 1) unused.push_back(&kernel);
  std::sort(unused.begin(), unused.end(), [](const auto* a, const auto* b) { return (*a)->latest > (*b)->latest; });
  int64_t bytes = 0;
  for (size_t i = 0; i < unused.size(); ++i) {
    bytes += static_cast<int64_t>((*unused[i])->source->code.size());
    if (i < kMostUnused / 2 && bytes <= kMostUnusedBytes / 2) continue;
    unused[i]->reset();
    ++evictions_;
  }
  std::erase_if(kernels_, [](const auto& entry) { return !entry.second; });
  fresh_ = 0, fresh_bytes_ = 0;
}

std::vector<LoadedKernelPtr> KernelCache::kernels() {
  std::vector<LoadedKernelPtr> all;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [key, kernel] : kernels_) all.push_back(kernel);
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::tie(a->source->name, a->source->key) < std::tie(b->source->name, b->source->key);
  });
  return all;
}

KernelCache::Figures KernelCache::figures() {
  std::lock_guard lock(mutex_);
  Figures figures{static_cast<int64_t>(kernels_.size()), 0, evictions_};
  for (const auto& [key, kernel] : kernels_) figures.code_bytes += static_cast<int64_t>(kernel->source->code.size());
  return figures;
}

void KernelCache::clear() {
  std::lock_guard lock(mutex_);
  kernels_.clear();
}

}  // namespace ingot::runtime
