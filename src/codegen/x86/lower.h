// Kernel IR -> virtual-register code: which value is computed how often, where it is kept, and the loops around it.
#pragma once
#include <algorithm>
#include <deque>
#include <vector>

#include "codegen/x86/vectors.h"

namespace ingot::codegen::x86 {

/// Registers with a fixed use. rcx: the column; kLimit: where the loop ends; rax, rbx, rdx and r14 (lanes) are free
/// between instructions; the others hold streams.
inline constexpr Gpr kLimit = Gpr::r11;
inline constexpr Gpr kStreamRegisters[] = {Gpr::rsi, Gpr::rdi, Gpr::r8,  Gpr::r9, Gpr::r10,
                                           Gpr::r12, Gpr::r13, Gpr::r15, Gpr::rbp};

/// How often a value changes: once a call, once a row, or at each column.
enum class Level : uint8_t { call, row, column };

/// A pointer that a body advances along: a buffer, moved by a uniform index expression where there is one, or a local.
struct Stream {
  uint32_t number = 0;  // of the buffer or local
  bool local = false;
  Value index = kNone;
  int64_t slot = 0;     // in the frame: the address at column 0 of the row
  Gpr reg = Gpr::none;  // holds it, if a register was left
  bool moves = false;   // the register itself goes from row to row
};

/// Partial result of a reduction: 16 lanes, and for argmax and argmin where they come from.
struct Accumulator {
  const Reduction* reduction = nullptr;
  Vector value, index;
  Vector nan;  // max and min of floats: lanes that met a NaN, which `value` then has not
};

/// Whether memory holds the elements as registers do.
inline bool stored_as_it_is(DType d) { return ingot::size_of(d) >= 4; }

class Lowering {
 public:
  Lowering(const Kernel& kernel, VCode& code);
  void rows();
  void columns();
  int64_t scratch_bytes() const { return scratch_bytes_; }

 private:
  // Lower.cpp: analysis and values.
  void analyse();
  std::vector<bool> needed(const std::vector<Value>& roots) const;
  bool is_leaf(Value v) const;
  /// True if an i64 surely lies in [0, 2^32).
  bool has_32_bits(Value v, int depth = 0) const;
  bool picks_by_comparison(const Node& n) const;
  void prologue();
  Vector& value(Value v);
  Vector* operand(Value v) { return v == kNone ? nullptr : &value(v); }
  void emit_node(Value v);
  void emit_rare(Value v);
  void emit_call_level();
  /// The values of row level that `live` needs and that this row does not have yet.
  void emit_row_level(const std::vector<bool>& live);
  void count_uses(const std::vector<bool>& live, const std::vector<Value>& roots);
  Vector leaf(Value v);
  Vector index_vector(uint64_t dim);
  Vector broadcast_gpr(Type type, Gpr from);

  // Memory.cpp: addresses, loads and stores.
  Stream& stream(uint32_t number, bool local, Value index = kNone);
  std::vector<Stream*> streams_of(const std::vector<bool>& live, const Phase& phase);
  bool wants_register(const Stream& s) const;
  void assign_registers(const std::vector<Stream*>& used);
  void load_streams(const std::vector<Stream*>& used, bool resident);
  Value uniform_index(const Node& load) const;
  /// The address of this body's columns; may use rax.
  Mem address(Stream& s, int64_t element_bytes);
  /// rax = that address of a strided stream, or of column 0 if `moves` is false.
  void address_to_rax(Stream& s, bool moves);
  Vector load(Value v);
  Vector load_uniform(const Node& n);
  Vector load_format(DType d, const Mem& from, bool masked);
  Vector load_dense(DType d, const Mem& from);
  void store_dense(DType d, Vector& v, const Mem& to);
  Vector load_by_lane(const Node& n, Stream& s, Vector* index);
  Vector gather(const Node& n, Stream& s, Vector* index);
  Vector local_load(const Node& n);
  void store(const Store& s);
  void local_store(const Store& s);
  void store_format(DType d, Vector& v, const Mem& to, bool masked, bool streams = false);
  void row_store(const Store& s);
  void next_lane(int64_t head);
  void copy_lanes(int64_t bytes, const Mem& frame_area, bool to_memory, int64_t fixed_step, int64_t step_slot);
  bool folds(Value v);

