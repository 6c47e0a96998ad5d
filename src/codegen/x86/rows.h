// Form::rows: for each row, each phase, a loop over the columns in steps of 16 with a masked end.
#pragma once
#include <vector>

#include "codegen/x86/emitter.h"

namespace ingot::codegen::x86 {

class Rows {
 public:
  explicit Rows(Emitter& emitter);
  void emit();

 private:
  using Accumulators = std::vector<Accumulator>;
  struct Plan;
  void begin_rows();
  std::vector<Plan> plan_phases();
  bool keep_streams_in_registers(const std::vector<Plan>& plans);
  void advance_row();
  void phase_loop(const Phase& phase, int64_t number, int64_t end);
  bool is_short_row(const Phase& phase) const;
  bool short_row(const Phase& phase);
  void plain_loop(const Phase& phase, Accumulators& all);
  int side_by_side(const Accumulators& all) const;
  void tree_loop(Accumulators& plain, Accumulators& tree);
  /// kLimit = whole steps of `columns` columns; to `none` if there is none.
  void whole_steps(int64_t columns, int64_t none);

  const Kernel& k_;
  VCode& code_;
  Emitter& e_;
  const bool splits_;  // its reductions may be split
  Mem first_phase_, last_phase_;
};

}  // namespace ingot::codegen::x86
