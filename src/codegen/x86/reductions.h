// Reductions along the columns, in the canonical order: 16 lanes over blocks of 256 columns, neighbouring blocks paired
// up by a binary counter, then the lanes halved. Only sums and products of floats depend on the order; the others run
// through.
#pragma once
#include <vector>

#include "codegen/x86/values.h"

namespace ingot::codegen::x86 {

/// Partial accumulator of a reduction: 16 lanes, and for argmax and argmin where they come from.
struct Accumulator {
  const Reduction* reduction = nullptr;
  Vector value, index;
  Vector nan;  // max and min of floats: lanes that met a NaN, which `value` then has not
};

/// argmax and argmin: the result is where the value comes from.
inline bool is_index(Combiner c) { return c == Combiner::argmax || c == Combiner::argmin; }

class Reductions {
 public:
  Reductions(const Analysis& analysis, Vectors& vectors, Frame& frame, Values& values)
      : analysis_(analysis),
        k_(analysis.kernel()),
        v_(vectors),
        code_(vectors.code()),
        frame_(frame),
        values_(values) {}

  /// Whether the order matters: blocks are paired up.
  bool in_tree(const Reduction& r) const;
  /// Whether accumulators have `nan`.
  bool keeps_nan_apart(const Reduction& r) const;
  Vector identity(const Reduction& r);
  Accumulator accumulator(const Reduction& r);
  void reset(Accumulator& a);
  /// Lanes that are not valid keep what they have.
  void combine(Accumulator& into, Vector& x, Vector* index, Vector* valid = nullptr);
  /// The values of the step.
  void accumulate(Accumulator& a);
  /// The result of another loop over other columns of the same row.
  void merge(Accumulator& into, Accumulator& from);
  /// The reduction's value, from here on.
  void finish(Accumulator& a);

  // The stack of subtrees: level l holds the sum of 2^l blocks.
  void begin_tree();
  /// A finished block goes to the stack, joined with its neighbours of equal size.
  void push_block(const std::vector<Accumulator>& tree);
  /// Joins the last subtree with what the stack holds, small subtrees first: an odd last one moves up as it is.
  void merge_stack(const std::vector<Accumulator>& tree);
  /// Of KernelFrame::scratch, for the stack.
  int64_t scratch_bytes() const { return scratch_bytes_; }

  /// Between the accumulators and KernelFrame::accumulators, for split reductions.
  void store_parts(const std::vector<Accumulator*>& accumulators);
  void load_parts(const std::vector<Accumulator*>& accumulators);

 private:
  Vector lanes_of(Accumulator& a);
  Vector result_of(Accumulator& a);
  Mem part_of(const Reduction& r, bool index);
  int64_t level_bytes(const std::vector<Accumulator>& tree) const;
  template <class F>
  void each_register(const std::vector<Accumulator>& tree, F f);
  void join_level(const std::vector<Accumulator>& tree);

  const Analysis& analysis_;
  const Kernel& k_;
  Vectors& v_;
  VCode& code_;
  Frame& frame_;
  Values& values_;
  int64_t scratch_bytes_ = 0;
};

}  // namespace ingot::codegen::x86
