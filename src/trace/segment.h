// The segment in progress: what was recorded since the latest flush, and the tensors and scalars that it met.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "eager/autograd/tape.h"
#include "eager/call/dispatch.h"
#include "trace/node.h"
#include "trace/slot_table.h"

namespace ingot::trace {

/// The first thing in which a call is other than the node that was recorded at its place.
struct CallMismatch {
  enum class Part : uint8_t {
    none,
    op,        // or its modifiers; or there was none
    operands,  // their number
    attribute,
    operand,
    overlap  // it writes to elements that share memory
  } part = Part::none;
  uint32_t number = 0;  // of the attribute or operand
};

/// A pending tensor becomes real.
void give_storage(detail::TensorImpl& tensor, runtime::Storage& storage, int64_t offset);

/// Within a segment a tensor is a value (made by one of its ops, pending) or a slot (from outside, real memory).
class Segment {
 public:
  /// `function`: its name, for errors.
  explicit Segment(const std::string& function);
  ~Segment();
  Segment(const Segment&) = delete;

  /// Another one, which begins at this node, on this thread.
  void start(Node* root);
  /// Lets go of all that was recorded; tensors that are still pending keep its mark.
  void clear();
  /// No segment is in progress.
  void end() { id_.store(0, std::memory_order_relaxed); }

  /// Marks its values: TensorImpl::trace. Differs from that of every other segment of this process.
  uint64_t id() const { return id_.load(std::memory_order_relaxed); }
  bool empty() const { return path_.empty(); }
  Node* root() const { return root_; }
  /// The latest node: what comes next is one of its children, or new.
  Node* cursor() const { return cursor_; }
  std::span<Node* const> path() const { return path_; }
  std::span<const Tensor> slots() const { return slots_; }
  /// As f64 bits or i64, in the order of their use.
  std::span<const uint64_t> scalars() const { return scalars_; }
  std::span<OutputRecord* const> values() const { return values_; }
  SlotRecord& slot_record(size_t slot) const { return *slot_records_[slot]; }
  /// The scalar that was recorded under this name (eager::Operand::origin), if one was.
  std::optional<uint32_t> find_scalar(uint64_t origin);
  /// The slots; behind them, tensors of the call that is being compared or recorded.
  SlotTable& bound() { return bound_; }
  /// Number of the sizes that reach the next op, see Node::shapes_in.
  uint64_t shapes() const { return shapes_; }

  /// The child of the cursor that this call is, or null.
  Node* next(const eager::OpCall& call) {
    for (auto& child : cursor_->children)
      if (compare(*child, call).part == CallMismatch::Part::none) return child.get();
    return nullptr;
  }
  /// Whether a call is what a node recorded; if not, in what it differs. Leaves tensors of the call in bound().
  CallMismatch compare(const Node& node, const eager::OpCall& call);
  /// Goes on to the node that the call is.
  void advance(Node* node, const eager::OpCall& call, std::span<Tensor> outputs);

  /// The slot of which an operand is a view, or -1.
  int32_t root_slot(const OperandRecord& operand) const;
  /// Number of writes that the memory of a tensor has seen, with those recorded here: a pending view has the memory of
  /// its slot.
  uint64_t writes_to(const detail::TensorImpl& impl) const;
  /// The same of the memory of an output of the segment, or of a slot.
  uint64_t writes_to_value(uint32_t root) const { return root < value_writes_.size() ? value_writes_[root] : 0; }
  uint64_t writes_to_slot(size_t slot) const { return slot < slot_writes_.size() ? slot_writes_[slot] : 0; }
  /// What of the slots the ops write, in their order.
  std::vector<Tensor> writes() const;
  /// The memory of a tensor, or that of which it is a pending view; null where there is none yet.
  const runtime::Storage* storage_of(const detail::TensorImpl& impl) const;
  /// The call that a node recorded, with the tensors and scalars of this segment.
  eager::OpCall call_of(const Node& node, std::vector<eager::Operand>& operands) const;
  /// Whether an operand from before this node is other than when its outputs were inferred.
  bool follows_from_change(const Node& node) const;
  /// Another handle of a value, which the segment gives memory with it. Nobody writes through it, and it is off the
  /// tape.
  Tensor another_handle(uint32_t value);
  /// Whether a value is no view, and nobody holds a view of it or another handle.
  bool will_own_memory(uint32_t value) const;
  /// Numbers of the values that somebody holds.
  void find_live(std::vector<uint32_t>& live) const;
  /// Those of the live values that own their memory and have no handle, nor a view with one, but those that the tape
  /// keeps to itself: where their elements lie nobody sees. `kept`: how many handles of each value that are; it is used
  /// up.
  void find_unseen(std::span<const uint32_t> live, std::vector<int32_t>& kept, std::vector<uint32_t>& unseen) const;
  /// Takes what nobody holds off the tape: what is kept for its derivative alone is not needed.
  void drop_tapes();
  /// Undone if an op of the path up to here is not done.
  void on_refusal(std::function<void()> undo) {
    if (!path_.empty()) undo_.emplace_back(path_.size() - 1, std::move(undo));
  }
  /// None of the ops can be refused any more: what the tape had of the tensors that they write is let go of.
  void forget_tapes() { before_writes_.clear(); }
  /// The ops from this one of the path on were not done: what they write is on the tape as it was before, and what has
  /// followed from them is undone.
  void undo_from(size_t first);
  /// Throws Error where another thread wrote to a slot since it was bound.
  void check_versions() const;
  /// Values that became real, or that an error left without memory while somebody holds them, are no longer the tree's;
  /// their other handles have their memory from now on.
  void release_values();

  /// "compiled function NAME on thread ID" of the segment in progress with this id; empty if there is none.
  static std::string owner_of(uint64_t id);

 private:
  void note_write(const OperandRecord& to);

  const std::string& function_;
  std::atomic<uint64_t> id_{0}, thread_{0};  // read by other threads, for messages
  Node* root_ = nullptr;
  Node* cursor_ = nullptr;
  uint64_t shapes_ = 0;
  std::vector<Node*> path_;
  std::vector<OutputRecord*> values_;
  std::vector<std::pair<OutputRecord*, detail::TensorImpl*>> other_handles_;  // that were given out
  std::vector<SlotRecord*> slot_records_;
  std::vector<Tensor> slots_;       // kept alive until the flush
  std::vector<uint64_t> versions_;  // of their storages when they were bound
  SlotTable bound_;
  std::vector<uint64_t> scalars_;
  std::vector<uint64_t> scalar_origins_;                   // names of the scalars
  std::unordered_map<uint64_t, uint32_t> scalar_numbers_;  // of the first of them: made when one is asked for
  std::vector<uint32_t> value_writes_;                     // by value, of those that are written to
  std::vector<uint32_t> slot_writes_;                      // by slot
  std::vector<uint32_t> written_slots_;
  // By position in the path.
  std::vector<std::pair<size_t, autograd::TapeState>> before_writes_;
  std::vector<std::pair<size_t, std::function<void()>>> undo_;  // and what it has followed from at most
};

}  // namespace ingot::trace
