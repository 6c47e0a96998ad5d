// Tiles of a matrix product: C[rows x 16 * vectors] stays in registers over all of k. Loads of B, broadcasts of A and
// fma by rows, k unrolled by four: the shape that reaches the peak from unpacked A. Rows of A whose addresses are
// listed are those of a convolution (Dukhan, "The Indirect Convolution Algorithm", 2019).
#include <algorithm>
#include <bit>
#include <cstddef>
#include <iterator>
#include <optional>
#include <vector>

#include "base/canonical_order.h"
#include "codegen/x86/formats.h"
#include "codegen/x86/tile.h"
#include "codegen/x86/tile_sums.h"

namespace ingot::codegen::x86 {
namespace {

constexpr int kUnroll = 4;
constexpr int64_t kAheadOfRows = 8192;  // bytes times rows
// Of few rows: to ask for each line of B takes as long as to read it. Some are asked for, so that the processor, which
// fetches their neighbours, stays ahead where B lies in memory.
constexpr int64_t kAheadOfFewRows = 16384, kLinesEach = 4;
constexpr Gpr kA = Gpr::rsi, kA4 = Gpr::r9, kStride = Gpr::r10, kStride3 = Gpr::r11, kB = Gpr::rdx, kK = Gpr::rcx,
              kFrame = Gpr::rdi, kAhead = Gpr::r12, kUntil = Gpr::rax, kInterval = Gpr::rbx, kResults = Gpr::r8,
              kPanel = Gpr::r13, kPanel3 = Gpr::r14;
// Of a listed A: the addresses of the rows in this run, where the run stands in them, and the list.
constexpr Gpr kRows[] = {Gpr::rsi, Gpr::r9, Gpr::r10, Gpr::r11, Gpr::r12, Gpr::r13, Gpr::r14, Gpr::r15};
// Of windows: every fourth pixel from the first that lies evenly on, and those at the edges.
constexpr Gpr kMiddle[] = {Gpr::rsi, Gpr::r9, Gpr::r12, Gpr::r13}, kEdges[] = {Gpr::r8, Gpr::r14, Gpr::r15, Gpr::rcx};
constexpr Gpr kAt = Gpr::rax, kTable = Gpr::rbx, kRun = Gpr::rbp, kAheadOfList = Gpr::r8, kBAt = kB;

class Tile {
 public:
  Tile(const TileSpec& spec, const Target& target, VCode& code)
      : spec_(spec),
        code_(code),
        v_(code),
        pairs_(spec.b == DType::bf16),
        dot_(spec.a == DType::bf16),
        type_(spec.a == DType::f64 ? Type::f64 : Type::f32),
        panel_parts_(v_.parts_of(type_) * spec.vectors),
        parts_(panel_parts_ * spec.panels),
        part_bytes_(pairs_ || spec.a == spec.b ? code.width : code.width / 4 * ingot::size_of(spec.b)),
        goes_on_(goes_on(spec, target)),
        whole_k_(takes_whole_k(spec, target)),
        sums_(spec, v_) {
    INGOT_CHECK(spec.rows_of_a == RowsOfA::along || !pairs_ ||
                    (dot_ && (spec.rows_of_a == RowsOfA::listed || spec.rows_of_a == RowsOfA::across)),
                "a tile of pairs of k reads pairs of an A");
    INGOT_CHECK(spec.panels == 1 || (whole_k_ && spec.panels <= 4), "more than one panel for many rows");
    INGOT_CHECK(!dot_ || target.bf16_dot, "a tile of bf16 on a target without vdpbf16ps");
  }

