// What a compiled function did and why, as data and as pages for a person.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/export.h"
#include "trace/statistics.h"

namespace ingot {

/// What Explanation::str() shows. By default an overview, the trace, the steps, what was fused and why, the guards.
struct ReportOptions {
  int program = -1;     // which one is shown in full; -1: the last, which is the most general. Of the way back the last
  bool ir = false;      // the IR as recorded and after the passes, instead of a line a module
  bool fusion = false;  // every decision, instead of a line a reason
  bool steps = false;   // every step, in order of execution, instead of the longest
  // Kernels with this in their name; "": all but the tiles of products.
  std::optional<std::string> kernel_ir = {}, assembly = {};
  bool color = false;  // for a terminal
};

/// A list whose items are values where the list itself is about to go: `for (auto& s :
/// f.explain().programs.back().steps)` walks what the loop keeps.
template <class T>
class Listed : public std::vector<T> {
 public:
  using std::vector<T>::vector;
  Listed(std::vector<T> items) : std::vector<T>(std::move(items)) {}
  using Items = std::vector<T>;

  T& operator[](size_t i) & { return Items::operator[](i); }
  const T& operator[](size_t i) const& { return Items::operator[](i); }
  T operator[](size_t i) && { return std::move(Items::operator[](i)); }
  T& at(size_t i) & { return Items::at(i); }
  const T& at(size_t i) const& { return Items::at(i); }
  T at(size_t i) && { return std::move(Items::at(i)); }
  T& front() & { return Items::front(); }
  const T& front() const& { return Items::front(); }
  T front() && { return std::move(Items::front()); }
  T& back() & { return Items::back(); }
  const T& back() const& { return Items::back(); }
  T back() && { return std::move(Items::back()); }
};

struct Explanation {
  struct Kernel {
    std::string name, text;  // kernel IR
    int64_t code_bytes = 0;
    std::vector<uint8_t> code;  // machine code, then constants; empty: interpreted
    /// A tile or pack of a matrix product, one of a form for each edge.
    INGOT_API bool product_form() const;
    /// One instruction a line.
    INGOT_API std::string assembly() const;
  };
  /// A tensor from outside, as a call must bring it.
  struct Input {
    std::string value, type, strides;  // strides: only where they are not row-major
    bool constant = false;             // not an argument of the call: a parameter, say
    std::string used_by;               // the op that reads it first
  };
  /// An op, as recorded or after the passes.
  struct Op {
    std::string value, op, type;   // value: as in the IR's text
    Listed<std::string> operands;  // values
    std::string module, location;
  };
  struct Group {
    std::string name;
    Listed<std::string> members;  // names of ops
    Listed<uint32_t> ops;         // in Program::ops
    Listed<std::string> stored;   // values
    Listed<uint32_t> steps;       // in Program::steps
    int64_t bytes_saved = 0;      // of memory traffic, by what was fused into it
  };
  struct Decision {
    std::string value;
    bool fused = false;
    std::string reason;
    int64_t bytes_saved = 0;
    std::string op, module, location;
    int64_t bytes = 0;  // of the value: what keeping it apart writes, and each reader reads
  };
  /// A step of a program and its floor: arithmetic and memory traffic, at the sizes it was compiled with.
  struct Step {
    std::string name;
    Listed<std::string> ops;      // that it does, without repetition in a row
    Listed<std::string> modules;  // that they stand in, each once
    double operations = 0, bytes = 0;
    std::string form;          // loop, column, matmul, conv2d, conv2d_weight, attention, attention_backward or host
    std::string space;         // what it runs over
    std::string algorithm;     // which of the ways to do it lowering chose
    double mean_us = 0;        // of a run, measured by profile(); else 0
    Listed<uint32_t> kernels;  // in Program::kernels
    std::string weight;        // of a product or convolution: packed, or why not, in its latest run
  };
  /// A tensor from outside that the program writes. In place where nobody reads what it held once it is written (and
  /// its elements are dense in memory); else apart, and copied at the end.
  struct Write {
    std::string value;  // what is written
    std::string input;  // the tensor as the program is given it, a value; empty: it is not
    std::string type;
    std::string op, location;  // that makes the value; empty: an input
    bool in_place = false;
    std::string reason;  // of one that is not in place
  };
  struct Stage {
    std::string name;
    double ms = 0;
    int64_t ops = 0;  // of the graph after it
  };
  struct Program {
    std::string key;
    std::string trace;       // IR as recorded
    std::string primitives;  // IR after the passes
    Listed<Op> traced_ops, ops;
    Listed<std::string> outputs;  // values
    Listed<Input> inputs;
    Listed<Write> writes;
    Listed<Group> groups;  // in order of execution
    Listed<Decision> decisions;
    /// Of a program that goes backward, or leaves a tape: what the forward pass stores and the backward pass reads, and
    /// what the backward pass computes again from what is there, with the reason.
    Listed<Decision> saved, recomputed;
    Listed<std::string> notes;  // of the lowering: copies that a layout needed
    std::string report;         // the lowering's own account: steps, operations, bytes
    Listed<Step> steps;
    Listed<Kernel> kernels;
    std::string shapes, guards;
    Listed<Stage> stages;  // of its compilation
    int64_t hits = 0, code_bytes = 0;
    double compile_ms = 0;
    /// Of memory traffic a call: what the steps move, and what they would move more if nothing were fused.
    INGOT_API double bytes_moved() const;
    INGOT_API double bytes_saved() const;
    /// Of `saved`.
    INGOT_API int64_t bytes_saved_for_backward() const;
    /// Measured; 0 where it was not.
    INGOT_API double mean_us() const;
    /// Steps of one kind: products, convolutions, attention, pointwise work and rows, sums over columns, host ops.
    struct Kind {
      std::string name;
      int64_t steps = 0;
      double share = 0;  // of the time; unmeasured, of operations or, where there are none, of bytes
    };
    /// The largest share first.
    INGOT_API std::vector<Kind> kinds() const;
    /// "20 steps in 17.5 ms: 94% convolutions, 5% pointwise work and rows, 1% products; 78.1 GFLOP/s, 3.2 GB/s".
    INGOT_API std::string summary() const;
    /// Numbers of steps: those that take longest first, or, unmeasured, as they run.
    INGOT_API std::vector<uint32_t> longest() const;
  };
  struct Notice {
    std::string reason, location;
    int64_t count = 0;
    std::string op;
  };
  struct Recompile {
    std::string guard, before, after, op, location;
  };

  std::string name;
  Statistics statistics;
  Listed<Program> programs;  // cache entries, in order of compilation
  Listed<Notice> breaks, fallbacks;
  Listed<Recompile> recompiles;
  std::string frozen;  // frozen mode: its state, or why it was refused
  std::string target;  // of the code
  /// Of the way back: what backward() outside of the function computes of what its calls left on the tape. None, or
  /// one.
  Listed<Explanation> backward;
  /// A page for a person. Throws Error for a program or kernels that are not there.
  INGOT_API std::string str(const ReportOptions& options = {}, Location location = Location()) const;
  /// A self-contained HTML page: a picture of the graph by its groups, with everything else a click away.
  INGOT_API std::string html() const;
};

namespace runtime {
class Profile;
}
namespace detail {
class CompiledCore;
/// With the times of steps, if a profile is given.
Explanation explain(const CompiledCore& core, const runtime::Profile* profile = nullptr);
}  // namespace detail

}  // namespace ingot
