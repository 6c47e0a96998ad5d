#include "codegen/kernel_ir.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "codegen/kernel_analysis.h"

namespace ingot::codegen {
namespace {

/// How the types of a node and its operands are related.
enum class Rule : uint8_t {
  leaf,
  floating,
  arithmetic,
  bits,
  shift,
  wrap,
  round_to,
  compare,
  select,
  convert,
  bitcast,
  rare
};

struct OpRow {
  Op op;
  const char* name;
  int operands;
  Rule rule;
};

constexpr OpRow kOps[] = {
    {Op::constant, "constant", 0, Rule::leaf},
    {Op::scalar, "scalar", 0, Rule::leaf},
    {Op::load, "load", 0, Rule::leaf},
    {Op::local, "local", 0, Rule::leaf},
    {Op::index, "index", 0, Rule::leaf},
    {Op::reduced, "reduced", 0, Rule::leaf},
    {Op::add, "add", 2, Rule::arithmetic},
    {Op::sub, "sub", 2, Rule::arithmetic},
    {Op::mul, "mul", 2, Rule::arithmetic},
    {Op::div, "div", 2, Rule::arithmetic},
    {Op::min, "min", 2, Rule::arithmetic},
    {Op::max, "max", 2, Rule::arithmetic},
    {Op::fma, "fma", 3, Rule::floating},
    {Op::sqrt, "sqrt", 1, Rule::floating},
    {Op::round, "round", 1, Rule::floating},
    {Op::scale, "scale", 2, Rule::floating},
    {Op::round_to, "round_to", 1, Rule::round_to},
    {Op::bit_and, "bit_and", 2, Rule::bits},
    {Op::bit_or, "bit_or", 2, Rule::bits},
    {Op::bit_xor, "bit_xor", 2, Rule::bits},
    {Op::shl, "shl", 2, Rule::shift},
    {Op::shr, "shr", 2, Rule::shift},
    {Op::sar, "sar", 2, Rule::shift},
    {Op::wrap, "wrap", 1, Rule::wrap},
    {Op::eq, "eq", 2, Rule::compare},
    {Op::ne, "ne", 2, Rule::compare},
    {Op::lt, "lt", 2, Rule::compare},
    {Op::le, "le", 2, Rule::compare},
    {Op::select, "select", 3, Rule::select},
    {Op::convert, "convert", 1, Rule::convert},
    {Op::bitcast, "bitcast", 1, Rule::bitcast},
    {Op::rare, "rare", 3, Rule::rare},
};
constexpr bool in_order() {
  for (int i = 0; i < kOpCount; ++i)
    if (static_cast<int>(kOps[i].op) != i) return false;
  return true;
}
static_assert(std::size(kOps) == kOpCount && in_order());

constexpr const OpRow& row_of(Op op) { return kOps[static_cast<int>(op)]; }

constexpr const char* kAccesses[] = {"dense", "uniform", "strided"};
constexpr const char* kTypes[] = {"f32", "f64", "i32", "i64", "mask"};

bool is_index(Combiner c) { return c == Combiner::argmax || c == Combiner::argmin; }

/// Checks one kernel; `fail` carries the kernel's text.
class Verifier {
 public:
  explicit Verifier(const Kernel& kernel) : k_(kernel) {}

  void run() {
    check(k_.nodes.size() < kNone && k_.known_columns >= 0, "sizes in range");
    for (const Reduction& r : k_.reductions) check_reduction(r);
    for (Value v = 0; v < k_.nodes.size(); ++v) check_node(v);
    check(open_region_ == 0, "every region ends at its rare node");
    check_buffers();
    check_phases();
  }

 private:
  void check(bool condition, const std::string& what) const {
    if (!condition) throw InternalError("kernel IR: not true that " + what + "\n" + print(k_));
  }

  Type type(Value v) const { return k_.nodes[v].type; }

  void check_value(Value v) const {
    check(v < k_.nodes.size(), fmt::format("%{} is a node", v));
    check(k_.nodes[v].region == 0, fmt::format("%{} is outside of rare regions", v));
  }

  void check_reduction(const Reduction& r) const {
    check_value(r.value);
    bool of_mask = r.combiner == Combiner::any || r.combiner == Combiner::all;
    check((type(r.value) == Type::mask) == of_mask, "any and all alone combine masks");
  }