  void emit() {
    if (whole_k_) {
      load(kB, offsetof(TileFrame, b));
      if (spec_.panels > 1) load(kPanel, offsetof(TileFrame, b_stride));
      if (spec_.panels > 3) code_.add({.op = VOp::g_lea, .g = kPanel3, .mem = Mem::at(kPanel, kPanel, 2)});
      return blocks();
    }
    if (goes_on_) take_moving_fields();
    if (goes_on_ && spec_.finish) take_finish();
    Loop tile{};
    if (goes_on_) tile = code_.begin_loop();
    load(kB, offsetof(TileFrame, b));
    if (spec_.rows_of_a != RowsOfA::windows || v_.avx512()) sums_.clear();
    if (spec_.rows_of_a == RowsOfA::with_b)
      with_edges([this](const TileSums::Masks& masks) { steps_with_b(masks); });
    else if (spec_.rows_of_a == RowsOfA::channels_with_b)
      with_edges([this](const TileSums::Masks& masks) { channels_with_b(masks); });
    else if (spec_.rows_of_a == RowsOfA::windows)
      with_edges([this](const TileSums::Masks& masks) { windows(masks); });
    else if (channels())
      with_edges([this](const TileSums::Masks& masks) { runs(masks); });
    else
      listed() ? runs({}) : one_block();
    if (!spec_.finish) sums_.store(field(offsetof(TileFrame, c)), field(offsetof(TileFrame, accumulate)));
    if (spec_.finish && !finish_) take_finish();
    if (finish_ && !finished_) finish_->emit(sums_.all(), spec_.rows, goes_on_);
    if (goes_on_) next_tile(tile);
  }

 private:
  bool across() const { return spec_.rows_of_a == RowsOfA::across; }
  bool listed() const { return spec_.rows_of_a == RowsOfA::listed || channels(); }
  bool channels() const { return spec_.rows_of_a == RowsOfA::channels; }

  /// Of the fields that differ from tile to tile each has a place of its own.
  void take_moving_fields() {
    auto take = [this](size_t field, size_t step) {
      const Mem at = Mem::frame(code_.reserve(8));
      load(Gpr::rax, field);
      code_.store(at, Gpr::rax);
      moving_.push_back({field, step, at});
    };
    take(offsetof(TileFrame, a), offsetof(TileFrame, a_tile));
    if (!spec_.finish) take(offsetof(TileFrame, c), offsetof(TileFrame, c_tile));
    if (!listed()) take(offsetof(TileFrame, results), offsetof(TileFrame, results_tile));
    take(offsetof(TileFrame, ahead), offsetof(TileFrame, ahead_tile));
    tiles_left_ = Mem::frame(code_.reserve(8));
    load(Gpr::rax, offsetof(TileFrame, tiles));
    code_.store(tiles_left_, Gpr::rax);
  }

  /// Its registers are the tile's, too.
  void take_finish() {
    if (goes_on_) {
      frame_ = Mem::frame(code_.reserve(8));
      code_.store(frame_, kFrame);
    }
    load(kFrame, offsetof(TileFrame, finish));
    finish_.emplace(*spec_.finish, code_);
    if (goes_on_) code_.load(kFrame, frame_);
  }

  void next_tile(const Loop& tile) {
    if (finish_) code_.load(kFrame, frame_);
    for (const MovingField& f : moving_) {
      load(Gpr::rax, f.step);
      code_.g(VOp::g_add_to, Gpr::rax, f.at);
    }
    code_.add({.op = VOp::g_addi_to, .mem = tiles_left_, .value = -1});
    code_.end_loop(tile, Cond::not_equal);
  }

  void one_block() {
    load(kA, offsetof(TileFrame, a));
    load(kK, offsetof(TileFrame, k));
    steps();
  }

  /// A and B go on from block to block.
  void blocks() {
    const Mem left = Mem::frame(code_.reserve(8)), accumulate = Mem::frame(code_.reserve(8));
    if (pairs_) block_k_ = Mem::frame(code_.reserve(8));
    for (auto [to, field] : {std::pair{left, offsetof(TileFrame, k)}, {accumulate, offsetof(TileFrame, accumulate)}}) {
      load(Gpr::rax, field);
      code_.store(to, Gpr::rax);
    }
    load(kA, offsetof(TileFrame, a));
    const Loop block = code_.begin_loop();
    const int64_t last = code_.label();
    code_.load(kK, left);
    code_.g(VOp::g_cmpi, kK, canonical::kProductBlock);
    code_.jump(last, Cond::less_equal);
    code_.g(VOp::g_imm, kK, canonical::kProductBlock);
    code_.place(last);
    if (pairs_) code_.store(block_k_, kK);
    sums_.clear();
    steps();
    sums_.store(field(offsetof(TileFrame, c)), accumulate);
    code_.g(VOp::g_imm, Gpr::rax, 1);
    code_.store(accumulate, Gpr::rax);
    code_.add({.op = VOp::g_addi_to, .mem = left, .value = -canonical::kProductBlock});
    code_.load(Gpr::rax, left);
    code_.g(VOp::g_cmpi, Gpr::rax, 0);
    code_.end_loop(block, Cond::greater);
  }

