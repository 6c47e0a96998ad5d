// Elementwise ops: one kernel for each key and access of the operands, called without building a graph.
#include <array>
#include <unordered_map>

#include "base/first_use.h"
#include "base/hash.h"
#include "base/mutex.h"
#include "base/thread_object.h"
#include "codegen/column_dim.h"
#include "compiler/compiler.h"
#include "eager/call/call.h"
#include "eager/call/infer.h"
#include "eager/data.h"
#include "eager/execute/execute.h"
#include "ir/graph.h"
#include "runtime/code/kernel_cache.h"
#include "runtime/cpu.h"
#include "runtime/thread_pool.h"

namespace ingot::eager {
namespace {

using codegen::Access;

constexpr size_t kMaxArguments = kMaxPointwiseOperands + 1;  // and the output
constexpr size_t kMaxDims = 16;
/// Elements below which a second thread does not pay.
constexpr int64_t kGrain = 32768;

struct Key {
  uint64_t call = 0;
  uint64_t access = 0;  // four bits an argument, the output first; dtype of the output; target
  friend bool operator==(const Key&, const Key&) = default;
};
struct KeyHash {
  size_t operator()(const Key& k) const {
    return hash_mix(k.call ^ 0x9e3779b97f4a7c15ull, k.access ^ 0xe7037ed1a0b428dbull);
  }
};

/// A kernel, and where its buffers and scalars come from. entry is null where the op needs a program.
struct Pointwise {
  Key key;
  KernelEntry entry = nullptr;
  const void* context = nullptr;
  runtime::LoadedKernelPtr kernel;
  int buffers = 0;
  std::array<int8_t, kMaxArguments> argument{};  // of each buffer: 0 the output, else operand + 1
  int scalars = 0;
  std::array<int8_t, kMaxPointwiseOperands> scalar{};  // operand of each scalar
  std::array<DType, kMaxPointwiseOperands> scalar_type{};
  int64_t scratch_bytes = 0;
};

/// Dims of the output, outermost first, joined where every argument moves on evenly; strides in bytes.
struct Plane {
  size_t rank = 0;
  int64_t sizes[kMaxDims];
  int64_t strides[kMaxArguments][kMaxDims];
};

/// How an argument moves along the columns.
struct Along {
  Access access = Access::dense;
  uint8_t stride = 0;  // Buffer::stride
  uint64_t bits() const { return stride ? stride + 2u : static_cast<uint64_t>(access); }
};
static_assert(16 + 4 * kMaxArguments <= 64 && codegen::kMostKnownStride + 2 < 16);

Along along_columns(int64_t stride, int64_t width, int64_t columns) {
  if (columns == 1 || stride == width) return {};
  if (stride == 0) return {Access::uniform};
  const bool known = stride > width && stride <= codegen::kMostKnownStride * width;
  return {Access::strided, static_cast<uint8_t>(known ? stride / width : 0)};
}

/// Steps of an argument over the output's dims; broadcast dims stand still.
void spread_strides(const detail::TensorImpl& t, size_t rank, int64_t* strides) {
  int64_t width = size_of(t.dtype);
  size_t own = t.sizes.size(), lead = rank - own;
  for (size_t d = 0; d < lead; ++d) strides[d] = 0;
  for (size_t d = 0; d < own; ++d) strides[lead + d] = t.sizes[d] == 1 ? 0 : t.strides[d] * width;
}

void collapse(Plane& p, size_t arguments, const int64_t* sizes, size_t rank) {
  size_t out = 0;
  for (size_t d = 0; d < rank; ++d) {
    if (sizes[d] == 1) continue;
    bool joins = out > 0;
    for (size_t a = 0; joins && a < arguments; ++a) joins = p.strides[a][out - 1] == p.strides[a][d] * sizes[d];
    size_t to = joins ? out - 1 : out++;
    p.sizes[to] = joins ? p.sizes[to] * sizes[d] : sizes[d];
    for (size_t a = 0; a < arguments; ++a) p.strides[a][to] = p.strides[a][d];
  }
  p.rank = out;
}

/// Gives a loop wider columns (column_dim.h).
void widen_columns(Plane& p, size_t arguments, const int64_t* widths) {
  if (p.rank == 0) return;
  const size_t last = p.rank - 1;
  bool gathered = false;
  for (size_t a = 0; a < arguments; ++a)
    gathered = gathered || (p.strides[a][last] != widths[a] && p.strides[a][last] != 0);
  const size_t best = codegen::column_dim(
      p.rank, gathered, [&](size_t d) { return p.sizes[d]; },
      [&](size_t d) {
        int64_t dense = 0;
        for (size_t a = 0; a < arguments; ++a) dense += p.strides[a][d] == widths[a];
        return dense;
      });
  if (best == last) return;
  std::swap(p.sizes[best], p.sizes[last]);
  for (size_t a = 0; a < arguments; ++a) std::swap(p.strides[a][best], p.strides[a][last]);
}

/// True if a program, which transposes what is dense along the rows tile by tile, is faster than gathering it.
bool pays_to_transpose(const Plane& p, size_t arguments, const int64_t* widths, const Along* along) {
  constexpr int64_t kFew = 16;
  const Isa isa = runtime::host_target().isa;
  if (p.rank < 2 || p.sizes[p.rank - 1] < kFew || p.sizes[p.rank - 2] < kFew) return false;
  for (size_t a = 1; a < arguments; ++a)
    if (along[a].access == Access::strided && codegen::transposes(isa, widths[a]) &&
        p.strides[a][p.rank - 2] == widths[a])
      return true;
  return false;
}

/// An in-place result goes through the destination in the order of its memory, whatever the order of its dims.
void order_by_output(Plane& p, size_t arguments, Ints& sizes) {
  for (size_t d = 1; d < sizes.size(); ++d)
    for (size_t e = d; e > 0 && p.strides[0][e - 1] < p.strides[0][e]; --e) {
      std::swap(sizes[e - 1], sizes[e]);
      for (size_t a = 0; a < arguments; ++a) std::swap(p.strides[a][e - 1], p.strides[a][e]);
    }
}

uint64_t target_bits(const Target& t) { return static_cast<uint64_t>(t.isa) | static_cast<uint64_t>(t.bf16_dot) << 2; }

uint64_t scalar_bits(const Operand& o, DType type) {
  Scalar v = o.category == Category::floating ? Scalar(o.number) : Scalar(o.integer);
  switch (type) {
    case DType::f32:
      return std::bit_cast<uint32_t>(v.to<float>());
    case DType::f64:
      return std::bit_cast<uint64_t>(v.to<double>());
    case DType::bool_:
      return v.to<bool>();
    case DType::i32: {
      // From a float it saturates as a cast does, from an integer it wraps.
      int64_t wide = v.to<int64_t>();
      if (o.category == Category::floating) wide = std::min<int64_t>(std::max<int64_t>(wide, INT32_MIN), INT32_MAX);
      return static_cast<uint32_t>(static_cast<int32_t>(wide));
    }
    default:
      return static_cast<uint64_t>(v.to<int64_t>());
  }
}

/// The op over planes of R x C with the given column accesses.
Pointwise build(const OpCall& call, const Key& key, DType output, const Along* along) {
  constexpr int64_t kRows = 1009, kColumns = 2003;  // what the sizes are taken for when a decision needs a value
  Pointwise result;
  result.key = key;
  ir::Graph graph;
  DimTable& dims = graph.dims;
  std::vector<int64_t> values;
  auto symbol = [&](int64_t hint) {
    values.push_back(hint);
    return dims.symbol(hint);
  };
  Dim rows = symbol(kRows), columns = symbol(kColumns);
  std::vector<ir::Operand> operands;
  std::vector<int> operand_of_input, operand_of_scalar;
  int64_t next_stride = 4001;
  for (size_t i = 0; i < call.operands.size(); ++i) {
    const Operand& o = call.operands[i];
    if (o.kind == Operand::Kind::none) {
      operands.push_back(ir::Operand::none());
    } else if (o.kind == Operand::Kind::scalar) {
      operands.push_back(scalar_operand(graph, o));
      if (!o.special) operand_of_scalar.push_back(static_cast<int>(i));
    } else {
      const detail::TensorImpl& t = *o.tensor->impl();
      ir::ValueId input;
      if (t.sizes.empty()) {
        input = graph.add_input(t.dtype, {});
      } else {
        const Along& a = along[i + 1];
        const Dim stride = a.access == Access::dense     ? Dim(1)
                           : a.access == Access::uniform ? Dim(0)
                           : a.stride                    ? Dim(a.stride)
                                                         : symbol(next_stride += 1000);
        input = graph.add_input(t.dtype, {rows, columns}, {symbol(next_stride += 1000), stride});
      }
      operands.push_back(ir::Operand::value(input));
      operand_of_input.push_back(static_cast<int>(i));
    }
  }
  ir::ValueId value = graph.add(call.op, std::move(operands), {call.attrs.begin(), call.attrs.end()});
  if (graph.type(value).dtype != output)
    value = graph.add(OpId::cast, {ir::Operand::value(value)}, {ir::Attr::of(output)});
  graph.outputs.push_back(value);
  bool plane = !graph.type(value).shape.empty();

  compiler::Settings settings{.level = {runtime::host_target()}, .passes = false};
  if (along[0].access == Access::strided) {
    const Dim stride = along[0].stride ? Dim(along[0].stride) : symbol(next_stride += 1000);
    settings.output_strides = {{symbol(next_stride += 1000), stride}};
  }
  std::string reason;
  const compiler::ReadyProgram ready = compiler::compile_or_interpret(std::move(graph), settings, &reason);
  if (!reason.empty()) statistics::count_fallback(std::string(ir::info(call.op).name) + ": " + reason);
  const Program& program = *ready.compiled->program;
  if (program.steps.size() != 1 || !program.steps[0].is<LoopStep>() || !program.dims.guards().empty()) return result;
  const LoopStep& step = program.steps[0].as<LoopStep>();
  if (step.space.size() != 2 || step.rows_whole || !step.local_bytes.empty() || step.arguments.size() > kMaxArguments ||
      step.scalars.size() > kMaxPointwiseOperands)
    return result;
  std::vector<int64_t> known = program.dims.evaluate(values);
  auto of = [&](Dim d) { return DimTable::value_of(d, known); };
  if (of(step.space[0]) != (plane ? kRows : 1) || of(step.space[1]) != (plane ? kColumns : 1)) return result;
  for (const Argument& a : step.arguments) {
    const ProgramBuffer& buffer = program.buffers[a.buffer];
    if (buffer.place == Place::arena || of(a.offset) != 0) return result;
    result.argument[result.buffers++] =
        static_cast<int8_t>(buffer.place == Place::output ? 0 : operand_of_input[buffer.number] + 1);
  }
  for (const ScalarSource& s : step.scalars) {
    if (s.kind != ScalarSource::Kind::call) return result;
    result.scalar[result.scalars] = static_cast<int8_t>(operand_of_scalar[s.number]);
    result.scalar_type[result.scalars++] = s.type;
  }
  result.scratch_bytes = step.kernel->scratch_bytes;
  result.kernel = runtime::KernelCache::instance().load(step.kernel);
  result.entry = result.kernel->entry;
  result.context = result.kernel->context;
  statistics::count_pointwise();
  return result;
}

// A thread finds its kernels without a lock; what it has not seen comes from the table of the process.
constexpr size_t kNearKernels = 512;
constinit thread_local ThreadObject<std::array<const Pointwise*, kNearKernels>> near;

// Null where the process has as many as it keeps: they are never freed, as threads hold pointers to them.
const Pointwise* find_pointwise(const OpCall& call, const Key& key, DType output, const Along* along) {
  const Pointwise*& slot = (*near)[KeyHash()(key) % kNearKernels];
  if (slot && slot->key == key) return slot;
  static constinit SharedMutex mutex;
  static constinit FirstUse<std::unordered_map<Key, std::unique_ptr<const Pointwise>, KeyHash>> all;
  auto& table = *all;
  {
    std::shared_lock lock(mutex);
    auto found = table.find(key);
    if (found != table.end()) return slot = found->second.get();
    // (Those that replace their target, as programs write their results, are few.)
    if (table.size() >= kMostPointwiseKernels && !ir::info(call.op).has(ir::kReplaces)) return nullptr;
  }
  auto made = std::make_unique<const Pointwise>(build(call, key, output, along));
  std::unique_lock lock(mutex);
  return slot = table.emplace(key, std::move(made)).first->second.get();
}

struct Launch {
  const Pointwise& kernel;
  const Plane& plane;
  char* const* base;
  const uint64_t* scalars;

