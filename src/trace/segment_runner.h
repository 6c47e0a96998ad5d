// What happens at a flush: the program of the segment is chosen or compiled, it runs, and the live tensors get memory.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/memory/storage.h"
#include "trace/call_memory.h"
#include "trace/flush_point.h"
#include "trace/function.h"
#include "trace/observation.h"
#include "trace/segment.h"

namespace ingot::trace {

class SegmentRunner {
 public:
  SegmentRunner(Function& function, Segment& segment, CallMemory& memory)
      : function_(function), segment_(segment), memory_(memory) {}

  /// `call`: its number. No observation: what it does is not kept.
  void begin_call(int64_t call, Observation* observation) {
    call_ = call;
    observation_ = observation;
    compiled_ = false;
  }
  /// True if this call has compiled a program, or tried to.
  bool has_compiled() const { return compiled_; }
  /// Computes what the segment owes at this flush. Throws what eager would have thrown where a check fails.
  void run(Node& flush);
  /// The same without a program, by eager: in its order, with its errors.
  void run_one_by_one(std::string why);

 private:
  void fall_back(const std::string& reason);
  Variant* choose(FlushPoint& point, bool* waits);
  Variant* compile(FlushPoint& point);
  void run_program(Variant& variant, const FlushPoint& point);
  bool host_checks_pass(const Variant& variant) const;

  Function& function_;
  Segment& segment_;
  CallMemory& memory_;
  Observation* observation_ = nullptr;
  int64_t call_ = 0;
  bool compiled_ = false;
  // Of the flush in progress; kept for their memory.
  std::vector<uint32_t> live_, aliases_;
  std::vector<int64_t> sites_;
  std::vector<runtime::StoragePtr> storages_;  // of the program's outputs
};

}  // namespace ingot::trace
