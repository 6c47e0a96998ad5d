// The stack frame of a kernel, which its prologue fills from the KernelFrame, and where the step at work stands.
#pragma once
#include <array>
#include <vector>

#include "codegen/x86/analysis.h"
#include "codegen/x86/vectors.h"

namespace ingot::codegen::x86 {

/// Slots of 8 bytes that every kernel has.
enum class Slot : uint8_t {
  kernel_frame,
  columns,
  rows_left,
  row_index,
  column_index,
  tail_count,
  blocks,  // summed so far; in form columns the row at work
  tree     // where the stack of subtrees starts
};
inline constexpr size_t kSlots = static_cast<size_t>(Slot::tree) + 1;

class Frame {
 public:
  /// The row at work: its number, and by buffer the address of its column 0.
  struct Row {
    Mem index;
    std::vector<Mem> addresses;
  };

  /// Emits the prologue.
  Frame(const Analysis& analysis, Vectors& vectors);

  const Mem& at(Slot s) const { return slots_[static_cast<size_t>(s)]; }
  /// A new slot.
  Mem reserve() { return Mem::frame(code_.reserve(8)); }
  /// Slots by buffer; strides only of those that are strided or indexed.
  const Mem& row(uint32_t buffer) const { return rows_[buffer]; }
  const Mem& row_stride(uint32_t buffer) const { return row_strides_[buffer]; }
  const Mem& column_stride(uint32_t buffer) const { return column_strides_[buffer]; }
  const Mem& index_stride(uint32_t buffer) const { return index_strides_[buffer]; }
  void exchange_row(Row& row);
  /// A field of the KernelFrame; its address goes to `frame` first.
  void load_field(Gpr to, size_t offset, Gpr frame = Gpr::rax);

  /// Columns of the step beyond rcx, where several steps are taken at once.
  int64_t column_offset() const { return column_offset_; }
  void set_column_offset(int64_t columns) { column_offset_ = columns; }
  /// From here to end_tail(), steps handle the last columns, fewer than 16.
  void begin_tail();
  void end_tail() { masked_ = false; }
  /// The mask of those columns, or null.
  Vector* tail() { return masked_ ? &tail_ : nullptr; }

 private:
  Vectors& v_;
  VCode& code_;
  std::array<Mem, kSlots> slots_;
  std::vector<Mem> rows_, row_strides_, column_strides_, index_strides_;
  int64_t column_offset_ = 0;
  bool masked_ = false;
  Vector tail_;
};

}  // namespace ingot::codegen::x86
