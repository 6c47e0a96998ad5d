// The body of a phase's loop over the columns, in steps of 16.
#pragma once
#include <vector>

#include "codegen/x86/reductions.h"

namespace ingot::codegen::x86 {

/// What the body of a phase computes.
struct PhasePlan {
  PhasePlan(const Kernel& kernel, const Phase& phase);
  const Phase& phase;
  std::vector<Value> roots;  // evaluated at each column, each as often as it is read
  std::vector<bool> live;    // what they need
};

class Body {
 public:
  Body(const Analysis& analysis, Vectors& vectors, Frame& frame, Streams& streams, Memory& memory, Values& values,
       Reductions& reductions)
      : analysis_(analysis),
        v_(vectors),
        code_(vectors.code()),
        frame_(frame),
        streams_(streams),
        memory_(memory),
        values_(values),
        reductions_(reductions) {}

  /// Steps are of this phase from here on.
  void begin(const PhasePlan& plan);
  /// Steps are of this phase and of another row: its values and addresses. `resident`: registers hold from the row
  /// before what they can.
  void begin_row(const PhasePlan& plan, const std::vector<Stream*>& streams, bool resident);
  /// The addresses alone.
  void begin_streams(const std::vector<Stream*>& streams, bool resident);
  /// One step, so many columns beyond rcx.
  void step(const std::vector<Accumulator*>& accumulators, int64_t column_offset = 0);
  /// The last columns, fewer than 16.
  void tail_step(const std::vector<Accumulator*>& accumulators);
  /// Steps side by side, their instructions mixed.
  void mixed_steps(const std::vector<Accumulator*>& accumulators, int count);
  /// Emits `once` as a loop that takes so many columns at a time, from rcx to kLimit.
  template <class F>
  void loop(int64_t columns, F once) {
    code_.add({.op = VOp::align_here, .value = 32});
    const Loop loop = code_.begin_loop();
    once();
    code_.g(VOp::g_addi, Gpr::rcx, columns);
    code_.g(VOp::g_cmp, Gpr::rcx, kLimit);
    code_.end_loop(loop, Cond::less);
  }

  /// Few operations: one step does not keep the processor busy.
  bool is_short() const { return work() <= 6; }
  /// How many steps to mix.
  int chains() const;

 private:
  int work() const;
  int live_at_once() const;

  const Analysis& analysis_;
  Vectors& v_;
  VCode& code_;
  Frame& frame_;
  Streams& streams_;
  Memory& memory_;
  Values& values_;
  Reductions& reductions_;
  const Phase* phase_ = nullptr;
};

}  // namespace ingot::codegen::x86
