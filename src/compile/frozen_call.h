// One call of a function as it was seen, ready to be repeated without its callable.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compile/leaves.h"
#include "eager/call/tensor_guard.h"
#include "trace/observation.h"

namespace ingot::detail {

/// What must hold of one argument leaf.
struct LeafGuard {
  Leaf::Kind kind = Leaf::Kind::tensor;
  eager::TensorGuard tensor;  // with the facts of none where it is undefined
  int32_t same_as = -1;       // an earlier leaf that is the same tensor
  uint64_t bits = 0;
  std::string text;
  /// Not 0: only the tensor at this place of this storage. As long as only one tensor was seen here, it may be one that
  /// is captured as well.
  uint64_t storage = 0;
  int64_t offset = 0;
  LeafGuard(std::span<const Leaf> leaves, size_t i);
  bool holds(std::span<const Leaf> leaves, size_t i) const;
  bool equal_but_storage(const LeafGuard& other) const;
  bool same_identity(const LeafGuard& other) const { return storage == other.storage && offset == other.offset; }
  void take_identity(const LeafGuard& other) { storage = other.storage, offset = other.offset; }
  void forget_identity() { storage = 0, offset = 0; }
  /// True unless the guard is for another tensor.
  bool identity_holds(const TensorImpl& impl) const;
};

/// As many identities stay guarded as both saw.
void keep_common_identities(std::vector<LeafGuard>& guards, const std::vector<LeafGuard>& others);

/// Of all that LeafGuard::holds looks at but identities.
uint64_t hash_of(const LeafList& leaves);

class ModuleWatch;

/// The arguments of a call as they were before it; the callable may move from them.
struct Arguments {
  uint64_t hash = 0;
  std::vector<LeafGuard> guards;
  std::vector<Tensor> tensors;               // one a leaf; undefined where it is no tensor
  std::shared_ptr<const ModuleWatch> watch;  // what the function held, where it is a module
  explicit Arguments(const LeafList& leaves, std::shared_ptr<const ModuleWatch> watch = nullptr);
};

/// What a call is told by beside the values of its arguments.
struct CallKey {
  const void* signature = nullptr;  // the types of arguments and result
  compiler::CodeLevel level;
  bool gradients = false;                        // they were recorded; what would have had one was refused
  const eager::Interceptor* autocast = nullptr;  // the dtype that ops were taken in (eager/autocast.cpp)
  friend bool operator==(const CallKey&, const CallKey&) = default;
};

/// Where a tensor comes from in a frozen call.
struct FrozenTensor {
  enum class Source : uint8_t { argument, captured, live } source = Source::argument;
  size_t number = 0;  // of the argument leaf, of the live value
  Tensor captured;
  bool tracked = false;  // it required grad: the ops that read it ran under a NoGradGuard of the function's own
  uint64_t storage = 0;  // of a captured tensor, with its offset: still known when the tensor was let go of
  int64_t offset = 0;
  friend bool operator==(const FrozenTensor& a, const FrozenTensor& b) {
    return a.source == b.source && a.number == b.number && a.storage == b.storage && a.offset == b.offset;
  }
};

/// What the user is given back beside tensors: lengths, numbers and texts, which every such call has in common.
struct ResultForm {
  std::vector<LeafGuard> rest;  // its leaves that are no tensors
  std::shared_ptr<const void> copy;
};

/// Set by readers, taken back by who looks for a call that is not used.
struct UsedMark : std::atomic<bool> {
  UsedMark() : std::atomic<bool>(true) {}
  UsedMark(const UsedMark&) : UsedMark() {}
};

struct FrozenCall {
  mutable UsedMark used;
  std::shared_ptr<const ModuleWatch> watch;  // as in Arguments
  uint64_t hash = 0;                         // of its arguments
  CallKey key;
  std::vector<LeafGuard> guards;
  std::vector<std::pair<size_t, int64_t>> sharing;  // of each leaf: the first of its storage, and how far behind it
  std::shared_ptr<trace::CacheEntry> entry;         // null: nothing is computed
  runtime::BoundProgramPtr bound;
  trace::SegmentBinding binding;
  std::vector<FrozenTensor> slots;
  std::vector<uint64_t> scalars;
  std::vector<trace::SegmentDraw> draws;  // of random numbers, taken anew in each call
  std::vector<int64_t> output_bytes;
  struct Live {
    DType dtype;
    Ints sizes, strides;
    int64_t offset = 0;  // within its storage; of a view of a slot: beyond the slot's own offset
  };
  std::vector<Live> live;
  std::vector<FrozenTensor> result;  // tensors of the result, in order
  ResultForm form;
  std::vector<trace::SlotCheck> checks;
  trace::SegmentPath path;  // what the call did, to be compared with another one

  std::vector<uint32_t> written;  // slots that the program writes
  bool refuses = false;           // values that it computes are checked

  bool holds(const LeafList& arguments, const CallKey& key) const;
  /// True if it is cut for as many threads as there are now.
  bool current() const;
  /// Runs the program; gives the tensors of the result. False, with nothing given and nothing written, if a check of
  /// computed values failed: the callable is to throw it.
  bool run(const LeafList& arguments, std::span<Tensor> results) const;
  int64_t bytes() const;  // of memory, about

 private:
  bool run_program(const LeafList& arguments, std::span<void*> outputs, std::span<const uint64_t> numbers) const;
  const Tensor& slot(size_t number, const LeafList& arguments) const;
  bool same_aliases(const LeafList& arguments) const;
};

/// The call that was observed; null, with the reason, if it cannot be repeated without the callable. No
/// reason: it may be later.
std::shared_ptr<FrozenCall> build_frozen_call(const Arguments& arguments, const CallKey& key,
                                              const trace::Observation& observation, std::span<const Tensor> result,
                                              ResultForm form, std::string* refusal);

/// Leaves what difference() looks at, and holds no tensor that the program reads.
void let_go_of_inputs(FrozenCall& call);

/// What the second of two calls with equal arguments did otherwise; empty if nothing.
std::string difference(const FrozenCall& first, const FrozenCall& second);

}  // namespace ingot::detail
