#include "eager/call/script.h"

#include <algorithm>

#include "base/module_path.h"
#include "eager/call/call.h"
#include "eager/data.h"

namespace ingot {
namespace eager {
namespace {

constexpr int kIndexBits = 20;  // of an origin; the rest is the writer's serial number
constexpr size_t kMostExpressions = 4096, kMostChecks = 4096;
constexpr size_t kNear = 256;  // how far back the same is looked for

}  // namespace

int64_t combined(detail::SizeOperator op, int64_t a, int64_t b) {
  using detail::SizeOperator;
  const uint64_t x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  switch (op) {
    case SizeOperator::add:
      return static_cast<int64_t>(x + y);
    case SizeOperator::subtract:
      return static_cast<int64_t>(x - y);
    case SizeOperator::multiply:
      return static_cast<int64_t>(x * y);
    default:
      break;
  }
  if (b == 0) throw Error("Size: got a division of " + std::to_string(a) + " by zero, expected another divisor");
  if (b == -1) return op == SizeOperator::divide ? static_cast<int64_t>(-x) : 0;
  return op == SizeOperator::divide ? a / b : a % b;
}

bool Script::captures(const Tensor& tensor) const {
  for (const Line& line : lines_)
    for (const LineOperand& operand : line.operands)
      if (operand.tensor.kind == ScriptTensor::Kind::captured && operand.tensor.captured.is_same(tensor)) return true;
  return false;
}

ScriptTensor Script::source(const Tensor& tensor) const {
  ScriptTensor s;
  const detail::TensorImpl* impl = tensor.impl();
  if (!impl) return s;
  auto argument = std::find(arguments_.begin(), arguments_.end(), impl);
  if (impl->trace == segment_) {
    s.kind = ScriptTensor::Kind::value;
    s.number = impl->value;
  } else if (argument != arguments_.end()) {
    s.kind = ScriptTensor::Kind::argument;
    s.number = static_cast<uint32_t>(argument - arguments_.begin());
  } else {
    s.kind = ScriptTensor::Kind::captured;
    s.captured = tensor;
  }
  return s;
}

struct Script::Repetition {
  const Script& script;
  std::span<const Tensor> arguments;
  std::vector<Tensor> values{};
  std::vector<std::optional<int64_t>> known{};  // of each expression
  std::vector<size_t> pending{};

