// Linear scan (Poletto and Sarkar, "Linear Scan Register Allocation", TOPLAS 1999), one interval and one register for
// all of its life: code that is jumped over can then never change where a value lives. Intervals grow over the loops
// they live through. What does not fit lives in memory; the code is rewritten with short-lived registers around its
// uses and scanned again.
#include <algorithm>
#include <functional>
#include <limits>
#include <queue>

#include "base/error.h"
#include "codegen/x86/vcode.h"

namespace ingot::codegen::x86 {
namespace {

constexpr double kLoopWeight = 8;
// Of an access to a constant that may as well be in memory: then it takes no instruction of its own, and no store.
constexpr double kConstantWeight = 0.5;

struct Interval {
  VReg reg = kNoReg;
  int32_t start = std::numeric_limits<int32_t>::max(), end = -1;  // 2 * instruction, + 1 for a definition
  double weight = 0;                                              // accesses, weighed by loop depth
  double cost() const { return weight / (end - start + 1); }
};

/// Which source of an instruction can be memory instead; null: none.
template <class I>  // Inst or const Inst
auto memory_source(I& inst) -> decltype(&inst.a) {
  if (inst.mem) return nullptr;
  switch (inst.op) {
#define X(name) case VOp::name:
    INGOT_X86_OPS3(X)
    INGOT_X86_OPS3_IMM(X)
#undef X
    case VOp::vand:
    case VOp::vor:
    case VOp::vxor:
    case VOp::vandn:
    case VOp::blend_ps:
    case VOp::blend_pd:
    case VOp::blendm_ps:
    case VOp::blendm_pd:
    case VOp::cmp_ps:
    case VOp::cmp_pd:
    case VOp::cmp_d:
    case VOp::cmp_q:
    case VOp::test_d:
      return &inst.b;
    case VOp::vmovups:
    case VOp::kmov:
      return &inst.a;
    default:
      return nullptr;
  }
}

bool is_fma(const Inst& inst) { return inst.op == VOp::fma_ps || inst.op == VOp::fma_pd; }

/// Calls f(register, whether it may as well be memory).
template <class F>
void for_each_use(const Inst& inst, F f) {
  const VReg* memory = memory_source(inst);
  for (const VReg* r : {&inst.a, &inst.b, &inst.c, &inst.pred})
    if (*r != kNoReg) f(*r, r == memory || (r != &inst.pred && is_fma(inst) && !inst.mem));
  if (inst.reads_dst()) f(inst.dst, false);
}

std::vector<Interval> live_intervals(const VCode& code) {
  std::vector<double> weight_at(code.insts.size(), 1.0);
  for (const Range& loop : code.loops)
    for (int32_t i = loop.begin; i < loop.end; ++i) weight_at[i] *= kLoopWeight;
  for (const Range& cold : code.cold)
    for (int32_t i = cold.begin; i < cold.end; ++i) weight_at[i] = 0;

  std::vector<Interval> intervals(code.regs.size());
  for (size_t r = 0; r < intervals.size(); ++r) intervals[r].reg = static_cast<VReg>(r);
  auto touch = [&](VReg r, int32_t position, double weight) {
    Interval& v = intervals[r];
    v.start = std::min(v.start, code.regs[r].constant >= 0 ? 0 : position);
    v.end = std::max(v.end, position);
    v.weight += weight;
  };
  for (size_t i = 0; i < code.insts.size(); ++i) {
    const Inst& inst = code.insts[i];
    for_each_use(inst, [&](VReg r, bool memory) {
      const bool costs_less = memory && code.regs[r].constant >= 0;
      touch(r, static_cast<int32_t>(2 * i), weight_at[i] * (costs_less ? kConstantWeight : 1));
    });
    if (inst.dst != kNoReg) touch(inst.dst, static_cast<int32_t>(2 * i + 1), weight_at[i]);
  }
  // Inner loops first: an interval that grows to the end of an inner loop may then have to grow with the outer one.
  std::vector<Range> loops = code.loops;
  std::stable_sort(loops.begin(), loops.end(), [](const Range& x, const Range& y) { return x.end < y.end; });
  for (const Range& loop : loops)
    for (Interval& v : intervals)
      if (v.start < 2 * loop.begin && v.end >= 2 * loop.begin && v.end < 2 * loop.end) v.end = 2 * loop.end;
  for (Interval& v : intervals)
    if (code.regs[v.reg].short_lived) v.weight = std::numeric_limits<double>::infinity();
  return intervals;
}

class LinearScan {
 public:
  LinearScan(const VCode& code, const std::vector<Interval>& intervals, RegClass cls, int first, int count)
      : code_(code), intervals_(intervals), first_(first), free_(static_cast<size_t>(count), true) {
    for (const Interval& v : intervals)
      if (v.end >= 0 && code.regs[v.reg].cls == cls) order_.push_back(v.reg);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](VReg x, VReg y) { return intervals[x].start < intervals[y].start; });
    hint_.assign(intervals.size(), kNoReg);
    for (const Inst& inst : code.insts)
      if (inst.dst != kNoReg) note_hint(inst);
  }