  /// From kA, kB on, kK of them.
  void steps() {
    load(kStride, offsetof(TileFrame, a_stride));
    code_.add({.op = VOp::g_lea, .g = kStride3, .mem = Mem::at(kStride, kStride, 2)});
    if (across())
      code_.add({.op = VOp::g_lea, .g = kA4, .mem = Mem::at(kStride, kStride3, 1)});  // four strides
    else if (spec_.rows > 4)
      code_.add({.op = VOp::g_lea, .g = kA4, .mem = Mem::at(kA, kStride, 4)});
    load(kResults, offsetof(TileFrame, results));
    load(kAhead, offsetof(TileFrame, ahead));
    if (pairs_) code_.g(VOp::g_shri, kK, 1);  // pairs first, then the odd last one
    // Rows of results are asked for at even intervals.
    code_.g(VOp::g_mov, kInterval, kK);
    code_.g(VOp::g_shri, kInterval, std::bit_width(static_cast<unsigned>(kUnroll * spec_.rows - 1)));
    code_.g(VOp::g_imm, kUntil, 1);
    loop(kUnroll);
    loop(1);
    if (pairs_) {
      int64_t even = code_.label();
      code_.load(Gpr::rax, block_k_ ? block_k_ : field(offsetof(TileFrame, k)));
      code_.g(VOp::g_testi, Gpr::rax, 1);
      code_.jump(even, Cond::equal);
      odd_step();
      code_.place(even);
    }
  }

  /// Columns that do not exist are not read from what is not packed, which may end there.
  template <class Body>
  void with_edges(Body body) {
    if (spec_.finish && spec_.finish->known_columns % v_.lanes_a_part(type_) == 0) return body({});
    load(Gpr::rax, offsetof(TileFrame, columns));
    if (spec_.finish) return body(sums_.edge_masks(spec_.rows_of_a != RowsOfA::windows));
    const int64_t edge = code_.label(), done = code_.label();
    code_.g(VOp::g_cmpi, Gpr::rax, kLanes * spec_.vectors);
    code_.jump(edge, Cond::less);
    body({});
    code_.jump(done);
    code_.place(edge);
    body(sums_.edge_masks(spec_.rows_of_a != RowsOfA::windows));
    code_.place(done);
  }

  void steps_with_b(const TileSums::Masks& masks) {
    load(kTable, offsetof(TileFrame, a));
    load(kAt, offsetof(TileFrame, a_offset));
    load(kBAt, offsetof(TileFrame, b_offset));
    load(kK, offsetof(TileFrame, k));
    for (int unroll : {kUnroll, 1}) {
      const int64_t done = code_.label();
      code_.g(VOp::g_cmpi, kK, unroll);
      code_.jump(done, Cond::less);
      if (unroll > 1) code_.add({.op = VOp::align_here, .value = 64});
      const Loop loop = code_.begin_loop();
      for (int u = 0; u < unroll; ++u) {
        const Gpr a = kRows[2 * u], b = kRows[2 * u + 1];
        code_.load(a, Mem::at(kTable, 16 * u));
        code_.load(b, Mem::at(kTable, 16 * u + 8));
        sums_.multiply(
            [&](int row) { return v_.emit1(broadcast(), Mem::at(a, kAt, 1, row * ingot::size_of(spec_.a))); },
            [&](int p) { return sums_.held(Mem::at(b, kBAt, 1, p * code_.width), masks.of(p)); });
      }
      code_.g(VOp::g_addi, kTable, 16 * unroll);
      code_.g(VOp::g_addi, kK, -unroll);
      code_.g(VOp::g_cmpi, kK, unroll);
      code_.end_loop(loop, Cond::greater_equal);
      code_.place(done);
    }
  }

