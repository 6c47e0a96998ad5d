#include "eager/size.h"

#include <ostream>

#include "eager/call/script.h"

namespace ingot {
namespace detail {

using eager::ScriptWriter;

namespace {

bool noted(const Size& a, const Size& b, bool less, bool holds) {
  if (a.origin() | b.origin())
    if (ScriptWriter* writer = ScriptWriter::current()) writer->check(a, b, less, holds);
  return holds;
}

}  // namespace

Size combine(SizeOperator op, const Size& a, const Size& b) {
  const int64_t value = eager::combined(op, a.value(), b.value());
  ScriptWriter* writer = a.origin() | b.origin() ? ScriptWriter::current() : nullptr;
  return writer ? writer->combine(op, a, b, value) : Size::of(value);
}

bool size_equal(const Size& a, const Size& b) { return noted(a, b, false, a.value() == b.value()); }
bool size_less(const Size& a, const Size& b) { return noted(a, b, true, a.value() < b.value()); }
int64_t pinned(int64_t value, uint64_t origin) {
  if (ScriptWriter* writer = ScriptWriter::current())
    writer->check(Size::of(value, origin), Size::of(value), false, true);
  return value;
}

}  // namespace detail

std::ostream& operator<<(std::ostream& out, const Size& size) { return out << static_cast<int64_t>(size); }

}  // namespace ingot