  /// Rows [first, last) of all planes, columns [left, right).
  void run(int64_t first, int64_t last, int64_t left, int64_t right) const {
    size_t rank = plane.rank;
    int64_t rows = rank > 1 ? plane.sizes[rank - 2] : 1;
    char* buffers[kMaxArguments];
    int64_t row_strides[kMaxArguments], column_strides[kMaxArguments], index_strides[kMaxArguments] = {};
    alignas(64) char small[1024];
    std::unique_ptr<char[]> large;
    KernelFrame frame{buffers, row_strides, column_strides, index_strides, scalars,       0, right - left,
                      small,   0,           left,           nullptr,       kernel.context};
    if (kernel.scratch_bytes > static_cast<int64_t>(sizeof small)) {
      large.reset(new char[kernel.scratch_bytes + 64]);
      frame.scratch = large.get() + (64 - reinterpret_cast<uintptr_t>(large.get()) % 64) % 64;
    }
    for (int b = 0; b < kernel.buffers; ++b) {
      int a = kernel.argument[b];
      row_strides[b] = rank > 1 ? plane.strides[a][rank - 2] : 0;
      column_strides[b] = rank ? plane.strides[a][rank - 1] : 0;
    }
    for (int64_t row = first; row < last;) {
      int64_t outer = row / rows, in_plane = row - outer * rows;
      frame.rows = std::min(rows - in_plane, last - row);
      frame.row_index = in_plane;
      for (int b = 0; b < kernel.buffers; ++b) {
        int a = kernel.argument[b];
        int64_t offset = in_plane * row_strides[b] + left * column_strides[b], rest = outer;
        for (size_t d = rank > 2 ? rank - 2 : 0; d-- > 0;) {
          offset += rest % plane.sizes[d] * plane.strides[a][d];
          rest /= plane.sizes[d];
        }
        buffers[b] = base[a] + offset;
      }
      kernel.entry(&frame);
      row += frame.rows;
    }
  }
};

}  // namespace

bool execute_pointwise(const OpCall& call, const OutputMeta& meta, Tensor& output) {
  Key key{pointwise_key(call), 0};
  if (!key.call || meta.sizes.size() > kMaxDims) return false;
  size_t rank = meta.sizes.size(), arguments = call.operands.size() + 1;
  Tensor result = call.inplace ? *call.operands[0].tensor : make_empty(meta.dtype, meta.sizes);
  const detail::TensorImpl& out = *result.impl();
  char* base[kMaxArguments] = {data_of(out)};
  int64_t widths[kMaxArguments] = {size_of(out.dtype)};
  Plane plane;
  spread_strides(out, rank, plane.strides[0]);
  for (size_t i = 0; i < call.operands.size(); ++i) {
    const Operand& o = call.operands[i];
    if (o.kind == Operand::Kind::tensor) {
      const detail::TensorImpl& t = *o.tensor->impl();
      base[i + 1] = data_of(t);
      widths[i + 1] = size_of(t.dtype);
      spread_strides(t, rank, plane.strides[i + 1]);
    } else {
      widths[i + 1] = 0;
      std::fill_n(plane.strides[i + 1], rank, 0);
    }
  }
  Ints sizes = meta.sizes;
  if (call.inplace) order_by_output(plane, arguments, sizes);
  collapse(plane, arguments, sizes.data(), rank);
  widen_columns(plane, arguments, widths);
  int64_t columns = plane.rank ? plane.sizes[plane.rank - 1] : 1;
  Along along[kMaxArguments];
  key.access = 1 | target_bits(runtime::host_target()) << 1 | static_cast<uint64_t>(meta.dtype) << 8;
  for (size_t a = 0; a < arguments; ++a) {
    along[a] = along_columns(plane.rank ? plane.strides[a][plane.rank - 1] : 0, widths[a], columns);
    key.access |= along[a].bits() << (16 + 4 * a);
  }
  if (!call.inplace && pays_to_transpose(plane, arguments, widths, along)) return false;
  const Pointwise* found = find_pointwise(call, key, meta.dtype, along);
  if (!found || !found->entry) return false;
  const Pointwise& kernel = *found;

  uint64_t scalars[kMaxPointwiseOperands];
  for (int s = 0; s < kernel.scalars; ++s)
    scalars[s] = scalar_bits(call.operands[kernel.scalar[s]], kernel.scalar_type[s]);
  int64_t rows = 1, total = columns;
  for (size_t d = 0; d + 1 < plane.rank; ++d) rows *= plane.sizes[d];
  total *= rows;
  Launch launch{kernel, plane, base, scalars};
  if (total < 2 * kGrain) {
    if (total > 0) launch.run(0, rows, 0, columns);
  } else {
    int64_t wanted = std::min<int64_t>(num_threads(), total / kGrain);
    runtime::parallel(static_cast<int>(wanted), [&](int thread, int threads) {
      if (rows >= 4 * threads) {
        auto [first, last] = runtime::share(rows, thread, threads);
        if (first < last) launch.run(first, last, 0, columns);
      } else {
        auto [left, right] = runtime::share(columns, thread, threads, 256);
        if (left < right) launch.run(0, rows, left, right);
      }
    });
  }
  output = std::move(result);
  return true;
}

}  // namespace ingot::eager