  void channels_with_b(const TileSums::Masks& masks) {
    load(kTable, offsetof(TileFrame, a));
    load(kAt, offsetof(TileFrame, a_offset));
    load(kK, offsetof(TileFrame, k));
    const int64_t done = code_.label();
    code_.g(VOp::g_cmpi, kK, 1);
    code_.jump(done, Cond::less);
    const Loop loop = code_.begin_loop();
    code_.load(kB, Mem::at(kTable));
    for (int row = 0; row < spec_.rows; ++row) code_.load(kRows[row], Mem::at(kTable, 8 + 8 * row));
    step_of_channels(masks,
                     [&](int p, const Source& mask) { return sums_.held(Mem::at(kB, kAt, 1, p * code_.width), mask); });
    add_field(kTable, offsetof(TileFrame, a_stride));
    code_.g(VOp::g_addi, kK, -1);
    code_.end_loop(loop, Cond::not_equal);
    code_.place(done);
  }

  void runs(const TileSums::Masks& masks) {
    load(kTable, offsetof(TileFrame, a));
    load(kRun, offsetof(TileFrame, runs));
    const Mem runs_left = Mem::frame(code_.reserve(8));
    load(Gpr::rax, offsetof(TileFrame, run_count));
    code_.store(runs_left, Gpr::rax);
    load(kAheadOfList, offsetof(TileFrame, ahead));
    const Loop run = code_.begin_loop();
    code_.load(kAt, Mem::at(kRun, offsetof(TileRun, offset)));
    add_field(kAt, offsetof(TileFrame, a_offset));
    for (int row = 0; row < spec_.rows; ++row) code_.load(kRows[row], Mem::at(kTable, 8 * row));
    if (channels()) {
      step_of_channels(masks, [&](int p, const Source&) { return v_.force(Source(b_at(0, p))); });
      code_.g(VOp::g_addi, kB, int64_t(parts_) * code_.width);
    } else {
      const int64_t beyond = code_.label(), next = code_.label();
      code_.load(kK, Mem::at(kRun, offsetof(TileRun, steps)));
      if (pairs_) code_.g(VOp::g_shri, kK, 1);  // runs have none left over
      code_.g(VOp::g_cmpi, kRows[0], 0);
      code_.jump(beyond, Cond::equal);
      loop(kUnroll);
      loop(1);
      code_.jump(next);
      code_.place(beyond);
      zeros_beyond();
      code_.place(next);
    }
    add_field(kTable, offsetof(TileFrame, a_stride));
    code_.g(VOp::g_addi, kRun, sizeof(TileRun));
    code_.add({.op = VOp::g_addi_to, .mem = runs_left, .value = -1});
    code_.end_loop(run, Cond::not_equal);
  }

  /// A run whose rows are zeros, all of them: what it adds stands there, a row for each run.
  void zeros_beyond() {
    const int64_t row = int64_t(parts_) * code_.width;
    code_.g(VOp::g_mov, kAt, kRun);
    load(kRows[0], offsetof(TileFrame, runs));
    code_.g(VOp::g_sub, kAt, kRows[0]);
    code_.g(VOp::g_imm, kRows[0], row / static_cast<int64_t>(sizeof(TileRun)));
    code_.g(VOp::g_imul, kAt, kRows[0]);
    add_field(kAt, offsetof(TileFrame, zeros));
    const VReg one = dot_ ? code_.splat32(0x3f803f80) : v_.splat(type_, 1);
    sums_.multiply([&](int) { return one; }, [&](int p) { return v_.force(Source(Mem::at(kAt, p * code_.width))); });
    if (spec_.rows > kFewRows) {  // its share of what comes next
      code_.g(VOp::g_imm, kRows[1], lines_fetched(2, panel_parts_ * part_bytes_));
      code_.g(VOp::g_imul, kRows[1], kK);
      code_.g(VOp::g_shri, kRows[1], 1);
      const Loop fetch = code_.begin_loop();
      fetch_ahead();
      code_.g(VOp::g_addi, kRows[1], -1);
      code_.end_loop(fetch, Cond::greater);
    }
    code_.g(VOp::g_imm, kRows[0], panel_parts_ * part_bytes_);
    code_.g(VOp::g_imul, kK, kRows[0]);
    code_.g(VOp::g_add, kB, kK);
  }

