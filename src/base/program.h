// The plain data that codegen makes and runtime runs: targets, kernels as bytes, and programs as steps over buffers.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/cuda_launch.h"
#include "base/dim.h"
#include "base/dtype.h"
#include "base/fields.h"
#include "base/function_ref.h"

namespace ingot {

enum class Isa : uint8_t { none, avx2, avx512 };  // none: kernels are interpreted by the scalar executor

/// Everything about the machine on which generated code depends.
struct Target {
  Isa isa = Isa::none;
  bool bf16_dot = false;  // products of bf16 are to use vdpbf16ps
  int cuda_arch = 0;      // 0: the processor; else CUDA C++ for this compute capability (80, 90, 100) is made
  std::string str() const;
  friend bool operator==(const Target&, const Target&) = default;
  INGOT_ALL_FIELDS(Target, isa, bf16_dot, cuda_arch)
};

/// What a loop kernel is called with. Strides are in bytes, one a buffer.
struct KernelFrame {
  char* const* buffers;  // each at (first row, first column) of this call
  const int64_t* row_strides;
  const int64_t* column_strides;  // read for strided buffers only
  const int64_t* index_strides;   // for loads with an index operand
  const uint64_t* scalars;
  int64_t rows, columns;
  char* scratch;  // 64-byte aligned. Form rows: Kernel::locals in order, each columns rounded up to 16 elements (a mask
                  // element is one byte), then scratch_bytes. Form columns: for each reduction, and for the indices of
                  // argmax and argmin, [lanes][columns] elements, rounded up to 16.
  int64_t row_index, column_index;  // of the first row and column, for Op::index 0 and 1
  const int64_t* outer_index;       // for Op::index 2, 3, ...
  const void* context;              // for interpreted kernels

