#include "eager/execute/numerics.h"

#include <atomic>
#include <utility>

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

compiler::CodeLevel eager::code_level() {
  compiler::CodeLevel level{runtime::host_target(), numerics()};
  if (level.numerics == Numerics::strict) level.target.bf16_dot = false;
  return level;
}

eager::NumericsScope::NumericsScope(std::optional<Numerics> level) : before_(own_level) {
  if (level) own_level = level;
}
eager::NumericsScope::~NumericsScope() { own_level = before_; }

}  // namespace ingot