  /// Each pixel of a line is loaded once and multiplied by all taps that meet it: loads, not multiplications, bound the
  /// other way. Where registers are few, by one part after the other, so that all taps of a line have one.
  void windows(const TileSums::Masks& masks) {
    if (v_.avx512()) return lines_of_windows(masks, 0, parts_);
    const Mem b = Mem::frame(code_.reserve(8));
    code_.store(b, kB);
    finished_ = finish_ && finish_->by_parts();
    for (int p = 0; p < (finished_ ? sums_.existing() : parts_); ++p) {
      if (p > 0) code_.load(kB, b);
      if (p > 0 && finished_) code_.load(kFrame, frame_);
      sums_.clear(p, p + 1);
      if (p < sums_.existing()) lines_of_windows(masks, p, p + 1);
      finished_ ? finish_->emit_part(sums_.of_part(p), p, goes_on_) : sums_.end(p);
    }
  }

  void lines_of_windows(const TileSums::Masks& masks, int first_part, int last_part) {
    const int taps = spec_.taps, pixels = spec_.window_pixels(), edges = 2 * (taps - 1);
    load(kTable, offsetof(TileFrame, a));
    load(kRun, offsetof(TileFrame, run_count));
    load(kAt, offsetof(TileFrame, a_offset));
    const Loop line = code_.begin_loop();
    code_.load(kStride, Mem::at(kTable));
    code_.add({.op = VOp::g_lea, .g = kStride3, .mem = Mem::at(kStride, kStride, 2)});
    code_.load(kMiddle[0], Mem::at(kTable, 8));
    code_.g(VOp::g_add, kMiddle[0], kAt);
    // Every fourth pixel, those of the next tile, which lie behind, included: it wants them soon. (Of more lines L1
    // loses as much as is gained; AVX-512: not tried.)
    const bool fetches = first_part == 0 && taps <= 3 && !v_.avx512();
    const int behind = (spec_.rows - 1) * spec_.window_stride + 1, moved = spec_.rows * spec_.window_stride;
    auto fourth = [&](int i) { return i < 4 ? kMiddle[i] : kEdges[i - 4]; };
    for (int i = 1; 4 * i < (fetches ? behind + moved : pixels - edges); ++i)
      code_.add({.op = VOp::g_lea, .g = fourth(i), .mem = Mem::at(fourth(i - 1), kStride, 4)});
    for (int at = behind; fetches && at < behind + moved; ++at)
      code_.add({.op = VOp::prefetch, .mem = a_beyond(fourth(at / 4), at % 4, 0)});
    auto load_edge = [&](int edge) {
      const Gpr at = kEdges[static_cast<size_t>(edge) % std::size(kEdges)];
      code_.load(at, Mem::at(kTable, 16 + 8 * edge));
    };
    const bool held = edges <= static_cast<int>(std::size(kEdges));
    for (int edge = 0; held && edge < edges; ++edge) load_edge(edge);
    // As many weights as fit beside the sums, a pixel and constants.
    const int registers = v_.avx512() ? 29 : 15, most = std::max(registers - spec_.rows * (last_part - first_part), 1);
    const int passes = (taps + most - 1) / most;
    for (int p = first_part; p < last_part; ++p) {
      for (int pass = 0; pass < passes; ++pass) {
        const int begin = pass * taps / passes, end = (pass + 1) * taps / passes;
        std::vector<VReg> weights;
        for (int tap = begin; tap < end; ++tap) weights.push_back(v_.force(Source(b_at(tap, p))));
        for (int pixel = begin; pixel < pixels - taps + end; ++pixel) {
          const int right = pixel - (pixels - (taps - 1)), middle = pixel - (taps - 1), beyond = p * code_.width;
          Mem at;
          if (middle < 0 || right >= 0) {
            const int edge = middle < 0 ? pixel : taps - 1 + right;
            if (!held) load_edge(edge);
            at = Mem::at(kEdges[static_cast<size_t>(edge) % std::size(kEdges)], kAt, 1, beyond);
          } else {
            at = a_beyond(kMiddle[middle / 4], middle % 4, beyond);
          }
          const VReg a = sums_.held(at, masks.of(p));
          for (int tap = begin; tap < end; ++tap) {
            const int first = pixel - tap, row = first / spec_.window_stride;
            if (first >= 0 && first % spec_.window_stride == 0 && row < spec_.rows)
              sums_.add(row, p, a, weights[static_cast<size_t>(tap - begin)]);
          }
        }
      }
    }
    code_.g(VOp::g_addi, kTable, 16 * taps);
    code_.g(VOp::g_addi, kB, int64_t(taps) * parts_ * code_.width);
    code_.g(VOp::g_addi, kRun, -1);
    code_.end_loop(line, Cond::not_equal);
  }