  // Form rows with reductions and no known number of columns: the reductions of one row may be split into pieces of
  // 2^i blocks of columns, the last one shorter, a phase at a time. `accumulators` holds a partial accumulator of 16
  // lanes of each reduction, in their order (argmax and argmin: 16 values, then 16 i64 indices). Reductions of phases
  // before first_phase are taken from there. The call ends with last_phase, leaving the lanes of its reductions there;
  // only one that runs to the end stores once a row.
  static constexpr int64_t kToTheEnd = INT32_MAX;
  char* accumulators = nullptr;
  int64_t first_phase = 0, last_phase = kToTheEnd;
  // Form columns: row r goes to lane r % lanes, and there are as many. 1: sixteen narrow rows side by side may
  // be given as one row of sixteen times the columns, where the kernel knows no positions. For a kernel that sums in
  // registers (ColumnStep::in_registers) 1 says that the sixteen lanes are joined: lane 0 is left with the results.
  int64_t lanes = 16;
};

/// How a tile finds the rows of A.
enum class RowsOfA : uint8_t {
  along,     // k is contiguous, and rows are evenly apart
  across,    // rows are contiguous, and k is evenly apart
  listed,    // k is contiguous in runs, for each of which the address of each row is listed
  channels,  // listed, and a run has an element of A for each column: sums of elementwise products
  with_b,    // rows are contiguous, and for each k the addresses of them and of a row of B, not packed, are listed
  channels_with_b,  // for each k the address of a row of B, not packed, and of each row: sums of elementwise products
  windows  // channels, of rows whose runs overlap: windows along a line, which is listed once (see TileSpec::taps)
};

/// A run of k in the rows of a listed A: where it begins behind the address of each row, in bytes.
struct TileRun {
  int64_t offset, steps;
};

/// Lines of 64 bytes that a tile of more than a few rows fetches for whatever comes next in so many steps of k, in each
/// of which it reads so many bytes of B: half as many as it reads, so that two tiles fetch a block as large as theirs.
constexpr int64_t lines_fetched(int64_t steps, int64_t bytes) { return steps * (bytes < 64 ? 1 : bytes / 64) / 2; }

/// What a tile kernel is called with: C[rows x 16*vectors] (+)= A x B over k. Strides in bytes.
struct TileFrame {
  // Row i at a + i * a_stride, k contiguous; of an A across: k (of bf16, a pair of k) at a + k * a_stride, rows
  // contiguous; of a listed one: addresses, that of row i for run r at a + r * a_stride + 8 i; listed with B: two
  // addresses a step of k; channels with B: a_stride from step to step.
  const char* a;
  const char* b;  // packed panel
  char* c;        // f32 or f64; row i at c + i * c_stride
  int64_t k;  // 1 .. 256; listed with B: from 0 on; of a tile that takes all of k (ProductKernels::whole_k_rows) any
  int64_t a_stride, c_stride;
  int64_t accumulate;  // 0: C is overwritten; 1: the sum of this block is added to it
  int64_t columns;     // only the first `columns` of C are read and stored: 1 .. 16*vectors
  const void* context;
  // In B: of a transposed tile from column to column, of panels side by side from one to the next.
  int64_t b_stride = 0;
  // Fetched meanwhile: lines_fetched() for whatever comes next, and once the rows of what will be written and of two
  // operands that are so far from it. Any addresses.
  const char* ahead = nullptr;
  int64_t ahead_step = 0;
  const char* results = nullptr;
  int64_t results_stride = 0;
  int64_t beside_results[2] = {0, 0};
  // Of a listed A: its runs, at least one, of k steps in all, and what is added to the offset of each. (k and the
  // results are not read.)
  const TileRun* runs = nullptr;
  int64_t run_count = 0, a_offset = 0;
  // Of a run whose first address is null, in place of its rows: what they would add, [run][16*vectors] of C's type.
  const char* zeros = nullptr;
  int64_t b_offset = 0;  // listed with B: bytes added to each address of a row of B, as a_offset is to those of A
  const KernelFrame* finish = nullptr;  // of a tile that finishes its sums, instead of c, c_stride and accumulate
  // Of tiles that go on (ProductKernels::goes_on): so many of them, one below the other, and how far apart their A (or
  // its list), C, results and what they fetch are. (What a finish is called with moves by its own strides.)
  int64_t tiles = 1;
  int64_t a_tile = 0, c_tile = 0, results_tile = 0, ahead_tile = 0;
};

/// What a pack kernel is called with: element (kk, j) of B is at b + kk * k_stride + j * n_stride.
struct PackFrame {
  const char* b;
  char* panel;         // [k][16 * vectors]; bf16: [(k + 1) / 2][16 * vectors][2]
  int64_t k, columns;  // columns: 1 .. 16*vectors that exist
  int64_t k_stride, n_stride;
  const void* context;
};

/// Called with one of the frames above.
using KernelEntry = void (*)(const void* frame);

/// A generated kernel, not yet loaded: position-independent code with its constants, or an interpreter and what it
/// runs.
struct KernelSource {
  std::string key;            // canonical kernel-IR text and target: equal keys are equal kernels
  std::string name;           // for perf, gdb and explain
  std::string text;           // kernel IR, for explain
  std::vector<uint8_t> code;  // empty: interpreted
  int64_t code_bytes = 0;     // instructions; constants follow
  int64_t scratch_bytes = 0;  // beyond the locals, a call (form rows)
  KernelEntry interpret = nullptr;
  std::shared_ptr<const void> context;
  std::shared_ptr<const CudaText> cuda;  // of a CUDA target; the fields about code are empty then
  INGOT_SOME_FIELDS(KernelSource, key)
};
using KernelPtr = std::shared_ptr<const KernelSource>;

/// Where a buffer of a program lives.
enum class Place : uint8_t {
  input,
  output,
  arena,
  kept  // between runs: what steps make of constant inputs and of one another, at all sizes
};
struct ProgramBuffer {
  Place place = Place::arena;
  uint32_t number = 0;                     // of the input or output
  Dim bytes;                               // arena and kept only; of the latter a constant
  uint32_t first_step = 0, last_step = 0;  // arena only: lifetime, both ends included
  INGOT_ALL_FIELDS(ProgramBuffer, place, number, bytes, first_step, last_step)
};

/// An operand of a step: a buffer, where in it the view starts, and its stride in bytes for each dim of the step's
/// space.
struct Argument {
  uint32_t buffer = 0;
  Dim offset;              // bytes
  Dims strides;            // bytes; one a dim of the step's space, outermost first (the last two are rows and columns)
  Dim index_stride;        // bytes; for loads with an index operand
  bool read_only = false;  // the step only reads it: neighbouring steps that share it need no barrier between them
  INGOT_ALL_FIELDS(Argument, buffer, offset, strides, index_stride, read_only)
};

/// Where a step's run-time scalar comes from: a scalar of the call, or a size (an expression), as bits of the register
/// type.
struct ScalarSource {
  enum class Kind : uint8_t { call, size } kind = Kind::call;
  uint32_t number = 0;  // of the call's scalar
  Dim size;
  DType type = DType::f32;  // f32, f64, i32, i64 or bool: what the kernel expects
  INGOT_ALL_FIELDS(ScalarSource, kind, number, size, type)
};

/// What a reduction does; see codegen/kernel_ir.h for each one's identity and ties.
enum class Combiner : uint8_t { sum, prod, max, min, any, all, argmax, argmin };
const char* name_of(Combiner combiner);

// The kinds of step. Each names its fields once: first what is computed, then how the processor does it.

/// A loop kernel over a space of dims (outermost first; at least rows and columns).
struct LoopStep {
  static constexpr const char* kName = "loop";
  Dims space;
  std::vector<Argument> arguments;
  std::vector<ScalarSource> scalars;
  bool copies = false;             // all it does is to store argument 0 as it is
  bool rows_whole = false;         // a row is not split over threads but as `split` says (it reduces or has locals)
  std::vector<int64_t> positions;  // dims of the space in which the kernel asks where it is
  /// How the reductions of a long row may be split (see KernelFrame::accumulators): in order. None: they may not.
  struct SplitReduction {
    struct Reduction {
      uint32_t phase = 0;
      Combiner combiner = Combiner::sum;
      DType type = DType::f32;  // of the value: f32, f64, i32, i64 or bool
      INGOT_ALL_FIELDS(Reduction, phase, combiner, type)
    };
    std::vector<Reduction> reductions;
    int phases = 0;
    bool stores_rows = false;  // there is something to store once a row
    INGOT_ALL_FIELDS(SplitReduction, reductions, phases, stores_rows)
  } split;

