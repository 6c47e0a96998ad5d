#include "eager/call/call.h"

#include <bit>

#include "base/function_scope.h"
#include "eager/call/batch.h"
#include "eager/call/infer.h"
#include "eager/call/script.h"
#include "eager/data.h"
#include "ir/graph.h"
#include "ir/rules/rules.h"

namespace ingot::eager {
namespace {

using ir::ArgInfo;
using ir::ArgKind;
using ir::Attr;

struct Settler {
  const OpCall& call;
  const ir::OpInfo& op = ir::info(call.op);
  const ArgInfo* argument = nullptr;
  const detail::TensorImpl* self = nullptr;
  int64_t start = 0;  // of the clamped attribute before

  [[noreturn]] void fail(int64_t got, const std::string& expected) const {
    eager::fail(op.name, argument->name, std::to_string(got), expected, call.location);
  }
  int64_t rank() const { return self ? static_cast<int64_t>(self->sizes.size()) : 0; }

  /// Wraps a negative position; it must lie in [-count, count).
  int64_t position(int64_t i, int64_t count, const char* what) const {
    if (i < -count || i >= count)
      fail(i, std::string(what) + " from " + std::to_string(-count) + " to " + std::to_string(count - 1));
    return i < 0 ? i + count : i;
  }
  void dim(int64_t& d, int64_t count) const {
    if (d < 0 || d >= count) d = position(d, count, "a dim");
  }
  void no_negative(Attr& a) const {
    for (Dim d : a.list)
      if (d.code < 0) fail(d.code, "no negative number");
  }

  void inferred(Attr& a) const {
    int64_t count = 1;
    for (int64_t s : self->sizes) count *= s;
    Ints sizes;
    for (Dim d : a.list) sizes.push_back(d.code);
    sizes = resolve_sizes(op.name, sizes, count, call.location);
    a.list.assign(sizes.begin(), sizes.end());
  }
  void kept(Attr& a) const {
    int64_t lead = static_cast<int64_t>(a.list.size()) - rank();
    for (size_t i = 0; i < a.list.size(); ++i) {
      int64_t d = static_cast<int64_t>(i) - lead;
      if (a.list[i].code >= 0) continue;
      if (a.list[i].code != -1 || d < 0) fail(a.list[i].code, "a size, or -1 for a dim that the tensor has");
      a.list[i] = self->sizes[d];
    }
  }
  /// Along attribute `dim`, which stands before and is settled.
  int64_t size_of_dim(std::span<const Attr> attrs) const {
    if (!rank()) eager::fail(op.name, "self", "a zero-dim tensor", "a tensor with at least one dim", call.location);
    return self->sizes[attrs[ir::attribute_position(op, "dim")].integer];
  }
  void wrapped(Attr& a, std::span<const Attr> attrs) const {
    int64_t& index = a.list[0].code;
    index = position(index, size_of_dim(attrs), "an index");
  }
  // Where the end stands before the start, nothing lies between them.
  void clamped(Attr& a, std::span<const Attr> attrs) {
    int64_t& at = a.list[0].code;
    const int64_t size = size_of_dim(attrs);
    if (at < 0) at += size;
    at = start = std::min(std::max(at, start), size);
  }
  // A shift of a dim (of all elements as one, where no dims are given) lies in [0, size).
  void cyclic(Attr& a, std::span<const Attr> attrs) const {
    if (!self) return;
    const Dims& dims = attrs[ir::attribute_position(op, "dims")].list;
    for (size_t i = 0; i < a.list.size(); ++i) {
      int64_t n = 1;
      if (dims.empty())
        for (int64_t s : self->sizes) n *= s;
      else if (i < dims.size() && rank())
        n = self->sizes[position(dims[i].code, rank(), "a dim")];
      int64_t& shift = a.list[i].code;
      shift = n ? (shift % n + n) % n : 0;
    }
  }

  void size(Attr& a, std::span<const Attr> attrs) {
    switch (argument->settling) {
      case ir::Settling::none:
        return no_negative(a);
      case ir::Settling::inferred:
        return inferred(a);
      case ir::Settling::kept:
        return kept(a);
      case ir::Settling::wrapped:
        return wrapped(a, attrs);
      case ir::Settling::clamped:
        return clamped(a, attrs);
      case ir::Settling::cyclic:
        return cyclic(a, attrs);
    }
  }

  /// The tensor whose dims count: the first one that is not passed over.
  const detail::TensorImpl* counted() const {
    for (const Operand& o : call.operands) {
      if (o.kind != Operand::Kind::tensor) return nullptr;
      const detail::TensorImpl* t = o.tensor->impl();
      if (!op.has(ir::kSkipsEmpty) || !ir::passed_over(t->sizes)) return t;
    }
    return nullptr;
  }

