// Form::columns of few columns (sums_in_registers): for each vector of columns, its lanes stay in registers, all or
// some of them at a time, while the rows go by.
#pragma once
#include <vector>

#include "codegen/x86/emitter.h"

namespace ingot::codegen::x86 {

class ShortColumns {
 public:
  explicit ShortColumns(Emitter& emitter);
  void emit();

 private:
  using Lane = std::vector<Accumulator>;  // one a reduction
  int fitting_lanes() const;
  void place_lanes();
  void vector_of_columns();
  void sum_lanes(int first);
  void sum_row(Lane& lane);
  bool moves(const Stream& s) const;
  void move_rows(int64_t rows);
  void begin_at_row(int64_t row);
  Mem place_of(size_t reduction, int lane);
  void store(size_t reduction, int lane, Vector& x);
  Vector lane_of(size_t reduction, int lane);
  Vector joined(size_t reduction, int lane, int step);
  DType format_of(size_t reduction) const;

  const Kernel& k_;
  VCode& code_;
  Emitter& e_;
  const PhasePlan plan_;
  const int together_;  // lanes in registers
  const Mem lanes_;     // KernelFrame::lanes
  const Mem left_;      // rows, from the first lane at work on
  std::vector<Stream*> streams_;
  std::vector<Mem> places_;  // by reduction: of lane 0, in KernelFrame::scratch
  std::vector<Lane> at_work_;
};

}  // namespace ingot::codegen::x86
