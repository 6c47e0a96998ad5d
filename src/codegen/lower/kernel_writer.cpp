// Kernel IR of a group, phase by phase.
#include <algorithm>
#include <bit>

#include "codegen/elementwise.h"
#include "codegen/kernel_analysis.h"
#include "codegen/lower/kernel_writer.h"

namespace ingot::codegen::lowering {
uint32_t KernelWriter::scalar_slot(ScalarSource source) {
  for (uint32_t i = 0; i < scalars.size(); ++i)
    if (scalars[i].kind == source.kind && scalars[i].number == source.number && scalars[i].size == source.size &&
        scalars[i].type == source.type)
      return i;
  scalars.push_back(source);
  return static_cast<uint32_t>(scalars.size() - 1);
}

Expr KernelWriter::size_value(Dim d, Type type) {
  if (d.is_constant()) return builder_.constant(type, d.code);
  return builder_.scalar(type, scalar_slot({ScalarSource::Kind::size, 0, d, memory_type(type)}));
}

Expr KernelWriter::scalar_operand(const ir::Operand& o, Type type) {
  switch (o.kind) {
    case ir::Operand::Kind::scalar:
      return builder_.scalar(type, scalar_slot({ScalarSource::Kind::call, o.id, 0, memory_type(type)}));
    case ir::Operand::Kind::size:
      return size_value(o.dim, type);
    case ir::Operand::Kind::constant:
      return o.category == Category::floating ? builder_.constant(type, o.number) : builder_.constant(type, o.integer);
    default:
      break;
  }
  return {};
}

Expr KernelWriter::position_value(const Item& i, size_t coordinate, const std::vector<Expr>& done) {
  return convert(done[i.positions[coordinate]], Type::i64);
}

/// A coordinate of the item's value as a number.
Expr KernelWriter::coordinate_value(const Item& i, size_t coordinate, const std::vector<Expr>& done) {
  const Coordinate& c = i.map[coordinate];
  Expr sum = size_value(c.offset, Type::i64);
  for (const Term& t : c.terms) {
    Expr index = builder_.index(t.dim);
    if (std::find(index_dims.begin(), index_dims.end(), t.dim) == index_dims.end()) index_dims.push_back(t.dim);
    sum = sum + (t.coefficient == Dim(1) ? index : index * size_value(t.coefficient, Type::i64));
  }
  if (c.index != kNoIndex) sum = sum + position_value(i, coordinate, done) * size_value(c.index_coefficient, Type::i64);
  return sum;
}

Expr KernelWriter::emit_load(const Item& i, const std::vector<Expr>& done) {
  const KernelArgument& a = arguments[i.argument];
  Expr index;
  int count = 0;
  for (const Coordinate& c : i.map) count += c.index != kNoIndex;
  for (size_t d = 0; d < i.map.size() && count; ++d) {
    if (i.map[d].index == kNoIndex) continue;
    Expr position = position_value(i, d, done);
    if (count > 1)
      position =
          position * size_value(dims_.mul(i.map[d].index_coefficient, layouts_.of(i.value).strides[d]), Type::i64);
    index = index.present() ? index + position : position;
  }
  Expr x = builder_.load(i.argument, index);
  DType d = graph_.type(i.value).dtype;
  return a.dtype == d ? x : convert_element(x, d);
}

Expr KernelWriter::emit_op(const Item& i, const std::vector<Expr>& operands, const std::vector<Expr>& done) {
  const ir::Node& node = *i.node;
  DType dtype = graph_.type(i.value).dtype;
  const ir::OpInfo& op = ir::info(node.op);
  if (op.kind == ir::OpKind::coordinate) {
    auto coordinate = [&](size_t d) { return coordinate_value(i, d, done); };
    auto scalar = [&](size_t o, Type type) {
      Expr x = scalar_operand(node.operands[o], type);
      return x.present() ? x : builder_.constant(type, op.operand(static_cast<int>(o)).default_number);
    };
    return define_coordinate(node.op, {builder_, dtype, i.map.size(), coordinate, scalar, operands});
  }
  std::vector<ir::TensorType> types;
  DType compute = dtype;
  ir::infer(graph_, node, dims_, &types, &compute);
  std::vector<Expr> arguments(node.operands.size());
  size_t tensor = 0;
  for (size_t o = 0; o < node.operands.size(); ++o) {
    const ir::Operand& operand = node.operands[o];
    if (operand.is_value()) {
      Expr x = operands[tensor++];
      arguments[o] = op.operand(static_cast<int>(o)).mask ? x : convert_element(x, compute, plan_.keep_wide);
    } else {
      arguments[o] = scalar_operand(operand, register_type(compute));
    }
  }
  return define_elementwise(node.op, {builder_, arguments, node.attrs, compute, dtype, plan_.keep_wide, node.operands});
}

/// The item's value in one phase; its operands are in `done`.
Expr KernelWriter::emit(uint32_t number, int phase, const std::vector<Expr>& done) {
  Item& i = items_[number];
  if (i.local >= 0 && phase > i.kept_from) return builder_.local(static_cast<uint32_t>(i.local));
  if (i.kind == Kind::reduction) return i.result;
  std::vector<Expr> operands;
  std::vector<Value> key;
  for (uint32_t o : i.operands) operands.push_back(done[o]), key.push_back(done[o].value);
  for (uint32_t o : i.positions)
    if (o != kNoIndex) key.push_back(done[o].value);
  for (auto& [values, expr] : i.emitted)
    if (values == key) return expr;
  size_t before = kernel.nodes.size();
  Expr x;
  switch (i.kind) {
    case Kind::load:
      x = emit_load(i, done);
      break;
    case Kind::product:
      x = builder_.load(0);
      if (addend_ != kNoIndex) x = x + builder_.load(addend_);
      x = convert_element(x, graph_.type(i.value).dtype);
      break;
    default:
      x = emit_op(i, operands, done);
      break;
  }
  if (i.per_column)
    for (size_t n = before; n < kernel.nodes.size(); ++n)
      if (!is_leaf(kernel.nodes[n].op) && kernel.nodes[n].region == 0) work += 2;
  i.emitted.push_back({std::move(key), x});
  return x;
}

void KernelWriter::emit_phases() {
  kernel.phases.resize(static_cast<size_t>(phases_));
  std::vector<uint32_t> open;
  // Evaluates the wanted items and what they need, in one phase.
  auto evaluate = [&](int phase, std::vector<uint32_t> wanted) {
    std::vector<bool> needed(items_.size());
    while (!wanted.empty()) {
      uint32_t i = wanted.back();
      wanted.pop_back();
      if (needed[i]) continue;
      needed[i] = true;
      const Item& item = items_[i];
      if (item.kind == Kind::reduction || (item.local >= 0 && phase > item.kept_from)) continue;
      wanted.insert(wanted.end(), item.operands.begin(), item.operands.end());
      for (uint32_t o : item.positions)
        if (o != kNoIndex) wanted.push_back(o);
    }
    std::vector<Expr> done(items_.size());
    for (uint32_t i : order_)
      if (needed[i]) done[i] = emit(i, phase, done);
    return done;
  };
  for (int p = 0; p < phases_; ++p) {
    Phase& phase = kernel.phases[static_cast<size_t>(p)];
    std::vector<uint32_t> wanted, reductions;
    for (uint32_t i : order_) {
      const Item& item = items_[i];
      if (item.kind == Kind::reduction && item.level == p + 1) {
        reductions.push_back(i);
        wanted.insert(wanted.end(), item.operands.begin(), item.operands.end());
      }
      if (item.local >= 0 && item.kept_from == p) wanted.push_back(i);
    }
    for (size_t o = 0; o < stored_items_.size(); ++o)
      if (in_columns_[o] && items_[stored_items_[o]].level == p) wanted.push_back(stored_items_[o]);
    std::vector<Expr> done = evaluate(p, wanted);
    for (uint32_t i : order_)
      if (items_[i].local >= 0 && items_[i].kept_from == p)
        phase.local_stores.push_back({static_cast<uint32_t>(items_[i].local), done[i].value});
    for (uint32_t i : reductions) {
      Item& item = items_[i];
      DType operand = graph_.type(items_[item.operands[0]].value).dtype, result = graph_.type(item.value).dtype;
      Combination how = combination_of(item.node->op, operand, result);
      Expr x = convert(done[item.operands[0]], how.type);
      uint32_t number = static_cast<uint32_t>(kernel.reductions.size());
      kernel.reductions.push_back({how.combiner, x.value});
      reduced.push_back(item.value);
      phase.reductions.push_back(number);
      if (group_.kind == Group::Kind::loop) item.result = convert_element(builder_.reduced(number), result);
    }
    auto store = [&](std::vector<Store>& stores, size_t output, Expr x) {
      const Output& o = group_.outputs[output];
      auto strided = layouts_.strided({o.value, o.strides, o.offset}, o.map, group_.space.size());
      uint32_t a = argument({o.buffer, o.dtype, true, std::move(strided.strides), strided.offset, 0});
      const Value value = convert_element(x, o.dtype).value;
      // A store rounds to what its buffer holds.
      const Node& n = kernel.nodes[value];
      const bool rounded = n.op == Op::round_to && static_cast<DType>(n.imm) == o.dtype;
      stores.push_back({a, rounded ? n.a : value});
    };
    if (group_.kind == Group::Kind::column) continue;
    std::vector<uint32_t> rows;
    for (size_t o = 0; o < stored_items_.size(); ++o) {
      const Item& item = items_[stored_items_[o]];
      if (in_columns_[o] && item.level == p) {
        store(phase.stores, o, done[stored_items_[o]]);
        // A whole vector stored to one element would write beyond it.
        const size_t column = group_.reduced >= 0 ? static_cast<size_t>(group_.reduced) : group_.space.size() - 1;
        INGOT_CHECK(group_.space.empty() || group_.space[column] == Dim(1) ||
                        depends_on(group_.outputs[o].map, static_cast<uint32_t>(column)),
                    "a value of a row is stored in each of its columns");
      }
      if (!in_columns_[o] && std::max(item.level - 1, 0) == p) rows.push_back(static_cast<uint32_t>(o));
    }
    if (rows.empty()) continue;
    for (uint32_t o : rows) wanted.push_back(stored_items_[o]);
    std::vector<uint32_t> row_items;
    for (uint32_t o : rows) row_items.push_back(stored_items_[o]);
    std::vector<Expr> row = evaluate(p, row_items);
    for (uint32_t o : rows) store(phase.row_stores, o, row[stored_items_[o]]);
  }
}

void KernelWriter::write() {
  collect();
  order_items();
  choose_locals();
  emit_phases();
  drop_dead_nodes(kernel);
  kernel.scalars = static_cast<uint32_t>(scalars.size());
  kernel.form = group_.kind == Group::Kind::column ? Form::columns : Form::rows;
}

}  // namespace ingot::codegen::lowering