  // Reduce.cpp.
  Vector identity(const Reduction& r);
  Accumulator accumulator(const Reduction& r);
  void reset(Accumulator& a);
  void combine(Accumulator& into, Vector& value, Vector* index, Vector* valid = nullptr);
  void accumulate(Accumulator& a);
  void merge(Accumulator& into, Accumulator& from);
  bool keeps_nan_apart(const Reduction& r) const;
  Vector lanes_of(Accumulator& a);
  Vector finish(Accumulator& a);
  bool in_tree(const Reduction& r) const;
  void push_blocks(std::vector<Accumulator>& tree, int level);
  void merge_stack(std::vector<Accumulator>& tree);
  int64_t level_bytes(const std::vector<Accumulator>& tree) const;
  /// Between the accumulators and KernelFrame::parts.
  void store_parts(const std::vector<Accumulator*>& accumulators);
  void load_parts(const std::vector<Accumulator*>& accumulators);
  Mem part_of(const Reduction& r, bool index);

  // Rows.cpp.
  struct PhasePlan;
  bool keep_streams_in_registers(std::vector<PhasePlan>& plans);
  void advance_row();
  void phase_loop(const Phase& phase, int64_t number, int64_t end);
  bool short_row(const Phase& phase, const std::vector<Accumulator>& all);
  void plain_loop(const Phase& phase, std::vector<Accumulator>& all);
  int side_by_side(const std::vector<Accumulator>& all) const;
  int work() const;
  int chains() const;
  int live_at_once() const;
  void fetch_ahead(int count);
  void block_group(const Phase& phase, std::vector<Accumulator>& plain, std::vector<Accumulator>& tree, int size,
                   int64_t fewer, int64_t last);
  void tree_loop(const Phase& phase, std::vector<Accumulator>& plain, std::vector<Accumulator>& tree);
  /// Steps of 16 columns each, their instructions mixed.
  void bodies(const Phase& phase, const std::vector<Accumulator*>& accumulators, int count);
  /// One step of 16 columns.
  void body(const Phase& phase, const std::vector<Accumulator*>& accumulators);
  void masked_body(const Phase& phase, const std::vector<Accumulator*>& accumulators);
  void make_tail();
  int group_size(const std::vector<Accumulator>& tree) const;

  // Columns.cpp.
  struct RowContext;
  struct Partial;
  void begin_partials(std::vector<Partial>& partials);
  void row_of_lane(int64_t count);
  void rows_of_lane(std::vector<RowContext>& contexts, std::vector<Partial>& partials);
  void column_step(std::vector<RowContext>& contexts, std::vector<Partial>& partials);
  void exchange(RowContext& context);

  // Short forms.
  void g(VOp op, Gpr a, int64_t value) { code_.add({.op = op, .g = a, .value = value}); }
  void g(VOp op, Gpr a, Gpr b) { code_.add({.op = op, .g = a, .h = b}); }
  void g(VOp op, Gpr a, const Mem& m) { code_.add({.op = op, .width = 8, .g = a, .mem = m}); }
  void load_slot(Gpr a, int64_t slot) { g(VOp::g_load, a, Mem::frame(slot)); }
  void store_slot(int64_t slot, Gpr a) { g(VOp::g_store, a, Mem::frame(slot)); }
  const Node& node(Value v) const { return k_.nodes[v]; }

  const Kernel& k_;
  VCode& code_;
  Vectors v_;

  std::vector<Level> level_;
  std::vector<bool> fused_;          // comparisons that only serve as one instruction with their selects
  std::vector<Level> region_level_;  // of the rare node that owns a region
  std::vector<Vector> call_, row_, column_;
  std::vector<bool> has_call_, has_row_, has_column_;
  std::vector<bool> live_, row_live_;  // what the current body, and the current row level, need
  std::vector<uint32_t> uses_;         // in the current body
  std::vector<Vector> reduced_;
  std::deque<Stream> streams_;                      // references stay valid
  std::vector<Vector> lane_offsets_, index_scale_;  // by buffer; for gathers
  size_t next_register_ = 0;                        // of kStreamRegisters
  uint16_t region_ = 0;                             // that is being emitted

  // Slots of the stack frame.
  int64_t frame_slot_ = 0, columns_slot_ = 0, rows_left_ = 0, row_index_ = 0, column_index_ = 0, tail_count_ = 0,
          blocks_ = 0, tree_slot_ = 0, first_phase_ = 0, last_phase_ = 0, lanes_ = 0;
  std::vector<int64_t> row_slots_, stride_slots_, index_stride_slots_, row_stride_slots_;

  int64_t column_offset_ = 0;  // of the body, where several steps or blocks run side by side
  bool masked_ = false;        // the body handles the last columns, fewer than 16
  Vector tail_;                // its mask
  bool in_pieces_ = false;     // a row may be
  int64_t scratch_bytes_ = 0;
};

}  // namespace ingot::codegen::x86
