// What happens at a flush: the program of the segment is chosen or compiled, it runs, and the live tensors get memory.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "eager/autograd/stretch.h"
#include "runtime/memory/storage.h"
#include "trace/call_memory.h"
#include "trace/flush_point.h"
#include "trace/function.h"
#include "trace/observation.h"
#include "trace/segment.h"

namespace ingot::trace {

class Backward;

class SegmentRunner {
 public:
  /// `backward`: see Recorder.
  SegmentRunner(Function& function, Segment& segment, CallMemory& memory, std::shared_ptr<Backward> backward);

  /// `call`: its number. No observation: what it does is not kept.
  void begin_call(int64_t call, Observation* observation);
  /// True if this call has compiled a program, or tried to.
  bool has_compiled() const { return compiled_; }
  /// Computes what the segment owes at this flush. Throws what eager would have thrown where a check fails.
  void run(Node& flush);
  /// The same without a program, by eager: in its order, with its errors.
  void run_one_by_one(std::string why);

 private:
  void join_tape(const FlushPoint& point);
  void find_unseen();
  void fall_back(const std::string& reason);
  Variant* choose(FlushPoint& point, bool* waits);
  Variant* compile(FlushPoint& point);
  void run_program(Variant& variant, const FlushPoint& point);
  void defer(const Variant& variant);
  bool reads_come_first(const FlushPoint& point) const;
  bool host_checks_pass(const Variant& variant) const;

  Function& function_;
  Segment& segment_;
  CallMemory& memory_;
  const std::shared_ptr<Backward> backward_;
  Observation* observation_ = nullptr;
  int64_t call_ = 0;
  // What the call in progress leaves on the tape: its nodes from this number on, once there are some.
  uint64_t first_node_ = 0;
  autograd::StretchPtr stretch_;
  bool compiled_ = false;
  // Of the flush in progress; kept for their memory.
  std::vector<uint32_t> live_, unseen_, aliases_;
  std::vector<autograd::Node*> joined_;
  std::vector<int32_t> kept_;
  std::vector<int64_t> sites_;
  std::vector<runtime::StoragePtr> storages_;  // of the program's outputs
};

}  // namespace ingot::trace
