// The pointers that the loops of a kernel advance along, in registers while there are any.
#pragma once
#include <deque>
#include <vector>

#include "codegen/x86/frame.h"

namespace ingot::codegen::x86 {

/// Registers with a fixed use. rcx: the column; kLimit: where the loop ends; rax, rbx, rdx and r14 (lanes) are free
/// between instructions; the others hold streams.
inline constexpr Gpr kLimit = Gpr::r11;
inline constexpr Gpr kStreamRegisters[] = {Gpr::rsi, Gpr::rdi, Gpr::r8,  Gpr::r9, Gpr::r10,
                                           Gpr::r12, Gpr::r13, Gpr::r15, Gpr::rbp};

/// A buffer, moved by a uniform index expression where there is one, or a local.
struct Stream {
  uint32_t number = 0;  // of the buffer or local
  bool local = false;
  Value index = kNone;
  Mem slot{};           // the address at column 0 of the row
  Gpr reg = Gpr::none;  // holds it, if a register was left
  bool moves = false;   // the register itself goes from row to row
};

class Streams {
 public:
  Streams(const Analysis& analysis, Frame& frame, VCode& code)
      : analysis_(analysis), k_(analysis.kernel()), frame_(frame), code_(code) {}

  Stream& get(uint32_t number, bool local, Value index = kNone);
  /// Those of a phase, in order of first use.
  std::vector<Stream*> used_by(const Phase& phase, const std::vector<bool>& live);
  /// Those of which a row is one element.
  std::vector<Stream*> used_by_rows(const std::vector<bool>& live);
  /// A register for each, while they last.
  void assign_registers(const std::vector<Stream*>& used);
  void free_registers() { next_register_ = 0; }
  /// If there is a register for each, they stay there from row to row; `of_rows`, too.
  bool keep_in_registers(const std::vector<Stream*>& used, const std::vector<Stream*>& of_rows = {});
  /// Before a phase: addresses that depend on an index of this row, and what registers do not hold yet.
  void begin(Stream& s, Vector* index, bool resident);
  void advance_row();
  /// What registers hold goes back to where keep_in_registers() takes it from.
  void put_back();
  void exchange_row(std::deque<Stream>& streams) { std::swap(streams_, streams); }

  /// The address of the step's columns; may use rax.
  Mem address(const Stream& s, int64_t element_bytes);
  /// rax = that address of a strided stream, or of column 0 if `moves` is false.
  void address_to_rax(const Stream& s, bool moves);
  /// rax = the address of column 0 that a uniform index gives.
  void index_to_rax(uint32_t buffer, Vector& index);
  /// Fetches what `steps` steps will read and write soon.
  void fetch_ahead(int steps);

 private:
  bool wants_register(const Stream& s) const;
  /// The next of kStreamRegisters, or none.
  Gpr free_register();

  const Analysis& analysis_;
  const Kernel& k_;
  Frame& frame_;
  VCode& code_;
  std::deque<Stream> streams_;  // references stay valid
  size_t next_register_ = 0;    // of kStreamRegisters
};

}  // namespace ingot::codegen::x86