  KernelPtr kernel;
  std::vector<int64_t> local_bytes;  // bytes an element of each local row buffer
  /// Arguments that are dense along the rows, transposed tile by tile into panels of `columns`, from which the kernel
  /// reads them dense along the columns.
  struct Transposing {
    std::vector<KernelPtr> kernels;  // pack kernels, one an argument, null for those that are not transposed; or empty
    int64_t columns = 0;
    /// The step's kernel, past the caches, for results too large for them: or null. Its dense results begin at
    /// multiples of 64 bytes.
    KernelPtr streaming;
    INGOT_ALL_FIELDS(Transposing, kernels, columns, streaming)
  } transposing;
  INGOT_ALL_FIELDS(LoopStep, space, arguments, scalars, copies, rows_whole, positions, split, kernel, local_bytes,
                   transposing)
};

/// Reduction along rows (Form::columns): space is [outer..., reduced, columns]; results go, one a column and outer
/// index, to arena buffers `results` (dense), which an ordinary LoopStep (the epilogue) then reads.
struct ColumnStep {
  static constexpr const char* kName = "column";
  Dims space;
  std::vector<Argument> arguments;
  std::vector<ScalarSource> scalars;
  struct Result {
    Combiner combiner = Combiner::sum;
    DType type = DType::f32;  // f32, f64, i32, i64 or bool (any, all); argmax, argmin: of the value, the result is i64
    Argument out;             // strides over [outer..., columns]
    INGOT_ALL_FIELDS(Result, combiner, type, out)
  };
  std::vector<Result> results;
  bool positions = false;     // the kernel asks for its row or column
  bool in_registers = false;  // the kernel keeps lanes in registers and can join them