  void all(std::span<Attr> attrs) {
    self = counted();
    size_t i = 0;
    for (const ArgInfo& info : op.arguments) {
      if (ir::is_operand(info.kind)) continue;
      Attr& a = attrs[i++];
      // No sizes at all are those of a zero-dim tensor.
      if (!a.present() && info.kind == ArgKind::sizes && !info.optional) a = Attr::of(Dims());
      if (!a.present()) continue;
      argument = &info;
      switch (info.kind) {
        case ArgKind::dim:
          if (op.has(ir::kSkipsEmpty) && !self) a.integer = 0;  // of nothing but empty tensors: PyTorch takes any
          dim(a.integer, std::max<int64_t>(rank(), 1));
          break;
        case ArgKind::new_dim:
          dim(a.integer, rank() + 1);
          break;
        case ArgKind::dims:
          for (Dim& d : a.list) dim(d.code, std::max<int64_t>(rank(), 1));
          break;
        case ArgKind::size:
        case ArgKind::sizes:
          size(a, attrs);
          break;
        case ArgKind::integers:
          no_negative(a);
          break;
        default:
          break;
      }
    }
  }
};

}  // namespace

void fail(std::string_view op, std::string_view argument, const std::string& got, const std::string& expected,
          Location location) {
  std::string what(argument);
  if (!what.empty()) what += ": ";
  throw Error(error_text(op, what.append("got ").append(got).append(", expected ").append(expected), location));
}

Tensor as_asked(Tensor made, const TensorOptions& options, Location location) {
  if (options.tracked) made.requires_grad_(true, location);
  return made;
}

const Tensor& present(std::string_view op, std::string_view argument, const TensorArg& a) {
  if (!a.tensor || !a.tensor->defined()) fail(op, argument, "an undefined tensor", "a tensor", a.location);
  return *a.tensor;
}

int64_t wrapped_dim(std::string_view op, std::string_view argument, int64_t d, int64_t rank, Location location) {
  int64_t count = std::max<int64_t>(rank, 1);
  if (d < -count || d >= count)
    fail(op, argument, std::to_string(d), "a dim from " + std::to_string(-count) + " to " + std::to_string(count - 1),
         location);
  return d < 0 ? d + count : d;
}

Ints spread(const IntList& given, size_t count) {
  return given.items().size() == count ? given.items() : Ints(count, given.items()[0]);
}

Ints resolve_sizes(std::string_view op, std::span<const int64_t> sizes, int64_t count, Location location) {
  Ints resolved(sizes);
  int64_t known = 1, open = -1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == -1 && open < 0)
      open = static_cast<int64_t>(i);
    else if (sizes[i] < 0)
      fail(op, "size", std::to_string(sizes[i]), "sizes, at most one of them -1", location);
    else if (__builtin_mul_overflow(known, sizes[i], &known))
      fail(op, "size", "sizes of more than 2^63 elements", "sizes of " + std::to_string(count) + " elements", location);
  }
  if (open < 0) return resolved;
  if (known == 0 || count % known != 0)
    fail(op, "size", "-1 beside sizes of " + std::to_string(known) + " elements",
         "sizes that divide the " + std::to_string(count) + " elements", location);
  resolved[open] = count / known;
  return resolved;
}

void settle(const OpCall& call, std::span<Attr> attrs) {
  ScriptWriter* writer = ScriptWriter::current();
  if (!writer) return Settler{call}.all(attrs);
  writer->given(call.op, attrs);
  try {
    Settler{call}.all(attrs);
  } catch (...) {
    writer->refused();
    throw;
  }
}

IntList sizes_of(const Tensor& tensor, Location location) {
  IntList sizes{std::span<const int64_t>()};
  for (int64_t d = 0; d < tensor.dim(location); ++d) sizes.add(tensor.size(d));
  return sizes;
}

void note_size(int attribute, size_t item, uint64_t origin) {
  if (ScriptWriter* writer = ScriptWriter::current()) writer->attribute(attribute, item, origin);
}

int mode_number(OpId op, int index, std::string_view word, Location location) {
  const ArgInfo& argument = ir::info(op).attribute(index);
  std::string known;
  for (size_t i = 0; i < argument.modes.size(); ++i) {
    if (argument.modes[i] == word) return static_cast<int>(i);
    known += (i ? ", " : "") + ("\"" + argument.modes[i] + "\"");
  }
  if (ScriptWriter* writer = ScriptWriter::current()) writer->refused();
  fail(ir::info(op).name, argument.name, "\"" + std::string(word) + "\"", "one of " + known, location);
}

void note_special(OpId op, int number, Operand* operand) {
  if (operand->kind != Operand::Kind::scalar || operand->category == Category::boolean) return;
  const std::vector<double>& special = ir::info(op).operand(number).special;
  // By bits: where subnormal numbers are taken for zero, they are not special. -0 is 0.
  const auto bits = [](double x) {
    const auto all = std::bit_cast<uint64_t>(x);
    return all << 1 ? all : 0;
  };
  const uint64_t given = bits(operand->number);
  for (size_t i = 0; i < special.size(); ++i)
    if (given == bits(special[i])) {
      operand->number = special[i];
      operand->special = static_cast<uint8_t>(i + 1);
      return;
    }
}

ir::Operand special_constant(const Operand& operand) {
  return operand.category == Category::floating ? ir::Operand::constant(operand.number)
                                                : ir::Operand::constant(operand.integer);
}

ir::Operand scalar_operand(ir::Graph& graph, const Operand& operand) {
  return operand.special ? special_constant(operand)
                         : ir::Operand::scalar(graph.add_scalar(operand.category), operand.category);
}

int64_t draws_of(const OpCall& call, IntArrayRef result) {
  const Tensor* first = !call.operands.empty() ? call.operands[0].tensor : nullptr;
  return std::max(count(result), first ? count(first->impl()->sizes) : 0);
}

void draw(const OpCall& call, std::span<Operand> seed_and_offset, const std::optional<Generator>& generator) {
  OutputMeta result;
  infer_outputs(call, {&result, 1});
  // A frozen call takes its draws from the default one.
  if (generator && interceptor(Stage::observe)) flush("draws from a generator of its own", call.location);
  const int64_t n = draws_of(call, result.sizes) * Batch::draws(call);
  const Draws draws = generator ? generator->take(n) : take_draws(n);
  seed_and_offset[0] = Operand(Scalar(draws.seed));
  seed_and_offset[1] = Operand(Scalar(draws.offset));
}

}  // namespace ingot::eager
