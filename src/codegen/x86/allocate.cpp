// Linear scan (Poletto and Sarkar, "Linear Scan Register Allocation", TOPLAS 1999), one interval and one home a
// register: code that is jumped over can then never change where a value lives. Intervals grow over the loops they live
// through.
#include <algorithm>
#include <limits>

#include "codegen/x86/vcode.h"

namespace ingot::codegen::x86 {
namespace {

struct Interval {
  VReg reg = kNoReg;
  int32_t start = std::numeric_limits<int32_t>::max(), end = -1;  // 2 * instruction, + 1 for a definition
  double weight = 0;                                              // accesses, weighed by loop depth
  double cost() const { return weight / (end - start + 1); }
};

template <class F>
void for_each_use(const Inst& inst, F f) {
  for (VReg r : {inst.a, inst.b, inst.c, inst.pred})
    if (r != kNoReg) f(r);
  if (inst.reads_dst()) f(inst.dst);
}

std::vector<Interval> live_intervals(const VCode& code) {
  std::vector<double> weight_at(code.insts.size(), 1.0);
  for (const Range& loop : code.loops)
    for (int32_t i = loop.begin; i < loop.end; ++i) weight_at[i] *= 8;
  for (const Range& cold : code.cold)
    for (int32_t i = cold.begin; i < cold.end; ++i) weight_at[i] = 0;

  std::vector<Interval> intervals(code.regs.size());
  for (size_t r = 0; r < intervals.size(); ++r) {
    intervals[r].reg = static_cast<VReg>(r);
  }
  auto touch = [&](VReg r, int32_t position, double weight) {
    Interval& v = intervals[r];
    v.start = std::min(v.start, code.regs[r].constant >= 0 ? 0 : position);
    v.end = std::max(v.end, position);
    v.weight += weight;
  };
  for (size_t i = 0; i < code.insts.size(); ++i) {
    const Inst& inst = code.insts[i];
    for_each_use(inst, [&](VReg r) { touch(r, static_cast<int32_t>(2 * i), weight_at[i]); });
    if (inst.dst != kNoReg) touch(inst.dst, static_cast<int32_t>(2 * i + 1), weight_at[i]);
  }
  // Inner loops first: an interval that grows to the end of an inner loop may then have to grow with the outer one.
  std::vector<Range> loops = code.loops;
  std::stable_sort(loops.begin(), loops.end(), [](const Range& x, const Range& y) { return x.end < y.end; });
  for (const Range& loop : loops)
    for (Interval& v : intervals)
      if (v.start < 2 * loop.begin && v.end >= 2 * loop.begin && v.end < 2 * loop.end) v.end = 2 * loop.end;
  return intervals;
}

class LinearScan {
 public:
  LinearScan(const VCode& code, const std::vector<Interval>& intervals, RegClass cls, int first, int count)
      : code_(code), intervals_(intervals), first_(first), free_(count, true) {
    for (const Interval& v : intervals)
      if (v.end >= 0 && code.regs[v.reg].cls == cls) order_.push_back(v.reg);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](VReg x, VReg y) { return intervals[x].start < intervals[y].start; });
    hint_.assign(intervals.size(), kNoReg);
    for (const Inst& inst : code.insts)
      if (inst.dst != kNoReg) note_hint(inst);
  }

  /// Fills homes[].reg; returns the registers left in memory.
  std::vector<VReg> run(std::vector<Home>& homes) {
    std::vector<VReg> spilled;
    for (VReg r : order_) {
      const Interval& v = intervals_[r];
      for (size_t i = 0; i < active_.size();) {
        if (intervals_[active_[i]].end < v.start) {
          free_[homes[active_[i]].reg - first_] = true;
          active_.erase(active_.begin() + static_cast<long>(i));
        } else {
          ++i;
        }
      }
      if (code_.regs[r].constant >= 0 && v.weight == 0) continue;  // used in cold code only: read from the pool
      int reg = pick(r, homes);
      if (reg < 0) {
        VReg victim = r;
        for (VReg other : active_)
          if (intervals_[other].cost() < intervals_[victim].cost()) victim = other;
        spilled.push_back(victim);
        if (victim == r) continue;
        reg = homes[victim].reg - first_;
        homes[victim].reg = -1;
        active_.erase(std::find(active_.begin(), active_.end(), victim));
      }
      free_[reg] = false;
      homes[r].reg = static_cast<int16_t>(first_ + reg);
      active_.push_back(r);
    }
    return spilled;
  }

 private:
  // A definition likes the register of a source that dies there: no move for fma and merged instructions.
  void note_hint(const Inst& inst) {
    for (VReg source : {inst.c, inst.a, inst.b})
      if (source != kNoReg && hint_[inst.dst] == kNoReg && source != inst.dst &&
          code_.regs[source].cls == code_.regs[inst.dst].cls && intervals_[source].end < intervals_[inst.dst].start &&
          intervals_[source].end >= intervals_[inst.dst].start - 1)
        hint_[inst.dst] = source;
    if (inst.op == VOp::vmovups && inst.a != kNoReg && hint_[inst.a] == kNoReg) hint_[inst.a] = inst.dst;
  }
  int pick(VReg r, const std::vector<Home>& homes) const {
    if (hint_[r] != kNoReg && homes[hint_[r]].reg >= 0 && free_[homes[hint_[r]].reg - first_])
      return homes[hint_[r]].reg - first_;
    for (size_t i = 0; i < free_.size(); ++i)
      if (free_[i]) return static_cast<int>(i);
    return -1;
  }

  const VCode& code_;
  const std::vector<Interval>& intervals_;
  int first_;
  std::vector<bool> free_;
  std::vector<VReg> order_, active_, hint_;
};

}  // namespace

Allocation allocate(VCode& code) {
  Allocation result;
  result.homes.resize(code.regs.size());
  std::vector<Interval> intervals = live_intervals(code);

  auto run_class = [&](RegClass cls, int first, int count, int16_t* scratch, int scratch_count) {
    auto clear = [&] {
      for (size_t r = 0; r < code.regs.size(); ++r)
        if (code.regs[r].cls == cls) result.homes[r] = {};
    };
    // Cold constants are read from memory too, so they need the scratch registers as a spilled value does.
    bool cold_constants = false;
    for (const Interval& v : intervals)
      cold_constants |= code.regs[v.reg].cls == cls && v.end >= 0 && code.regs[v.reg].constant >= 0 && v.weight == 0;
    std::vector<VReg> spilled = LinearScan(code, intervals, cls, first, count).run(result.homes);
    if (spilled.empty() && !cold_constants) return;
    clear();
    for (int i = 0; i < scratch_count; ++i) scratch[i] = static_cast<int16_t>(first + count - 1 - i);
    spilled = LinearScan(code, intervals, cls, first, count - scratch_count).run(result.homes);
    result.spilled += static_cast<int32_t>(spilled.size());
    for (VReg r : spilled)
      if (code.regs[r].constant < 0)
        result.homes[r].slot =
            static_cast<int32_t>(cls == RegClass::vector ? code.reserve(code.width, code.width) : code.reserve(8));
  };
  bool wide = code.isa == Isa::avx512;
  run_class(RegClass::vector, 0, wide ? 32 : 16, result.vector_scratch.data(), 3);
  if (wide) run_class(RegClass::mask, 1, 7, result.mask_scratch.data(), 2);
  return result;
}

}  // namespace ingot::codegen::x86
