#include "codegen/lower/few_columns.h"

#include <algorithm>
#include <map>
#include <vector>

#include "base/canonical_order.h"
#include "codegen/kernel_analysis.h"

namespace ingot::codegen::lowering {
namespace {

// Beyond these a kernel takes tens of milliseconds to make. (Of a dim across rows one after another would be slow:
// fits_side_by_side() keeps kernels within them.)
constexpr size_t kMostNodes = 4096, kMostArguments = 512;

class SideBySide {
 public:
  SideBySide(const KernelWriter& writer, DimTable& dims, uint32_t reduced, int64_t columns)
      : writer_(writer),
        from_(writer.kernel),
        dims_(dims),
        reduced_(reduced),
        columns_(static_cast<size_t>(columns)),
        builder_(made),
        values_(columns_, std::vector<Expr>(from_.nodes.size())) {}

  void run() {
    made.scalars = from_.scalars;
    for (Value v = 0; v < from_.nodes.size(); ++v)
      if (from_.nodes[v].region == 0)
        for (size_t c = 0; c < columns_; ++c) values_[c][v] = node(v, c);
    made.phases.resize(1);
    for (const Phase& phase : from_.phases) {
      for (const Store& s : phase.stores)
        for (size_t c = 0; c < columns_; ++c) store(s, c);
      for (const Store& s : phase.row_stores) store(s, 0);
    }
    drop_dead_nodes(made);
  }

  Kernel made;
  std::vector<KernelArgument> arguments;

 private:
  Expr node(Value v, size_t c) {
    const Node& n = from_.nodes[v];
    switch (n.op) {
      case Op::load:
        return builder_.load(argument(static_cast<uint32_t>(n.imm), c), n.a == kNone ? Expr() : values_[c][n.a]);
      case Op::local:
        return values_[c][local(static_cast<uint32_t>(n.imm))];
      case Op::index:
        return n.imm == reduced_ ? builder_.constant(Type::i64, static_cast<int64_t>(c))
                                 : builder_.index(static_cast<uint32_t>(n.imm));
      case Op::reduced:
        return c > 0 ? values_[0][v] : reduced(from_.reductions[n.imm]);
      case Op::rare:
        return builder_.rare(values_[c][n.a], values_[c][n.b], [&] {
          Value first = v;
          while (first > 0 && from_.nodes[first - 1].region == n.imm) --first;
          for (Value inner = first; inner < v; ++inner) values_[c][inner] = node(inner, c);
          return values_[c][n.c];
        });
      default:
        break;
    }
    Node copy = n;
    copy.region = 0;
    for (Value* operand : {&copy.a, &copy.b, &copy.c})
      if (*operand != kNone) *operand = values_[c][*operand].value;
    return builder_.node(copy);
  }

  /// The value that a local row buffer keeps.
  Value local(uint32_t number) const {
    for (const Phase& phase : from_.phases)
      for (const Store& s : phase.local_stores)
        if (s.buffer == number) return s.value;
    INGOT_CHECK(false, "a local that nobody stores");
    return kNone;
  }

  Expr reduced(const Reduction& reduction) {
    std::vector<Expr> lanes;
    for (size_t c = 0; c < columns_; ++c) lanes.push_back(values_[c][reduction.value]);
    if (reduction.combiner == Combiner::argmax || reduction.combiner == Combiner::argmin)
      return first_extreme(lanes, reduction.combiner == Combiner::argmax);
    // One column a lane; those that are missing hold what adds nothing.
    static_assert(std::max(kFewColumns, kFewAcross) <= canonical::kLanes);
    const Op op = combining_op(reduction.combiner);
    for (size_t half = canonical::kLanes / 2; half > 0; half /= 2)
      for (size_t c = 0; c < half && c + half < lanes.size(); ++c)
        lanes[c] = make(op, lanes[c].type(), lanes[c], lanes[c + half]);
    return lanes[0];
  }

  /// Of equal ones the first, and the first NaN before all: the order in which they are looked at shows in nothing.
  Expr first_extreme(const std::vector<Expr>& lanes, bool greatest) {
    Expr best = lanes[0], at = builder_.constant(Type::i32, 0);
    const bool floating = best.type() == Type::f32 || best.type() == Type::f64;
    for (size_t c = 1; c < lanes.size(); ++c) {
      const Expr x = lanes[c];
      Expr taken = greatest ? x > best : x < best;
      if (floating) taken = (taken | is_nan(x)) & ~is_nan(best);
      best = select(taken, x, best);
      at = select(taken, builder_.constant(Type::i32, static_cast<int64_t>(c)), at);
    }
    return convert(at, Type::i64);
  }

  void store(const Store& s, size_t c) {
    const uint32_t to = argument(s.buffer, c);
    made.phases[0].stores.push_back({to, values_[c][s.value].value});
  }

  /// The argument's part at a column.
  uint32_t argument(uint32_t number, size_t c) {
    const KernelArgument& a = writer_.arguments[number];
    if (a.strides[reduced_] == Dim(0)) c = 0;
    const auto [it, fresh] = numbers_.try_emplace({number, c}, static_cast<uint32_t>(arguments.size()));
    if (fresh) {
      KernelArgument part = a;
      part.offset = dims_.add(a.offset, dims_.mul(a.strides[reduced_], static_cast<int64_t>(c)));
      part.strides[reduced_] = 0;
      made.buffers.push_back({part.dtype, Access::dense, part.written});
      arguments.push_back(std::move(part));
    }
    return it->second;
  }

  const KernelWriter& writer_;
  const Kernel& from_;
  DimTable& dims_;
  const uint32_t reduced_;
  const size_t columns_;
  Builder builder_;
  std::vector<std::vector<Expr>> values_;  // by column, then node
  std::map<std::pair<uint32_t, size_t>, uint32_t> numbers_;
};

}  // namespace

bool put_columns_side_by_side(KernelWriter& writer, DimTable& dims, uint32_t reduced, int64_t columns) {
  const auto times = static_cast<size_t>(columns);
  size_t arguments = 0;
  for (const KernelArgument& a : writer.arguments) arguments += a.strides[reduced] == Dim(0) ? 1 : times;
  if (writer.kernel.nodes.size() * times > kMostNodes || arguments > kMostArguments) return false;
  SideBySide rewritten(writer, dims, reduced, columns);
  rewritten.run();
  writer.kernel = std::move(rewritten.made);
  writer.arguments = std::move(rewritten.arguments);
  std::erase(writer.index_dims, reduced);
  writer.work *= columns;
  return true;
}

}  // namespace ingot::codegen::lowering
