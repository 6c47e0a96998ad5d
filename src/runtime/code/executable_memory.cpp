#include "runtime/code/executable_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/first_use.h"
#include "base/mutex.h"
#include "runtime/code/code_names.h"

namespace ingot::runtime {
namespace {

constexpr int64_t kArena = 1 << 20;
constexpr int64_t kGrain = 64;

// One memory file mapped twice: where we write, and where we run. The two never share an address. Or, for one block,
// private pages that are written first and made executable then: where the system refuses memory files, and where perf
// watches, which finds names for private pages only.
struct Arena {
  char *writable = nullptr, *executable = nullptr;
  int64_t bytes = 0;
  int64_t blocks = 0;
  bool sealed = false;              // nothing more may come: private, or shared with another process since fork()
  std::map<int64_t, int64_t> free;  // offset -> length

  ~Arena() {
    if (writable) munmap(writable, bytes);
    if (executable && executable != writable) munmap(executable, bytes);
  }
  bool is_private() const { return executable == writable; }

  static std::unique_ptr<Arena> make(int64_t bytes) {
    auto arena = std::make_unique<Arena>();
    arena->bytes = bytes;
    int file = memfd_create("ingot-code", MFD_CLOEXEC);
    if (file < 0) return nullptr;
    void *writable = MAP_FAILED, *executable = MAP_FAILED;
    if (ftruncate(file, bytes) == 0) {
      writable = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
      executable = mmap(nullptr, bytes, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0);
    }
    close(file);
    if (writable != MAP_FAILED) arena->writable = static_cast<char*>(writable);
    if (executable != MAP_FAILED) arena->executable = static_cast<char*>(executable);
    if (!arena->writable || !arena->executable) return nullptr;
    arena->free[0] = bytes;
    return arena;
  }

  static std::unique_ptr<Arena> make_private(int64_t bytes) {
    auto arena = std::make_unique<Arena>();
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    arena->bytes = bytes;
    arena->writable = arena->executable = static_cast<char*>(memory);
    arena->free[0] = bytes;
    arena->sealed = true;
    return arena;
  }

  // Offset of a free piece of this length, or -1.
  int64_t take(int64_t length) {
    for (auto it = free.begin(); it != free.end(); ++it) {
      auto [offset, size] = *it;
      if (size < length) continue;
      free.erase(it);
      if (size > length) free[offset + length] = size - length;
      ++blocks;
      return offset;
    }
    return -1;
  }
  void give(int64_t offset, int64_t length) {
    auto next = free.lower_bound(offset);
    if (next != free.end() && next->first == offset + length) {
      length += next->second;
      next = free.erase(next);
    }
    if (next != free.begin() && std::prev(next)->first + std::prev(next)->second == offset)
      std::prev(next)->second += length;
    else
      free[offset] = length;
    --blocks;
  }
};

class Arenas {
 public:
  static Arenas& instance() {
    static constinit FirstUse<Arenas> arenas;
    return arenas.get([] { return Arenas(); });
  }

  std::pair<Arena*, int64_t> take(int64_t length) {
    std::lock_guard lock(mutex_);
    for (auto& arena : arenas_)
      if (!arena->sealed)
        if (int64_t offset = arena->take(length); offset >= 0) return {arena.get(), offset};
    const int64_t pages = (length + 4095) / 4096 * 4096;
    auto fresh = perf_watches() ? nullptr : Arena::make(std::max(kArena, pages));
    if (!fresh) fresh = Arena::make_private(pages);
    if (!fresh) return {nullptr, 0};
    arenas_.push_back(std::move(fresh));
    return {arenas_.back().get(), arenas_.back()->take(length)};
  }
  void give(Arena* arena, int64_t offset, int64_t length) {
    std::lock_guard lock(mutex_);
    arena->give(offset, length);
    if (arena->blocks == 0 && (arena->sealed || arena->bytes > kArena))
      std::erase_if(arenas_, [&](const auto& a) { return a.get() == arena; });
  }

 private:
  Arenas() {
    // After fork() parent and child see the same pages; each goes on in arenas of its own.
    at_fork([] { instance().seal(); }, [] { instance().seal(); });
  }
  void seal() {
    for (auto& arena : arenas_) arena->sealed = true;
  }

  Mutex mutex_;
  std::vector<std::unique_ptr<Arena>> arenas_;
};

[[noreturn]] void refused() {
  throw Error("the system refuses executable memory; INGOT_ISA=none interprets kernels instead");
}

int64_t rounded(int64_t bytes) { return (bytes + kGrain - 1) / kGrain * kGrain; }

}  // namespace

ExecutableBlock::ExecutableBlock(std::span<const uint8_t> code, const std::string& name)
    : bytes_(static_cast<int64_t>(code.size())) {
  INGOT_CHECK(bytes_ > 0);
  auto [arena, offset] = Arenas::instance().take(rounded(bytes_));
  if (!arena) refused();
  std::memcpy(arena->writable + offset, code.data(), code.size());
  std::memset(arena->writable + offset + bytes_, 0xcc, rounded(bytes_) - bytes_);
  if (arena->is_private() && mprotect(arena->executable, arena->bytes, PROT_READ | PROT_EXEC) != 0) {
    Arenas::instance().give(arena, offset, rounded(bytes_));
    refused();
  }
  arena_ = arena;
  address_ = arena->executable + offset;
  debugger_entry_ = announce_code(address_, bytes_, name);
}

ExecutableBlock::ExecutableBlock(ExecutableBlock&& other) noexcept { *this = std::move(other); }

ExecutableBlock& ExecutableBlock::operator=(ExecutableBlock&& other) noexcept {
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  std::swap(arena_, other.arena_);
  std::swap(debugger_entry_, other.debugger_entry_);
  return *this;
}

ExecutableBlock::~ExecutableBlock() {
  if (!arena_) return;
  withdraw_code(debugger_entry_);
  auto* arena = static_cast<Arena*>(arena_);
  Arenas::instance().give(arena, static_cast<const char*>(address_) - arena->executable, rounded(bytes_));
}

bool executable_memory_available() {
  static constinit FirstUse<const bool> available;
  return available.get([] {
    const uint8_t just_return[] = {0xc3};
    try {
      ExecutableBlock block(just_return, "probe");
      return true;
    } catch (const Error&) {
      return false;
    }
  });
}

}  // namespace ingot::runtime