  KernelPtr kernel;
  INGOT_ALL_FIELDS(ColumnStep, space, arguments, scalars, results, positions, in_registers, kernel)
};

/// Where the results of a product or convolution go: as they are to argument 0, or through kernels that run over each
/// finished piece while it is in cache.
struct Epilogue {
  std::vector<Argument> arguments;
  std::vector<ScalarSource> scalars;
  /// [0] over any piece, [v] over those of exactly 16 * v columns, null where the product has no such panel or [0] does
  /// for them; empty: results are stored as they are. Buffer 0 is the raw piece (f32 or f64), the others are the
  /// arguments.
  std::vector<KernelPtr> kernels;
  /// As ProductKernels::tiles, null where there is none: tiles that do all of it themselves, of one block of k. Behind
  /// them, where the last panel is not full, as many again: for the columns of that one.
  std::vector<KernelPtr> finishing;
  INGOT_ALL_FIELDS(Epilogue, arguments, scalars, kernels, finishing)
};

/// The kernels of all products of one form on one target, made once and shared. The tile kernels for every edge are in
/// `tiles` (rows-major: tiles[(rows-1) * max_vectors + vectors-1]), the pack kernels likewise by vectors.
struct ProductKernels {
  /// A tile that takes all of k for so many full panels side by side.
  struct SideBySide {
    int rows = 1, panels = 1;
    KernelPtr tile;
    INGOT_ALL_FIELDS(SideBySide, rows, panels, tile)
  };
  int max_rows = 1, max_vectors = 1;
  DType a = DType::f32;                 // A as tiles read it
  DType b = DType::f32;                 // B in memory and in panels: A's, or a narrower one, widened where it is read
  std::vector<KernelPtr> tiles, packs;  // packs: [vectors-1], in B's own orientation
  RowsOfA rows_of_a = RowsOfA::along;
  int whole_k_rows = 0;                  // tiles of so many rows and fewer take all of k at once, block by block
  std::vector<SideBySide> side_by_side;  // of such tiles, the most panels first
  bool goes_on = false;                  // one call computes as many of the other tiles as are told
  // Copies (buffer 0 to 1, dense) an A that tiles do not read as it lies, and one across whose lines meet in few sets
  // of the cache; else null.
  KernelPtr pack_a;
  /// Where B is widened: tiles of f32, and what makes their panels: of packed B (buffer 0) f32 (1), of pairs of bf16
  /// (as i32) two rows (1, 2), or of B's rows as they lie (0) f32 (1).
  KernelPtr widen, widen_rows;
  std::vector<KernelPtr> wide_tiles;
  /// Where one row reads rows of B: sums (buffer 0, f32 or f64, dense) + a (scalars) x rows of B as they lie (2, ...)
  /// to sums (1); one row of B, and kRowsOfB.
  KernelPtr add_row, add_rows;
  KernelPtr transposed;  // where one row reads columns of B: a tile for a B whose k is contiguous (see TileSpec)
  static constexpr int64_t kRowsOfB = 8;
  INGOT_ALL_FIELDS(ProductKernels, max_rows, max_vectors, a, b, tiles, packs, rows_of_a, whole_k_rows, side_by_side,
                   goes_on, pack_a, widen, widen_rows, wide_tiles, add_row, add_rows, transposed)
};
using ProductKernelsPtr = std::shared_ptr<const ProductKernels>;

/// How a product with a single row of A and many columns is done: B is used once.
enum class OneRow : uint8_t { tiles, rows_of_b, columns_of_b };
const char* name_of(OneRow one_row);

/// C[batch..., m, n] = A[batch..., m, k] x B[batch..., k, n]. Strides a batch dim and the two matrix dims.
///
/// A prologue is the loop that makes A, over [rows..., k]. It runs for a block of rows when their turn comes, in memory
/// of the thread that multiplies them; its only result, and A, is a dense arena buffer of no bytes.
struct MatmulStep {
  static constexpr const char* kName = "matmul";
  DType dtype = DType::f32;       // of A; B's may be narrower (ProductKernels::b)
  DType accumulate = DType::f32;  // of the raw C: f32 or f64
  Dims batch;
  Dim m, n, k;
  Argument a, b;
  bool b_is_weight = false;  // B comes unchanged from outside: its panels are kept between calls
  bool rounds_b = false;     // B, a weight, lies there in f32, and is rounded to bf16 as it is packed
  bool b_stays = false;      // B, no weight, is the same for all slices: its panels are kept from the first one on
  Epilogue epilogue;         // arguments over [batch..., m, n]
  std::optional<LoopStep> prologue;