  /// Where a field of the frame is, or what has become of it.
  Mem field(size_t offset) const {
    for (const MovingField& f : moving_)
      if (f.offset == offset) return f.at;
    return Mem::at(kFrame, static_cast<int64_t>(offset));
  }
  void load(Gpr to, size_t offset) { code_.load(to, field(offset)); }
  void add_field(Gpr to, size_t offset) {
    code_.add({.op = VOp::g_addm, .g = to, .mem = Mem::at(kFrame, static_cast<int64_t>(offset))});
  }
  /// Bytes of A in one step: an element, or those for a pair of B's.
  int64_t step_bytes() const { return ingot::size_of(spec_.a) * (pairs_ ? 2 : 1); }

  /// `strides` of A beyond a register.
  Mem a_beyond(Gpr base, int strides, int64_t offset) const {
    switch (strides) {
      case 0:
        return Mem::at(base, offset);
      case 1:
        return Mem::at(base, kStride, 1, offset);
      case 2:
        return Mem::at(base, kStride, 2, offset);
      default:
        return Mem::at(base, kStride3, 1, offset);
    }
  }
  /// Step `u` of the unrolled ones, and bytes beyond it.
  Mem a_at(int row, int u, int64_t offset) const {
    if (across()) return a_beyond(kA, u, row * step_bytes());
    if (listed()) return Mem::at(kRows[row], kAt, 1, u * step_bytes() + offset);
    return a_beyond(row < 4 ? kA : kA4, row % 4, u * step_bytes() + offset);
  }
  Mem b_at(int step, int part) const {
    const int64_t at = (static_cast<int64_t>(step) * panel_parts_ + part % panel_parts_) * part_bytes_;
    const int panel = part / panel_parts_;
    if (panel == 0) return Mem::at(kB, at);
    return panel == 3 ? Mem::at(kB, kPanel3, 1, at) : Mem::at(kB, kPanel, panel, at);
  }

