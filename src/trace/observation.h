// What one call did, for who wants to do it again without its callable.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "eager/call/script.h"
#include "runtime/memory/storage.h"
#include "trace/flush_point.h"
#include "trace/segment.h"

namespace ingot::trace {

/// A check on the data of a slot that a repetition of the call has to make, with tensors that have sizes but no memory.
struct SlotCheck {
  OpId op;
  std::vector<ir::Attr> attrs;
  std::vector<Tensor> operands;
  size_t checked = 0;  // the operand: a view of the slot
  uint32_t slot = 0;
  int64_t offset = 0;  // beyond the slot's own
  Location location;
  /// True if eager would compute with the checked operand on this memory.
  bool passes(const Tensor& slot) const;
};

/// The draws that a random op took from the generator: scalar `seed` of the segment and the one after it.
struct SegmentDraw {
  uint32_t seed = 0;
  int64_t count = 0;
  friend bool operator==(const SegmentDraw&, const SegmentDraw&) = default;
};

/// Equal for segments that called the same ops with the same attributes and sizes, and gave out the same of it.
struct SegmentPath {
  uint64_t end = 0;  // FlushPoint::id
  std::vector<uint32_t> live, aliases;
  std::vector<int64_t> sites;
  friend bool operator==(const SegmentPath&, const SegmentPath&) = default;
};

/// A segment as it was computed. Valid until the next call of the recorder.
struct ObservedSegment {
  const Variant* variant = nullptr;  // null: nothing was computed
  bool one_by_one = false;           // it ran op by op
  std::string why;                   // empty: its program was not ready
  SegmentPath path;
  std::vector<SlotCheck> checks;
  std::vector<SegmentDraw> draws;
  std::vector<Tensor> slots;
  std::vector<uint32_t> written;  // of the slots
  std::vector<Tensor> writes;     // what was written of them: Segment::writes
  std::vector<uint64_t> scalars;
  std::vector<Tensor> live;  // of variant->live
};

class Observation {
 public:
  /// `segment`: marks the tensors that the call makes before it is first cut.
  Observation(std::span<const detail::TensorImpl* const> arguments, uint64_t segment);

  void note_break(const std::string& reason, Location location);
  /// A segment is about to be given its results; no variant: nobody asked for any.
  void note_segment(const Segment& segment, const FlushPoint& point, std::span<const uint32_t> live,
                    std::span<const uint32_t> aliases, const Variant* variant);
  void note_one_by_one(std::string why);

  const std::vector<ObservedSegment>& segments() const { return segments_; }
  /// Why the call was cut before its end, and where; empty if it was not.
  const std::string& break_reason() const { return break_reason_; }
  /// True if the storage was made since the call began, by this thread or another one.
  bool is_new(const runtime::Storage& storage) const { return storage.id() > last_storage_; }
  /// Stands in the thread's chain while the call is in progress.
  eager::ScriptWriter& writer() { return writer_; }
  const eager::Script& script() const { return writer_.script(); }
  /// Those that the call ran, each once: a module comes before those that it calls.
  const std::vector<std::weak_ptr<nn::Module>>& modules() const { return writer_.modules(); }
  eager::Script take_script() { return writer_.take(); }

 private:
  std::vector<ObservedSegment> segments_;
  std::string break_reason_;
  uint64_t last_storage_;  // made before the call
  eager::ScriptWriter writer_;
};

}  // namespace ingot::trace
