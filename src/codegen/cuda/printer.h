// Writes a mapped kernel as CUDA C++: its argument struct and its entry function.
#pragma once
#include <fmt/format.h>

#include <string>
#include <vector>

#include "codegen/cuda/expression.h"
#include "codegen/cuda/mapping.h"

namespace ingot::codegen::cuda {

using Form = CudaMapping::Form;

/// What all forms share.
class Printer {
 public:
  Printer(const Kernel& kernel, const Mapping& mapping, const std::string& entry)
      : k_(kernel), m_(mapping), l_(mapping.launch), entry_(entry) {}

  std::string run();

 protected:
  ~Printer() = default;
  /// The body of the entry function.
  virtual void form() = 0;

  // Text.
  template <class... A>
  void line(fmt::format_string<A...> format, A&&... arguments) {
    out_.append(static_cast<size_t>(indent_) * 2, ' ');
    fmt::format_to(std::back_inserter(out_), format, std::forward<A>(arguments)...);
    out_ += '\n';
  }
  void open(const std::string& head);
  void close();

  /// True if elements of the buffer are read or written side by side.
  bool moved(size_t buffer) const { return m_.moves(k_, buffer); }
  /// True if anything of it is read or written: what folding made needless may stay a buffer.
  bool touched(size_t buffer) const;
  const char* memory(size_t buffer) const { return memory_name(k_.buffers[buffer].dtype); }
  int64_t element_bytes(size_t buffer) const { return ingot::size_of(k_.buffers[buffer].dtype); }
  /// True if its elements stand in words, two 16-bit floats each, where a thread has several side by side.
  bool packed(size_t buffer) const {
    return is_half(k_.buffers[buffer].dtype) && l_.vector % 2 == 0 && l_.form != Form::columns;
  }
  /// A variable that holds elements of the buffer which a thread loads, or is to store. `of`: how many such variables.
  std::string loaded(size_t buffer, const std::string& name, const std::string& of, int lanes) const;
  std::string to_store(size_t buffer, const std::string& name, const std::string& of, int lanes) const;
  /// The variable as what is stored.
  std::string stored(size_t buffer, const std::string& name) const;
  bool dense(size_t buffer) const { return k_.buffers[buffer].access == Access::dense; }
  std::string pieces(size_t buffer) const { return dense(buffer) ? fmt::format("pieces{}", buffer) : "false"; }
  /// What must hold for whole pieces in a phase, each followed by "&&"; empty if nothing must.
  std::string all_pieces(size_t phase) const;
  /// From column to column, in bytes.
  std::string stride(size_t buffer) const;
  std::string combiner(uint32_t r) const;
  DType result_type(uint32_t r) const;

  void argument_struct();

  /// The plane and the row of line `at`.
  void line_place();
  /// Indices of a plane in the dims outside, and where its buffers begin. `row`: added to every address.
  void plane_addresses(bool row);
  std::string outer_offset(const std::string& operand) const;

  /// Where an element is: names of its column and row, and how staged values are subscripted.
  struct Cursor {
    std::string column = "0", row = "row", guard;
    std::string subscript, lane;  // of an array of staged values, and of the element in it
    bool row_moves = false;       // form columns: addresses do not hold the row
    bool scalar = false;          // staged values are no arrays
    bool again = false;           // local row buffers are computed once more
    std::string element() const { return lane.empty() ? "" : subscript + "[" + lane + "]"; }
  };

  std::string index_value(const Node& n, const Cursor& cursor) const;

  std::string load_address(const Node& n, const Cursor& cursor) const;

  std::string node_value(Value v, const Cursor& cursor) const;
  /// A type that can be called like a function: "unsigned short" cannot.
  static std::string cast_name(DType d) { return fmt::format("({})", memory_name(d)); }

  /// Statements of nodes in order; those of a rare region in the branch of its node.
  void nodes(const std::vector<Value>& list, const Cursor& cursor);

  /// Where a staged load begins, without its column; `row`: that its buffer's address does not hold.
  std::string staged_base(Value v, const char* row = "") const;
  std::string at_column(std::string base, size_t buffer, const char* column) const;
  const char* local_memory(Type t) const { return memory_name(memory_type(t)); }

  /// What the elements compute: nodes, then stores into o and q, subscripted by the cursor, then lanes of reductions.
  void elements(const PhaseMapping& p, const Phase& phase, const Cursor& cursor, const std::string& lane);

  const Kernel& k_;
  const Mapping& m_;
  const CudaMapping& l_;
  const std::string& entry_;
  std::string out_;
  int indent_ = 0;
};

std::string print(const Kernel& kernel, const Mapping& mapping, const std::string& entry);

}  // namespace ingot::codegen::cuda