  /// kK counts steps down; `unroll` of them at a time.
  void loop(int unroll) {
    int64_t done = code_.label();
    code_.g(VOp::g_cmpi, kK, unroll);
    code_.jump(done, Cond::less);
    if (unroll > 1) code_.add({.op = VOp::align_here, .value = 64});
    const Loop loop = code_.begin_loop();
    for (int u = 0; u < unroll; ++u) {
      // About a kilobyte ahead: the panel streams in from L2; the fewer rows it is multiplied by, the faster. A block
      // of a panel of tiles that go on is small enough for L1, where the first of them has brought it: of 5 or 6 rows,
      // that is, as there are mostly several of those.
      const int64_t row = panel_parts_ * part_bytes_;
      const bool few = spec_.rows <= kFewRows;
      for (int64_t at = (u * row + 63) / 64 * 64; at < (u + 1) * row && unroll > 1 && spec_.panels == 1; at += 64)
        if (few && at / 64 % kLinesEach == 0)
          code_.add({.op = VOp::prefetch, .mem = Mem::at(kB, at + kAheadOfFewRows), .value = 1});
        else if (!few && (!goes_on_ || spec_.rows <= 4))
          code_.add({.op = VOp::prefetch, .mem = Mem::at(kB, at + kAheadOfRows / spec_.rows)});
      for (int64_t n = lines_fetched(u, row); n < lines_fetched(u + 1, row) && unroll > 1 && !few; ++n) fetch_ahead();
      if (unroll > 1 && !listed() && u == 0) fetch_results();
      step(u);
    }
    if (across()) {
      code_.g(VOp::g_add, kA, unroll == kUnroll ? kA4 : kStride);
    } else if (listed()) {
      code_.g(VOp::g_addi, kAt, unroll * step_bytes());
    } else {
      code_.g(VOp::g_addi, kA, unroll * step_bytes());
      if (spec_.rows > 4) code_.g(VOp::g_addi, kA4, unroll * step_bytes());
    }
    code_.g(VOp::g_addi, kB, int64_t(unroll) * panel_parts_ * part_bytes_);
    code_.g(VOp::g_addi, kK, -unroll);
    code_.g(VOp::g_cmpi, kK, unroll);
    code_.end_loop(loop, Cond::greater_equal);
    code_.place(done);
  }

  // Lines asked for one by one, between multiplications, wait for nobody; many at once would hold up the loads of A
  // and B.
  void fetch_ahead() {
    const Gpr ahead = listed() ? kAheadOfList : kAhead;
    code_.add({.op = VOp::prefetch, .mem = Mem::at(ahead), .value = 1});
    add_field(ahead, offsetof(TileFrame, ahead_step));
  }
  void fetch_results() {
    int64_t fetched = code_.label();
    code_.g(VOp::g_addi, kUntil, -1);
    code_.jump(fetched, Cond::greater);
    const int64_t bytes = parts_ * code_.width;
    for (int64_t at = 0; at < bytes; at += 64)
      code_.add({.op = VOp::prefetch, .mem = Mem::at(kResults, at), .value = 2});
    for (size_t operand : {0, 1}) {
      load(Gpr::rax, offsetof(TileFrame, beside_results) + 8 * operand);
      for (int64_t at = 0; at < bytes; at += 64)
        code_.add({.op = VOp::prefetch, .mem = Mem::at(kResults, Gpr::rax, 1, at), .value = 2});
    }
    code_.g(VOp::g_mov, kUntil, kInterval);
    add_field(kResults, offsetof(TileFrame, results_stride));
    code_.place(fetched);
  }

  VOp broadcast() const { return type_ == Type::f64 ? VOp::vbroadcastsd : VOp::vbroadcastss; }
  void step(int u) {
    auto a = [&](bool odd) { return [=, this](int row) { return v_.emit1(broadcast(), a_at(row, u, odd ? 4 : 0)); }; };
    auto b = [&](int p) {
      return pairs_ || spec_.a == spec_.b ? v_.force(Source(b_at(u, p))) : load_f32(v_, spec_.b, b_at(u, p));
    };
    if (spec_.panels > 1 && spec_.rows == 1 && spec_.a == spec_.b) {
      const VReg x = a(false)(0);
      for (int p = 0; p < parts_; ++p) sums_.add(0, p, b_at(u, p), x);
      return;
    }
    if (!pairs_ || dot_) return sums_.multiply(a(false), b);
    if (spec_.panels > 1) return pairs_side_by_side(a, b);
    for (bool odd : {false, true}) sums_.multiply(a(odd), [&](int p) { return half(b(p), odd); });
  }

