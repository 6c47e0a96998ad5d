#include "codegen/moved_halves.h"

#include <bit>
#include <optional>

#include "codegen/builder.h"
#include "codegen/scalar/lanes.h"

namespace ingot::codegen {
namespace {

constexpr uint64_t kSign = 0x80000000, kMagnitude = 0x7fffffff;  // masks of an f32

class HalfMoves {
 public:
  explicit HalfMoves(const Kernel& kernel) : k_(kernel), half_(kernel.nodes.size(), DType::f32) {}

  /// Whether what is loaded of 16-bit floats reaches stores to the same dtype, by nodes that have a form for their
  /// bits.
  bool apply() {
    bool any = false;
    for (Value v = 0; v < k_.nodes.size(); ++v) {
      const Node& n = k_.nodes[v];
      if (n.region) return false;
      half_[v] = dtype_of(n);
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
  /// The 16-bit float whose widened value, or its bits, a node gives; f32 where it is none.
  DType dtype_of(const Node& n) const {
    const auto both = [&](Value a, Value b) {
      const DType d = is_half(half_[a]) ? half_[a] : half_[b];
      return is_half(d) && bits(a, d) && bits(b, d) ? d : DType::f32;
    };
    switch (n.op) {
      case Op::load:
        return is_half(k_.buffers[n.imm].dtype) ? k_.buffers[n.imm].dtype : DType::f32;
      case Op::bitcast:
        return half_[n.a];
      case Op::round_to:
        return half_[n.a] == static_cast<DType>(n.imm) ? half_[n.a] : DType::f32;
      case Op::bit_and:
      case Op::bit_or:
      case Op::bit_xor:
        return n.type == Type::i32 ? both(n.a, n.b) : DType::f32;
      case Op::select:
        return both(n.b, n.c);
      default:
        return DType::f32;
    }
  }

  /// What stands for a value that is moved: of a number its bits, of a mask of signs that of a 16-bit float.
  std::optional<uint64_t> bits(Value v, DType d) const {
    if (is_half(half_[v])) return half_[v] == d ? std::optional<uint64_t>(0) : std::nullopt;
    const Node& n = k_.nodes[v];
    if (n.op != Op::constant) return std::nullopt;
    const auto wrapped = [](uint16_t x) { return uint64_t{static_cast<uint32_t>(static_cast<int16_t>(x))}; };
    if (n.type == Type::i32 && n.imm == kSign) return wrapped(0x8000);
    if (n.type == Type::i32 && n.imm == kMagnitude) return wrapped(0x7fff);
    if (n.type != Type::f32) return std::nullopt;
    const float x = std::bit_cast<float>(static_cast<uint32_t>(n.imm));
    const uint16_t half = scalar::to_half(d, x);
    if (x == x && scalar::from_half(d, half) != x) return std::nullopt;
    return wrapped(half);
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
