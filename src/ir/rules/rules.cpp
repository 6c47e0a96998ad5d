#include "ir/rules/rules.h"

#include "base/first_use.h"

namespace ingot::ir {

int operand_position(const OpInfo& op, std::string_view name) {
  int position = 0;
  for (const ArgInfo& argument : op.arguments) {
    if (!is_operand(argument.kind)) continue;
    if (argument.name == name) return position;
    ++position;
  }
  return -1;
}

int attribute_position(const OpInfo& op, std::string_view name) {
  int position = 0;
  for (const ArgInfo& argument : op.arguments) {
    if (is_operand(argument.kind)) continue;
    if (argument.name == name) return position;
    ++position;
  }
  return -1;
}

const Attr& attribute(const RuleContext& context, std::string_view name) {
  static constinit FirstUse<const Attr> absent;
  int position = attribute_position(info(context.op), name);
  return position < 0 ? *absent : context.attrs[position];
}

int64_t integer_attribute(const RuleContext& context, std::string_view name) {
  return attribute(context, name).integer;
}

bool boolean_attribute(const RuleContext& context, std::string_view name) {
  return attribute(context, name).integer != 0;
}

const OperandType& operand(const RuleContext& context, std::string_view name) {
  static constinit FirstUse<const OperandType> absent;
  int position = operand_position(info(context.op), name);
  return position < 0 ? *absent : context.operands[position];
}

std::string operand_name(const RuleContext& context, size_t i) {
  const OpInfo& op = info(context.op);
  std::string name = op.operand(static_cast<int>(i)).name;
  return op.list_first ? name + "[" + std::to_string(i) + "]" : name;
}

int64_t dim_of_positions(const DataCheck& check, std::span<const Attr> attrs, size_t rank) {
  switch (check.of) {
    case DataCheck::Of::attribute:
      return attrs[check.dim].present() ? attrs[check.dim].integer : -1;
    case DataCheck::Of::channel:
      return rank == 1 ? 0 : 1;
    default:
      return check.dim < 0 ? check.dim + static_cast<int64_t>(rank) : check.dim;
  }
}

Dims spread_sizes(RuleContext& context, std::string_view name, size_t count) {
  const Dims& given = attribute(context, name).list;
  if (given.size() != 1 && given.size() != count)
    context.fail(name, shape_text(context.dims, given), "1 or " + std::to_string(count) + " integers");
  return given.size() == count ? given : Dims(count, given[0]);
}

Ints spread(RuleContext& context, std::string_view name, size_t count) {
  Ints values;
  for (Dim value : spread_sizes(context, name, count)) {
    INGOT_CHECK(value.is_constant(), std::string(name));
    values.push_back(value.code);
  }
  return values;
}

void check_dim(RuleContext& context, std::string_view argument, int64_t dim, size_t rank) {
  size_t count = rank ? rank : 1;
  if (dim < 0 || dim >= static_cast<int64_t>(count))
    context.fail(argument, std::to_string(dim), "a dim below " + std::to_string(count));
}

void check_rank(RuleContext& context, std::string_view name, size_t rank) {
  const OperandType& given = operand(context, name);
  if (given.is_tensor() && given.shape->size() != rank)
    context.fail(name, given_shape(context, *given.shape), std::to_string(rank) + " dims");
}

void check_size(RuleContext& context, std::string_view argument, const Dims& shape, size_t dim, Dim expected,
                const char* what) {
  if (!context.dims.equal(shape[dim], expected))
    context.fail(argument, given_shape(context, shape),
                 "size " + context.dims.str(expected) + " at dim " + std::to_string(dim) + ", " + what);
}

size_t spatial_dims(const OpInfo& op) {
  bool named = op.name.size() > 2 && op.name.back() == 'd' && op.name[op.name.size() - 2] >= '1' &&
               op.name[op.name.size() - 2] <= '3';
  return named ? static_cast<size_t>(op.name[op.name.size() - 2] - '0') : 2;
}

void check_extent(RuleContext& context, std::span<const Dim> sizes, std::span<const Dim> strides, Dim offset,
                  Dim count) {
  DimTable& dims = context.dims;
  Dim end = dims.add(offset, 1);
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (dims.equal(sizes[i], 0)) return;
    end = dims.add(end, dims.mul(dims.sub(sizes[i], 1), strides[i]));
  }
  if (dims.less(count, end))
    context.fail("storage_offset", "positions up to " + dims.str(end), "at most " + dims.str(count));
}