  /// Each pair is read once.
  template <class A, class B>
  void pairs_side_by_side(A a, B b) {
    std::vector<VReg> x;
    for (bool odd : {false, true})
      for (int row = 0; row < spec_.rows; ++row) x.push_back(a(odd)(row));
    for (int p = 0; p < parts_; ++p) {
      const VReg both = b(p);
      for (bool odd : {false, true}) {
        const VReg values = half(both, odd);
        for (int row = 0; row < spec_.rows; ++row)
          sums_.add(row, p, values, x[static_cast<size_t>(odd * spec_.rows + row)]);
      }
    }
  }

  template <class B>
  void step_of_channels(const TileSums::Masks& masks, B b_part) {
    for (int p = 0; p < sums_.existing(); ++p) {
      const Source mask = masks.of(p);
      const VReg b = b_part(p, mask);
      for (int row = 0; row < spec_.rows; ++row) {
        const Mem at = Mem::at(kRows[row], kAt, 1, p * code_.width);
        masks.empty() ? sums_.add(row, p, at, b) : sums_.add(row, p, sums_.held(at, mask), b);
      }
    }
  }

  /// The f32 values of the first or second bf16 of each pair.
  VReg half(VReg pairs, bool odd) {
    return odd ? v_.emit(VOp::vand, pairs, code_.splat32(0xffff0000u)) : v_.emit1(VOp::vpslld, pairs, 16);
  }

  /// k is odd: of the last pair of A only one element may be read.
  void odd_step() {
    auto element = [&](int row) {
      if (!dot_) return v_.emit1(VOp::vbroadcastss, a_at(row, 0, 0));
      code_.add({.op = VOp::g_load, .width = 2, .g = Gpr::rax, .mem = a_at(row, 0, 0)});
      VReg first = code_.vector();
      code_.add({.op = VOp::d_from_gpr, .g = Gpr::rax, .dst = first});
      return v_.emit1(VOp::vbroadcastss, first, 0, code_.width, 16);
    };
    sums_.multiply(element, [&](int p) {
      VReg b = v_.force(Source(b_at(0, p)));
      return dot_ ? b : half(b, false);
    });
  }

  const TileSpec& spec_;
  VCode& code_;
  Vectors v_;
  bool pairs_, dot_;  // B comes in pairs of k; and A
  Type type_;
  int panel_parts_;     // registers a row of a panel
  int parts_;           // registers a row
  int64_t part_bytes_;  // that one takes in a panel
  bool goes_on_, whole_k_;
  struct MovingField {
    size_t offset, step;
    Mem at;
  };
  std::vector<MovingField> moving_;
  Mem tiles_left_{}, frame_{}, block_k_{};  // block_k_: of pairs, how much of k the block at work has
  std::optional<TileFinish> finish_;
  bool finished_ = false;  // what ends the sums is emitted
  TileSums sums_;
};

}  // namespace

void emit_tile(const TileSpec& spec, const Target& target, VCode& code) {
  spec.transposed ? emit_transposed_tile(spec, target, code) : Tile(spec, target, code).emit();
}

// Sums, one row of B and a broadcast value fill the registers: 8 x 48 (AVX-512) and 6 x 16 (AVX2) in f32. More than 8
// rows of unpacked A would share few sets of L1 where their distance is a multiple of 4 KB.
//
// Windows, which multiply what is in registers of a part, have 8 rows everywhere.
int max_tile_rows(const Target& target, DType dtype, RowsOfA rows_of_a) {
  if (target.isa == Isa::avx2 && rows_of_a != RowsOfA::windows) return dtype == DType::f64 ? 3 : 6;
  return 8;
}

// Eight sums: two multiplications a cycle, each of which takes four. (AVX-512: three panels' vectors are as many bytes
// a cycle as caches give.)
int max_tile_panels(const Target& target, DType dtype, int rows) {
  if (target.isa != Isa::avx2 || rows > kFewRows) return 1;
  return std::max(1, (dtype == DType::f64 ? 2 : 4) / rows);
}

int max_tile_vectors(const Target& target, DType dtype) {
  return target.isa == Isa::avx2 || dtype == DType::f64 ? 1 : 3;
}

}  // namespace ingot::codegen::x86
