// Where a segment ends: the programs that compute its live values, one for each live set, aliasing and set of symbols.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "eager/autograd/deferred.h"
#include "trace/function.h"
#include "trace/node.h"

namespace ingot::trace {

/// Where a live value lies after the program has run.
struct LiveValue {
  uint32_t value = 0;
  bool external = false;  // a view of a tensor from outside
  uint32_t number = 0;    // the slot, or the number of the program's output that holds its storage
};

/// Where an output of the program goes.
struct OutputTarget {
  enum class Kind : uint8_t {
    storage,     // memory of value `number`
    write_back,  // slot `number`
    failed       // one bool: a check on values failed, the other outputs mean nothing
  } kind = Kind::storage;
  uint32_t number = 0;
  // Of a write back: the program may write to the slot itself, as nothing reads what it held once it does.
  bool donated = false;
  bool apart = false;  // never: other inputs are parts or views of its memory
  // Dims of the storage's tensor, from the outermost in memory. Of an unseen value: those that the program chose.
  SmallVector<int64_t, 6> order = {};
  bool unseen = false;
  /// Strides of that tensor, dense in this order.
  Ints strides(const Ints& sizes) const;
};

/// A live value, held by the tape alone, that the program leaves to a recipe.
struct DeferredValue {
  uint32_t value = 0;
  size_t recipe = 0;  // of the compiled graph
};

/// A check on values that are there before the program runs: where it fails then, nothing was written yet.
struct HostCheck {
  size_t node = 0;       // of the path: the call
  uint32_t operand = 0;  // of the call: what is checked
  // Of the path: the op that made the operand by counting (kCounts); -1: it is memory from outside, or a scalar.
  int64_t counter = -1;
  // The program makes the values and checks them itself; but where no position exists at all, it may not even read.
  bool sizes_only = false;
};

/// How a segment's record maps to a graph's inputs and outputs; once there is a program, to those of the program.
struct SegmentBinding {
  std::vector<uint32_t> input_slots;  // of each graph input
  std::vector<OutputTarget> outputs;  // of each graph output
  std::vector<LiveValue> live;
  std::vector<DeferredValue> deferred;
  std::vector<HostCheck> host_checks;
};

/// A recipe at the latest sizes.
struct BoundRecipe {
  std::shared_ptr<const autograd::DeferredOps> ops;
  std::vector<uint32_t> scalars;  // of the segment
};

/// One program at a flush, and what it holds for: another live set or aliasing is another graph, and sizes may be
/// constants of it.
struct Variant {
  compiler::CodeLevel level;
  std::vector<uint32_t> live;    // numbers of the live values, ascending
  std::vector<uint32_t> unseen;  // of these: the values whose strides nobody sees (Segment::find_unseen)
  // For each slot the first slot that shares its storage; empty if nothing outside is written.
  std::vector<uint32_t> aliases;
  std::vector<int64_t> sites;      // as they were when it was compiled
  std::vector<int32_t> symbol_of;  // of each site: its symbol, -1 where it is static
  int symbol_count = 0;
  SegmentBinding binding;
  // A variant that computes nothing has neither a program nor a reason to run op by op.
  std::shared_ptr<CacheEntry> entry;
  std::string fallback;
  // The latest sizes for which it is known to hold, so that the same ones are not compared again.
  uint64_t shapes = ~uint64_t{0};
  std::vector<int64_t> symbols;
  runtime::BoundProgramPtr bound;
  std::vector<int64_t> output_bytes;
  std::vector<BoundRecipe> recipes;
  std::vector<eager::OutputMeta> recipes_read;  // of each output, as it lies; empty where none reads one

  /// True once the program is there, or it is known that there is none; it is then bound to the latest sizes, for as
  /// many threads as there are now.
  bool bind_if_ready();
  /// For one that is ready: true if its program is right for these sites; it is then bound to them.
  bool bind_to(std::span<const int64_t> now);

 private:
  void use(runtime::BoundProgramPtr program);
  void bind_recipes(const runtime::BoundProgram& program);
  /// Once: the binding becomes that of the program's outputs.
  void leave_to_recipes();
  void grant_direct_writes();
  bool left_to_recipes_ = false;
};

struct FlushPoint {
  const uint64_t id = next_id();  // differs from that of every other flush point of this process
  std::vector<uint32_t> written_slots;
  // Some op looks at data before it computes, and eager would throw: it is run even where nobody has its results.
  bool checks = false;
  // The sites of each compilation: a size that differs between two of them becomes a symbol.
  std::vector<std::vector<int64_t>> history;
  std::vector<std::unique_ptr<Variant>> variants;

 private:
  static uint64_t next_id();
};

/// The sites of a path: sizes and free strides of its latest call, which a program may leave open.
void collect_sites(std::span<Node* const> path, std::vector<int64_t>& sites);
/// What the n-th site is, "size 0 of operand self of add", and where it is recorded.
struct SiteDescription {
  std::string text;
  const Node* node = nullptr;
};
SiteDescription describe_site(std::span<Node* const> path, size_t site);
/// Sites that took the same values in every entry of the history share a symbol, so that the compiler knows them to be
/// equal; those that never changed are static, and so is a size of 0 in the latest.
std::vector<int32_t> assign_symbols(std::span<const std::vector<int64_t>> history, int* count);
/// What the guards of a graph say of single symbols is better said by the sites: a symbol that must equal a constant is
/// static, two that must be equal are one. True if it changed anything; the graph is then to be built again.
bool pin_symbols(const DimTable& dims, std::span<const int64_t> sites, std::vector<int32_t>& symbol_of, int* count);

}  // namespace ingot::trace