  const Tensor& tensor(const ScriptTensor& s) const {
    switch (s.kind) {
      case ScriptTensor::Kind::argument:
        return arguments[s.number];
      case ScriptTensor::Kind::captured:
        return s.captured;
      case ScriptTensor::Kind::value:
        return values[s.number];
      default:
        return TensorArg().get();
    }
  }
  // Each expression is worked out once, when it is first asked for: then its tensors are made.
  int64_t value(int64_t number) {
    if (known.size() < script.expressions_.size()) known.resize(script.expressions_.size());
    pending.assign(1, static_cast<size_t>(number));
    while (!pending.empty()) {
      const size_t at = pending.back();
      const Expression& e = script.expressions_[at];
      if (e.kind == Expression::Kind::combined && !known[at]) {
        const size_t a = static_cast<size_t>(e.a), b = static_cast<size_t>(e.b);
        if (!known[a]) pending.push_back(a);
        if (!known[b]) pending.push_back(b);
        if (pending.back() != at) continue;
        known[at] = combined(e.op, *known[a], *known[b]);
      } else if (!known[at]) {
        known[at] = leaf(e);
      }
      pending.pop_back();
    }
    return *known[static_cast<size_t>(number)];
  }
  int64_t leaf(const Expression& e) const {
    switch (e.kind) {
      case Expression::Kind::argument_size:
        return arguments[static_cast<size_t>(e.a)].impl()->sizes[static_cast<size_t>(e.b)];
      case Expression::Kind::value_size:
        return values[static_cast<size_t>(e.a)].impl()->sizes[static_cast<size_t>(e.b)];
      default:
        return e.a;
    }
  }
  bool is_known(const ScriptTensor& s) const {
    return s.kind != ScriptTensor::Kind::value || (s.number < values.size() && values[s.number].defined());
  }
  void keep(const ScriptTensor& s, const Tensor& made) {
    if (s.kind != ScriptTensor::Kind::value) return;
    if (values.size() <= s.number) values.resize(s.number + 1);
    values[s.number] = made;
  }
  bool line(const Line& line);
};

bool Script::Repetition::line(const Line& line) {
  const ModulePathScope path(line.module);
  const AutoGradMode mode(line.gradients);
  std::vector<ir::Attr> attrs = line.attrs;
  for (const Source& s : line.sources) attrs[s.attribute].list[s.item].code = value(s.expression);
  if (line.composite) {
    Ints sizes;
    for (Dim d : attrs[0].list) sizes.push_back(d.code);
    std::vector<Tensor> made =
        line.composite(tensor(line.operands[0].tensor), attrs[0].present() ? IntList(sizes) : IntList());
    if (made.size() != line.made.size()) return false;
    for (size_t i = 0; i < made.size(); ++i) {
      // What was given back as it came (contiguous()) must be so again: else one stood for two.
      const ScriptTensor& before = line.made[i];
      if (is_known(before) && !made[i].is_same(tensor(before))) return false;
      keep(before, made[i]);
    }
    return true;
  }
  std::vector<Operand> operands;
  for (size_t i = 0; i < line.operands.size(); ++i) {
    const LineOperand& o = line.operands[i];
    if (!o.scalar) {
      operands.push_back(o.tensor.kind == ScriptTensor::Kind::none ? Operand() : Operand(tensor(o.tensor)));
      continue;
    }
    Operand& scalar = operands.emplace_back(o.value);
    if (o.expression < 0) continue;
    scalar.integer = value(o.expression);
    scalar.number = static_cast<double>(scalar.integer);
    scalar.special = 0;
    if (!ir::info(line.op).list_first) note_special(line.op, static_cast<int>(i), &scalar);
  }
  OpCall call{line.op, false, operands, attrs, line.location};
  settle(call, attrs);
  call.inplace = line.inplace;
  std::vector<Tensor> outputs(line.made.size());
  dispatch(call, outputs);
  for (size_t i = 0; i < outputs.size(); ++i) keep(line.made[i], outputs[i]);
  return true;
}

bool Script::repeat(std::span<const Tensor> arguments, std::span<const ScriptTensor> results,
                    std::span<Tensor> out) const {
  Repetition again{*this, arguments};
  size_t next_check = 0;
  for (size_t i = 0; i <= lines_.size(); ++i) {
    for (; next_check < checks_.size() && checks_[next_check].line <= i; ++next_check) {
      const Check& c = checks_[next_check];
      const int64_t a = again.value(c.a), b = again.value(c.b);
      if ((c.less ? a < b : a == b) != c.holds) return false;
    }
    if (i < lines_.size() && !again.line(lines_[i])) return false;
  }
  for (size_t i = 0; i < results.size(); ++i) out[i] = again.tensor(results[i]);
  return true;
}

ScriptWriter::ScriptWriter(std::span<const detail::TensorImpl* const> arguments, uint64_t segment)
    : Interceptor(Stage::observe) {
  static std::atomic<uint64_t> next{1};
  serial_ = next.fetch_add(1, std::memory_order_relaxed);
  script_.arguments_.assign(arguments.begin(), arguments.end());
  script_.segment_ = segment;
}

void ScriptWriter::call(const OpCall& call, std::span<Tensor> outputs) {
  try {
    proceed(call, outputs);
  } catch (...) {
    refused();
    throw;
  }
  line(call, outputs);
}

void ScriptWriter::only_here(const char* reason) {
  if (!inside && script_.only_here_.empty()) script_.only_here_ = reason;
}

uint32_t ScriptWriter::add(const Script::Expression& e) {
  std::vector<Script::Expression>& all = script_.expressions_;
  for (size_t i = all.size(), end = i > kNear ? i - kNear : 0; i-- > end;)
    if (all[i] == e) return static_cast<uint32_t>(i);
  if (all.size() >= kMostExpressions) only_here("too much is computed from sizes");
  all.push_back(e);
  return static_cast<uint32_t>(all.size() - 1);
}

/// The expression of a number, or nothing if it is of another recording: then it is just a number.
std::optional<uint32_t> ScriptWriter::expression(int64_t, uint64_t origin) {
  if (origin >> kIndexBits != serial_) return {};
  return static_cast<uint32_t>(origin & ((1u << kIndexBits) - 1));
}

Size ScriptWriter::size(const detail::TensorImpl& impl, int64_t dim) {
  const int64_t value = impl.sizes[static_cast<size_t>(dim)];
  if (inside || !script_.only_here_.empty()) return Size::of(value);
  Script::Expression e;
  auto argument = std::find(script_.arguments_.begin(), script_.arguments_.end(), &impl);
  if (impl.trace == script_.segment_) {
    e.kind = Script::Expression::Kind::value_size;
    e.a = impl.value;
  } else if (argument != script_.arguments_.end()) {
    e.kind = Script::Expression::Kind::argument_size;
    e.a = argument - script_.arguments_.begin();
  } else {
    return Size::of(value);  // of a captured tensor, which stays the same
  }
  e.b = dim;
  return Size::of(value, serial_ << kIndexBits | add(e));
}

Size ScriptWriter::combine(detail::SizeOperator op, const Size& a, const Size& b, int64_t value) {
  if (inside || !script_.only_here_.empty()) return Size::of(value);
  std::optional<uint32_t> x = expression(a.value(), a.origin()), y = expression(b.value(), b.origin());
  if (!x && !y) return Size::of(value);
  Script::Expression e;
  e.kind = Script::Expression::Kind::combined;
  e.op = op;
  e.a = x ? *x : add({.a = a.value()});
  e.b = y ? *y : add({.a = b.value()});
  return Size::of(value, serial_ << kIndexBits | add(e));
}

void ScriptWriter::check(const Size& a, const Size& b, bool less, bool holds) {
  if (inside || !script_.only_here_.empty()) return;
  std::optional<uint32_t> x = expression(a.value(), a.origin()), y = expression(b.value(), b.origin());
  if (!x && !y) return;
  if (script_.checks_.size() >= kMostChecks) return only_here("too much depends on sizes");
  const uint32_t i = x ? *x : add({.a = a.value()}), j = y ? *y : add({.a = b.value()});
  std::vector<Script::Check>& all = script_.checks_;
  for (size_t c = all.size(), end = c > kNear ? c - kNear : 0; c-- > end;)
    if (all[c].a == i && all[c].b == j && all[c].less == less) return;  // its outcome is the same
  all.push_back({i, j, less, holds, script_.lines_.size()});
}

void ScriptWriter::attribute(int attribute, size_t item, uint64_t origin) {
  if (std::optional<uint32_t> e = expression(0, origin); e && !inside)
    noted_.sources.push_back({static_cast<uint32_t>(attribute), static_cast<uint32_t>(item), *e});
}

void ScriptWriter::given(OpId op, std::span<const ir::Attr> attrs) {
  if (inside) return;
  noted_.op = op;
  noted_.attrs.assign(attrs.begin(), attrs.end());
}

void ScriptWriter::module(const std::shared_ptr<nn::Module>& module) {
  if (known_modules_.insert(module.get()).second) modules_.push_back(module);
}

void ScriptWriter::refused() {
  // At other sizes it may be taken: the script, which holds what was done, does not tell.
  if (script_.only_here_.empty()) script_.only_here_ = "an op refused its arguments";
  if (inside) return;
  noted_.sources.clear();
  noted_.attrs.clear();
}

void ScriptWriter::line(const OpCall& call, std::span<const Tensor> outputs) {
  if (inside || !script_.only_here_.empty()) return;
  if (call.derivative) return only_here("it asks for gradients");
  if (ir::info(call.op).has(ir::kRandom)) only_here("it draws random numbers");
  Script::Line& line = script_.lines_.emplace_back();
  line.op = call.op;
  line.inplace = call.inplace;
  line.location = caller_line(call.location);
  line.module = module_path();
  for (const Operand& operand : call.operands) {
    Script::LineOperand& o = line.operands.emplace_back();
    o.scalar = operand.kind == Operand::Kind::scalar;
    if (operand.kind == Operand::Kind::tensor) o.tensor = script_.source(*operand.tensor);
    if (!o.scalar) continue;
    o.value = operand;
    if (std::optional<uint32_t> e = expression(operand.integer, operand.size_origin)) o.expression = *e;
  }
  const bool given = !call.attrs.empty() && noted_.op == call.op && noted_.attrs.size() == call.attrs.size();
  if (given)
    line.attrs = std::move(noted_.attrs);
  else
    line.attrs.assign(call.attrs.begin(), call.attrs.end());
  noted_.attrs.clear();
  const ir::OpInfo& row = ir::info(call.op);
  for (const Script::Source& s : noted_.sources) {
    const ir::ArgKind kind = row.attribute(static_cast<int>(s.attribute)).kind;
    const int64_t value = line.attrs[s.attribute].list[s.item].code;
    if (kind == ir::ArgKind::size || kind == ir::ArgKind::sizes)
      line.sources.push_back(s);
    else
      script_.checks_.push_back({s.expression, add({.a = value}), false, true, script_.lines_.size() - 1});
  }
  noted_.sources.clear();
  for (const Tensor& output : outputs) line.made.push_back(script_.source(output));
  for (ScriptTensor& made : line.made)
    if (made.kind == ScriptTensor::Kind::captured && !call.inplace) only_here("an op ran by itself");
}

void ScriptWriter::line(const Tensor& self, const IntList& sizes, Script::Composite composite,
                        std::span<const Tensor> outputs, Location location) {
  if (!script_.only_here_.empty()) return;
  Script::Line line;
  line.location = caller_line(location);
  line.module = module_path();
  line.operands.emplace_back().tensor = script_.source(self);
  Dims list;
  for (int64_t v : sizes.numbers()) list.push_back(raw_size(v));
  line.attrs.push_back(sizes.present() ? ir::Attr::of(std::move(list)) : ir::Attr());
  for (size_t i = 0; i < sizes.origins().size(); ++i)
    if (std::optional<uint32_t> e = expression(sizes.numbers()[i], sizes.origins()[i]))
      line.sources.push_back({0, static_cast<uint32_t>(i), *e});
  line.composite = std::move(composite);
  for (const Tensor& output : outputs) line.made.push_back(script_.source(output));
  script_.lines_.push_back(std::move(line));
}

}  // namespace eager

}  // namespace ingot
