// How an API function makes an OpCall: arguments one by one in the order of the signature, on the stack.
#pragma once
#include <array>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "eager/call/dispatch.h"

namespace ingot::ir {
struct Graph;
struct Operand;
}  // namespace ingot::ir

namespace ingot::eager {

/// Attributes as a user writes them become those of the rules (ir::Settling): negative dims count from the end, -1
/// stands for the size that fits (view) or stays (expand), indices and slice ends from the end. Throws Error for what
/// is out of range.
void settle(const OpCall& call, std::span<ir::Attr> attrs);
/// Marks a scalar whose value is one of those that operand `number` of the op has code of its own for.
void note_special(OpId op, int number, Operand* operand);
/// A special scalar as an operand of a graph.
ir::Operand special_constant(const Operand& operand);
/// A scalar as an operand of a graph: a constant if it is special, else a new run-time scalar.
ir::Operand scalar_operand(ir::Graph& graph, const Operand& operand);
/// Number of a word among the modes of attribute `index`; throws Error with the list if there is none.
int mode_number(OpId op, int index, std::string_view word, Location location);
/// A size as the user wrote it, not settled yet.
inline Dim raw_size(int64_t value) {
  Dim d;
  d.code = value;
  return d;
}
/// The sizes of a tensor as an argument: they remember where they come from.
IntList sizes_of(const Tensor& tensor, Location location);
/// Number `item` of attribute `attribute` of the call in the making is a size of this origin.
void note_size(int attribute, size_t item, uint64_t origin);
/// Sizes of `count` elements; one of them may be -1, for what is left.
Ints resolve_sizes(std::string_view op, std::span<const int64_t> sizes, int64_t count, Location location);
/// How many numbers a random call draws.
int64_t draws_of(const OpCall& call, IntArrayRef result);
/// Takes the draws of a random call from a generator, the default one unless another is given: fills in its seed and
/// offset.
void draw(const OpCall& call, std::span<Operand> seed_and_offset, const std::optional<Generator>& generator);
/// A new tensor, as its options ask for.
Tensor as_asked(Tensor made, const TensorOptions& options, Location location);
/// The tensor of an argument; throws Error where there is none.
const Tensor& present(std::string_view op, std::string_view argument, const TensorArg& a);
/// A dim of `rank` dims (0 and -1 are dims of a zero-dim tensor), negative ones counted from the end.
int64_t wrapped_dim(std::string_view op, std::string_view argument, int64_t d, int64_t rank, Location location);
/// One value for each of `count` dims; a list of one stands for all.
Ints spread(const IntList& given, size_t count);
/// Throws Error: "OP: ARGUMENT: got GOT, expected EXPECTED (FILE:LINE)".
[[noreturn]] void fail(std::string_view op, std::string_view argument, const std::string& got,
                       const std::string& expected, Location location);

}  // namespace ingot::eager

namespace ingot::detail {

/// Operands and attributes of one call of `op`; kOperands counts a list of tensors as one.
template <int kOperands, int kAttributes, bool kList = false>
class Call {
 public:
  Call(OpId op, Location location) : op_(op), location_(location) {}

  void operand(const TensorArg& a) {
    note(a.location);
    if (a.tensor) operands_[operand_count_] = eager::Operand(*a.tensor);
    ++operand_count_;
  }
  void operand(const Tensor& t) { operands_[operand_count_++] = eager::Operand(t); }
  void operand(const OperandArg& a) {
    note(a.location);
    if (a.tensor) operands_[operand_count_] = eager::Operand(*a.tensor);
    if (a.is_scalar) {
      operands_[operand_count_] = eager::Operand(a.value);
      operands_[operand_count_].size_origin = a.origin;
    }
    ++operand_count_;
  }
  /// An operand with special values.
  template <class Argument>
  void special_operand(const Argument& a) {
    operand(a);
    eager::note_special(op_, operand_count_ - 1, &operands_[operand_count_ - 1]);
  }
  void operand(const ScalarArg& a) {
    note(a.location);
    if (a.present) {
      operands_[operand_count_] = eager::Operand(a.value);
      operands_[operand_count_].size_origin = a.origin;
    }
    ++operand_count_;
  }
  void tensors(const TensorList& list) {
    note(list.location);
    operands_.resize(list.size + kOperands - 1);
    for (size_t i = 0; i < list.size; ++i) operands_[operand_count_++] = eager::Operand(list.data[i]);
  }
  template <class T>
  void attribute(T value) {
    if constexpr (std::is_same_v<T, double>)
      attrs_[attr_count_++] = ir::Attr::number(value);
    else
      attrs_[attr_count_++] = ir::Attr::of(value);
  }
  template <class T>
  void attribute(const std::optional<T>& value) {
    if (value)
      attribute(*value);
    else
      ++attr_count_;
  }
  void size(const SizeArg& value) {
    Dims list;
    list.push_back(eager::raw_size(value.value));
    if (value.origin) eager::note_size(attr_count_, 0, value.origin);
    attrs_[attr_count_++] = ir::Attr::of(std::move(list));
  }
  template <std::same_as<std::optional<SizeArg>> Maybe>
  void size(const Maybe& value) {
    if (value)
      size(*value);
    else
      ++attr_count_;
  }
  void list(const IntList& values) {
    if (values.present()) {
      Dims list;
      for (int64_t v : values.numbers()) list.push_back(eager::raw_size(v));
      for (size_t i = 0; i < values.origins().size(); ++i)
        if (uint64_t origin = values.origins()[i]) eager::note_size(attr_count_, i, origin);
      attrs_[attr_count_] = ir::Attr::of(std::move(list));
    }
    ++attr_count_;
  }
  void mode(std::string_view word) {
    attrs_[attr_count_] = ir::Attr::mode(eager::mode_number(op_, attr_count_, word, location_));
    ++attr_count_;
  }

  /// The last two operands of a random op: seed, and offset of one draw for each element of the result.
  void draw(const std::optional<Generator>& generator) {
    for (int i = kOperands - 2; i < kOperands; ++i) operands_[i] = eager::Operand(Scalar(int64_t{0}));
    eager::draw(make(), {&operands_[kOperands - 2], 2}, generator);
  }

  Tensor run() {
    Tensor out;
    eager::dispatch(make(), {&out, 1});
    return out;
  }
  std::tuple<Tensor, Tensor> run_2() {
    Tensor out[2];
    eager::dispatch(make(), out);
    return {std::move(out[0]), std::move(out[1])};
  }
  std::tuple<Tensor, Tensor, Tensor> run_3() {
    Tensor out[3];
    eager::dispatch(make(), out);
    return {std::move(out[0]), std::move(out[1]), std::move(out[2])};
  }
  void run_inplace() {
    Tensor out;
    eager::OpCall call = make();
    call.inplace = true;
    eager::dispatch(call, {&out, 1});
  }

 private:
  void note(Location l) {
    if (!location_.line) location_ = l;
  }
  eager::OpCall make() {
    eager::OpCall call{op_, false, {operands_.data(), operands_.size()}, {attrs_.data(), kAttributes}, location_};
    if constexpr (kAttributes > 0) eager::settle(call, {attrs_.data(), kAttributes});
    return call;
  }

  using Operands = std::conditional_t<kList, std::vector<eager::Operand>, std::array<eager::Operand, kOperands>>;
  OpId op_;
  Location location_;
  int operand_count_ = 0, attr_count_ = 0;
  Operands operands_;
  std::array<ir::Attr, kAttributes> attrs_;
};

}  // namespace ingot::detail
