#include "ir/reference/context.h"

#include <algorithm>
#include <optional>

namespace ingot::ir::reference {

ReferenceContext::ReferenceContext(const Node& node, std::vector<Argument> given, std::vector<AttrValue> attrs,
                                   std::vector<ReferenceTensor>& out, bool rounding)
    : row(info(node.op)),
      operands(std::move(given)),
      outputs(out),
      round(rounding),
      node_(node),
      attrs_(std::move(attrs)) {
  size_t attributes = row.arguments.size() - row.operand_count;
  attrs_.resize(attributes);
  size_t at = 0;
  for (const ArgInfo& a : row.arguments) {
    if (is_operand(a.kind)) continue;
    AttrValue& value = attrs_[at++];
    if (value.present || !a.has_default) continue;
    value.present = true;
    value.integer = a.kind == ArgKind::mode ? a.default_mode : static_cast<int64_t>(a.default_number);
    value.number = a.default_number;
    if (a.kind != ArgKind::mode) value.list = {value.integer};
  }
}

std::span<const Argument> ReferenceContext::list_members() const {
  INGOT_CHECK(row.list_first);
  return {operands.data(), operands.size() - (row.operand_count - 1)};
}

int ReferenceContext::operand_index(std::string_view name) const {
  int i = 0;
  for (const ArgInfo& a : row.arguments) {
    if (!is_operand(a.kind)) continue;
    if (a.name == name) return i + (row.list_first ? static_cast<int>(list_members().size()) - 1 : 0);
    ++i;
  }
  return -1;
}

int ReferenceContext::attr_index(std::string_view name) const {
  int i = 0;
  for (const ArgInfo& a : row.arguments) {
    if (is_operand(a.kind)) continue;
    if (a.name == name) return i;
    ++i;
  }
  return -1;
}

const Argument& ReferenceContext::argument(std::string_view name) const {
  static const Argument absent;
  int i = operand_index(name);
  INGOT_CHECK(i >= 0, "the row of " + std::string(row.name) + " has no operand " + std::string(name));
  return static_cast<size_t>(i) < operands.size() ? operands[i] : absent;
}

const ReferenceTensor& ReferenceContext::tensor(std::string_view name) const {
  const Argument& a = argument(name);
  INGOT_CHECK(a.tensor != nullptr, std::string(row.name) + ": " + std::string(name) + " must be a tensor");
  return *a.tensor;
}

const ReferenceTensor* ReferenceContext::optional(std::string_view name) const { return argument(name).tensor; }

bool ReferenceContext::has(std::string_view name) const {
  return operand_index(name) >= 0 ? argument(name).present : attr(name).present;
}

double ReferenceContext::number(std::string_view name) const {
  if (operand_index(name) < 0) return attr(name).number;
  const Argument& a = argument(name);
  if (a.present && !a.tensor)
    return a.scalar.category == Category::floating ? a.scalar.number : static_cast<double>(a.scalar.integer);
  if (a.tensor) return a.tensor->at(0);
  for (const ArgInfo& i : row.arguments)
    if (i.name == name && i.has_default) return i.default_number;
  INGOT_CHECK(false, std::string(row.name) + ": " + std::string(name) + " has no value");
  return 0;
}

int64_t ReferenceContext::whole(std::string_view name) const {
  const Argument& a = argument(name);
  INGOT_CHECK(!a.tensor && a.scalar.category != Category::floating, std::string(name));
  return a.present ? a.scalar.integer : static_cast<int64_t>(number(name));
}

double ReferenceContext::number(std::string_view name, DType dtype) const {
  return to_working(*this, dtype, number(name));
}

const AttrValue& ReferenceContext::attr(std::string_view name) const {
  int i = attr_index(name);
  INGOT_CHECK(i >= 0, "the row of " + std::string(row.name) + " has no attribute " + std::string(name));
  return attrs_[i];
}

int64_t ReferenceContext::integer(std::string_view name) const {
  const AttrValue& a = attr(name);
  INGOT_CHECK(a.present, std::string(row.name) + ": " + std::string(name) + " has no value");
  return a.list.size() == 1 ? a.list[0] : a.integer;
}

std::string_view ReferenceContext::mode(std::string_view name) const {
  for (const ArgInfo& a : row.arguments)
    if (a.name == name) return a.modes[integer(name)];
  INGOT_CHECK(false, "no mode " + std::string(name));
  return {};
}

const Ints& ReferenceContext::list(std::string_view name) const { return attr(name).list; }

Ints ReferenceContext::list(std::string_view name, size_t length) const {
  const Ints& given = list(name);
  INGOT_CHECK(given.size() == length || given.size() == 1, std::string(row.name) + ": " + std::string(name));
  return given.size() == length ? given : Ints(length, given[0]);
}

Ints ReferenceContext::reduced_dims(std::string_view name, int64_t rank) const {
  const AttrValue& a = attr(name);
  Ints dims = a.list;
  if (a.present && dims.empty() && rank == 0) return dims;
  if (row.reduces_all(a.present, dims.empty())) {
    dims.clear();
    for (int64_t d = 0; d < rank; ++d) dims.push_back(d);
    return dims;
  }
  if (rank == 0) return {};
  for (int64_t& d : dims) d = d < 0 ? d + rank : d;
  std::sort(dims.begin(), dims.end());
  return dims;
}

void ReferenceContext::refuse(std::string_view argument, const std::string& got, const std::string& expected) const {
  std::string where = node_.location.str();
  throw Error(std::string(row.name) + ": " + std::string(argument) + ": got " + got + ", expected " + expected +
              (where.empty() ? "" : " (" + where + ")"));
}

namespace {

/// PyTorch's result type: a later rank of operand (dims, no dims, scalar) decides only where its category is higher.
DType combine(std::optional<DType> higher, std::optional<DType> lower) {
  if (!higher) return lower.value_or(DType::f32);
  if (!lower || category_of(*higher) >= category_of(*lower)) return *higher;
  return promote(*higher, *lower);
}

DType meet(std::span<const Argument* const> arguments) {
  std::optional<DType> ranks[3];
  for (const Argument* a : arguments) {
    if (!a->present) continue;
    DType d = a->tensor ? a->tensor->dtype : default_dtype(a->scalar.category);
    std::optional<DType>& rank = ranks[!a->tensor ? 2 : a->tensor->shape.empty() ? 1 : 0];
    rank = rank ? promote(*rank, d) : d;
  }
  std::optional<DType> tensors;
  if (ranks[0] || ranks[1]) tensors = combine(ranks[0], ranks[1]);
  return combine(tensors, ranks[2]);
}

}  // namespace

DType ReferenceContext::meeting_dtype() const {
  std::vector<const Argument*> all;
  for (const Argument& a : operands) all.push_back(&a);
  return meet(all);
}

DType ReferenceContext::meeting_dtype(std::initializer_list<std::string_view> names) const {
  std::vector<const Argument*> some;
  for (std::string_view name : names) some.push_back(&argument(name));
  return meet(some);
}

Ints strides_of(const Ints& shape) {
  Ints strides(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= shape[d];
  }
  return strides;
}

int64_t product(const Ints& shape) {
  int64_t n = 1;
  for (int64_t s : shape) n *= s;
  return n;
}

std::vector<int64_t> positions(const Ints& sizes, const Ints& strides, int64_t offset) {
  int64_t count = product(sizes);
  std::vector<int64_t> result(count);
  Ints index(sizes.size(), 0);
  int64_t at = offset;
  for (int64_t i = 0; i < count; ++i) {
    result[i] = at;
    for (size_t d = sizes.size(); d-- > 0;) {
      // (At the end of a dim a step too far may lie outside of all numbers.)
      if (++index[d] < sizes[d]) {
        at += strides[d];
        break;
      }
      at -= strides[d] * (sizes[d] - 1);
      index[d] = 0;
    }
  }
  return result;
}

std::vector<int64_t> broadcast_positions(const Ints& from, const Ints& to) {
  INGOT_CHECK(from.size() <= to.size(), "an operand has more dims than the result");
  Ints own = strides_of(from), strides(to.size(), 0);
  size_t lead = to.size() - from.size();
  for (size_t d = 0; d < from.size(); ++d) {
    INGOT_CHECK(from[d] == to[lead + d] || from[d] == 1, "an operand does not broadcast to the result");
    if (from[d] != 1) strides[lead + d] = own[d];
  }
  return positions(to, strides);
}

Split::Split(const Ints& shape, const Ints& walked_dims) {
  Ints strides = strides_of(shape);
  Ints kept_sizes, kept_strides, walked_sizes, walked_strides;
  for (size_t d = 0; d < shape.size(); ++d) {
    bool walk = std::find(walked_dims.begin(), walked_dims.end(), static_cast<int64_t>(d)) != walked_dims.end();
    (walk ? walked_sizes : kept_sizes).push_back(shape[d]);
    (walk ? walked_strides : kept_strides).push_back(strides[d]);
  }
  kept = positions(kept_sizes, kept_strides);
  walked = positions(walked_sizes, walked_strides);
}

void take_positions(const ReferenceTensor& from, const std::vector<int64_t>& at, ReferenceTensor& to) {
  INGOT_CHECK(to.dtype == from.dtype && to.size() == static_cast<int64_t>(at.size()), "the view's type");
  for (size_t i = 0; i < at.size(); ++i) {
    if (from.floating())
      to.real[i] = from.real[at[i]];
    else
      to.integer[i] = from.integer[at[i]];
  }
}

double to_working(const ReferenceContext& context, DType dtype, double x) {
  return context.round ? round_to(working_dtype(dtype), x) : x;
}

ReferenceTensor cast_to(const ReferenceContext& context, const ReferenceTensor& from, DType dtype) {
  if (from.dtype == dtype) return from;
  ReferenceTensor to(dtype, from.shape);
  for (int64_t i = 0, n = to.size(); i < n; ++i) {
    assign(to, i, from, i);
    if (to.floating() && context.round) to.real[i] = round_to(dtype, to.real[i]);
  }
  return to;
}

void assign(ReferenceTensor& to, int64_t i, const ReferenceTensor& from, int64_t j) {
  if (to.floating())
    to.real[i] = from.at(j);
  else if (from.floating())
    to.integer[i] = saturate_to(to.dtype, from.real[j]);
  else
    to.integer[i] = wrap_to(to.dtype, from.integer[j]);
}

Reader::Reader(const ReferenceContext& context, const Argument& argument, const Ints& shape, DType compute)
    : tensor_(argument.tensor), compute_(compute), round_(context.round), is_scalar_(!argument.tensor) {
  INGOT_CHECK(argument.present, std::string(context.row.name) + ": an operand is absent");
  if (tensor_) {
    at_ = broadcast_positions(tensor_->shape, shape);
    return;
  }
  const ReferenceScalar& s = argument.scalar;
  bool floating = s.category == Category::floating;
  number_ = floating ? s.number : static_cast<double>(s.integer);
  if (is_floating(compute)) {
    number_ = to_working(context, compute, number_);
  } else {
    // A negative scalar wraps in an unsigned dtype, whatever its category.
    const bool wraps = !floating || (compute == DType::u8 && s.number < 0);
    integer_ = !wraps     ? saturate_to(compute, s.number)
               : floating ? wrap_to(compute, saturate_to(DType::i32, s.number))
                          : wrap_to(compute, s.integer);
    number_ = static_cast<double>(integer_);
  }
}

double Reader::convert_real(int64_t position) const {
  double x = tensor_->at(position);
  return round_ && is_floating(compute_) ? round_to(working_dtype(compute_), x) : x;
}

int64_t Reader::convert_integer(int64_t position) const {
  return tensor_->floating() ? saturate_to(compute_, tensor_->real[position])
                             : wrap_to(compute_, tensor_->integer[position]);
}

}  // namespace ingot::ir::reference
