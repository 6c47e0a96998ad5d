// What a reference function sees of one call, and the index arithmetic that they share.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/reference.h"

namespace ingot::ir::reference {

/// An operand with its value.
struct Argument {
  const ReferenceTensor* tensor = nullptr;  // null: a scalar, or absent
  ReferenceScalar scalar;
  bool present = false;
};

/// An attribute with its sizes evaluated.
struct AttrValue {
  bool present = false;
  int64_t integer = 0;  // boolean, integer, dtype and mode by number
  double number = 0;
  Ints list;
};

/// One call. Outputs stand ready, zeroed, with their dtype and shape; a function writes `real` or `integer` of each,
/// unrounded. Arguments are found by the name that the op's row gives them.
class ReferenceContext {
 public:
  ReferenceContext(const Node& node, std::vector<Argument> operands, std::vector<AttrValue> attrs,
                   std::vector<ReferenceTensor>& outputs, bool round);

  const OpInfo& row;
  std::vector<Argument> operands;
  std::vector<ReferenceTensor>& outputs;
  bool round;

  ReferenceTensor& out() const { return outputs[0]; }
  /// Members of the list that comes first.
  std::span<const Argument> list_members() const;
  const Argument& argument(std::string_view name) const;
  const ReferenceTensor& tensor(std::string_view name) const;
  /// Null if absent.
  const ReferenceTensor* optional(std::string_view name) const;
  bool has(std::string_view name) const;
  /// A scalar operand, or a structural number, as a double.
  double number(std::string_view name) const;
  /// The same, in the working precision of a floating dtype.
  double number(std::string_view name, DType dtype) const;
  /// A scalar operand that is an integer; its default where it is absent.
  int64_t whole(std::string_view name) const;
  /// A structural integer, boolean, dim, or single size.
  int64_t integer(std::string_view name) const;
  bool flag(std::string_view name) const { return integer(name) != 0; }
  DType dtype(std::string_view name) const { return static_cast<DType>(integer(name)); }
  std::string_view mode(std::string_view name) const;
  const Ints& list(std::string_view name) const;
  /// A list of this length; one element stands for all.
  Ints list(std::string_view name, size_t length) const;
  /// Dims to reduce: those given, or all where the list is absent or empty; negative ones counted from the end.
  Ints reduced_dims(std::string_view name, int64_t rank) const;
  /// Reports what an op refuses because of its data.
  [[noreturn]] void refuse(std::string_view argument, const std::string& got, const std::string& expected) const;

  /// The dtype in which operands meet: PyTorch's promotion (tensors with dims, then without, then scalars, by
  /// category).
  DType meeting_dtype() const;
  DType meeting_dtype(std::initializer_list<std::string_view> names) const;

 private:
  int operand_index(std::string_view name) const;  // -1 if it is no operand
  int attr_index(std::string_view name) const;
  const AttrValue& attr(std::string_view name) const;
  const Node& node_;
  std::vector<AttrValue> attrs_;
};

Ints strides_of(const Ints& shape);
int64_t product(const Ints& shape);
/// Linear positions of the elements of a strided view, in row-major order.
std::vector<int64_t> positions(const Ints& sizes, const Ints& strides, int64_t offset = 0);
/// For each element of `to`, in order, the position of the element of `from` that is broadcast to it.
std::vector<int64_t> broadcast_positions(const Ints& from, const Ints& to);
/// A tensor split into the dims that are kept and those that are walked: element = kept[o] + walked[i].
struct Split {
  std::vector<int64_t> kept, walked;
  Split(const Ints& shape, const Ints& walked_dims);
};
/// Calls f(number, positions) for each line along one dim; the positions are also those of a result of the same shape.
template <class F>
void for_each_line(const Ints& shape, int64_t dim, F f) {
  Ints walked;
  if (!shape.empty()) walked.push_back(dim);
  Split split(shape, walked);
  std::vector<int64_t> line(split.walked.size());
  for (size_t o = 0; o < split.kept.size(); ++o) {
    for (size_t i = 0; i < line.size(); ++i) line[i] = split.kept[o] + split.walked[i];
    f(static_cast<int64_t>(o), line);
  }
}
/// Copies the elements at these positions, in order, to an output of the same dtype.
void take_positions(const ReferenceTensor& from, const std::vector<int64_t>& at, ReferenceTensor& to);
/// The dtype as which floats of this dtype are read and stored in working precision; identity where rounding is off.
double to_working(const ReferenceContext& context, DType dtype, double x);
/// The operand in another dtype, as if cast before the op; unrounded where rounding is off.
ReferenceTensor cast_to(const ReferenceContext& context, const ReferenceTensor& from, DType dtype);
/// Element i of the output becomes element j of the input, converted as a cast does.
void assign(ReferenceTensor& to, int64_t i, const ReferenceTensor& from, int64_t j);

/// An operand broadcast to a shape and read in the dtype in which the call computes.
class Reader {
 public:
  Reader(const ReferenceContext& context, const Argument& argument, const Ints& shape, DType compute);
  double real(int64_t i) const { return is_scalar_ ? number_ : convert_real(at_[i]); }
  int64_t integer(int64_t i) const { return is_scalar_ ? integer_ : convert_integer(at_[i]); }

 private:
  double convert_real(int64_t position) const;
  int64_t convert_integer(int64_t position) const;
  const ReferenceTensor* tensor_;
  DType compute_;
  bool round_, is_scalar_;
  double number_ = 0;
  int64_t integer_ = 0;
  std::vector<int64_t> at_;
};

#define OP(kind, name, ...) void name(ReferenceContext&);
#include "ir/ops.def"

}  // namespace ingot::ir::reference
