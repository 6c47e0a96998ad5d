#include "eager/execute/numerics.h"

#include <atomic>
#include <utility>

#include "base/hot.h"
#include "compiler/code_level.h"
#include "eager/call/dispatch.h"
#include "runtime/cpu.h"

namespace ingot {
namespace {

std::atomic<Numerics> global_level{Numerics::default_};
thread_local std::optional<Numerics> own_level;

}  // namespace

void set_numerics(Numerics level) {
  // What was recorded before was called under the level that held then.
  eager::flush("set_numerics", Location::none());
  global_level.store(level, std::memory_order_relaxed);
}

Numerics numerics() { return own_level ? *own_level : global_level.load(std::memory_order_relaxed); }

INGOT_HOT compiler::CodeLevel eager::code_level() {
  // Copied whole from where it has lain for long: fields just written are not read back as one word without a wait.
  static constexpr Target without_dot[] = {{Isa::none}, {Isa::avx2}, {Isa::avx512}};
  const Target& host = runtime::host_target();
  const Numerics level = numerics();
  return {level == Numerics::strict ? without_dot[static_cast<size_t>(host.isa)] : host, level};
}

eager::NumericsScope::NumericsScope(std::optional<Numerics> level) : before_(own_level) {
  if (level) own_level = level;
}
eager::NumericsScope::~NumericsScope() { own_level = before_; }

}  // namespace ingot
