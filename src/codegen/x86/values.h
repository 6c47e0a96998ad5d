// Code for the nodes of a kernel: each value is computed once at its level, leaves when they are first read.
#pragma once
#include <vector>

#include "codegen/x86/memory.h"

namespace ingot::codegen::x86 {

class Values {
 public:
  /// The values of one level that are there, by node.
  struct Known {
    explicit Known(size_t nodes) : vectors(nodes), has(nodes) {}
    void clear() { has.assign(has.size(), false); }
    std::vector<Vector> vectors;
    std::vector<bool> has;
  };

  Values(const Analysis& analysis, Vectors& vectors, Frame& frame, Memory& memory);

  /// A leaf, or a value that was computed.
  Vector& value(Value v);
  Vector* operand(Value v) { return v == kNone ? nullptr : &value(v); }
  /// Of the step, in a dim as Op::index counts them.
  Vector index(uint64_t dim);
  void set_reduced(size_t reduction, const Vector& result) { reduced_[reduction] = result; }

  void emit_call_level();
  /// The values of row level that `live` needs and that this row does not have yet.
  void emit_row_level(const std::vector<bool>& live);
  void exchange_row(Known& row) { std::swap(known(Level::row), row); }

  /// From here on the body computes what is live; its roots are read once each time that they are listed.
  void begin_body(const std::vector<Value>& roots, const std::vector<bool>& live);
  void begin_step();
  /// What a load at these columns gives from here on.
  void keep(Value v, int64_t column, const Vector& vector);
  static constexpr int64_t kTail = -1;  // instead of a column: in a step of the last columns
  /// Another row, in code of its own.
  void begin_row() { next_row(), kept_.clear(); }
  /// Another row of the code at work.
  void next_row() { known(Level::row).clear(); }
  /// Reads what is the same in every row, at these columns, before the loop over the rows: as much of it as fits into
  /// so many registers.
  void keep_same_rows(int64_t first, int64_t columns, int room);
  void emit_node(Value v);
  /// Whether the body computes it at each column.
  bool in_body(Value v) const { return live_[v] && analysis_.level(v) == Level::column; }
  /// Whether it is there in this step.
  bool ready(Value v) const { return analysis_.level(v) != Level::column || known_[size_t(Level::column)].has[v]; }

 private:
  Known& known(Level level) { return known_[static_cast<size_t>(level)]; }
  void set(Value v, const Vector& result);
  Vector leaf(Value v);
  void emit_rare(Value v);

  const Analysis& analysis_;
  Vectors& v_;
  VCode& code_;
  Frame& frame_;
  Memory& memory_;
  std::vector<Known> known_;           // by level
  std::vector<bool> live_, row_live_;  // what the current body, and the current row level, need
  std::vector<uint32_t> uses_;         // in the current body
  std::vector<Vector> reduced_;
  struct Kept {
    Value value;
    int64_t column;
    Vector vector;
  };
  std::vector<Kept> kept_;
  uint16_t region_ = 0;  // that is being emitted
};

}  // namespace ingot::codegen::x86
