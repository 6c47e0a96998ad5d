// Kernel IR: what one kernel computes, free of lanes, cores, blocks, threads and instruction sets.
//
// A kernel works on a plane of rows x columns (outer planes are iterated by the runtime). Its expressions are one flat
// DAG of scalar nodes, evaluated for each (row, column); a phase is one pass over the columns of a row, and its
// reductions are visible to later phases of that row. A pointwise kernel is one phase without reductions; softmax is
// three phases.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/error.h"
#include "base/program.h"

namespace ingot::codegen {

/// Type of a value in a register. f16 and bf16 live as f32, i16, i8 and u8 as i32 (wrapped to their range), bool as
/// mask.
enum class Type : uint8_t { f32, f64, i32, i64, mask };
constexpr bool is_float(Type t) { return t == Type::f32 || t == Type::f64; }
Type register_type(DType d);
/// The dtype that holds a register of this type in memory as it is.
DType memory_type(Type t);

enum class Op : uint8_t {
  // Leaves.
  // imm: the bits of the value (f32 and i32 in the low half, the rest zero; mask: 0 or 1)
  constant,
  // imm: number of the run-time scalar; 8 bytes hold it in this node's type (mask: bit 0)
  scalar,
  // imm: buffer; a: index expression (i64) or kNone. Address: base + row, column and index parts
  load,
  // imm: local row buffer, at this column
  local,
  // imm: 0 column, 1 row, 2.. outer dims from the inside out; i64
  index,
  // imm: reduction of an earlier phase (or of this one, in row_stores)
  reduced,

  // Arithmetic on f32, f64 (one rounding), i32, i64 (wrapping). Integer division truncates; by zero it gives 0, and
  // INT_MIN / -1 = INT_MIN. In float min and max NaN wins and -0 < +0.
  add,
  sub,
  mul,
  div,
  min,
  max,

  // f32 and f64 only. fma: a * b + c. round, imm: 0 nearest even, 1 down, 2 up, 3 toward zero.
  fma,
  sqrt,
  round,
  // a * 2^b, b a finite float with an integral value (any magnitude); one rounding, denormals right; a NaN gives NaN.
  // imm 1: 2^b is a normal number, or nobody asks what this gives (a NaN may give anything); imm 2: a is of [1/2, 2],
  // and b of up to 250 (f64: 2040) either way, or a is a NaN
  scale,
  // f32 rounded to the values of a 16-bit float (nearest even); imm: DType
  round_to,

  // Bits: i32, i64, and mask (logical).
  bit_and,
  bit_or,
  bit_xor,
  // i32, i64: by b of the same type, 0 <= b < width; shr is logical
  shl,
  shr,
  sar,
  // i32 wrapped to the range of a narrow integer; imm: DType (i16, i8, u8)
  wrap,

  // Comparison of f32, f64, i32, i64 -> mask. Ordered (false on NaN) but for ne.
  eq,
  ne,
  lt,
  le,