  OneRow one_row = OneRow::tiles;
  ProductKernelsPtr kernels;
  static constexpr int64_t kManyColumns = 256;  // fewer: for one row tiles cost less than calls
  static constexpr int64_t kManyTiles = 4;      // of rows, for which widening a block of B pays
  INGOT_ALL_FIELDS(MatmulStep, dtype, accumulate, batch, m, n, k, a, b, b_is_weight, rounds_b, b_stays, epilogue,
                   prologue, one_row, kernels)
};

/// How a convolution is done: as a product of weights [Cout / groups, (kh, kw, c)] and patches [(kh, kw, c), pixels]
/// that are packed on the way; as one of pixels [pixels, (kh, kw, c)], read where channels lie innermost, and packed
/// weights [(kh, kw, c), Cout / groups]; or, where each channel is a group, as sums over the taps of pixels times
/// weights [(kh, kw), Cout]. The sums are the same.
enum class ConvolutionForm : uint8_t { patches, pixels, depthwise };
const char* name_of(ConvolutionForm form);

/// Convolution of NCHW images: in f32 or f64 (16-bit operands are converted before and the result after); or of bf16
/// with sums in f32, two channels at a time (form pixels).
struct Conv2dStep {
  static constexpr const char* kName = "conv2d";
  struct Pair {
    Dim h, w;
    INGOT_ALL_FIELDS(Pair, h, w)
  };
  DType dtype = DType::f32;
  Dims input_shape, weight_shape;           // [N, C, H, W], [Cout, C / groups, KH, KW]
  Argument input, weight;                   // any strides
  bool turned_h = false, turned_w = false;  // the weight is read from the end of its height, and of its width
  Pair stride, padding, dilation;
  int64_t groups = 1;
  bool weight_is_constant = false;  // it comes unchanged from outside, and is packed once
  bool rounds_weight = false;       // from f32, as it lies there, to bf16
  Epilogue epilogue;  // arguments over [N, Cout, OH * OW] (form patches), else [N, OH * OW, Cout]; stored as they are,
                      // the last dim is contiguous
  std::optional<LoopStep> prologue;  // of one tap a pixel: as of MatmulStep, over pixels and channels

  ConvolutionForm form = ConvolutionForm::patches;
  ProductKernelsPtr kernels;  // tiles
  /// Where images are large enough, 36 products of what pixels and 3x3 taps become (fast numerics, form pixels): tiles,
  /// and kernels over rows and channels of six buffers of pixels to six, three of taps to six, six of products to four.
  struct Winograd {
    ProductKernelsPtr products;
    KernelPtr pixels, taps, results;
    INGOT_ALL_FIELDS(Winograd, products, pixels, taps, results)
  };
  std::optional<Winograd> winograd;
  INGOT_ALL_FIELDS(Conv2dStep, dtype, input_shape, weight_shape, input, weight, turned_h, turned_w, stride, padding,
                   dilation, groups, weight_is_constant, rounds_weight, epilogue, prologue, form, kernels, winograd)
};

/// The gradient of a convolution's weight, [Cout, C / groups, KH, KW], row-major: a product of the gradient of its
/// result [Cout / groups, (n, oh, ow)] and patches [(n, oh, ow), (kh, kw, c)], both read where they lie. Of bf16 it is
/// f32, and two pixels are multiplied at a time; not where each channel is a group.
struct Conv2dWeightStep {
  static constexpr const char* kName = "conv2d_weight";
  DType dtype = DType::f32;
  Dims input_shape, weight_shape;  // as of Conv2dStep
  Argument input, gradient;        // any strides, over [N, C, H, W] and [N, Cout, OH, OW]
  Argument out;
  Conv2dStep::Pair stride, padding, dilation;
  int64_t groups = 1;

