// Records the ops of one call at a time and replays them against the tree; computes at flushes.
//
// A call is cut into segments by its flushes. Within a segment a tensor is a value (made by a recorded op) or a slot (a
// tensor from outside, real memory); after a flush everything that is still alive is real, and the next segment sees it
// as outside.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "eager/call/dispatch.h"
#include "eager/call/script.h"
#include "eager/execute/code_level.h"
#include "runtime/memory/storage.h"
#include "trace/flush_point.h"
#include "trace/function.h"
#include "trace/slot_table.h"
#include "trace/trace_tree.h"

namespace ingot::trace {

/// A check on memory from outside that a repetition of the call has to make, with tensors that have sizes but no
/// memory.
struct RunCheck {
  OpId op;
  std::vector<ir::Attr> attrs;
  std::vector<Tensor> operands;
  size_t checked = 0;  // the operand: a view of a slot
  uint32_t slot = 0;
  int64_t offset = 0;  // beyond the slot's own
  Location location;
  /// True if eager would compute with the checked operand on this memory.
  bool passes(const Tensor& slot) const;
};

/// The draws that a random op of a run took from the generator: scalar `seed` of the segment and the one after it.
struct RunDraw {
  uint32_t seed = 0;
  int64_t count = 0;
  friend bool operator==(const RunDraw&, const RunDraw&) = default;
};

/// What a segment did: equal ones called the same ops with the same attributes and sizes, and gave out the same of it.
struct SegmentPath {
  uint64_t end = 0;  // FlushPoint::id
  std::vector<uint32_t> live, aliases;
  std::vector<int64_t> sites;
  friend bool operator==(const SegmentPath&, const SegmentPath&) = default;
};

/// One segment as it was run, for the freezer: valid until the next call of the recorder.
struct SegmentRun {
  const Variant* variant = nullptr;  // null: nothing was computed
  bool one_by_one = false;           // it ran op by op
  std::string why;                   // empty: its program was not ready
  SegmentPath path;
  std::vector<RunCheck> checks;
  std::vector<RunDraw> draws;
  std::vector<Tensor> slots;
  std::vector<uint32_t> written;  // of the slots
  std::vector<uint64_t> scalars;
  std::vector<Tensor> live;  // of variant->live
};

class Recorder final : public eager::Interceptor {
 public:
  explicit Recorder(std::shared_ptr<Function> function);
  ~Recorder() override;

  /// Starts a call on this thread and becomes its interceptor. Tensors among the call's arguments are told from
  /// captured ones. A repetition that the user did not ask for is not counted.
  void begin(std::span<const detail::TensorImpl* const> arguments, bool counted = true);
  /// Ends the call: computes what is alive. Throws what eager would have thrown where a check fails.
  void finish();
  /// Ends a call that threw: the recorded ops run one by one, so that their effects are eager's.
  void abandon();
  /// Ends a call as if it had not begun: what was recorded is forgotten.
  void discard() { leave(); }

  void call(const eager::OpCall& call, std::span<Tensor> outputs) override;
  /// A function of the user's runs now, between what was recorded before it and after it, and what it does is not
  /// recorded.
  std::vector<Tensor> call(const eager::OpaqueCall& call) override;
  void flush(const char* reason, Location location) override;
  void hand_out(const detail::TensorImpl& tensor, bool writable) override;
  const Function& function() const { return *function_; }
  /// What the call did: its segments, and whether a value was asked for. Kept only if `keep_runs` was set before
  /// begin().
  bool keep_runs = false;
  const std::vector<SegmentRun>& runs() const { return runs_; }
  void forget_runs() { runs_.clear(); }
  /// Why the call was cut before its end, and where; empty if it was not. Kept like runs().
  const std::string& break_reason() const { return break_reason_; }
  /// True if the storage was made since the call began, by this thread or another one. Known like runs().
  bool is_new(const runtime::Storage& storage) const { return storage.id() > last_storage_; }
  /// True if the call in progress is so little up to here that fusing it does not pay for recording it: a few ops on
  /// short tensors.
  bool slight() const;
  /// Of the call in progress or the latest; only if `keep_runs` was set before begin().
  const eager::Script& script() const { return writer_->script(); }
  eager::Script take_script() { return writer_->take(); }
  /// The slot of which an operand of the segment in progress is a view, or -1.
  int32_t root_slot(const OperandRecord& operand) const;
  /// The segment in progress.
  std::span<Node* const> path() const { return path_; }
  std::span<const Tensor> slots() const { return slots_; }
  std::span<const uint64_t> scalars() const { return scalars_; }
  const Node& root() const { return root_; }

