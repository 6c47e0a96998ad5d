// The values of a group at their coordinates, and the phase from which on each is known.
#include <algorithm>

#include "codegen/lower/cost.h"
#include "codegen/lower/kernel_writer.h"
#include "codegen/lower/reads.h"

namespace ingot::codegen::lowering {

KernelWriter::KernelWriter(const ir::Graph& graph, Layouts& layouts, const Plan& plan, uint32_t group)
    : graph_(graph),
      layouts_(layouts),
      dims_(layouts.dims()),
      plan_(plan),
      group_(plan.groups[group]),
      group_number_(group),
      builder_(kernel) {}

bool KernelWriter::is_home(ir::ValueId v) const {
  ir::NodeId n = graph_.values[v].producer;
  if (n == ir::kNoValue) return false;
  const std::vector<uint32_t>& homes = plan_.homes[n];
  // What another step makes of it is read from memory, though this group may be one of its homes (a part of a cat).
  const ir::Node& node = graph_.nodes[n];
  const ir::OpInfo& op = ir::info(node.op);
  bool computed = inlines(node) || op.kind == ir::OpKind::reduction;
  return computed && std::find(homes.begin(), homes.end(), group_number_) != homes.end();
}

uint32_t KernelWriter::argument(KernelArgument a) {
  if (!a.written)
    for (uint32_t i = 0; i < arguments.size(); ++i)
      if (arguments[i] == a) return i;
  kernel.buffers.push_back({a.dtype, Access::dense, a.written});
  arguments.push_back(std::move(a));
  return static_cast<uint32_t>(arguments.size() - 1);
}

void KernelWriter::use_product(ir::ValueId product) {
  product_ = product;
  argument({kNoBuffer, graph_.type(product).dtype == DType::f64 ? DType::f64 : DType::f32, false, {}, 0, 0});
}

/// True if this group is the part of a split reader: it reads one tensor of the cat.
bool KernelWriter::joins_here(ir::ValueId v) const {
  if (plan_.stored[v].buffer != kNoBuffer) return false;
  const std::vector<uint32_t>& homes = plan_.homes[graph_.values[v].producer];
  return std::find(homes.begin(), homes.end(), group_number_) != homes.end();
}

OperandRead KernelWriter::part_of_cat(const ir::Node& node, IndexMap map) {
  size_t along = static_cast<size_t>(node.attrs[0].integer);
  Dim start = 0;
  for (const ir::Operand& o : node.operands) {
    const Dims& part = graph_.type(o.id).shape;
    if (part.size() != map.size() || part[along] == Dim(0)) continue;
    if (map[along].offset == start) {
      map[along].offset = 0;
      if (part[along] == Dim(1)) map[along] = {};
      return {o.id, std::move(map)};
    }
    start = dims_.add(start, part[along]);
  }
  INGOT_CHECK(false, "a part of a cat begins where none of its tensors does");
  return {};
}

void KernelWriter::add_to_product(KernelArgument addend) { addend_ = argument(std::move(addend)); }

uint32_t KernelWriter::add_item(OperandRead read) {
  for (;;) {
    read = layouts_.resolve(std::move(read));
    const ir::Node* node = layouts_.producer(read.value);
    const ir::Form form = node ? ir::info(node->op).form : ir::Form::step;
    if (form == ir::Form::join && joins_here(read.value)) {
      read = part_of_cat(*node, std::move(read.map));
      continue;
    }
    if (form != ir::Form::lookup || !is_home(read.value)) break;
    read = std::move(operand_reads(graph_, layouts_, *node, read.map, group_.reduced)[0]);
  }
  std::vector<uint32_t>& same_value = known_[read.value];
  for (uint32_t i : same_value)
    if (items_[i].map == read.map) return i;
  Item item;
  item.value = read.value;
  item.map = std::move(read.map);
  item.node = layouts_.producer(item.value);
  if (item.value == product_)
    item.kind = Kind::product;
  else if (!is_home(item.value))
    item.kind = Kind::load;
  else
    item.kind = inlines(*item.node) ? Kind::op : Kind::reduction;
  items_.push_back(std::move(item));
  same_value.push_back(static_cast<uint32_t>(items_.size() - 1));
  return static_cast<uint32_t>(items_.size() - 1);
}

void KernelWriter::expand(uint32_t number) {
  // add_item may move the items: work on copies.
  Kind kind = items_[number].kind;
  IndexMap map = items_[number].map;
  bool positions =
      kind == Kind::load || (kind == Kind::op && ir::info(items_[number].node->op).kind == ir::OpKind::coordinate);
  std::vector<uint32_t> operands, at;
  if (kind == Kind::op || kind == Kind::reduction)
    for (OperandRead& read : operand_reads(graph_, layouts_, *items_[number].node, map, group_.reduced))
      operands.push_back(add_item(std::move(read)));
  if (positions)
    for (const Coordinate& c : map) {
      if (c.index == kNoIndex) {
        at.push_back(kNoIndex);
        continue;
      }
      Position p = layouts_.position(c.index);
      at.push_back(add_item({p.value, std::move(p.map)}));
    }
  Item& item = items_[number];
  item.operands = std::move(operands);
  item.positions = std::move(at);
  if (kind != Kind::load) return;
  const RootView& view = layouts_.of(item.value);
  const Stored& stored = plan_.stored[view.root];
  INGOT_CHECK(stored.buffer != kNoBuffer, "a value that no step stores is read");
  auto strided = layouts_.strided(view, item.map, group_.space.size());
  KernelArgument a{stored.buffer, stored.dtype, false, std::move(strided.strides), strided.offset, 0};
  int count = 0;
  for (size_t i = 0; i < item.map.size(); ++i)
    if (item.map[i].index != kNoIndex) {
      // One position moves by its own stride; several are summed up in elements.
      a.index_stride = ++count > 1 ? Dim(1) : dims_.mul(item.map[i].index_coefficient, view.strides[i]);
    }
  item.argument = argument(std::move(a));
}

/// Items of the outputs and all they need, operands first; levels and columns follow from the operands.
void KernelWriter::collect() {
  for (const Output& o : group_.outputs) stored_items_.push_back(add_item({o.value, o.map}));
  for (uint32_t i = 0; i < items_.size(); ++i) expand(i);
  std::vector<uint8_t> state(items_.size());
  std::vector<uint32_t> open;
  for (uint32_t root : stored_items_) {
    open.push_back(root);
    while (!open.empty()) {
      uint32_t i = open.back();
      if (state[i] == 2) {
        open.pop_back();
        continue;
      }
      auto visit = [&](const std::vector<uint32_t>& list) {
        for (uint32_t o : list)
          if (o != kNoIndex && state[o] == 0) open.push_back(o);
      };
      if (state[i] == 0) {
        state[i] = 1;
        visit(items_[i].operands);
        visit(items_[i].positions);
        continue;
      }
      state[i] = 2;
      order_.push_back(i);
      open.pop_back();
    }
  }
}

void KernelWriter::order_items() {
  for (uint32_t number : order_) {
    Item& item = items_[number];
    bool along = group_.reduced < 0;
    for (const Coordinate& c : item.map)
      for (const Term& t : c.terms) along = along || static_cast<int>(t.dim) == group_.reduced;
    if (item.kind == Kind::op && ir::info(item.node->op).kind == ir::OpKind::elementwise) along = group_.reduced < 0;
    auto follow = [&](uint32_t o) {
      item.level = std::max(item.level, items_[o].level);
      along = along || items_[o].per_column;
      if (items_[o].per_column) item.cost += items_[o].cost;
    };
    for (uint32_t o : item.operands) follow(o);
    for (uint32_t o : item.positions)
      if (o != kNoIndex) follow(o);
    item.per_column = along;
    if (item.kind == Kind::reduction) {
      phases_ = std::max(phases_, item.level + 1);
      ++item.level;
      item.per_column = false;
      item.cost = 0;
    } else if (item.kind == Kind::load) {
      item.cost += 1;
    } else if (item.kind == Kind::op) {
      DType compute = graph_.type(item.value).dtype;
      for (uint32_t o : item.operands)
        if (is_floating(graph_.type(items_[o].value).dtype)) compute = graph_.type(items_[o].value).dtype;
      item.cost +=
          ir::info(item.node->op).kind == ir::OpKind::elementwise ? op_cost(*item.node, working_dtype(compute)) : 2;
    }
  }
  // A value that is the same in a whole row (of an expanded operand) is stored in each column all the same; another
  // output of the same value may be stored once.
  for (size_t o = 0; o < stored_items_.size(); ++o) {
    const Item& item = items_[stored_items_[o]];
    in_columns_.push_back(
        item.per_column ||
        (group_.reduced >= 0 && depends_on(group_.outputs[o].map, static_cast<uint32_t>(group_.reduced))));
    if (in_columns_[o]) phases_ = std::max(phases_, item.level + 1);
  }
}

/// Values of a row that a later phase needs again: kept where they are expensive, computed again where they are not.
void KernelWriter::choose_locals() {
  std::vector<int> first(items_.size(), -1);
  for (int p = 0; p < phases_; ++p) {
    std::vector<uint32_t> open;
    for (size_t o = 0; o < stored_items_.size(); ++o)
      if (in_columns_[o] && items_[stored_items_[o]].level == p) open.push_back(stored_items_[o]);
    for (uint32_t i : order_)
      if (items_[i].kind == Kind::reduction && items_[i].level == p + 1)
        open.insert(open.end(), items_[i].operands.begin(), items_[i].operands.end());
    std::vector<bool> seen(items_.size());
    while (!open.empty()) {
      uint32_t i = open.back();
      open.pop_back();
      if (seen[i]) continue;
      seen[i] = true;
      Item& item = items_[i];
      if (item.kind == Kind::reduction) continue;
      if (item.per_column && item.kind == Kind::op && first[i] >= 0 && first[i] < p && item.cost >= kExpensive) {
        if (item.local < 0) {
          item.local = static_cast<int>(kernel.locals.size());
          item.kept_from = first[i];
          kernel.locals.push_back(register_type(graph_.type(item.value).dtype));
        }
        continue;
      }
      if (first[i] < 0) first[i] = p;
      open.insert(open.end(), item.operands.begin(), item.operands.end());
      for (uint32_t o : item.positions)
        if (o != kNoIndex) open.push_back(o);
    }
  }
}

}  // namespace ingot::codegen::lowering