  /// In the arena: input and gradient with their channels innermost, where they do not lie so; and what the product
  /// gives, whose order is not that of the result where a kernel has several taps.
  std::optional<Argument> input_inside, gradient_inside;
  Argument raw;
  ProductKernelsPtr kernels;  // tiles
  INGOT_ALL_FIELDS(Conv2dWeightStep, dtype, input_shape, weight_shape, input, gradient, out, stride, padding, dilation,
                   groups, input_inside, gradient_inside, raw, kernels)
};

/// The probabilities softmax(q k^T * scale + mask), row by row, in f32 or f64 (16-bit operands are converted before and
/// the result after). Last dims of all operands but the mask are contiguous. key_heads divides heads: head h reads key
/// head h / (heads / key_heads).
struct AttentionProbabilities {
  DType dtype = DType::f32;
  Dim batch, heads, key_heads, queries, keys, depth;
  Argument query, key;                // over [batch, heads or key_heads, queries or keys, depth]
  std::optional<Argument> mask;       // over [batch, heads, queries, keys], expanded by strides of 0
  bool causal = false;                // row t sees keys 0 .. t
  std::optional<ScalarSource> scale;  // of type dtype; none: 1 / sqrt(depth), or what the kernels hold
  std::optional<ScalarSource> fill;   // of type dtype: the score of what the mask hides, where the kernels ask for it

  ProductKernelsPtr products;  // of q k^T: tiles, and packs of a B whose columns are dense
  /// A rows kernel over buffers 0 (raw scores, dense), 1 (probabilities, dense, the memory of 0: it stores a row after
  /// its last read), 2 (mask, if there is one; a bool that is false, or -inf, hides a key), with the scale and the fill
  /// as its scalars, as far as they are given; scalar 0 is 1 / sqrt(depth) where neither is.
  KernelPtr softmax;
  int64_t local_bytes = 0;  // an element of its local row buffers
  INGOT_ALL_FIELDS(AttentionProbabilities, dtype, batch, heads, key_heads, queries, keys, depth, query, key, mask,
                   causal, scale, fill, products, softmax, local_bytes)
};

/// Probabilities x values.
struct AttentionStep {
  static constexpr const char* kName = "attention";
  AttentionProbabilities probabilities;
  Dim value_depth;
  Argument out, value;  // over [batch, heads or key_heads, queries or keys, value_depth]; contiguous as the others

  ProductKernelsPtr products;  // packs of a B whose rows are dense; tiles are those of q k^T
  INGOT_ALL_FIELDS(AttentionStep, probabilities, value_depth, out, value, products)
};

/// Gradients of attention, from that of its result. With P the probabilities, G that gradient and S the gradient of
/// the scores before their scale:
///   for_value = P^T G,   S = P (G v^T - rows' sums of P (G v^T)) scale,   for_query = S k,   for_key = S^T q.
struct AttentionBackwardStep {
  static constexpr const char* kName = "attention_backward";
  AttentionProbabilities probabilities;
  Dim value_depth;
  Argument value, gradient;                               // gradient: of the result
  std::optional<Argument> for_query, for_key, for_value;  // results; none: not wanted

  ProductKernelsPtr across;  // tiles of an A that lies across, and packs of a B whose rows are dense
  /// A rows kernel over buffers 0 (probabilities), 1 (G v^T), 2 (S, the memory of 1), all dense, and 3 (the mask, if
  /// there is one), with scalar 0 the scale.
  KernelPtr slope;
  INGOT_ALL_FIELDS(AttentionBackwardStep, probabilities, value_depth, value, gradient, for_query, for_key, for_value,
                   across, slope)
};

/// An op that the runtime implements in C++ under the name of its row: results are row-major, operands as they lie.
struct HostStep {
  static constexpr const char* kName = "host";
  struct Tensor {
    std::string name;  // of an operand, as its row has it; results have none
    Argument place;
    Dims shape;
    DType dtype = DType::f32;
    INGOT_ALL_FIELDS(Tensor, name, place, shape, dtype)
  };
  struct Attribute {
    std::string name;
    Dim value;  // a number, a size, a boolean, or the number of a choice; an absent one 0
    INGOT_ALL_FIELDS(Attribute, name, value)
  };
  std::string op;
  std::vector<Tensor> results, operands;  // operands: those that are present
  std::vector<Attribute> attributes;
  std::string overwrites = {};      // the operand of which it reads an element only to write it, by name; or empty
  ProductKernelsPtr products = {};  // tiles of f64, of an op over matrices
  INGOT_ALL_FIELDS(HostStep, op, results, operands, attributes, overwrites, products)

