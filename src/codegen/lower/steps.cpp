#include "codegen/lower/steps.h"

#include <algorithm>
#include <map>

#include "base/canonical_order.h"
#include "base/first_use.h"
#include "base/mutex.h"
#include "codegen/column_dim.h"
#include "codegen/generate.h"
#include "codegen/kernel_analysis.h"
#include "codegen/lower/attention.h"
#include "codegen/lower/contraction.h"
#include "codegen/lower/convolution.h"
#include "codegen/lower/few_columns.h"
#include "codegen/lower/recurrence.h"
#include "codegen/moved_halves.h"

namespace ingot::codegen::lowering {
namespace {

using canonical::kLanes;
/// Of a panel; its tile of some rows stays in L2.
constexpr int64_t kTransposedColumns = 256;

}  // namespace

namespace {

/// Transposes tiles of elements of so many bytes; null if there is no such kernel. Made once.
KernelPtr transpose_kernel(const Target& target, int64_t bytes) {
  static constinit Mutex mutex;
  static constinit FirstUse<std::map<std::pair<std::string, int64_t>, KernelPtr>> made;
  if (!transposes(target.isa, bytes)) return nullptr;
  std::lock_guard lock(mutex);
  KernelPtr& kernel = (*made)[{target.str(), bytes}];
  if (!kernel) {
    const DType dtype = bytes == 8 ? DType::f64 : bytes == 4 ? DType::f32 : bytes == 2 ? DType::f16 : DType::i8;
    kernel = codegen::generate(PackSpec{dtype, static_cast<int>(kTransposedColumns / kLanes), true, false}, target);
  }
  return kernel;
}

/// True if all that a kernel does is to store buffer 0 as it is in buffer 1.
bool copies(const Kernel& kernel) {
  if (kernel.phases.size() != 1 || kernel.buffers.size() != 2 || !kernel.reductions.empty()) return false;
  const Phase& phase = kernel.phases[0];
  if (phase.stores.size() != 1 || !phase.local_stores.empty() || !phase.row_stores.empty()) return false;
  const Node& value = kernel.nodes[phase.stores[0].value];
  return value.op == Op::load && value.imm == 0 && value.a == kNone && phase.stores[0].buffer == 1 &&
         kernel.buffers[0].dtype == kernel.buffers[1].dtype;
}

/// How reductions of this kernel may be split.
LoopStep::SplitReduction split_of(const Kernel& kernel) {
  LoopStep::SplitReduction split;
  split.reductions.resize(kernel.reductions.size());
  split.phases = static_cast<int>(kernel.phases.size());
  for (uint32_t p = 0; p < kernel.phases.size(); ++p) {
    split.stores_rows |= !kernel.phases[p].row_stores.empty();
    for (uint32_t r : kernel.phases[p].reductions) {
      const Reduction& reduction = kernel.reductions[r];
      split.reductions[r] = {p, reduction.combiner, memory_type(kernel.nodes[reduction.value].type)};
    }
  }
  return split;
}

void exchange(CollapsedSpace& space, size_t a, size_t b) {
  std::swap(space.sizes[a], space.sizes[b]);
  for (Dims& s : space.strides) std::swap(s[a], s[b]);
  for (int& p : space.position)
    if (p == static_cast<int>(a))
      p = static_cast<int>(b);
    else if (p == static_cast<int>(b))
      p = static_cast<int>(a);
}

/// Gives a loop wider columns (column_dim.h). Threads of a GPU take lines together: there only what is gathered.
void widen_columns(const DimTable& dims, const Target& target, CollapsedSpace& space) {
  if (space.sizes.empty()) return;
  const size_t last = space.sizes.size() - 1;
  bool gathered = false;
  for (const Dims& s : space.strides) gathered = gathered || !(s.back() == Dim(1) || s.back() == Dim(0));
  auto dense = [&](size_t d) {
    if (target.cuda_arch) return std::ptrdiff_t{0};
    return std::count_if(space.strides.begin(), space.strides.end(), [&](const Dims& s) { return s[d] == Dim(1); });
  };
  const size_t best = column_dim(
      space.sizes.size(), gathered, [&](size_t d) { return dims.hint(space.sizes[d]); }, dense,
      target.cuda_arch ? ColumnRule{.few_dense = 0, .many = 256} : ColumnRule());
  if (best != last) exchange(space, best, last);
}

/// Gives a loop rows along which an operand is dense that is not so along the columns (transpose_arguments): another of
/// its dims, and backwards, where it lies so.
void choose_rows(DimTable& dims, CollapsedSpace& space, std::vector<KernelArgument>& arguments) {
  if (space.sizes.size() < 2) return;
  const size_t rows = space.sizes.size() - 2;
  const Dim backwards = dims.opposite(1);
  auto dense = [&](size_t d, Dim stride) {
    return std::any_of(space.strides.begin(), space.strides.end(), [&](const Dims& s) {
      return s[d] == stride && !(s.back() == Dim(0) || s.back() == Dim(1) || s.back() == backwards);
    });
  };
  auto serves = [&](size_t d) { return dense(d, 1) || dense(d, backwards); };
  for (size_t d = rows; d-- > 0 && !serves(rows);)
    if (serves(d)) exchange(space, d, rows);
  if (dense(rows, 1) || !dense(rows, backwards)) return;
  for (size_t a = 0; a < arguments.size(); ++a) {
    Dim& stride = space.strides[a][rows];
    arguments[a].offset = dims.add(arguments[a].offset, dims.mul(stride, dims.sub(space.sizes[rows], 1)));
    stride = dims.opposite(stride);
  }
}

}  // namespace

Dim bytes(DimTable& dims, Dim elements, DType dtype) { return dims.mul(elements, ingot::size_of(dtype)); }
Dims bytes(DimTable& dims, const Dims& elements, DType dtype) {
  Dims result = elements;
  for (Dim& d : result) d = bytes(dims, d, dtype);
  return result;
}

StepWriter::StepWriter(const ir::Graph& graph, Layouts& layouts, const Plan& plan, const LowerOptions& options,
                       LowerResult& result)
    : graph(graph),
      layouts(layouts),
      dims(layouts.dims()),
      plan(plan),
      target(result.program.target),
      options(options),
      result(result) {}

void StepWriter::write(uint32_t group) {
  FusionGroup explained;
  const Group& g = plan.groups[group];
  explained.members = g.members;
  for (const Output& o : g.outputs) explained.stored.push_back(o.value);
  explained.name = name_of_group(g);
  result.explanation.groups.push_back(std::move(explained));
  switch (g.kind) {
    case Group::Kind::loop:
      return write_loop(group);
    case Group::Kind::column:
      return write_column(group);
    case Group::Kind::matmul:
      return write_matmul(*this, group);
    case Group::Kind::conv:
      return write_conv(*this, group);
    case Group::Kind::conv_weight:
      return write_conv_weight(*this, group);
    case Group::Kind::attention:
      return write_attention(*this, group);
    case Group::Kind::attention_backward:
      return write_attention_backward(*this, group);
    case Group::Kind::recurrence:
      return write_recurrence(*this, group);
    case Group::Kind::host:
      return write_host(group);
  }
}

std::string StepWriter::name_of_group(const Group& g) const {
  std::string name;
  int more = 0;
  for (ir::NodeId n : g.members) {
    const ir::OpInfo& op = ir::info(graph.nodes[n].op);
    if (op.kind == ir::OpKind::view) continue;
    if (name.size() > 40) {
      ++more;
      continue;
    }
    if (!name.empty()) name += '_';
    name += op.name;
  }
  if (more) name += "_and_" + std::to_string(more);
  return name.empty() ? "copy" : name;
}

Step StepWriter::named_step() const {
  Step step;
  step.name = result.explanation.groups.back().name;
  return step;
}

void StepWriter::append(Step step) {
  result.explanation.groups.back().steps.push_back(static_cast<uint32_t>(result.program.steps.size()));
  result.program.steps.push_back(std::move(step));
}

std::vector<Argument> StepWriter::arguments(KernelWriter& writer, const Dims& sizes, std::vector<Dims> strides) {
  std::vector<Argument> made;
  for (size_t i = 0; i < writer.arguments.size(); ++i) {
    const KernelArgument& a = writer.arguments[i];
    Buffer& buffer = writer.kernel.buffers[i];
    Dim along = sizes.back() == Dim(1) && !(strides[i].back() == Dim(1)) ? Dim(0) : strides[i].back();
    buffer.access = along == Dim(1) ? Access::dense : along == Dim(0) ? Access::uniform : Access::strided;
    const bool known = buffer.access == Access::strided && along.is_constant() && along.code <= kMostKnownStride;
    buffer.stride = known ? static_cast<int8_t>(along.code) : int8_t{0};
    if (along == dims.opposite(1) && !buffer.written) buffer.stride = -1;
    if (sizes.back() == Dim(1)) strides[i].back() = along;
    Argument argument;
    argument.buffer = a.buffer;
    argument.offset = bytes(dims, a.offset, a.dtype);
    argument.strides = bytes(dims, strides[i], a.dtype);
    argument.index_stride = bytes(dims, a.index_stride, a.dtype);
    argument.read_only = !a.written;
    made.push_back(std::move(argument));
  }
  return made;
}

/// What is dense along the rows is transposed tile by tile, instead of gathered. A processor's way: threads of a GPU
/// share the lines that they read.
void StepWriter::transpose_arguments(KernelWriter& writer, LoopStep& loop, const std::vector<Dims>& strides) {
  if (target.cuda_arch || !options.transpose) return;
  const Kernel& kernel = writer.kernel;
  for (uint32_t i = 0; i < kernel.buffers.size(); ++i) {
    Buffer& buffer = writer.kernel.buffers[i];
    const bool indexed = std::any_of(kernel.nodes.begin(), kernel.nodes.end(),
                                     [&](const Node& n) { return n.op == Op::load && n.imm == i && n.a != kNone; });
    const Dims& s = strides[i];
    KernelPtr transpose;
    if (buffer.access == Access::strided && !picks_strided(target.isa, buffer) && !buffer.written && !indexed &&
        s[s.size() - 2] == Dim(1))
      transpose = transpose_kernel(target, ingot::size_of(buffer.dtype));
    if (!transpose) continue;
    loop.transposing.kernels.resize(kernel.buffers.size());
    loop.transposing.kernels[i] = transpose;
    loop.transposing.columns = kTransposedColumns;
    buffer.access = Access::dense;
    buffer.stride = 0;
  }
}

/// Gives every index node the number of its dim from the inside; `order` has the old dims as collapse saw them.
void StepWriter::number_indices(KernelWriter& writer, const CollapsedSpace& space, const SmallVector<int, 8>& order) {
  if (writer.index_dims.empty()) return;
  int rank = static_cast<int>(space.sizes.size());
  for (Node& node : writer.kernel.nodes) {
    if (node.op != Op::index) continue;
    for (size_t d = 0; d < order.size(); ++d)
      if (order[d] == static_cast<int>(node.imm)) {
        node.imm = static_cast<uint64_t>(rank - 1 - space.position[d]);
        break;
      }
  }
}

KernelPtr StepWriter::generate(KernelWriter& writer, const Dims& sizes, const std::string& name) {
  Kernel& kernel = writer.kernel;
  if (short_row(sizes.back())) kernel.known_columns = sizes.back().code;
  return made_once(kernel, name, static_cast<int>(sizes.size()) - 2);
}

KernelPtr StepWriter::made_once(const Kernel& kernel, const std::string& name, int outer) {
  return made_once(kernel_key(print(kernel), target, outer),
                   [&] { return codegen::generate(kernel, target, name, outer); });
}

KernelPtr StepWriter::known(const std::string& key) const {
  const auto found = kernels_.find(key);
  if (found != kernels_.end()) return found->second;
  return options.find ? options.find(key) : nullptr;
}

KernelPtr StepWriter::made_once(const std::string& key, const std::function<KernelPtr()>& make) {
  KernelPtr kernel = known(key);
  if (!kernel) kernel = make();
  kernels_[key] = kernel;
  return kernel;
}

Dim StepWriter::moved_bytes(const std::vector<KernelArgument>& arguments, const Dims& sizes,
                            const std::vector<Dims>& strides) {
  Dim total = 0;
  for (size_t i = 0; i < arguments.size(); ++i) {
    Dim touched = ingot::size_of(arguments[i].dtype);
    for (size_t d = 0; d < sizes.size(); ++d)
      if (!(strides[i][d] == Dim(0))) touched = dims.mul(touched, sizes[d]);
    total = dims.add(total, touched);
  }
  return total;
}

void StepWriter::write_loop(uint32_t group) {
  KernelWriter writer(graph, layouts, plan, group);
  writer.write();
  finish_loop(group, writer);
}

/// Whether a row of it has few columns, and there are rows to fill vectors with instead. A processor's way.
bool StepWriter::computes_side_by_side(const Group& g, const SmallVector<int, 8>& order,
                                       const std::vector<KernelArgument>& arguments) const {
  const Dim columns = g.space[g.reduced];
  if (target.cuda_arch || !options.side_by_side || !columns.is_constant() || columns.code < 2) return false;
  // What lies along them would be gathered, where it moves with what takes their place; but row by row, so would be
  // what lies across them, with a line of the caches for each element.
  int innermost = -1;
  for (int d : order)
    if (!(g.space[d] == Dim(1))) innermost = d;
  bool along = false, across = false;
  for (const KernelArgument& a : arguments) {
    if (innermost < 0 || a.strides[innermost] == Dim(0) || a.strides[g.reduced] == Dim(0)) continue;
    along = along || a.strides[g.reduced] == Dim(1);
    across = across || a.strides[innermost] == Dim(1);
  }
  if (columns.code > (along && !across ? kFewColumns : kFewAcross)) return false;
  Dim rows = 1;
  for (size_t d = 0; d < g.space.size(); ++d)
    if (static_cast<int>(d) != g.reduced) rows = dims.mul(rows, g.space[d]);
  return dims.hint(rows) >= kLanes;
}

/// The step of a written kernel over the group's space.
void StepWriter::finish_loop(uint32_t group, KernelWriter& writer) {
  const Group& g = plan.groups[group];
  int reduced = g.reduced;
  // In the order of the first output's memory, but rows run along the reduced dim.
  const Output& first = g.outputs[0];
  auto written = layouts.strided({first.value, first.strides, first.offset}, first.map, g.space.size());
  SmallVector<int, 8> order;
  Dims space;
  for (int d : memory_order(dims, g.space, written.strides))
    if (d != g.reduced) order.push_back(d);
  if (reduced >= 0 && computes_side_by_side(g, order, writer.arguments) &&
      put_columns_side_by_side(writer, dims, static_cast<uint32_t>(reduced), g.space[reduced].code))
    reduced = -1;
  if (reduced >= 0) order.push_back(reduced);
  SmallVector<bool, 8> fixed;
  for (int d : order) {
    space.push_back(g.space[d]);
    fixed.push_back(d == reduced ||
                    std::find(writer.index_dims.begin(), writer.index_dims.end(), d) != writer.index_dims.end());
  }
  std::vector<Dims> strides;
  for (const KernelArgument& a : writer.arguments) {
    Dims s;
    for (int d : order) s.push_back(a.strides[d]);
    strides.push_back(std::move(s));
  }
  CollapsedSpace collapsed = collapse(dims, space, strides, fixed);
  // A batch stays apart from what a kernel would know as its few columns.
  if (options.slices() && collapsed.sizes.size() < space.size() && !collapsed.sizes.empty() &&
      short_row(collapsed.sizes.back())) {
    const auto first = std::find_if(space.begin(), space.end(), [](Dim d) { return !(d == Dim(1)); });
    if (first != space.end()) fixed[static_cast<size_t>(first - space.begin())] = true;
    collapsed = collapse(dims, space, strides, fixed);
  }
  if (reduced < 0) widen_columns(dims, target, collapsed);
  if (reduced < 0 && writer.index_dims.empty()) choose_rows(dims, collapsed, writer.arguments);
  number_indices(writer, collapsed, order);
  while (collapsed.sizes.size() < 2) {
    collapsed.sizes.insert(0, 1);
    for (Dims& s : collapsed.strides) s.insert(0, 0);
  }
  move_halves_as_bits(writer.kernel);
  Step step = named_step();
  LoopStep loop;
  loop.space = collapsed.sizes;
  loop.arguments = arguments(writer, collapsed.sizes, collapsed.strides);
  loop.scalars = writer.scalars;
  for (Type t : writer.kernel.locals) loop.local_bytes.push_back(size_of(t));
  loop.rows_whole = reduced >= 0;
  loop.copies = copies(writer.kernel);
  for (const Node& node : writer.kernel.nodes)
    if (node.op == Op::index)
      loop.positions.push_back(static_cast<int64_t>(collapsed.sizes.size()) - 1 - static_cast<int64_t>(node.imm));
  if (!loop.rows_whole) transpose_arguments(writer, loop, collapsed.strides);
  step.operations = dims.mul(dims.product(collapsed.sizes), writer.work);
  step.bytes = moved_bytes(writer.arguments, collapsed.sizes, collapsed.strides);
  loop.kernel = generate(writer, collapsed.sizes, step.name);
  if (writer.kernel.known_columns == 0) loop.split = split_of(writer.kernel);
  const auto streams = [](const Buffer& b) {
    return !b.written || (b.access == Access::dense && ingot::size_of(b.dtype) >= 4);
  };
  if (!loop.transposing.kernels.empty() &&
      std::all_of(writer.kernel.buffers.begin(), writer.kernel.buffers.end(), streams)) {
    writer.kernel.streams = true;
    loop.transposing.streaming = generate(writer, collapsed.sizes, step.name);
  }
  step.work = std::move(loop);
  append(std::move(step));
}

void StepWriter::write_column(uint32_t group) {
  const Group& g = plan.groups[group];
  KernelWriter writer(graph, layouts, plan, group);
  writer.write();
  // The dims that stay are merged first; the one that most arguments are dense along becomes the columns.
  SmallVector<int, 8> order;
  Dims space;
  SmallVector<bool, 8> fixed;
  for (int d = 0; d < static_cast<int>(g.space.size()); ++d)
    if (d != g.reduced) {
      order.push_back(d);
      space.push_back(g.space[d]);
      fixed.push_back(std::find(writer.index_dims.begin(), writer.index_dims.end(), d) != writer.index_dims.end());
    }
  // In the order of the kernel's reductions.
  std::vector<const Output*> outputs;
  for (ir::ValueId v : writer.reduced)
    outputs.push_back(
        &*std::find_if(g.outputs.begin(), g.outputs.end(), [&](const Output& o) { return o.value == v; }));
  std::vector<Layouts::Strided> placed;
  for (const Output* o : outputs)
    placed.push_back(layouts.strided({o->value, o->strides, o->offset}, o->map, g.space.size()));
  std::vector<Dims> strides;
  auto pick = [&](const Dims& all) {
    Dims s;
    for (int d : order) s.push_back(all[d]);
    strides.push_back(std::move(s));
  };
  for (const KernelArgument& a : writer.arguments) pick(a.strides);
  for (const Layouts::Strided& p : placed) pick(p.strides);
  CollapsedSpace collapsed = collapse(dims, space, strides, fixed);
  if (collapsed.sizes.empty()) {
    collapsed.sizes.push_back(1);
    for (Dims& s : collapsed.strides) s.push_back(0);
  }
  size_t rank = collapsed.sizes.size(), columns = rank - 1;
  int best = -1;
  for (size_t d = 0; d < rank; ++d) {
    int dense = 0;
    for (size_t a = 0; a < writer.arguments.size(); ++a) dense += collapsed.strides[a][d] == Dim(1);
    if (dense >= best) best = dense, columns = d;
  }
  auto arrange = [&](const Dims& of, bool with_reduced, Dim reduced) {
    Dims to;
    for (size_t d = 0; d < rank; ++d)
      if (d != columns) to.push_back(of[d]);
    if (with_reduced) to.push_back(reduced);
    to.push_back(of[columns]);
    return to;
  };
  Dims sizes = arrange(collapsed.sizes, true, g.space[g.reduced]);
  std::vector<Dims> arranged;
  for (size_t a = 0; a < writer.arguments.size(); ++a)
    arranged.push_back(arrange(collapsed.strides[a], true, writer.arguments[a].strides[g.reduced]));
  // Index nodes: positions in the arranged space.
  CollapsedSpace numbered;
  numbered.sizes = sizes;
  for (size_t i = 0; i < order.size(); ++i) {
    int at = collapsed.position[i];
    if (at >= 0) {
      size_t p = static_cast<size_t>(at);
      at = p == columns ? static_cast<int>(rank) : static_cast<int>(p < columns ? p : p - 1);
    }
    numbered.position.push_back(at);
  }
  order.push_back(g.reduced);
  numbered.position.push_back(static_cast<int>(rank) - 1);
  number_indices(writer, numbered, order);

  Step step = named_step();
  ColumnStep column;
  column.space = sizes;
  column.arguments = arguments(writer, sizes, arranged);
  column.scalars = writer.scalars;
  bool indexed = false;
  for (size_t r = 0; r < outputs.size(); ++r) {
    const Output& output = *outputs[r];
    const ir::Node& node = *layouts.producer(output.value);
    Combination how = combination_of(node.op, graph.type(node.operands[0].id).dtype, graph.type(output.value).dtype);
    const bool index = how.combiner == Combiner::argmax || how.combiner == Combiner::argmin;
    indexed = indexed || index;
    ColumnStep::Result combined;
    combined.combiner = how.combiner;
    combined.type = index ? memory_type(how.type) : how.result;
    combined.out.buffer = output.buffer;
    combined.out.offset = bytes(dims, placed[r].offset, output.dtype);
    combined.out.strides = bytes(dims, arrange(collapsed.strides[writer.arguments.size() + r], false, 0), output.dtype);
    column.results.push_back(std::move(combined));
  }
  column.positions = indexed || !writer.index_dims.empty();
  step.operations = dims.mul(dims.product(sizes), writer.work);
  step.bytes = moved_bytes(writer.arguments, sizes, arranged);
  if (!target.cuda_arch)
    for (size_t a = 0; a < arranged.size(); ++a)
      writer.kernel.buffers[a].same_rows = arranged[a][sizes.size() - 2] == Dim(0);
  // Lanes in registers take turns along the rows of a block, and memory gives long rows faster one after another.
  constexpr int64_t kShortRow = 32;
  const bool by_turns = target.cuda_arch || dims.hint(sizes[sizes.size() - 2]) <= canonical::kBlock ||
                        dims.hint(sizes.back()) <= kShortRow;
  if (by_turns && !target.cuda_arch && !short_row(sizes.back())) {
    bool& few = writer.kernel.few_columns;
    few = true;
    few = sums_in_registers(writer.kernel) && few_columns(sizes[sizes.size() - 2], sizes.back());
  }
  column.kernel = by_turns ? generate(writer, sizes, step.name)
                           : made_once(writer.kernel, step.name, static_cast<int>(sizes.size()) - 2);
  column.in_registers = sums_in_registers(writer.kernel);
  step.work = std::move(column);
  append(std::move(step));
}

/// Whether a vector of columns is better summed down all its rows: of more memory, or longer rows, what lies together
/// is read together.
bool StepWriter::few_columns(Dim rows, Dim columns) {
  constexpr int64_t kMostColumns = 1024, kMostElements = 1 << 15;
  const Dim elements = dims.mul(rows, columns);
  if (!options.one_op && !(columns.is_constant() && elements.is_constant())) return false;
  return dims.less(columns, kMostColumns + 1) && dims.less(elements, kMostElements + 1);
}

bool StepWriter::is_constant(const StoredOperand& operand) const {
  return operand.buffer == kNoBuffer && layouts.is_constant(operand.root);
}

Argument StepWriter::stored_argument(const StoredOperand& operand, const Dims& strides, Dim offset, DType dtype) {
  Argument a;
  a.buffer = operand.buffer != kNoBuffer ? operand.buffer : plan.stored[operand.root].buffer;
  a.offset = bytes(dims, offset, dtype);
  a.strides = bytes(dims, strides, dtype);
  a.read_only = true;
  return a;
}

void StepWriter::write_host(uint32_t group) {
  const Group& g = plan.groups[group];
  const ir::OpInfo& op = ir::info(g.anchor->op);
  Step step = named_step();
  HostStep host;
  host.op = op.name;
  if (op.has(ir::kOverwrites)) host.overwrites = op.operand(0).name;
  if (op.has(ir::kMatrices)) {
    host.products = product_kernels(target, {.dtype = DType::f64});
    const Dims shape = graph.type(g.operands[0].value).shape;
    step.operations = dims.mul(dims.product(shape), shape.back());
  }
  auto add = [&](std::vector<HostStep::Tensor>& to, std::string name, Argument argument, const ir::TensorType& type) {
    to.push_back({std::move(name), std::move(argument), type.shape, type.dtype});
    step.bytes = dims.add(step.bytes, bytes(dims, dims.product(type.shape), type.dtype));
  };
  for (const Output& o : g.outputs) {
    Argument argument;
    argument.buffer = o.buffer;
    argument.strides = bytes(dims, o.strides, o.dtype);
    add(host.results, "", std::move(argument), graph.type(o.value));
  }
  for (size_t i = 0; i < g.operands.size(); ++i) {
    const StoredOperand& operand = g.operands[i];
    if (operand.value == ir::kNoValue) continue;
    add(host.operands, op.operand(static_cast<int>(i)).name,
        stored_argument(operand, operand.strides, operand.offset, operand.dtype), graph.type(operand.value));
  }
  for (size_t i = 0; i < g.anchor->attrs.size(); ++i) {
    const ir::Attr& attr = g.anchor->attrs[i];
    const bool size = attr.kind == ir::Attr::Kind::list;
    INGOT_CHECK(!size || attr.list.size() == 1, host.op);
    host.attributes.push_back({op.attribute(static_cast<int>(i)).name, size ? attr.list[0] : Dim(attr.integer)});
  }
  step.work = std::move(host);
  append(std::move(step));
}

uint32_t StepWriter::arena_buffer(Dim bytes) {
  result.program.buffers.push_back({Place::arena, 0, bytes, 0, 0});
  return static_cast<uint32_t>(result.program.buffers.size() - 1);
}

}  // namespace ingot::codegen::lowering