  // a: mask ? b : c; b and c not masks (the builder writes those as logic). select(lt(a, b), a, b) is minps a, b and
  // select(lt(b, a), a, b) maxps a, b: one instruction.
  select,
  // To this node's other type. float -> integer truncates and saturates, NaN gives 0; i64 -> i32 wraps; integer or f64
  // -> narrower float rounds to nearest even; mask -> 0 or 1 (nothing converts to a mask: ne with zero).
  convert,
  // f32 <-> i32, f64 <-> i64
  bitcast,
  // a: mask ? c : b; the nodes of region `imm` (c's own) run only if some lane's mask is set. Regions are numbered from
  // 1 in order, are not nested, hold no load with an index, and stand together just before their rare node; no other
  // node uses their values.
  rare,
};
inline constexpr int kOpCount = static_cast<int>(Op::rare) + 1;
/// True for nodes that give a value without computing it.
constexpr bool is_leaf(Op op) { return op <= Op::reduced; }
const char* name_of(Op op);
const char* name_of(Type type);
/// Bytes of a value of this type in a local row buffer or a partial accumulator; a mask is one byte.
constexpr int64_t size_of(Type t) { return t == Type::mask ? 1 : t == Type::f32 || t == Type::i32 ? 4 : 8; }

using Value = uint32_t;  // number of a node
inline constexpr Value kNone = ~0u;

struct Node {
  Op op;
  Type type;
  uint16_t region = 0;  // 0: always evaluated; else the rare region it belongs to
  Value a = kNone, b = kNone, c = kNone;
  uint64_t imm = 0;
  friend bool operator==(const Node&, const Node&) = default;
};

/// How a buffer's address moves along the columns. The strides themselves are given at run time (KernelFrame).
enum class Access : uint8_t { dense, uniform /* stride 0 */, strided };
const char* name_of(Access access);
inline constexpr int8_t kMostKnownStride = 8;

struct Buffer {
  DType dtype;
  Access access = Access::dense;
  bool written = false;
  bool same_rows = false;  // the stride from row to row is 0: an emitter may read a row of it once
  /// Of a strided one: elements from column to column where every call has the same, 2 .. kMostKnownStride or, of one
  /// that is read backwards, -1; else 0.
  int8_t stride = 0;
  friend bool operator==(const Buffer&, const Buffer&) = default;
};
/// Whether elements that are a known number apart are read and written by whole vectors, not one by one.
constexpr bool picks_strided(Isa isa, const Buffer& b) {
  return b.stride < 0 || (b.stride && isa == Isa::avx512 && ingot::size_of(b.dtype) >= 4);
}

/// A value of the buffer's register type: f32 is rounded to a 16-bit float (nearest even), i32 cut to a narrow integer,
/// a mask stored as 0 or 1. A loaded bool is true where its byte is not 0.
struct Store {
  uint32_t buffer = 0;  // or local, see Phase
  Value value = kNone;
  friend bool operator==(const Store&, const Store&) = default;
};

/// argmax and argmin give the index (i64, as Op::index gives it) of the first extreme value (-0 = +0); the first
/// NaN wins. Nothing to combine: sum +0, prod 1, max the lowest value (-inf), min the highest, any false, all true,
/// argmax INT64_MAX. sum and prod on f32, f64, i32, i64 (wrapping); any and all on masks.
using ingot::Combiner;
/// The op that joins two partial accumulators; not for argmax and argmin.
Op combining_op(Combiner combiner);

struct Reduction {
  Combiner combiner;
  Value value = kNone;
  friend bool operator==(const Reduction&, const Reduction&) = default;
};

struct Phase {
  std::vector<Store> stores;         // at each column
  std::vector<Store> local_stores;   // at each column, to a local row buffer
  std::vector<uint32_t> reductions;  // numbers of Kernel::reductions that this phase computes
  // Once a row, after the phase; values do not depend on the column, buffers at column 0.
  std::vector<Store> row_stores;
  friend bool operator==(const Phase&, const Phase&) = default;
};

/// rows: reductions run along the columns, in the canonical order. columns: they run along the rows, one result a
/// column; the kernel then has one phase and no stores, and an epilogue kernel does what follows.
///
/// On a processor, form columns handles at most 256 rows a call and writes a partial accumulator of 16 lanes a column
/// (see KernelFrame::scratch; row r of the call goes to lane r % 16, or as KernelFrame::lanes has it; lanes without a
/// row hold the identity, -0 for sum); the runtime combines blocks and lanes. argmax and argmin write values and
/// then row indices (i64, counted from row_index; INT64_MAX in lanes without a row). On a GPU the kernel does all of
/// it.
enum class Form : uint8_t { rows, columns };

struct Kernel {
  Form form = Form::rows;
  std::vector<Node> nodes;  // in order of definition: operands come first
  std::vector<Buffer> buffers;
  std::vector<Type> locals;  // local row buffers, one element a column
  std::vector<Reduction> reductions;
  std::vector<Phase> phases;
  uint32_t scalars = 0;
  // > 0: the number of columns is this constant, and few: an emitter needs no loop. (In form columns a processor may be
  // called with other numbers: sixteen rows side by side, see KernelFrame::lanes, or some of the columns.)
  int64_t known_columns = 0;
  bool few_columns = false;  // form columns: they are few beside their rows, though how many is not known here
  // Whole vectors of 4- and 8-byte elements are stored past the caches where the target can do that: dense results
  // begin at multiples of 64 bytes in every row, and whoever calls lets a store fence follow.
  bool streams = false;
  friend bool operator==(const Kernel&, const Kernel&) = default;
};

/// C[mr x nr] of a contraction: for kk in order, C[i][j] = fma(A[i][kk], B[kk][j], C[i][j]) from zero over one block of
/// k (at most 256), then added to what C held unless this is the first block. B is packed (see PackSpec); A is read as
/// it lies. f64 accumulates in f64, the others in f32. Both in bf16: by vdpbf16ps, two of k at a time.
struct TileSpec {
  DType a = DType::f32, b = a;  // f32, f64 or bf16; or beside an f32 A a B that is widened: bf16, f16 or i8
  int rows = 1;                 // 1 .. max_tile_rows(target)
  int vectors = 1;              // columns in units of 16; 1 .. max_tile_vectors(target)
  // B is read as it lies: k contiguous, columns b_stride apart. One row, all of 16 columns; see may_be_transposed().
  bool transposed = false;
  RowsOfA rows_of_a = RowsOfA::along;  // with bf16: this, listed, or across in pairs of k: [(k + 1) / 2][rows][2]
  /// Panels of B, TileFrame::b_stride apart, whose columns all exist and lie side by side in C: few rows alone are too
  /// few sums to keep the multipliers busy. Of a tile that takes all of k.
  int panels = 1;
  /// Windows: rows are `window_stride` pixels of a line apart and `taps` long, so their line has window_pixels(). For
  /// each run, which is a line, 2 * taps entries are listed: the bytes from pixel to pixel; the address of pixel taps -
  /// 1; those of the first and of the last taps - 1 pixels, which may lie elsewhere (beyond an image).
  int taps = 0, window_stride = 1;
  int window_pixels() const { return (rows - 1) * window_stride + taps; }
  /// If any, C is not written: this runs over the sums (its buffer 0, which lies nowhere) while they are in registers,
  /// called with TileFrame::finish. It has known columns, which end in the last vector, and k is one block. See
  /// may_finish().
  std::shared_ptr<const Kernel> finish = nullptr;
  friend bool operator==(const TileSpec&, const TileSpec&) = default;
};
/// AVX2 has no masks for the ends of narrow elements.
inline bool may_be_transposed(const Target& target, DType a, DType b) {
  return a == DType::f32 && (target.isa == Isa::avx512 || (target.isa == Isa::avx2 && b == DType::f32));
}
/// With as few rows as these B is what is waited for.
inline constexpr int kFewRows = 2;
/// A tile of few rows takes all of k at once: its blocks follow one another, each is summed from zero and added to what
/// C holds. That spares a call for each, which few rows do not outweigh. (Pairs of AVX-512: not tried.)
inline bool takes_whole_k(const TileSpec& t, const Target& target) {
  return t.rows <= kFewRows && t.rows_of_a == RowsOfA::along && !t.transposed && !t.finish &&
         (t.b != DType::bf16 || target.isa == Isa::avx2);
}

/// Tiles of few registers are short, and called by the thousand: they go on with the next ones (TileFrame::tiles).
inline bool goes_on(const TileSpec& t, const Target& target) {
  return target.isa == Isa::avx2 && !t.transposed && !takes_whole_k(t, target) && t.rows_of_a != RowsOfA::with_b &&
         t.rows_of_a != RowsOfA::channels_with_b;
}

/// Packs a k x n piece of B into a panel: for each k, width = 16 * vectors consecutive columns, missing ones zero. bf16
/// is packed in pairs of k on every target: [(k + 1) / 2][width][2], the second of an odd last pair zero.
struct PackSpec {
  DType dtype = DType::f32;  // f32, f64, bf16, f16 or i8
  int vectors = 1;
  bool transposed = false;  // false: columns are contiguous in memory; true: k is
  bool padded = true;       // false (transposed, no bf16): missing columns may stay unwritten
  friend bool operator==(const PackSpec&, const PackSpec&) = default;
};

/// The canonical text of a kernel: its identity in the kernel cache, and what `ingot explain` shows.
std::string print(const Kernel& kernel);
std::string print(const TileSpec& tile);
std::string print(const PackSpec& pack);
/// The kernel of a text as print() writes it; comments from # to the end of a line, indentation, and what stands in
/// brackets beside a constant's bits, mean nothing. Throws Error with the line and what was expected; verifies.
Kernel parse_kernel(std::string_view text);
/// Throws InternalError with the text if an invariant of the kernel does not hold.
void verify(const Kernel& kernel);

}  // namespace ingot::codegen