  /// Fills `homes`; marks in `spilled` what must live in memory.
  bool run(std::vector<int16_t>& homes, std::vector<bool>& spilled) {
    bool fits = true;
    for (VReg r : order_) {
      const Interval& v = intervals_[r];
      if (first_end_ < v.start) end_before(v.start, homes);
      int reg = pick(r, homes);
      if (reg < 0) {
        VReg victim = r;
        for (VReg other : active_)
          if (intervals_[other].cost() < intervals_[victim].cost()) victim = other;
        INGOT_CHECK(!code_.regs[victim].short_lived, "an instruction needs more registers than there are");
        spilled[victim] = true;
        fits = false;
        if (victim == r) continue;
        reg = homes[victim] - first_;
        homes[victim] = -1;
        active_.erase(std::find(active_.begin(), active_.end(), victim));
      }
      free_[static_cast<size_t>(reg)] = false;
      homes[r] = static_cast<int16_t>(first_ + reg);
      active_.push_back(r);
      first_end_ = std::min(first_end_, v.end);
    }
    return fits;
  }

 private:
  /// Frees the registers of what has ended.
  void end_before(int32_t position, const std::vector<int16_t>& homes) {
    first_end_ = std::numeric_limits<int32_t>::max();
    std::erase_if(active_, [&](VReg r) {
      const bool ended = intervals_[r].end < position;
      if (ended)
        free_[static_cast<size_t>(homes[r] - first_)] = true;
      else
        first_end_ = std::min(first_end_, intervals_[r].end);
      return ended;
    });
  }
  // A definition likes the register of a source that dies there: no move for fma and merged instructions.
  void note_hint(const Inst& inst) {
    for (VReg source : {inst.c, inst.a, inst.b})
      if (source != kNoReg && hint_[inst.dst] == kNoReg && source != inst.dst &&
          code_.regs[source].cls == code_.regs[inst.dst].cls &&
          intervals_[source].end == intervals_[inst.dst].start - 1)
        hint_[inst.dst] = source;
  }
  int pick(VReg r, const std::vector<int16_t>& homes) const {
    if (hint_[r] != kNoReg && homes[hint_[r]] >= 0 && free_[static_cast<size_t>(homes[hint_[r]] - first_)])
      return homes[hint_[r]] - first_;
    for (size_t i = 0; i < free_.size(); ++i)
      if (free_[i]) return static_cast<int>(i);
    return -1;
  }

  const VCode& code_;
  const std::vector<Interval>& intervals_;
  int first_;
  int32_t first_end_ = std::numeric_limits<int32_t>::max();  // of those that are active, at the earliest
  std::vector<bool> free_;
  std::vector<VReg> order_, active_, hint_;
};

/// Takes spilled registers out of the code.
class Rewriter {
 public:
  Rewriter(VCode& code, const std::vector<Interval>& intervals, const std::vector<bool>& spilled)
      : code_(code), spilled_(spilled) {
    slot_.assign(code.regs.size(), -1);
    for (bool masks : {false, true}) share_slots(intervals, masks);
  }

  void run() {
    std::vector<int32_t> place(code_.insts.size() + 1);
    for (size_t i = 0; i < code_.insts.size(); ++i) {
      place[i] = static_cast<int32_t>(out_.size());
      rewrite(code_.insts[i]);
    }
    place.back() = static_cast<int32_t>(out_.size());
    code_.insts = std::move(out_);
    for (auto* ranges : {&code_.loops, &code_.cold})
      for (Range& range : *ranges)
        range = {place[static_cast<size_t>(range.begin)], place[static_cast<size_t>(range.end)]};
  }