  const Tensor* find(std::string_view operand) const;  // null if it is absent
  /// These throw InternalError for a name that is not there.
  const Tensor& operand(std::string_view name) const;
  Dim attribute(std::string_view name) const;
};

struct Step {
  std::string name;               // what it computes, for the profiler and explain
  Dim operations = 0, bytes = 0;  // for the roof model
  std::variant<LoopStep, ColumnStep, MatmulStep, Conv2dStep, Conv2dWeightStep, AttentionStep, AttentionBackwardStep,
               HostStep>
      work;
  INGOT_ALL_FIELDS(Step, name, operations, bytes, work)

  template <class Kind>
  bool is() const {
    return std::holds_alternative<Kind>(work);
  }
  template <class Kind>
  const Kind& as() const {
    return std::get<Kind>(work);
  }
  template <class Kind>
  Kind& as() {
    return std::get<Kind>(work);
  }
  const char* kind_name() const;
};

// What a step has, in order: one walk over the steps of all kinds, compiled once for all that look at it.

void for_each_kernel(const Step& step, FunctionRef<void(const KernelPtr&)> visit);
/// Everything in memory that it touches.
void for_each_argument(const Step& step, FunctionRef<void(const Argument&)> visit);
void for_each_argument(Step& step, FunctionRef<void(Argument&)> visit);
/// Its run-time scalars, in the order in which RunState::scalars has them.
void for_each_scalar(const Step& step, FunctionRef<void(const ScalarSource&)> visit);
void for_each_scalar(Step& step, FunctionRef<void(ScalarSource&)> visit);
void for_each_dim(const Step& step, FunctionRef<void(const Dim&)> visit);

/// True if the step writes buffer `to` and may do so in the memory of buffer `from`, of the same sizes: of each element
/// it reads nothing but what it overwrites. True also where it does not read `from` at all.
bool may_write_over(const Step& step, uint32_t to, uint32_t from);

/// A lowered graph: steps over buffers, sizes still symbolic. Immutable once made.
struct Program {
  Target target;
  DimTable dims;
  std::vector<ProgramBuffer> buffers;
  std::vector<Step> steps;
  /// Steps that run over one slice after another, of a batch or of a sequence; all others run once.
  struct Segment {
    struct Move {
      uint32_t buffer = 0;
      Dim bytes;  // from slice to slice
      INGOT_ALL_FIELDS(Move, buffer, bytes)
    };
    uint32_t first_step = 0, end_step = 0;
    Dim slices = 1;
    bool backwards = false;   // the last slice is the first
    std::vector<Move> moves;  // all other buffers are the same memory for all slices
    INGOT_ALL_FIELDS(Segment, first_step, end_step, slices, backwards, moves)

    bool holds(uint32_t step) const { return first_step <= step && step < end_step; }
    /// 0 where it stays.
    Dim moved(uint32_t buffer) const;
  };
  std::vector<Segment> segments;  // in order
  uint32_t inputs = 0, outputs = 0;
  std::vector<Category> scalars;  // of the call's scalars: floating ones are given as bits of f64, others of i64
  std::string device_source;      // CUDA target: the one translation unit of all its kernels
  INGOT_ALL_FIELDS(Program, target, dims, buffers, steps, segments, inputs, outputs, scalars, device_source)
};

/// The segment of a step, or null.
const Program::Segment* segment_of(const Program& program, uint32_t step);
/// How often a step runs in a call.
Dim slices_of(const Program& program, uint32_t step);

/// Kernels are the same by key. A step is compared within its table of sizes.
bool operator==(const Step& a, const Step& b);
bool operator==(const Program& a, const Program& b);
uint64_t hash_of(const Step& step);
uint64_t hash_of(const Program& program);
/// "(name=..., work=loop(space=[8, s0], arguments=[...], ...))": fields that are not as by default. Kernels by name and
/// a hash of their key.
std::string str(const Step& step, const DimTable& dims);
/// One line a size, guard, buffer and step.
std::string str(const Program& program);

}  // namespace ingot