  void check_node(Value v) {
    const Node& n = k_.nodes[v];
    const OpRow& row = row_of(n.op);
    const Value operands[] = {n.a, n.b, n.c};
    int count = row.operands + (n.op == Op::load && n.a != kNone);
    for (int i = 0; i < 3; ++i)
      check(i < count ? operands[i] < v : operands[i] == kNone,
            fmt::format("%{} has {} operands, defined before it", v, count));
    check_region(v, {operands, static_cast<size_t>(count)});
    check(n.op == Op::load         ? check_leaf(n)
          : row.rule == Rule::leaf ? check_leaf(n)
                                   : check_types(n, row.rule),
          fmt::format("%{} has the operand types and number that {} takes", v, row.name));
  }

  void check_region(Value v, std::span<const Value> operands) {
    const Node& n = k_.nodes[v];
    if (n.region != open_region_ && n.region != 0) {
      check(open_region_ == 0 && n.region == closed_regions_ + 1, fmt::format("the region of %{} is the next one", v));
      open_region_ = n.region;
    }
    if (n.op == Op::rare) {
      check(open_region_ != 0 && n.region == 0 && n.imm == open_region_, fmt::format("%{} ends the open region", v));
      closed_regions_ = open_region_;
      open_region_ = 0;
    }
    check(n.region == open_region_, fmt::format("%{} is in the open region", v));
    for (size_t i = 0; i < operands.size(); ++i) {
      uint16_t used = k_.nodes[operands[i]].region;
      bool result = n.op == Op::rare && i == 2;
      check(result ? used == n.imm : used == 0 || used == n.region,
            fmt::format("%{} uses values of its own region or none", v));
    }
  }

  bool check_leaf(const Node& n) const {
    switch (n.op) {
      case Op::constant:
        return n.type == Type::mask ? n.imm <= 1 : size_of(n.type) == 8 || n.imm >> 32 == 0;
      case Op::scalar:
        return n.imm < k_.scalars;
      case Op::load:
        return n.imm < k_.buffers.size() && n.type == register_type(k_.buffers[n.imm].dtype) &&
               (n.a == kNone || (type(n.a) == Type::i64 && n.region == 0));
      case Op::local:
        return n.imm < k_.locals.size() && n.type == k_.locals[n.imm];
      case Op::index:
        return n.type == Type::i64;
      default: {
        if (n.imm >= k_.reductions.size()) return false;
        const Reduction& r = k_.reductions[n.imm];
        return n.type == (is_index(r.combiner) ? Type::i64 : type(r.value));
      }
    }
  }

  bool check_types(const Node& n, Rule rule) const {
    Type a = type(n.a);
    bool same = a == n.type && (n.b == kNone || type(n.b) == a) && (n.c == kNone || type(n.c) == a);
    auto narrow = [&](bool floating) {
      if (n.imm >= kDTypeCount) return false;
      DType d = static_cast<DType>(n.imm);
      return floating ? is_half(d) : is_integral(d) && ingot::size_of(d) < 4;
    };
    switch (rule) {
      case Rule::floating:
        return same && is_float(a) && (n.op != Op::round || n.imm <= 3) && (n.op != Op::scale || n.imm <= 2);
      case Rule::arithmetic:
        return same && a != Type::mask;
      case Rule::bits:
        return same && !is_float(a);
      case Rule::shift:
        return same && (a == Type::i32 || a == Type::i64);
      case Rule::wrap:
        return same && a == Type::i32 && narrow(false);
      case Rule::round_to:
        return same && a == Type::f32 && narrow(true);
      case Rule::compare:
        return n.type == Type::mask && a != Type::mask && type(n.b) == a;
      case Rule::select:
        return a == Type::mask && n.type != Type::mask && type(n.b) == n.type && type(n.c) == n.type;
      case Rule::convert:
        return a != n.type && n.type != Type::mask;
      case Rule::bitcast:
        return a != Type::mask && n.type != Type::mask && size_of(a) == size_of(n.type) &&
               is_float(a) != is_float(n.type);
      case Rule::rare:
        return a == Type::mask && type(n.b) == n.type && type(n.c) == n.type;
      case Rule::leaf:
        break;
    }
    return false;
  }

  void check_uses(const std::vector<Value>& roots, const std::vector<bool>& reduced, const std::vector<bool>& stored,
                  bool once_a_row) const {
    const std::vector<bool> live = find_live(k_, roots);
    for (Value v = 0; v < k_.nodes.size(); ++v) {
      if (!live[v]) continue;
      const Node& n = k_.nodes[v];
      check(n.op != Op::reduced || reduced[n.imm], fmt::format("%{} reads a reduction that is done", v));
      check(n.op != Op::local || stored[n.imm], fmt::format("%{} reads a local of an earlier phase", v));
      bool by_column = n.op == Op::local || (n.op == Op::index && n.imm == 0) ||
                       (n.op == Op::load && n.a == kNone && k_.buffers[n.imm].access != Access::uniform);
      check(!once_a_row || !by_column, fmt::format("%{} does not depend on the column", v));
    }
  }

