// Form::columns: sums along at most 256 rows, into a partial accumulator of 16 lanes a column. Several rows of a lane
// are added in registers to what the lane holds, lane after lane, so that memory is read nearly straight through.
#pragma once
#include <deque>
#include <vector>

#include "codegen/x86/emitter.h"

namespace ingot::codegen::x86 {

class Columns {
 public:
  explicit Columns(Emitter& emitter);
  void emit();

 private:
  /// What belongs to one of the rows that a step works on.
  struct Row {
    Frame::Row frame;
    std::deque<Stream> streams;
    Values::Known values;
  };
  /// The lanes of a reduction in memory: where lane 0 starts, and the lane at work.
  struct PartialAccumulator {
    const Reduction* reduction;
    DType format;
    bool index;  // the row indices of argmax and argmin, not the values
    Mem base, lane;
  };
  std::vector<PartialAccumulator> accumulators_of(const Phase& phase);
  void begin_accumulators();
  std::vector<Row> rows_side_by_side();
  void exchange(Row& row);
  void row_of_lane(size_t count);
  void windows(std::vector<Row>& rows);
  void rows_of_lane(std::vector<Row>& rows);
  void column_loop(std::vector<Row>& rows);
  void step(std::vector<Row>& rows);

  const Kernel& k_;
  VCode& code_;
  Emitter& e_;
  const PhasePlan plan_;
  const Mem lanes_;   // their number
  const Mem window_;  // the first row of those that all lanes work on
  const Mem row_;     // the row at work
  std::vector<PartialAccumulator> accumulators_;
};

}  // namespace ingot::codegen::x86
