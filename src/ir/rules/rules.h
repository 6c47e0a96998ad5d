// The rules that the op table names, and what they are written with. A rule reads operands and attributes, writes
// context.outputs, and reports what a user got wrong through context.fail.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "ir/op.h"

namespace ingot::ir {

/// A bound on elements that keeps every size in bytes, and every stride of a dense tensor, inside 63 bits.
inline constexpr int64_t kMostElements = INT64_MAX / 16;

// Declared from the table: types::NAME, shapes::NAME, layouts::NAME.
#define INGOT_RULES(name, signature, traits, type, shape, ...) \
  namespace types {                                            \
  void type(RuleContext&);                                     \
  }                                                            \
  namespace shapes {                                           \
  void shape(RuleContext&);                                    \
  }
#define OP_elementwise INGOT_RULES
#define OP_coordinate INGOT_RULES
#define OP_reduction INGOT_RULES
#define OP_structured INGOT_RULES
#define OP_composite INGOT_RULES
#define OP_host INGOT_RULES
#define OP_view(name, signature, traits, type, layout, ...) \
  namespace types {                                         \
  void type(RuleContext&);                                  \
  }                                                         \
  namespace layouts {                                       \
  Layout layout(RuleContext& context, const Layout& base);  \
  }
#include "ir/ops.def"
#undef INGOT_RULES

/// Position of an argument among the operands (a list counts as one) or among the attributes; -1 if the op has none.
int operand_position(const OpInfo& op, std::string_view name);
int attribute_position(const OpInfo& op, std::string_view name);

/// Attribute by name; absent where the op has none of that name.
const Attr& attribute(const RuleContext& context, std::string_view name);
int64_t integer_attribute(const RuleContext& context, std::string_view name);
bool boolean_attribute(const RuleContext& context, std::string_view name);
/// Operand by name; kind none where absent or unknown. Not for ops whose first argument is a list.
const OperandType& operand(const RuleContext& context, std::string_view name);

/// Name of the argument that operand i belongs to ("tensors[2]" in a list).
std::string operand_name(const RuleContext& context, size_t i);

/// The dim of an operand 0 of `rank` dims whose positions are checked; -1: of all elements.
int64_t dim_of_positions(const DataCheck& check, std::span<const Attr> attrs, size_t rank);

/// Whether cat passes over a tensor of these sizes: an empty one-dim tensor goes with any shape, as in PyTorch.
template <class Sizes>
bool passed_over(const Sizes& sizes) {
  return sizes.size() == 1 && sizes[0] == 0;
}

/// Shape of operand i, a tensor.
inline const Dims& shape_of(const RuleContext& context, size_t i) { return *context.operands[i].shape; }
/// Attribute `name`, a list of sizes or integers, as one value for each of `count` dims; a list of one stands for all.
Dims spread_sizes(RuleContext& context, std::string_view name, size_t count);
Ints spread(RuleContext& context, std::string_view name, size_t count);
/// The reduced dims, one flag for each dim of operand 0: attribute `dim`, or all if absent or empty.
SmallVector<bool, 8> reduced_dims(RuleContext& context);
/// Fails unless dim is one of `rank` dims (0 is one of a zero-dim tensor's).
void check_dim(RuleContext& context, std::string_view argument, int64_t dim, size_t rank);
/// Fails unless operand `name` has this rank.
void check_rank(RuleContext& context, std::string_view name, size_t rank);
/// Fails unless a shape has this size at a dim; `what` says whose size that is.
void check_size(RuleContext& context, std::string_view argument, const Dims& shape, size_t dim, Dim expected,
                const char* what);
/// The positions of a strided view, none of them negative, must lie inside `count` elements.
void check_extent(RuleContext& context, std::span<const Dim> sizes, std::span<const Dim> strides, Dim offset,
                  Dim count);
/// Attribute `name`, how far a diagonal lies from the main one; fails for one that no tensor reaches.
int64_t diagonal_offset(RuleContext& context, std::string_view name);
/// Broadcasts `shape` into `into`; fails under the name of the argument.
void broadcast_into(RuleContext& context, std::string_view argument, Dims& into, std::span<const Dim> shape);
/// Fails under the name of the argument unless the tensor's shape broadcasts to `to`, which does not grow.
void require_broadcast(RuleContext& context, std::string_view argument, const OperandType& given, const Dims& to);
/// Strides of a view of `base` with other sizes of the same count; absent where there is none without a copy.
std::optional<Dims> view_strides(DimTable& dims, const Layout& base, std::span<const Dim> sizes);
/// Fails unless kernel, stride and dilation are positive, padding is not negative, and all of them are below 2^31.
void check_window(RuleContext& context, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation);
/// The shape of the result.
inline void set_shape(RuleContext& context, Dims shape) { context.outputs[0].shape = std::move(shape); }
/// Output size of a window that slides over one dim (convolution, pooling).
Dim window_count(RuleContext& context, Dim size, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation,
                 bool ceil_mode);

/// Spatial dims of a windowed op: the digit in its name (conv2d); two where it has none (im2col).
size_t spatial_dims(const OpInfo& op);

/// "[2, s0, 4]".
std::string shape_text(const DimTable& dims, std::span<const Dim> shape);
/// The same as errors give it: "shape [2, s0, 4]".
std::string given_shape(const RuleContext& context, std::span<const Dim> shape);
/// "a f32 tensor [2, 3]", "a floating scalar".
std::string describe(const RuleContext& context, const OperandType& operand);

}  // namespace ingot::ir