  void check_buffers() const {
    for (const Buffer& b : k_.buffers) {
      check(!b.written || !b.same_rows, "what is written differs from row to row");
      const bool small = b.stride > 1 ? b.stride <= kMostKnownStride : b.stride == -1 && !b.written;
      check(!b.stride || (b.access == Access::strided && small), "a known stride is a strided buffer's, and small");
    }
  }

  void check_store(const Store& s) const {
    check_value(s.value);
    check(s.buffer < k_.buffers.size(), fmt::format("buffer {} exists", s.buffer));
    const Buffer& b = k_.buffers[s.buffer];
    check(b.written, fmt::format("buffer {} is marked as written", s.buffer));
    check(register_type(b.dtype) == type(s.value), fmt::format("%{} has the type of buffer {}", s.value, s.buffer));
  }

  void check_phases() const {
    std::vector<bool> reduced(k_.reductions.size()), stored(k_.locals.size());
    check(!k_.phases.empty(), "there is a phase");
    if (k_.form == Form::columns) {
      const Phase& p = k_.phases.front();
      check(k_.known_columns == 0 || !k_.few_columns, "columns are known, or known to be few");
      check(k_.phases.size() == 1 && p.stores.empty() && p.local_stores.empty() && p.row_stores.empty() &&
                k_.locals.empty() && p.reductions.size() == k_.reductions.size(),
            "form columns has one phase of reductions only");
    } else {
      check(!k_.few_columns, "few columns are those of form columns");
    }
    for (const Phase& p : k_.phases) {
      for (const Store& s : p.stores) {
        check_store(s);
        check(k_.buffers[s.buffer].access != Access::uniform || k_.known_columns == 1,
              "stores at each column are not to uniform buffers");
      }
      for (const Store& s : p.local_stores) {
        check_value(s.value);
        check(s.buffer < k_.locals.size() && k_.locals[s.buffer] == type(s.value), "a local store fits its local");
        check(!stored[s.buffer], "a local row buffer is written by one phase");
      }
      for (uint32_t r : p.reductions)
        check(r < k_.reductions.size() && !reduced[r], "a reduction is computed by one phase");
      check_uses(column_roots(k_, p), reduced, stored, false);
      for (uint32_t r : p.reductions) reduced[r] = true;
      for (const Store& s : p.local_stores) stored[s.buffer] = true;
      for (const Store& s : p.row_stores) check_store(s);
      check_uses(row_roots(p), reduced, stored, true);
    }
    for (bool done : reduced) check(done, "every reduction is computed");
  }

  const Kernel& k_;
  uint16_t open_region_ = 0, closed_regions_ = 0;
};

}  // namespace

DType memory_type(Type t) {
  switch (t) {
    case Type::f32:
      return DType::f32;
    case Type::f64:
      return DType::f64;
    case Type::i32:
      return DType::i32;
    case Type::i64:
      return DType::i64;
    case Type::mask:
      return DType::bool_;
  }
  INGOT_CHECK(!"a type without a dtype");
}

Op combining_op(Combiner combiner) {
  switch (combiner) {
    case Combiner::sum:
      return Op::add;
    case Combiner::prod:
      return Op::mul;
    case Combiner::max:
      return Op::max;
    case Combiner::min:
      return Op::min;
    case Combiner::any:
      return Op::bit_or;
    default:
      return Op::bit_and;
  }
}

Type register_type(DType d) {
  switch (d) {
    case DType::f64:
      return Type::f64;
    case DType::f32:
    case DType::f16:
    case DType::bf16:
      return Type::f32;
    case DType::i64:
      return Type::i64;
    case DType::i32:
    case DType::i16:
    case DType::i8:
    case DType::u8:
      return Type::i32;
    case DType::bool_:
      return Type::mask;
    case DType::c64:
    case DType::c128:
      break;
  }
  INGOT_CHECK(!"no kernel computes with complex numbers");
}

const char* name_of(Op op) { return row_of(op).name; }
const char* name_of(Type type) { return kTypes[static_cast<int>(type)]; }
const char* name_of(Access access) { return kAccesses[static_cast<int>(access)]; }

void verify(const Kernel& kernel) { Verifier(kernel).run(); }

}  // namespace ingot::codegen
