#include "runtime/memory/checked_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/error.h"
#include "base/first_use.h"

namespace ingot::runtime {
namespace {

constexpr int64_t kPage = 4096;
constexpr unsigned char kPattern = 0xC5;

enum class Checks { none, begin, end };

Checks checks() {
  static constinit FirstUse<const Checks> mode;
  return mode.get([] {
    const char* name = std::getenv("INGOT_CHECK_MEMORY");
    if (!name || !*name) return Checks::none;
    if (std::strcmp(name, "begin") == 0) return Checks::begin;
    if (std::strcmp(name, "end") == 0) return Checks::end;
    throw Error("INGOT_CHECK_MEMORY: unknown mode '" + std::string(name) + "'; there are: begin, end");
  });
}

// [guard][data and pattern][guard], the data at one end of its pages.
struct Layout {
  int64_t inner;  // bytes between the guards
  int64_t start;  // of the block, from the mapping's first byte
  explicit Layout(int64_t bytes)
      : inner(std::max<int64_t>(bytes + kPage - 1, kPage) / kPage * kPage),
        start(checks() == Checks::begin ? kPage : kPage + inner - bytes) {}
  int64_t length() const { return inner + 2 * kPage; }
};

}  // namespace

bool checks_memory() { return checks() != Checks::none; }

void* allocate_checked(int64_t bytes) {
  const Layout layout(bytes);
  void* mapping = mmap(nullptr, layout.length(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  char* base = static_cast<char*>(mapping);
  if (mapping == MAP_FAILED || mprotect(base + kPage, layout.inner, PROT_READ | PROT_WRITE) != 0)
    throw OutOfMemory("cannot allocate " + std::to_string(bytes) +
                      " bytes with guarded pages: " + std::strerror(errno));
  std::memset(base + kPage, kPattern, layout.inner);
  return base + layout.start;
}

void deallocate_checked(void* block, int64_t bytes) noexcept {
  const Layout layout(bytes);
  char* base = static_cast<char*>(block) - layout.start;
  const char* data = static_cast<char*>(block);
  auto intact = [](const char* from, const char* to) {
    return std::all_of(from, to, [](char c) { return static_cast<unsigned char>(c) == kPattern; });
  };
  if (!intact(base + kPage, data) || !intact(data + bytes, base + kPage + layout.inner)) {
    std::fprintf(stderr, "ingot: memory around a block of %lld bytes was written\n", static_cast<long long>(bytes));
    std::abort();
  }
  munmap(base, layout.length());
}

}  // namespace ingot::runtime
