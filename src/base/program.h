// The plain data that codegen makes and runtime runs: targets, kernels as bytes, and programs as steps over buffers.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/cuda_launch.h"
#include "base/dim.h"
#include "base/dtype.h"

namespace ingot {

enum class Isa : uint8_t { none, avx2, avx512 };  // none: kernels are interpreted by the scalar executor

/// Everything about the machine on which generated code depends.
struct Target {
  Isa isa = Isa::none;
  bool bf16_dot = false;  // products of bf16 are to use vdpbf16ps
  int cuda_arch = 0;      // 0: the processor; else CUDA C++ for this compute capability (80, 90, 100) is made
  std::string str() const;
  friend bool operator==(const Target&, const Target&) = default;
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
                  // element is one byte), then scratch_bytes. Form columns: for each reduction, [16][columns] partials.
  int64_t row_index, column_index;  // of the first row and column, for Op::index 0 and 1
  const int64_t* outer_index;       // for Op::index 2, 3, ...
  const void* context;              // for interpreted kernels

  // Form rows with reductions and no known number of columns: one row may be done in pieces of 2^i blocks of columns,
  // the last one shorter, a phase at a time. `parts` holds 16 partial lanes of each reduction, in their order (argmax
  // and argmin: 16 values, then 16 i64 indices). Reductions of phases before first_phase are taken from there. The call
  // ends with last_phase, leaving the lanes of its reductions there; only one that runs to the end stores once a row.
  static constexpr int64_t kToTheEnd = INT32_MAX;
  char* parts = nullptr;
  int64_t first_phase = 0, last_phase = kToTheEnd;
  // Form columns: row r goes to partial lane r % lanes, and there are as many. 1: sixteen narrow rows side by side may
  // be given as one row of sixteen times the columns, where the kernel knows no positions.
  int64_t lanes = 16;
};

/// What a tile kernel is called with: C[rows x 16*vectors] (+)= A x B over k. Strides in bytes.
struct TileFrame {
  const char* a;  // row i at a + i * a_stride, k contiguous
  const char* b;  // packed panel
  char* c;        // f32 or f64; row i at c + i * c_stride
  int64_t k;      // 1 .. 512
  int64_t a_stride, c_stride;
  int64_t accumulate;  // 0: C is overwritten; 1: the sum of this block is added to it
  int64_t columns;     // only the first `columns` of C are read and stored: 1 .. 16*vectors
  const void* context;
  int64_t b_stride = 0;  // of a turned tile: from column to column of B
  // Fetched meanwhile: every second step of k a line for whatever comes next, and once the rows of what will be
  // written. Any addresses.
  const char* ahead = nullptr;
  int64_t ahead_step = 0;
  const char* results = nullptr;
  int64_t results_stride = 0;
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
};
using KernelPtr = std::shared_ptr<const KernelSource>;

/// Where a buffer of a program lives.
enum class Place : uint8_t { input, output, arena };
struct ProgramBuffer {
  Place place = Place::arena;
  uint32_t number = 0;                     // of the input or output
  Dim bytes;                               // arena only
  uint32_t first_step = 0, last_step = 0;  // arena only: lifetime, both ends included
};

/// An operand of a step: a buffer, where in it the view starts, and its stride in bytes for each dim of the step's
/// space.
struct Argument {
  uint32_t buffer = 0;
  Dim offset;              // bytes
  Dims strides;            // bytes; one a dim of the step's space, outermost first (the last two are rows and columns)
  Dim index_stride;        // bytes; for loads with an index operand
  bool read_only = false;  // the step only reads it: neighbouring steps that share it need no barrier between them
};

/// Where a step's run-time scalar comes from: a scalar of the call, or a size (an expression), as bits of the register
/// type.
struct ScalarSource {
  enum class Kind : uint8_t { call, size } kind = Kind::call;
  uint32_t number = 0;  // of the call's scalar
  Dim size;
  DType type = DType::f32;  // f32, f64, i32, i64 or bool: what the kernel expects
};

/// What a reduction does; see codegen/kernel_ir.h for each one's identity and ties.
enum class Combiner : uint8_t { sum, prod, max, min, any, all, argmax, argmin };

/// A loop kernel over a space of dims (outermost first; at least rows and columns).
struct LoopStep {
  KernelPtr kernel;
  Dims space;
  std::vector<Argument> arguments;
  std::vector<ScalarSource> scalars;
  std::vector<int64_t> local_bytes;  // bytes an element of each local row buffer
  bool copies = false;               // all it does is to store argument 0 as it is
  bool rows_whole = false;           // a row is not split over threads but as `pieces` says (it reduces or has locals)
  /// How a long row may be done in pieces (see KernelFrame::parts): what it reduces, in order. None: it may not.
  struct Pieces {
    struct Reduction {
      uint32_t phase;
      Combiner combiner;
      DType type;  // of the value: f32, f64, i32, i64 or bool
    };
    std::vector<Reduction> reductions;
    int phases = 0;
    bool stores_rows = false;  // there is something to store once a row
  } pieces;
  /// Pack kernels, one an argument, or empty: an argument with one is dense along the rows, and is turned tile by
  /// tile into panels of turn_columns, from which the kernel reads it, dense along the columns.
  std::vector<KernelPtr> turns;
  int64_t turn_columns = 0;
  /// The same kernel, past the caches, for results too large for them: or null. Its dense results begin at multiples of
  /// 64 bytes.
  KernelPtr streaming;
};

/// Reduction along rows (Form::columns): space is [outer..., reduced, columns]; results go, one a column and outer
/// index, to arena buffers `results` (dense), which an ordinary LoopStep (the epilogue) then reads.
struct ColumnStep {
  KernelPtr kernel;
  Dims space;
  std::vector<Argument> arguments;
  std::vector<ScalarSource> scalars;
  struct Result {
    Combiner combiner;
    DType type;    // f32, f64, i32, i64 or bool (any, all); argmax and argmin: of the value, the result is i64
    Argument out;  // strides over [outer..., columns]
  };
  std::vector<Result> results;
  bool positions = false;  // the kernel asks for its row or column
};

/// C[batch..., m, n] = A[batch..., m, k] x B[batch..., k, n]. Strides a batch dim and the two matrix dims. The tile
/// kernels for every edge are in `tiles` (rows-major: tiles[(rows-1) * max_vectors + vectors-1]), the pack kernels
/// likewise by vectors.
struct MatmulStep {
  DType dtype = DType::f32;  // of A and B
  DType accumulate = DType::f32;
  Dims batch;
  Dim m, n, k;
  Argument a, b, c;  // c: raw f32 or f64 results
  int max_rows = 1, max_vectors = 1;
  std::vector<KernelPtr> tiles, packs;  // packs: [vectors-1], b's own orientation
  DType a_dtype = DType::f32;           // of A as tiles read it
  KernelPtr pack_a;  // copies (buffer 0 to 1, dense) an A that tiles do not read as it lies, else null
  /// If given, tiles of f32 for many rows of bf16, and what makes their panels: of packed B (buffer 0, pairs as i32)
  /// two rows of f32 (1, 2), or of B's rows as they lie (0) f32 (1).
  KernelPtr widen, widen_rows;
  std::vector<KernelPtr> wide_tiles;
  /// If given, for a single row of A: sums (buffer 0, f32 or f64, dense) + a (scalars) x rows of B as they lie (2, ...)
  /// to sums (1); one row of B, and kRowsOfB.
  KernelPtr add_row, add_rows;
  KernelPtr turned;  // likewise, a tile for a B whose k is contiguous (see TileSpec)
  static constexpr int64_t kRowsOfB = 8;
  bool b_is_weight = false;  // B comes unchanged from outside: its panels are kept between calls
  /// Run over each finished piece of C (rows x columns), while it is in cache: [0] over any piece, [v] over those of
  /// exactly 16 * v columns. Buffers: 0 is the raw C tile, the others are `epilogue_arguments` over [batch..., m, n].
  /// Empty: C is the result.
  std::vector<KernelPtr> epilogues;
  std::vector<Argument> epilogue_arguments;
  std::vector<ScalarSource> epilogue_scalars;
};

/// A step that the runtime implements as a C++ function over generated kernels or in plain C++ (a library step), by
/// name.
struct LibraryStep {
  std::string name;
  std::vector<Argument> arguments;
  std::vector<Dims> shapes;  // of each argument
  std::vector<DType> dtypes;
  std::vector<Dim> sizes;  // structural and size parameters
  std::vector<ScalarSource> scalars;
  std::vector<KernelPtr> kernels;
};

struct Step {
  enum class Kind : uint8_t { loop, column, matmul, library } kind = Kind::loop;
  std::string name;  // what it computes, for the profiler and explain
  LoopStep loop;
  ColumnStep column;
  MatmulStep matmul;
  LibraryStep library;
  Dim operations = 0, bytes = 0;  // for the roof model
};

/// Calls visit(KernelPtr) for every kernel of the step.
template <class F>
void for_each_kernel(const Step& step, F visit) {
  auto one = [&](const KernelPtr& kernel) {
    if (kernel) visit(kernel);
  };
  auto all = [&](const std::vector<KernelPtr>& kernels) {
    for (const KernelPtr& kernel : kernels) one(kernel);
  };
  one(step.loop.kernel);
  all(step.loop.turns);
  one(step.loop.streaming);
  one(step.column.kernel);
  all(step.matmul.tiles);
  all(step.matmul.packs);
  one(step.matmul.pack_a);
  one(step.matmul.widen);
  one(step.matmul.widen_rows);
  one(step.matmul.add_row);
  one(step.matmul.add_rows);
  one(step.matmul.turned);
  all(step.matmul.wide_tiles);
  all(step.matmul.epilogues);
  all(step.library.kernels);
}

/// Calls visit(argument, read_only) for everything in memory that a step touches.
template <class F>
void for_each_argument(const Step& step, F visit) {
  auto all = [&](const std::vector<Argument>& arguments, bool only_read) {
    for (const Argument& a : arguments) visit(a, only_read || a.read_only);
  };
  switch (step.kind) {
    case Step::Kind::loop:
      all(step.loop.arguments, false);
      break;
    case Step::Kind::column:
      all(step.column.arguments, true);
      for (const auto& result : step.column.results) visit(result.out, false);
      break;
    case Step::Kind::matmul:
      visit(step.matmul.a, true);
      visit(step.matmul.b, true);
      if (step.matmul.epilogues.empty()) visit(step.matmul.c, false);
      all(step.matmul.epilogue_arguments, false);
      break;
    case Step::Kind::library:
      all(step.library.arguments, false);
      break;
  }
}

/// A lowered graph: steps over buffers, sizes still symbolic. Immutable once made.
struct Program {
  Target target;
  DimTable dims;
  std::vector<ProgramBuffer> buffers;
  std::vector<Step> steps;
  uint32_t inputs = 0, outputs = 0;
  std::vector<Category> scalars;  // of the call's scalars: floating ones are given as bits of f64, others of i64
  std::string device_source;      // CUDA target: the one translation unit of all its kernels
};

}  // namespace ingot