SmallVector<bool, 8> reduced_dims(RuleContext& context) {
  size_t rank = shape_of(context, 0).size();
  SmallVector<bool, 8> reduced(rank);
  const Attr& given = attribute(context, "dim");
  if (given.kind == Attr::Kind::integer) {
    check_dim(context, "dim", given.integer, rank);
    if (rank) reduced[given.integer] = true;
    return reduced;
  }
  for (Dim dim : given.list) {
    check_dim(context, "dim", dim.code, rank);
    if (!rank) continue;
    if (reduced[dim.code]) context.fail("dim", shape_text(context.dims, given.list), "each dim once");
    reduced[dim.code] = true;
  }
  if (info(context.op).reduces_all(given.present(), given.list.empty()))
    for (bool& flag : reduced) flag = true;
  return reduced;
}

int64_t diagonal_offset(RuleContext& context, std::string_view name) {
  constexpr int64_t kFar = int64_t{1} << 59;
  int64_t offset = integer_attribute(context, name);
  if (offset < -kFar || offset > kFar) context.fail(name, std::to_string(offset), "an offset from -2^59 to 2^59");
  return offset;
}

void broadcast_into(RuleContext& context, std::string_view argument, Dims& into, std::span<const Dim> shape) {
  while (into.size() < shape.size()) into.insert(0, 1);
  size_t shift = into.size() - shape.size();
  for (size_t i = 0; i < shape.size(); ++i) {
    Dim& size = into[i + shift];
    if (shape[i] == size || shape[i] == Dim(1)) continue;
    if (size == Dim(1)) {
      size = shape[i];
    } else if (!context.dims.equal(size, shape[i])) {
      // Different sizes go together only where one is 1; a symbol that is 1 is so by a guard.
      if (!shape[i].is_constant() && context.dims.is_one(shape[i])) continue;
      if (size.is_constant() || !context.dims.is_one(size))
        context.fail(argument, given_shape(context, shape),
                     "a shape that broadcasts with " + shape_text(context.dims, into));
      size = shape[i];
    }
  }
}

void require_broadcast(RuleContext& context, std::string_view argument, const OperandType& given, const Dims& to) {
  Dims together = to;
  broadcast_into(context, argument, together, *given.shape);
  bool same = together.size() == to.size();
  for (size_t i = 0; same && i < to.size(); ++i) same = context.dims.equal(together[i], to[i]);
  if (!same)
    context.fail(argument, describe(context, given), "a shape that broadcasts to " + shape_text(context.dims, to));
}

void check_window(RuleContext& context, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
  constexpr int64_t kMost = INT32_MAX;
  auto check = [&](std::string_view name, int64_t value, int64_t least) {
    if (value < least || value > kMost)
      context.fail(name, std::to_string(value), std::to_string(least) + " to " + std::to_string(kMost));
  };
  check(attribute_position(info(context.op), "kernel_size") < 0 ? "weight" : "kernel_size", kernel, 1);
  check("stride", stride, 1);
  check("padding", padding, 0);
  check("dilation", dilation, 1);
}

Dim window_count(RuleContext& context, Dim size, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation,
                 bool ceil_mode) {
  check_window(context, kernel, stride, padding, dilation);
  DimTable& dims = context.dims;
  Dim padded = dims.add(size, dims.mul(2, padding)), window = dims.add(dims.mul(dilation, kernel - 1), 1);
  if (dims.less(padded, window)) {
    // With ceil_mode a window may hang over the end by what is less than a stride, if there are elements at all.
    const int64_t over = ceil_mode && !dims.equal(size, 0) ? stride - 1 : 0;
    if (dims.less(dims.add(padded, over), window))
      context.fail(operand_name(context, 0), "a padded size of " + dims.str(padded),
                   "at least the window's " + dims.str(window) +
                       (over ? ", less the " + std::to_string(over) + " by which it may hang over" : ""));
  }
  Dim room = dims.sub(dims.add(padded, ceil_mode ? stride - 1 : 0), window);
  Dim count = dims.add(dims.floor_div(room, stride), 1);
  if (!ceil_mode) return count;
  // The last window must start inside the input or the left padding.
  bool outside = !dims.less(dims.mul(dims.sub(count, 1), stride), dims.add(size, padding));
  return outside ? dims.sub(count, 1) : count;
}

std::string shape_text(const DimTable& dims, std::span<const Dim> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + dims.str(shape[i]);
  return text + "]";
}
std::string given_shape(const RuleContext& context, std::span<const Dim> shape) {
  return "shape " + shape_text(context.dims, shape);
}

std::string describe(const RuleContext& context, const OperandType& operand) {
  switch (operand.kind) {
    case OperandType::Kind::none:
      return "nothing";
    case OperandType::Kind::tensor:
      return "tensor " + std::string(name_of(operand.dtype)) + shape_text(context.dims, *operand.shape);
    case OperandType::Kind::scalar:
      break;
  }
  constexpr const char* names[] = {"bool", "integer", "floating", "complex"};
  return std::string("a ") + names[static_cast<int>(operand.category)] + " scalar";
}

}  // namespace ingot::ir