  /// "compiled function NAME on thread ID" of the recorder whose segment this is; empty if none.
  static std::string name_of_segment(uint64_t segment);

 private:
  bool matches(const Node& node, const eager::OpCall& call);
  Node* record(const eager::OpCall& call);
  void advance(Node* node, const eager::OpCall& call, std::span<Tensor> outputs);
  void refresh_shapes(Node* node, const eager::OpCall& call);
  bool follows_from_change(const Node& node) const;
  void infer_again(Node& node, const eager::OpCall& call);
  bool is_constant(const detail::TensorImpl& impl) const;
  void start_segment(Node* root);
  void clear_segment();
  void leave();
  Node* flush_node(const char* reason, Location location);
  void end_segment(const char* reason, Location location);
  // recorder_run.cpp
  void run_segment(Node* node);
  void find_live();
  Variant* choose_variant(FlushPoint& point, bool* waits);
  Variant* compile_variant(FlushPoint& point);
  bool holds(Variant& variant);
  void run_variant(Variant& variant);
  eager::OpCall call_of(const Node& node, std::vector<eager::Operand>& operands) const;
  bool host_checks_pass(const Variant& variant);
  void keep_run(const Variant* variant);
  void fall_back(const std::string& reason);
  void run_one_by_one(std::string why);
  void note_break(const std::string& reason, Location location);
  void give_storage(detail::TensorImpl* impl, runtime::Storage* storage, int64_t offset);
  void release_values();
  void note_fork(const eager::OpCall& call);
  bool may_record();
  void pass_through(std::string why);
  void make_room();
  void note_node();
  bool reaches_handed_out(const eager::OpCall& call) const;
  void check_versions() const;
  [[noreturn]] void fail_foreign(const detail::TensorImpl& impl, const eager::OpCall& call) const;

  std::shared_ptr<Function> function_;
  Node root_;
  // The tree is bounded: where it is full, new paths run eagerly, branches that were never taken again are cut before
  // the next call, and from then on recording takes a small part of the time only.
  static constexpr size_t kMostNodes = 32768;
  static constexpr double kRecordingShare = 0.1;
  // After so many calls in a row that left what is recorded, only every kProbe-th call looks at it.
  static constexpr int64_t kStrangers = 8, kProbe = 16;
  int64_t strangers_ = 0;
  size_t nodes_ = 1, recorded_now_ = 0;
  bool full_ = false, crowded_ = false;
  int64_t call_ = 0;
  std::chrono::steady_clock::time_point started_;
  double spent_ = 0, spent_recording_ = 0;  // seconds, once crowded
  uint64_t next_shapes_ = 0, changes_ = 1;
  std::atomic<uint64_t> thread_{0};  // for messages

  // The call in progress.
  eager::Interceptor* outer_ = nullptr;
  std::optional<eager::ScriptWriter> writer_;
  eager::Interceptor* outer_observer_ = nullptr;
  bool counted_ = true;
  std::optional<eager::NumericsScope> numerics_;  // the function's own level
  bool passthrough_ = false;                      // past the recompile limit: the rest of the call is eager
  std::string break_reason_;
  uint64_t last_storage_ = 0;  // made before the call
  bool fresh_ = false;         // something was recorded or compiled
  bool ended_well_ = false;
  std::vector<const detail::TensorImpl*> arguments_;
  std::vector<uint64_t> made_;  // ids of the storages that this call's flushes made
  /// Memory to which the callable holds a pointer from this call: ops that touch it run at once, in the callable's
  /// order.
  struct HandedOut {
    const char *begin, *end;
    bool writable;
  };
  std::vector<HandedOut> handed_out_;
  std::vector<SegmentRun> runs_;

  // The segment in progress.
  std::atomic<uint64_t> segment_{0};
  Node* segment_root_ = nullptr;
  Node* cursor_ = nullptr;
  uint64_t shapes_ = 0;
  std::vector<Node*> path_;
  std::vector<OutputRecord*> values_;
  std::vector<SlotRecord*> slot_records_;
  std::vector<Tensor> slots_;       // bound tensors, kept alive until the flush
  std::vector<uint64_t> versions_;  // of their storages when they were bound
  SlotTable bound_;                 // the same as pointers, and those of a match in progress
  std::vector<uint64_t> scalars_;   // f64 bits or i64, in order
  std::vector<uint32_t> live_;
  std::vector<uint32_t> aliases_;
  std::vector<int64_t> sites_;
  std::vector<eager::OutputMeta> metas_;
  const FlushPoint* point_ = nullptr;          // that ends it
  std::vector<runtime::StoragePtr> storages_;  // of the outputs while a program runs
};

}  // namespace ingot::trace
