// Matrix products: which dims are batch, rows and columns; tiles; the epilogue.
#include "codegen/lower/contraction.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/first_use.h"
#include "base/mutex.h"
#include "base/pieces.h"
#include "codegen/generate.h"
#include "codegen/lower/collapse.h"
#include "codegen/lower/reads.h"

namespace ingot::codegen::lowering {
namespace {

/// The kernels of products of one type on one target, for any form.
struct AllKernels {
  ProductKernels rows;             // of dense rows of B and an A that is not dense
  std::vector<KernelPtr> columns;  // packs of dense columns of B
  KernelPtr widen_a;               // of a dense A; null if it is read as it lies
};

/// Whether tiles compute in f32 what is not: a B that is narrower than A, and bf16 where vdpbf16ps is missing. A is
/// widened once; B, for few rows, in registers.
bool widens(const Target& target, DType a, DType b) {
  return !target.cuda_arch && (a != b || (a == DType::bf16 && !target.bf16_dot));
}

/// Copies a matrix to dense rows.
KernelPtr copy_kernel(const Target& target, DType dtype, Access from, DType to, const char* name = "pack_a") {
  Kernel kernel;
  kernel.buffers = {{dtype, from, false}, {to, Access::dense, true}};
  Builder builder(kernel);
  kernel.phases.push_back({{{1, convert(builder.load(0), register_type(to)).value}}, {}, {}, {}});
  return generate(kernel, target, name);
}

/// Two rows of f32 of a row of pairs.
KernelPtr widen_pairs(const Target& target) {
  Kernel kernel;
  kernel.buffers = {
      {DType::i32, Access::dense, false}, {DType::f32, Access::dense, true}, {DType::f32, Access::dense, true}};
  Builder builder(kernel);
  const Expr pairs = builder.load(0);
  const Expr first = bitcast(pairs << 16), second = bitcast(pairs & builder.bits(Type::i32, 0xffff0000u));
  kernel.phases.push_back({{{1, first.value}, {2, second.value}}, {}, {}, {}});
  return generate(kernel, target, "widen");
}

/// Sums of the products of these rows of B, added to what is there.
KernelPtr adding_kernel(const Target& target, DType raw, DType b, int64_t rows) {
  Kernel kernel;
  kernel.buffers = {{raw, Access::dense, false}, {raw, Access::dense, true}};
  Builder builder(kernel);
  Expr sum = builder.load(0);
  for (int64_t row = 0; row < rows; ++row) {
    kernel.buffers.push_back({b, Access::dense, false});
    const auto number = static_cast<uint32_t>(row);
    kernel.scalars = number + 1;
    const Type type = register_type(raw);
    sum = fma(builder.scalar(type, number), convert(builder.load(number + 2), type), sum);
  }
  kernel.phases.push_back({{{1, sum.value}}, {}, {}, {}});
  return generate(kernel, target, "add_rows");
}

AllKernels make_kernels(const Target& target, DType a, DType b, const std::vector<KernelPtr>& wide_tiles) {
  AllKernels all;
  if (target.cuda_arch) return all;
  const bool wide = widens(target, a, b);
  ProductKernels& k = all.rows;
  k.a = wide ? DType::f32 : a, k.b = b;
  k.max_rows = max_tile_rows(target, a);
  k.max_vectors = max_tile_vectors(target, a);
  for (int rows = 1; rows <= k.max_rows; ++rows)
    for (int vectors = 1; vectors <= k.max_vectors; ++vectors)
      k.tiles.push_back(generate(TileSpec{k.a, b, rows, vectors}, target));
  for (int vectors = 1; vectors <= k.max_vectors; ++vectors) {
    k.packs.push_back(generate(PackSpec{b, vectors, false}, target));
    all.columns.push_back(generate(PackSpec{b, vectors, true}, target));
  }
  for (int rows = 1; rows <= kFewRows; ++rows)
    for (int panels = max_tile_panels(target, k.a, rows); panels > 1; panels /= 2) {
      const TileSpec spec{.a = k.a, .b = b, .rows = rows, .panels = panels};
      if (takes_whole_k(spec, target)) k.side_by_side.push_back({rows, panels, generate(spec, target)});
    }
  k.pack_a = copy_kernel(target, a, Access::strided, k.a);
  if (may_be_transposed(target, a, b)) k.transposed = generate(TileSpec{a, b, 1, 1, true}, target);
  // A product that is not of multiply-adds has none.
  if (k.a != DType::bf16) {
    const DType raw = a == DType::f64 ? DType::f64 : DType::f32;
    k.add_row = adding_kernel(target, raw, b, 1), k.add_rows = adding_kernel(target, raw, b, ProductKernels::kRowsOfB);
  }
  if (wide) {
    if (a != k.a) all.widen_a = copy_kernel(target, a, Access::dense, k.a);
    k.wide_tiles = wide_tiles;
    k.widen_rows = copy_kernel(target, b, Access::dense, k.a, "widen");
    k.widen = b == DType::bf16 ? widen_pairs(target) : k.widen_rows;
  }
  return all;
}

/// Made once.
const AllKernels& all_kernels(const Target& target, DType a, DType b) {
  const bool wide = widens(target, a, b);
  const AllKernels* f32 = wide ? &all_kernels(target, DType::f32, DType::f32) : nullptr;
  static constinit Mutex mutex;
  static constinit FirstUse<std::map<std::tuple<std::string, DType, DType>, AllKernels>> made;
  std::lock_guard lock(mutex);
  auto [it, fresh] = made->try_emplace({target.str(), a, b});
  if (fresh) it->second = make_kernels(target, a, b, wide ? f32->rows.tiles : std::vector<KernelPtr>());
  return it->second;
}

/// Those of weights' gradients, and of convolutions.
std::vector<KernelPtr> tiles_of(const Target& target, const ProductForm& form) {
  std::vector<KernelPtr> tiles;
  if (target.cuda_arch) return tiles;
  for (int rows = 1; rows <= max_tile_rows(target, form.dtype, form.a); ++rows)
    for (int vectors = 1; vectors <= max_tile_vectors(target, form.dtype); ++vectors)
      tiles.push_back(generate(TileSpec{.a = form.dtype,
                                        .b = form.dtype,
                                        .rows = rows,
                                        .vectors = vectors,
                                        .rows_of_a = form.a,
                                        .taps = form.taps,
                                        .window_stride = form.window_stride},
                               target));
  return tiles;
}

}  // namespace

ProductKernelsPtr product_kernels(const Target& target, const ProductForm& form) {
  const AllKernels& all = all_kernels(target, form.dtype, form.b.value_or(form.dtype));
  static constinit Mutex mutex;
  static constinit FirstUse<std::map<std::pair<std::string, ProductForm>, ProductKernelsPtr>> made;
  std::lock_guard lock(mutex);
  ProductKernelsPtr& known = (*made)[{target.str(), form}];
  if (known) return known;
  ProductKernels k = all.rows;
  if (form.packing == ProductForm::Packing::columns) k.packs = all.columns;
  if (form.packing == ProductForm::Packing::none) k.packs.clear();
  if (!form.packs_a) k.pack_a = all.widen_a;
  k.rows_of_a = form.a;
  if (takes_whole_k({.a = k.a, .b = k.b, .rows = kFewRows, .rows_of_a = form.a}, target)) k.whole_k_rows = kFewRows;
  if (!k.whole_k_rows) k.side_by_side.clear();
  k.goes_on = goes_on({.a = k.a, .b = k.b, .rows = kFewRows + 1, .rows_of_a = form.a}, target);
  if (form.a != RowsOfA::along) {
    k.tiles = tiles_of(target, form);
    k.max_rows = static_cast<int>(k.tiles.size()) / k.max_vectors;
  }
  if (form.a == RowsOfA::across) k.pack_a = copy_kernel(target, form.dtype, Access::dense, form.dtype);
  if (!form.widens) k.widen = k.widen_rows = nullptr, k.wide_tiles.clear();
  if (form.one_row != OneRow::rows_of_b) k.add_row = k.add_rows = nullptr;
  if (form.one_row != OneRow::columns_of_b) k.transposed = nullptr;
  known = std::make_shared<const ProductKernels>(std::move(k));
  return known;
}

namespace {

/// Whether a product may have a panel of exactly 16 * `vectors` columns; for 0 vectors, one of another number.
bool has_panel(const std::optional<Dim>& columns, int most_vectors, int64_t vectors) {
  if (!columns || !columns->is_constant()) return true;
  const Pieces panels = product_panels(columns->code, most_vectors);
  const bool ragged = columns->code % 16 != 0;
  if (vectors == 0 || panels.count == 1) return vectors == (ragged ? 0 : panels.each);
  return vectors == panels.each || (panels.extra && vectors == panels.each + 1);
}

}  // namespace

std::vector<KernelPtr> epilogues(StepWriter& w, KernelWriter& writer, const std::vector<Dims>& strides, int vectors,
                                 const std::optional<Dim>& columns, const std::string& name) {
  std::vector<KernelPtr> kernels;
  for (size_t i = 0; i < strides.size(); ++i) {
    Buffer& buffer = writer.kernel.buffers[i];
    buffer.same_rows = !buffer.written && strides[i][strides[i].size() - 2] == Dim(0);
  }
  writer.kernel.buffers[0].same_rows = false;  // the raw piece
  for (int64_t v = 0; v <= vectors; ++v) {
    writer.kernel.known_columns = 0;
    kernels.push_back(has_panel(columns, vectors, v) ? w.generate(writer, Dims{1, 16 * v}, name) : nullptr);
  }
  return kernels;
}

// Pieces of rows differ by one at most, so these are the tiles of all but the fewest rows.
std::vector<KernelPtr> finishing_tiles(StepWriter& w, const KernelWriter& writer, const ProductForm& form,
                                       const Dim& depth, const std::optional<Dim>& columns) {
  const ProductKernels& kernels = *product_kernels(w.target, form);
  if (!depth.is_constant() || depth.code > kShallow || !may_finish(w.target, writer.kernel)) return {};
  std::vector<KernelPtr> tiles(kernels.tiles.size());
  auto make = [&](size_t first, int vectors, int64_t known) {
    for (int rows = std::max(1, kernels.max_rows - 1); rows <= kernels.max_rows; ++rows) {
      auto finish = std::make_shared<Kernel>(writer.kernel);
      finish->known_columns = known;
      finish->buffers[0].same_rows = true;  // it lies nowhere
      const TileSpec spec{.a = form.dtype,
                          .b = form.dtype,
                          .rows = rows,
                          .vectors = vectors,
                          .rows_of_a = form.a,
                          .taps = form.taps,
                          .window_stride = form.window_stride,
                          .finish = std::move(finish)};
      tiles[first + static_cast<size_t>((rows - 1) * kernels.max_vectors + vectors - 1)] =
          w.made_once(kernel_key(print(spec), w.target), [&] { return codegen::generate(spec, w.target); });
    }
  };
  for (int vectors = 1; vectors <= kernels.max_vectors; ++vectors)
    if (has_panel(columns, kernels.max_vectors, vectors)) make(0, vectors, 16 * vectors);
  if (columns && columns->is_constant() && columns->code % 16 != 0) {
    const Pieces panels = product_panels(columns->code, kernels.max_vectors);
    const size_t first = tiles.size();
    tiles.resize(2 * first);
    make(first, static_cast<int>(panels.size(panels.count - 1)), columns->code - 16 * panels.begin(panels.count - 1));
  }
  return tiles;
}

uint32_t raw_buffer(StepWriter& w, ir::ValueId product, DType raw) {
  return w.arena_buffer(bytes(w.dims, w.layouts.elements(product), raw));
}

/// What follows a product, where it cannot be an epilogue: its first argument is the stored product.
void loop_after_product(StepWriter& w, uint32_t group, KernelWriter& writer, uint32_t buffer) {
  w.result.explanation.notes.push_back(
      "what follows the product %" + std::to_string(w.plan.groups[group].anchor->outputs[0]) +
      (w.target.cuda_arch ? " is a loop of its own: a library makes the product"
                          : " is a loop of its own: too many operands, or some that differ within a row of pixels"));
  writer.arguments[0].buffer = buffer;
  w.finish_loop(group, writer);
}

namespace {

/// A single row reads a B that lies along the sums, or across them, as it lies, if there may be such a row and columns
/// enough.
OneRow one_row(StepWriter& w, const MatmulStep& step, DType b, bool k_dense, bool n_dense) {
  const bool may =
      (step.m == Dim(1) || !step.m.is_constant()) && (!step.n.is_constant() || step.n.code >= MatmulStep::kManyColumns);
  const ProductKernels& all = all_kernels(w.target, step.dtype, b).rows;
  if (may && k_dense && all.transposed) return OneRow::columns_of_b;
  if (may && n_dense && all.add_row) return OneRow::rows_of_b;
  return OneRow::tiles;
}

/// Whether there may be rows enough for which B is widened a block at a time.
bool widens_rows(StepWriter& w, const MatmulStep& step, DType b) {
  const int64_t few = (MatmulStep::kManyTiles - 1) * all_kernels(w.target, step.dtype, b).rows.max_rows;
  return widens(w.target, step.dtype, b) && (!step.m.is_constant() || step.m.code > few);
}

/// Whether the rows of a product are better its columns, A B = (Bt At)t, as all that is stored lies along them: the
/// gradient of a weight that is used transposed. The same products are added in the same order. `a`, `b`: over the
/// space, then k; `n`: the columns.
bool better_turned(StepWriter& w, const Group& g, const Layouts::Strided& a, const Layouts::Strided& b, size_t n) {
  const StoredOperand &left = g.operands[0], &right = g.operands[1];
  if (w.target.cuda_arch || g.space.size() != 2 || left.dtype != right.dtype || w.is_constant(right)) return false;
  const size_t m = 1 - n;
  auto one = [&](size_t d) { return g.space[d] == Dim(1); };
  // What becomes B is dense along its rows or columns.
  if (one(m) || one(n) || a.strides[n] != Dim(0) || b.strides[m] != Dim(0)) return false;
  if (a.strides[m] != Dim(1) && a.strides[2] != Dim(1)) return false;
  return std::ranges::all_of(g.outputs, [&](const Output& o) {
    const Dims strides = w.layouts.strided({o.value, o.strides, o.offset}, o.map, 2).strides;
    return strides[m] == Dim(1) && strides[n] != Dim(1);
  });
}

}  // namespace

void write_matmul(StepWriter& w, uint32_t group) {
  const Group& g = w.plan.groups[group];
  const ir::Node& node = *g.anchor;
  ir::ValueId product = node.outputs[0];
  StoredOperand left = g.operands[0], right = g.operands[1];
  DType dtype = left.dtype;
  DType raw = dtype == DType::f64 ? DType::f64 : DType::f32;
  Dim k = w.graph.type(left.value).shape.back();
  size_t rank = g.space.size();

  // Both operands over [space..., k].
  std::vector<OperandRead> reads = operand_reads(w.graph, w.layouts, node, g.anchor_map, static_cast<int>(rank));
  auto a = w.layouts.strided({left.value, left.strides, left.offset}, reads[0].map, rank + 1);
  auto b = w.layouts.strided({right.value, right.strides, right.offset}, reads[1].map, rank + 1);
  bool has_columns = w.graph.type(right.value).shape.size() > 1 && !g.anchor_map.back().terms.empty();
  size_t n_dim = has_columns ? g.anchor_map.back().terms[0].dim : rank;
  const bool turned = has_columns && better_turned(w, g, a, b, n_dim);
  if (turned) {
    std::swap(left, right), std::swap(a, b);
    n_dim = 1 - n_dim;
  }
  Dim n = has_columns ? g.space[n_dim] : Dim(1);

  bool plain = g.outputs.size() == 1 && g.outputs[0].value == product && g.outputs[0].dtype == raw;
  if (plain && has_columns) {
    // Tiles are stored with dense columns only; an epilogue stores anywhere.
    const Output& o = g.outputs[0];
    plain = w.layouts.strided({o.value, o.strides, o.offset}, o.map, rank).strides[n_dim] == Dim(1);
  }
  KernelWriter writer(w.graph, w.layouts, w.plan, group);
  // Where C is stored. With an epilogue the raw product exists a tile at a time only.
  Layouts::Strided c{Dims(rank, Dim(0)), 0};
  uint32_t c_buffer = kNoBuffer;
  if (plain) {
    const Output& o = g.outputs[0];
    c = w.layouts.strided({o.value, o.strides, o.offset}, o.map, rank);
    c_buffer = o.buffer;
  } else {
    writer.use_product(product);
    writer.arguments[0].strides.resize(rank, 0);
    writer.write();
    if (!epilogue_fits(w, writer.arguments.size())) {
      c_buffer = raw_buffer(w, product, raw);
      c = w.layouts.strided({product, ir::contiguous_strides(w.dims, w.graph.type(product).shape), 0}, g.anchor_map,
                            rank);
      if (turned) c.strides[n_dim] = 1, c.strides[1 - n_dim] = n;
      writer.arguments[0].strides = c.strides;
    }
  }
  const bool epilogue = c_buffer == kNoBuffer;

  // All dims but the columns merge where A, B, C and the epilogue's arguments move as one.
  std::vector<Dims> all{a.strides, b.strides, c.strides};
  for (const KernelArgument& argument : writer.arguments) all.push_back(argument.strides);
  std::vector<Dims> rows_strides;
  Dims rows;
  for (size_t d = 0; d < rank; ++d)
    if (d != n_dim) rows.push_back(g.space[d]);
  for (const Dims& s : all) {
    Dims kept;
    for (size_t d = 0; d < rank; ++d)
      if (d != n_dim) kept.push_back(s[d]);
    rows_strides.push_back(std::move(kept));
  }
  SmallVector<bool, 8> fixed(rows.size(), false);
  CollapsedSpace collapsed = collapse(w.dims, rows, rows_strides, fixed);
  // The rows of the product: a dim over which B stays the same, the longest.
  int m_dim = -1;
  for (size_t d = 0; d < collapsed.sizes.size(); ++d)
    if (collapsed.strides[1][d] == Dim(0) &&
        (m_dim < 0 || w.dims.hint(collapsed.sizes[d]) >= w.dims.hint(collapsed.sizes[static_cast<size_t>(m_dim)])))
      m_dim = static_cast<int>(d);
  auto arrange = [&](size_t which, std::initializer_list<Dim> last, bool with_m) {
    Dims result;
    for (size_t d = 0; d < collapsed.sizes.size(); ++d)
      if (static_cast<int>(d) != m_dim) result.push_back(collapsed.strides[which][d]);
    if (with_m) result.push_back(m_dim < 0 ? Dim(0) : collapsed.strides[which][static_cast<size_t>(m_dim)]);
    for (Dim d : last) result.push_back(d);
    return result;
  };
  auto along_n = [&](const Dims& strides) { return has_columns ? strides[n_dim] : Dim(0); };

  Step step = w.named_step();
  MatmulStep matmul;
  matmul.dtype = dtype;
  matmul.accumulate = raw;
  matmul.rounds_b = right.rounded;
  const DType packed = right.rounded ? DType::bf16 : right.dtype;
  for (size_t d = 0; d < collapsed.sizes.size(); ++d)
    if (static_cast<int>(d) != m_dim) matmul.batch.push_back(collapsed.sizes[d]);
  matmul.m = m_dim < 0 ? Dim(1) : collapsed.sizes[static_cast<size_t>(m_dim)];
  matmul.n = n;
  matmul.k = k;
  Dim a_k = a.strides[rank], b_k = b.strides[rank], b_n = along_n(b.strides);
  bool k_dense = a_k == Dim(1) || k == Dim(1);
  bool n_dense = b_n == Dim(1) || n == Dim(1);
  matmul.a = w.stored_argument(left, arrange(0, {k_dense ? Dim(1) : a_k}, true), a.offset, dtype);
  matmul.b = w.stored_argument(right, arrange(1, {b_k, b_n}, false), b.offset, right.dtype);
  // What is read as it lies is not rounded.
  matmul.one_row = right.rounded ? OneRow::tiles : one_row(w, matmul, packed, k_dense && b_k == Dim(1), n_dense);
  // bf16 is multiplied in pairs of k, which must then be neighbours; tiles across read a B of A's type.
  const bool across = !k_dense && m_dim >= 0 && dtype != DType::bf16 && packed == dtype && !w.target.cuda_arch &&
                      collapsed.strides[0][static_cast<size_t>(m_dim)] == Dim(1);
  matmul.kernels =
      product_kernels(w.target, {.dtype = dtype,
                                 .packing = n_dense ? ProductForm::Packing::rows : ProductForm::Packing::columns,
                                 .a = across ? RowsOfA::across : RowsOfA::along,
                                 .packs_a = !k_dense && !across,
                                 .one_row = matmul.one_row,
                                 .widens = widens_rows(w, matmul, packed),
                                 .b = packed});
  matmul.b_is_weight = w.is_constant(right);
  Dim epilogue_work = 0;
  if (!epilogue) {
    Argument to;
    to.buffer = c_buffer;
    to.offset = bytes(w.dims, c.offset, raw);
    to.strides = bytes(w.dims, arrange(2, {has_columns ? c.strides[n_dim] : Dim(1)}, true), raw);
    matmul.epilogue.arguments = {std::move(to)};
  } else {
    std::vector<Dims> strides;
    for (size_t i = 0; i < writer.arguments.size(); ++i)
      strides.push_back(arrange(3 + i, {i == 0 ? Dim(1) : along_n(writer.arguments[i].strides)}, true));
    Dims sizes{1, n};
    std::vector<Argument> arguments_of = w.arguments(writer, sizes, strides);
    writer.kernel.buffers[0].access = Access::dense;
    matmul.epilogue.arguments.assign(arguments_of.begin() + 1, arguments_of.end());
    matmul.epilogue.scalars = writer.scalars;
    matmul.epilogue.kernels = epilogues(w, writer, strides, matmul.kernels->max_vectors, n, step.name);
    epilogue_work = writer.work;
  }
  Dim points = w.dims.product(g.space);
  step.operations = w.dims.mul(points, w.dims.add(w.dims.mul(k, 2), epilogue_work));
  for (const StoredOperand* operand : {&left, &right})
    step.bytes = w.dims.add(step.bytes, bytes(w.dims, w.layouts.elements(operand->value), operand->dtype));
  for (const Output& o : g.outputs) step.bytes = w.dims.add(step.bytes, bytes(w.dims, points, o.dtype));
  step.work = std::move(matmul);
  w.append(std::move(step));
  if (!plain && !epilogue) loop_after_product(w, group, writer, c_buffer);
}

}  // namespace ingot::codegen::lowering
