#include "codegen/kernel_analysis.h"

#include <algorithm>
#include <bit>

#include "codegen/scalar/lanes.h"

namespace ingot::codegen {
namespace {

constexpr uint64_t kSign = 0x80000000, kMagnitude = 0x7fffffff;  // masks of an f32

Level level_alone(const Kernel& kernel, const Node& n) {
  switch (n.op) {
    case Op::load:
      return kernel.buffers[n.imm].access == Access::uniform ? Level::row : Level::column;
    case Op::local:
      return Level::column;
    case Op::index:
      return n.imm == 0 ? Level::column : n.imm == 1 ? Level::row : Level::plane;
    case Op::reduced:
      return Level::row;
    default:
      return Level::call;
  }
}

}  // namespace

std::vector<Level> find_levels(const Kernel& kernel) {
  std::vector<Level> levels;
  for (const Node& n : kernel.nodes) {
    Level level = level_alone(kernel, n);
    for (Value operand : {n.a, n.b, n.c})
      if (operand != kNone) level = std::max(level, levels[operand]);
    levels.push_back(level);
  }
  return levels;
}

std::vector<Value> column_roots(const Kernel& kernel, const Phase& phase) {
  std::vector<Value> roots;
  for (const Store& s : phase.stores) roots.push_back(s.value);
  for (const Store& s : phase.local_stores) roots.push_back(s.value);
  for (uint32_t r : phase.reductions) roots.push_back(kernel.reductions[r].value);
  return roots;
}

std::vector<Value> row_roots(const Phase& phase) {
  std::vector<Value> roots;
  for (const Store& s : phase.row_stores) roots.push_back(s.value);
  return roots;
}

std::vector<bool> find_live(const Kernel& kernel, const std::vector<Value>& roots) {
  std::vector<bool> live(kernel.nodes.size());
  for (Value v : roots) live[v] = true;
  for (Value v = static_cast<Value>(kernel.nodes.size()); v-- > 0;) {
    if (!live[v]) continue;
    const Node& n = kernel.nodes[v];
    for (Value operand : {n.a, n.b, n.c})
      if (operand != kNone) live[operand] = true;
  }
  return live;
}

std::optional<uint64_t> half_bits(const Node& constant, DType half) {
  const auto wrapped = [](uint16_t x) { return uint64_t{static_cast<uint32_t>(static_cast<int16_t>(x))}; };
  if (constant.op != Op::constant) return std::nullopt;
  if (constant.type == Type::i32 && constant.imm == kSign) return wrapped(0x8000);
  if (constant.type == Type::i32 && constant.imm == kMagnitude) return wrapped(0x7fff);
  if (constant.type != Type::f32) return std::nullopt;
  const float x = std::bit_cast<float>(static_cast<uint32_t>(constant.imm));
  const uint16_t bits = scalar::to_half(half, x);
  if (x == x && scalar::from_half(half, bits) != x) return std::nullopt;
  return wrapped(bits);
}

void find_halves(const Kernel& kernel, std::vector<DType>& halves) {
  const auto is = [&](Value v, DType d) { return halves[v] == d || half_bits(kernel.nodes[v], d); };
  const auto masks_sign_out = [&](Value v) {
    return kernel.nodes[v].op == Op::constant && kernel.nodes[v].imm == kMagnitude;
  };
  const auto both = [&](Value a, Value b) {
    const DType d = is_half(halves[a]) ? halves[a] : halves[b];
    return is_half(d) && is(a, d) && is(b, d) ? d : DType::f32;
  };
  const auto half = [&](const Node& n) {
    switch (n.op) {
      case Op::load:
        return is_half(kernel.buffers[n.imm].dtype) ? kernel.buffers[n.imm].dtype : DType::f32;
      case Op::round_to:
        return static_cast<DType>(n.imm);
      case Op::bitcast:
        return halves[n.a];
      case Op::bit_or:
      case Op::bit_xor:  // the mask of all but the sign would set bits that 16 do not have
        if (masks_sign_out(n.a) || masks_sign_out(n.b)) return DType::f32;
        [[fallthrough]];
      case Op::bit_and:
        return n.type == Type::i32 ? both(n.a, n.b) : DType::f32;
      case Op::min:
      case Op::max:
        return n.type == Type::f32 ? both(n.a, n.b) : DType::f32;
      case Op::select:
        return both(n.b, n.c);
      default:
        return DType::f32;
    }
  };
  while (halves.size() < kernel.nodes.size()) halves.push_back(half(kernel.nodes[halves.size()]));
}

void drop_dead_nodes(Kernel& kernel) {
  std::vector<Value*> roots;
  for (Reduction& r : kernel.reductions) roots.push_back(&r.value);
  for (Phase& phase : kernel.phases)
    for (auto* stores : {&phase.stores, &phase.local_stores, &phase.row_stores})
      for (Store& s : *stores) roots.push_back(&s.value);
  std::vector<Value> values;
  for (const Value* root : roots) values.push_back(*root);
  const std::vector<bool> live = find_live(kernel, values);

  std::vector<Value> now(kernel.nodes.size(), kNone);
  std::vector<Node> nodes;
  uint16_t old_region = 0, regions = 0;  // which stand in order
  for (Value v = 0; v < kernel.nodes.size(); ++v) {
    if (!live[v]) continue;
    Node node = kernel.nodes[v];
    for (Value* operand : {&node.a, &node.b, &node.c})
      if (*operand != kNone) *operand = now[*operand];
    if (node.region && node.region != old_region) old_region = node.region, ++regions;
    if (node.region) node.region = regions;
    if (node.op == Op::rare) node.imm = regions;
    now[v] = static_cast<Value>(nodes.size());
    nodes.push_back(node);
  }
  kernel.nodes = std::move(nodes);
  for (Value* root : roots) *root = now[*root];
}

bool sums_in_registers(const Kernel& kernel) {
  // Addresses stay in registers, and the code holds what a row computes up to four times for each lane.
  constexpr size_t kMostBuffers = 8, kMostWork = 24;
  size_t work = 0;
  const std::vector<Level> levels = find_levels(kernel);
  // A position that a row is read at is one for all its columns, and in a table that is the same for each row.
  auto is_table_row = [&](const Node& load) {
    const Buffer& table = kernel.buffers[load.imm];
    return levels[load.a] != Level::column && table.access == Access::dense && table.same_rows;
  };
  for (const Node& n : kernel.nodes) {
    if (n.op == Op::index || n.region || (n.op == Op::load && n.a != kNone && !is_table_row(n))) return false;
    work += !is_leaf(n.op);
  }
  auto plain = [&](const Reduction& r) {
    return r.combiner != Combiner::argmax && r.combiner != Combiner::argmin && kernel.nodes[r.value].type != Type::mask;
  };
  return kernel.form == Form::columns && (kernel.known_columns > 0 || kernel.few_columns) && work <= kMostWork &&
         kernel.buffers.size() <= kMostBuffers &&
         std::all_of(kernel.reductions.begin(), kernel.reductions.end(), plain) &&
         std::all_of(kernel.buffers.begin(), kernel.buffers.end(),
                     [](const Buffer& b) { return b.access != Access::strided; });
}

}  // namespace ingot::codegen