 private:
  bool spilled(VReg r) const { return r != kNoReg && r < spilled_.size() && spilled_[r]; }
  bool is_mask(VReg r) const { return code_.regs[r].cls == RegClass::mask; }
  // Values that live one after the other share a slot: the frame is as large as what lives at once.
  void share_slots(const std::vector<Interval>& intervals, bool masks) {
    std::vector<Interval> order;
    for (const Interval& v : intervals)
      if (spilled(v.reg) && v.end >= 0 && is_mask(v.reg) == masks && code_.regs[v.reg].constant < 0) order.push_back(v);
    std::stable_sort(order.begin(), order.end(),
                     [](const Interval& x, const Interval& y) { return x.start < y.start; });
    using Busy = std::pair<int32_t, int64_t>;  // until this position, the slot
    std::priority_queue<Busy, std::vector<Busy>, std::greater<>> busy;
    for (const Interval& v : order) {
      int64_t slot;
      if (!busy.empty() && busy.top().first < v.start) {
        slot = busy.top().second;
        busy.pop();
      } else {
        slot = masks ? code_.reserve(8) : code_.reserve(code_.width, code_.width);
      }
      slot_[v.reg] = slot;
      busy.push({v.end, slot});
    }
  }
  Mem memory(VReg r) {
    if (code_.regs[r].constant >= 0) return Mem::constant(code_.regs[r].constant);
    return Mem::frame(slot_[r]);
  }
  VReg short_lived(VReg like) {
    VReg r = is_mask(like) ? code_.mask() : code_.vector();
    code_.regs[r].short_lived = true;
    return r;
  }
  VReg loaded(VReg r) {
    Inst load{
        .op = is_mask(r) ? VOp::kmov : VOp::vmovups, .width = static_cast<uint8_t>(code_.width), .mem = memory(r)};
    load.dst = short_lived(r);
    out_.push_back(load);
    return load.dst;
  }

  void rewrite(Inst inst) {
    if (is_fma(inst)) {  // any one source can be memory
      for (VReg* source : {&inst.c, &inst.b, &inst.a})
        if (spilled(*source) && !inst.mem && (source != &inst.b || inst.a != inst.b)) {
          inst.mem = memory(*source);
          *source = kNoReg;
        }
    } else if (VReg* source = memory_source(inst); source && spilled(*source)) {
      inst.mem = memory(*source);
      *source = kNoReg;
    }
    // A register that is read twice is loaded once.
    VReg known = kNoReg, copy = kNoReg;
    for (VReg* source : {&inst.a, &inst.b, &inst.c, &inst.pred}) {
      if (!spilled(*source)) continue;
      if (*source != known) {
        known = *source;
        copy = loaded(known);
      }
      *source = copy;
    }
    if (!spilled(inst.dst)) {
      out_.push_back(inst);
      return;
    }
    const VReg r = inst.dst;
    inst.dst = inst.reads_dst() ? loaded(r) : short_lived(r);
    out_.push_back(inst);
    out_.push_back({.op = is_mask(r) ? VOp::k_store : VOp::store,
                    .width = static_cast<uint8_t>(code_.width),
                    .a = inst.dst,
                    .mem = memory(r)});
  }

  VCode& code_;
  const std::vector<bool>& spilled_;
  std::vector<int64_t> slot_;
  std::vector<Inst> out_;
};

}  // namespace

std::vector<int16_t> allocate(VCode& code) {
  // Constants that no loop reads are not worth a register from the start.
  std::vector<Interval> intervals = live_intervals(code);
  std::vector<bool> spilled(code.regs.size());
  bool fits = true;
  for (const Interval& v : intervals)
    if (code.regs[v.reg].constant >= 0 && v.end >= 0 && v.weight < kLoopWeight * kConstantWeight) {
      spilled[v.reg] = true;
      fits = false;
    }
  std::vector<int16_t> homes;
  for (;;) {
    if (!fits) {
      Rewriter(code, intervals, spilled).run();
      intervals = live_intervals(code);
    }
    homes.assign(code.regs.size(), -1);
    spilled.assign(code.regs.size(), false);
    const bool wide = code.isa == Isa::avx512;
    fits = LinearScan(code, intervals, RegClass::vector, 0, wide ? 32 : 16).run(homes, spilled);
    if (wide) fits &= LinearScan(code, intervals, RegClass::mask, 1, 7).run(homes, spilled);
    if (fits) return homes;
  }
}

}  // namespace ingot::codegen::x86
