#include "codegen/moved_halves.h"

#include <optional>
#include <vector>

#include "codegen/builder.h"
#include "codegen/kernel_analysis.h"

namespace ingot::codegen {
namespace {

class HalfMoves {
 public:
  explicit HalfMoves(const Kernel& kernel) : k_(kernel) { find_halves(kernel, half_); }

  /// Whether what is loaded of 16-bit floats reaches stores to the same dtype, by nodes that have a form for their
  /// bits.
  bool apply() {
    bool any = false;
    for (Value v = 0; v < k_.nodes.size(); ++v) {
      const Node& n = k_.nodes[v];
      if (n.region || (is_half(half_[v]) && !moves(n))) return false;
      any = any || is_half(half_[v]);
      if (is_half(half_[v])) continue;
      for (Value operand : {n.a, n.b, n.c})
        if (operand != kNone && is_half(half_[operand])) return false;
    }
    for (const Reduction& r : k_.reductions)
      if (is_half(half_[r.value])) return false;
    for (const Phase& phase : k_.phases) {
      for (const Store& s : phase.local_stores)
        if (is_half(half_[s.value])) return false;
      for (const auto* stores : {&phase.stores, &phase.row_stores})
        for (const Store& s : *stores)
          if (const DType d = k_.buffers[s.buffer].dtype; is_half(d) ? !bits(s.value, d) : is_half(half_[s.value]))
            return false;
    }
    return any;
  }

  Kernel rewritten() const {
    Kernel out = k_;
    out.nodes.clear();
    for (Buffer& b : out.buffers)
      if (is_half(b.dtype)) b.dtype = DType::i16;
    Builder builder(out);
    std::vector<Value> now(k_.nodes.size(), kNone);
    const auto as_bits = [&](Value v, DType d) {
      return is_half(half_[v]) ? now[v] : builder.bits(Type::i32, *bits(v, d)).value;
    };
    for (Value v = 0; v < k_.nodes.size(); ++v) {
      Node n = k_.nodes[v];
      const DType d = half_[v];
      if (is_half(d) && (n.op == Op::bitcast || n.op == Op::round_to)) {
        now[v] = now[n.a];
        continue;
      }
      const bool moves = is_half(d) && n.op != Op::load;
      if (n.a != kNone) n.a = moves && n.op != Op::select ? as_bits(n.a, d) : now[n.a];
      if (n.b != kNone) n.b = moves ? as_bits(n.b, d) : now[n.b];
      if (n.c != kNone) n.c = moves ? as_bits(n.c, d) : now[n.c];
      if (is_half(d)) n.type = Type::i32;
      now[v] = builder.node(n).value;
    }
    for (Reduction& r : out.reductions) r.value = now[r.value];
    for (Phase& phase : out.phases) {
      for (auto* stores : {&phase.stores, &phase.row_stores})
        for (Store& s : *stores) {
          const DType d = k_.buffers[s.buffer].dtype;
          s.value = is_half(d) ? as_bits(s.value, d) : now[s.value];
        }
      for (Store& s : phase.local_stores) s.value = now[s.value];
    }
    return out;
  }

 private:
  /// Whether a node of a 16-bit float has a form for its bits.
  bool moves(const Node& n) const {
    if (n.op == Op::round_to) return half_[n.a] == static_cast<DType>(n.imm);
    return n.op != Op::min && n.op != Op::max;
  }

  /// What stands for a value that is moved: of a number its bits, of a mask of signs that of a 16-bit float.
  std::optional<uint64_t> bits(Value v, DType d) const {
    if (is_half(half_[v])) return half_[v] == d ? std::optional<uint64_t>(0) : std::nullopt;
    return half_bits(k_.nodes[v], d);
  }

  const Kernel& k_;
  std::vector<DType> half_;  // by node
};

}  // namespace

void move_halves_as_bits(Kernel& kernel) {
  HalfMoves moves(kernel);
  if (moves.apply()) kernel = moves.rewritten();
}

}  // namespace ingot::codegen
