// What convolution, pooling and patches share: windows that slide over the last dims.
#pragma once
#include <vector>

#include "ir/decompose.h"

namespace ingot::ir {

/// One spatial dim of a window that slides.
struct Slide {
  int64_t kernel, stride, padding, dilation;
  bool ceil_mode;
  Dim size, count;  // of the input, of the output
  int64_t extent() const { return dilation * (kernel - 1) + 1; }
  /// What must follow the input for every window to lie inside; a size that varies gets the most that it could need.
  int64_t padding_after() const;
};

/// Entry i of an attribute that is one number for each spatial dim, or one for all.
Dim size_entry(const CompositeCall& call, std::string_view name, size_t i);
int64_t entry(const CompositeCall& call, std::string_view name, size_t i);
/// The value of a size that graphs are made for: another one is another program, by a guard.
int64_t fixed_size(GraphBuilder& b, Dim size);
/// A slide whose count follows from the rest.
Slide make_slide(GraphBuilder& b, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation, bool ceil_mode,
                 Dim size);
/// x with `fill` around it, so that every window lies inside.
Operand padded(GraphBuilder& b, const Operand& x, const std::vector<Slide>& slides, const Operand& fill);
/// Every window of the last dims of a padded x: [.., count of each, kernel of each].
Operand window_views(GraphBuilder& b, Operand x, const std::vector<Slide>& slides);
/// x with this many zeros before and after what it has at a dim.
Operand extended(GraphBuilder& b, const Operand& x, size_t dim, Dim before, Dim after);
/// x with dilation - 1 zeros between neighbours at a dim of constant size.
Operand spaced(GraphBuilder& b, const Operand& x, size_t dim, int64_t dilation);
/// The places [first, first + size) of a dim, with zeros for those beyond its end.
Operand cut_out(GraphBuilder& b, const Operand& x, size_t dim, Dim first, Dim size);
/// Sums what overlapping windows put at each place, the inverse of sliding along one dim: x has the elements of the
/// windows at dim `tap` and the windows at a later dim `at`; the result lacks `tap`, and has `size` places at that dim
/// (at - 1), the first of them at s.padding.
Operand overlap_added(GraphBuilder& b, Operand x, size_t tap, size_t at, const Slide& s, Dim size);

/// Zero, in the category of a dtype.
Operand zero_of(DType dtype);

}  // namespace ingot::ir
