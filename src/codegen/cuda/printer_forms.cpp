// The three forms of a kernel: pieces of rows, whole rows, tiles of columns.
#include <algorithm>

#include "base/canonical_order.h"
#include "codegen/cuda/printer.h"

namespace ingot::codegen::cuda {
namespace {

constexpr int64_t kChunk = canonical::kDeviceChunk;
constexpr size_t kFewNodes = 16;  // whose elements are unrolled in a tile
constexpr int kTileUnroll = 4;

class LoopPrinter final : public Printer {
  using Printer::Printer;
  void form() override {
    const PhaseMapping& p = m_.phases[0];
    const Phase& phase = k_.phases[0];
    if (!m_.tiles.empty()) {
      open("if (a.stage)");
      turned_tiles(p, phase);
      line("return;");
      close();
    }
    line("const long long lines = a.planes * a.rows, tile = (long long)blockDim.x * {};", l_.vector * l_.unroll);
    open(
        "for (long long at = (long long)blockIdx.y * blockDim.y + threadIdx.y; at < lines; at += (long long)gridDim.y "
        "* blockDim.y)");
    line_place();
    plane_addresses(true);
    nodes(p.before, {});
    open("for (long long first = blockIdx.x * tile; first < a.columns; first += gridDim.x * tile)");
    const std::string all = all_pieces(0);
    if (!all.empty()) {
      open(fmt::format("if ({}first + tile <= a.columns)", all));
      loop_pieces(p, phase);
      --indent_;
      line("}} else {{");
      ++indent_;
    }
    line("#pragma unroll 1");
    open(
        "for (long long column = first + threadIdx.x; column < a.columns && column < first + tile; column += "
        "blockDim.x)");
    one_element(
        p, phase, {},
        [&](Value v) {
          const size_t b = k_.nodes[v].imm;
          return fmt::format("load_one<{}>({})", memory(b), at_column(staged_base(v), b, "column"));
        },
        [&](size_t s) {
          const size_t b = phase.stores[s].buffer;
          return at_column(fmt::format("p{}", b), b, "column");
        });
    close();
    if (!all.empty()) close();
    close();
    close();
  }

  bool in_tile(Value v) const {
    return std::any_of(m_.tiles.begin(), m_.tiles.end(), [&](const Mapping::Tile& t) { return t.value == v; });
  }

  /// One element: its loads, then what it computes, then its stores. from(v), to(s): expressions of these places.
  template <class From, class To>
  void one_element(const PhaseMapping& p, const Phase& phase, Cursor cursor, const From& from, const To& to) {
    for (Value v : p.staged) line("const {} b{} = {};", memory(k_.nodes[v].imm), v, from(v));
    for (size_t s = 0; s < phase.stores.size(); ++s) line("{} o{};", memory(phase.stores[s].buffer), s);
    cursor.column = "column";
    cursor.scalar = true;
    elements(p, phase, cursor, "");
    for (size_t s = 0; s < phase.stores.size(); ++s)
      line("store_one<{}>({}, o{});", memory(phase.stores[s].buffer), to(s), s);
  }

  /// Loads of the tiles go along the rows where their buffers are dense there, then a warp goes along the columns.
  void turned_tiles(const PhaseMapping& p, const Phase& phase) {
    line("const long long across = (a.columns + kTile - 1) / kTile, down = (a.rows + kTile - 1) / kTile;");
    for (const auto& t : m_.tiles) {
      const char* type = memory(k_.nodes[t.value].imm);
      line("{}* const t{} = reinterpret_cast<{}*>(reinterpret_cast<char*>(shared_memory) + {});", type, t.value, type,
           t.at);
    }
    open("for (long long tile = blockIdx.x; tile < a.planes * down * across; tile += gridDim.x)");
    line("const long long at = quotient(tile, across), plane = quotient(at, down);");
    line("const long long first_column = (tile - at * across) * kTile, first_row = (at - plane * down) * kTile;");
    line(
        "const int columns = count_from(first_column, a.columns, kTile), rows = count_from(first_row, a.rows, kTile);");
    plane_addresses(false);
    for (const auto& t : m_.tiles) {
      const size_t b = k_.nodes[t.value].imm;
      line(
          "load_tile(t{}, p{} + first_row * a.buffers[{}].row + first_column * {}, a.buffers[{}].row, {}, rows, "
          "columns);",
          t.value, b, b, stride(b), b, stride(b));
    }
    line("__syncthreads();");
    line("const int c = threadIdx.x % kTile;");
    line("int r = threadIdx.x / kTile;");
    line("const long long column = first_column + c;");
    line("long long row = first_row + r;");
    // Addresses move on from row to row: a product for each would take longer than the rest.
    for (Value v : p.staged)
      if (!in_tile(v) && k_.nodes[v].a == kNone)
        line("const char* s{} = {};", v, at_column(staged_base(v, "row"), k_.nodes[v].imm, "column"));
    for (size_t s = 0; s < phase.stores.size(); ++s) {
      const size_t b = phase.stores[s].buffer;
      line("char* d{} = {};", s, at_column(fmt::format("p{} + row * a.buffers[{}].row", b, b), b, "column"));
    }
    open("if (rows == kTile && columns == kTile)");
    tile_rows(p, phase, fmt::format("#pragma unroll {}", p.elements.size() <= kFewNodes ? kTileUnroll : 1),
              "int i = 0; i < kTile / kTileStep; ++i");
    --indent_;
    line("}} else if (c < columns) {{");
    ++indent_;
    tile_rows(p, phase, "#pragma unroll 1", "; r < rows;");
    close();
    line("__syncthreads();");
    close();
  }

  void tile_rows(const PhaseMapping& p, const Phase& phase, const std::string& unroll, const char* loop) {
    line("{}", unroll);
    open(fmt::format("for ({})", loop));
    Cursor cursor;
    cursor.row_moves = true;
    nodes(p.before, cursor);
    one_element(
        p, phase, cursor,
        [&](Value v) {
          const size_t b = k_.nodes[v].imm;
          if (in_tile(v)) return fmt::format("t{}[tile_place<{}>(r, c)]", v, memory(b));
          if (k_.nodes[v].a == kNone) return fmt::format("load_one<{}>(s{})", memory(b), v);
          return fmt::format("load_one<{}>({})", memory(b), at_column(staged_base(v, "row"), b, "column"));
        },
        [&](size_t s) { return fmt::format("d{}", s); });
    line("r += kTileStep, row += kTileStep;");
    for (Value v : p.staged)
      if (!in_tile(v) && k_.nodes[v].a == kNone) line("s{} += kTileStep * a.buffers[{}].row;", v, k_.nodes[v].imm);
    for (size_t s = 0; s < phase.stores.size(); ++s)
      line("d{} += kTileStep * a.buffers[{}].row;", s, phase.stores[s].buffer);
    close();
  }

  /// Whole tiles of a loop: `unroll` pieces a thread, loaded before any is computed.
  void loop_pieces(const PhaseMapping& p, const Phase& phase) {
    const std::string unroll = fmt::format("[{}]", l_.unroll);
    for (Value v : p.staged) line("{}", loaded(k_.nodes[v].imm, fmt::format("b{}", v), unroll, l_.vector));
    for (size_t s = 0; s < phase.stores.size(); ++s)
      line("{}", to_store(phase.stores[s].buffer, fmt::format("o{}", s), unroll, l_.vector));
    line("const long long column = first + threadIdx.x * {};", l_.vector);
    line("const int next = blockDim.x * {};", l_.vector);
    if (!p.staged.empty()) {
      line("#pragma unroll");
      open(fmt::format("for (int u = 0; u < {}; ++u)", l_.unroll));
      for (Value v : p.staged) {
        const size_t b = k_.nodes[v].imm;
        std::string at = at_column(staged_base(v), b, "(column + u * next)");
        if (dense(b))
          line("load_pieces(b{}[u], {});", v, at);
        else
          line("gather(b{}[u], {}, {});", v, at, stride(b));
      }
      close();
    }
    line("#pragma unroll");
    line("for (int u = 0; u < {}; ++u)", l_.unroll);
    ++indent_;
    line("#pragma unroll");
    open(fmt::format("for (int e = 0; e < {}; ++e)", l_.vector));
    Cursor cursor;
    cursor.column = "(column + u * next + e)";
    cursor.subscript = "[u]";
    cursor.lane = "e";
    elements(p, phase, cursor, "");
    close();
    --indent_;
    line("#pragma unroll");
    open(fmt::format("for (int u = 0; u < {}; ++u)", l_.unroll));
    for (size_t s = 0; s < phase.stores.size(); ++s) {
      const size_t b = phase.stores[s].buffer;
      std::string at = at_column(fmt::format("p{}", b), b, "(column + u * next)");
      if (dense(b))
        line("store_pieces({}, {});", at, stored(b, fmt::format("o{}[u]", s)));
      else
        line("scatter({}, {}, {});", at, stored(b, fmt::format("o{}[u]", s)), stride(b));
    }
    close();
  }
};

class RowPrinter final : public Printer {
  using Printer::Printer;
  void form() override {
    line("// A warp takes a row of up to {} columns; a block takes a longer one, each warp a chunk in turn.", kChunk);
    line("const bool wide = a.columns > kChunk;");
    line("const int chunks = int((a.columns + kChunk - 1) / kChunk), stage = int(a.stage);");
    line("const long long lines = a.planes * a.rows;");
    line("const long long first = wide ? blockIdx.x : (long long)blockIdx.x * blockDim.y + threadIdx.y;");
    line("const long long step = wide ? gridDim.x : (long long)gridDim.x * blockDim.y;");
    line(
        "const int warp = wide ? int(blockIdx.y * blockDim.y + threadIdx.y) : 0, warps = int(gridDim.y * blockDim.y);");
    row_memory();
    open("for (long long at = first; at < lines; at += step)");
    line_place();
    plane_addresses(true);
    if (!k_.reductions.empty())
      line("char* const row_slots = slots + (a.slots ? at * a.slot_count * {} : 0);", l_.slot_bytes);
    for (size_t i = 0; i < k_.phases.size(); ++i) row_phase(i);
    close();
  }

  /// Local row buffers, then what several phases read, each of the columns rounded up to 16; in shared memory, if it
  /// has room.
  void row_memory() {
    line("char* const shared = reinterpret_cast<char*>(shared_memory);");
    if (l_.kept_bytes == 0) {
      line("char* const slots = a.slots ? a.slots : shared;");
      return;
    }
    line("const bool keep = a.keep;");
    line("const int padded = keep ? int(a.columns + 15) / 16 * 16 : 0;");
    line("char* const memory = shared + (wide ? 0 : threadIdx.y) * padded * {};", l_.kept_bytes);
    int64_t offset = 0;
    for (size_t l = 0; l < k_.locals.size(); ++l) {
      row_room("l", l, offset);
      offset += codegen::size_of(k_.locals[l]);
    }
    for (Value v : m_.kept) {
      if (const auto l = m_.overwritten_by(v)) {
        line("char* const k{} = l{};", v, *l);
        continue;
      }
      row_room("k", v, offset);
      offset += element_bytes(k_.nodes[v].imm);
    }
    line("char* const slots = a.slots ? a.slots : shared + padded * {};", l_.kept_bytes);
  }

  void row_room(const char* kind, size_t number, int64_t offset) {
    line("char* const {}{} = memory{};", kind, number, offset ? fmt::format(" + padded * {}", offset) : "");
  }

  void row_phase(size_t i) {
    const Phase& phase = k_.phases[i];
    const PhaseMapping& p = m_.phases[i];
    const bool elements = !phase.stores.empty() || !phase.local_stores.empty() || !phase.reductions.empty();
    line("// phase {}", i);
    nodes(p.before, {});
    for (uint32_t r : phase.reductions) line("{}::Value r{} = {}::none();", combiner(r), r, combiner(r));
    if (elements) {
      if (l_.stages) {
        open(fmt::format("if (stage == -{})", i + 1));
        for (uint32_t r : phase.reductions)
          line("fold_level<{}>({}, chunks, a.count, warp, warps);", combiner(r), slots_of(r));
        line("continue;");
        close();
        open(fmt::format("if (stage == 0 || stage == {})", i + 1));
      }
      if (m_.again[i].elements.empty()) {
        row_chunks(i, p);
      } else {
        open("if (keep)");
        row_chunks(i, p);
        --indent_;
        line("}} else {{");
        ++indent_;
        row_chunks(i, m_.again[i]);
        close();
      }
      if (l_.stages) {
        line("if (stage) continue;");
        close();
      }
    }
    for (uint32_t r : phase.reductions) {
      line("if (wide) r{} = finish_row<{}>({}, chunks, a.count);", r, combiner(r), slots_of(r));
      line("if (a.columns == 0) r{} = {}::empty();", r, combiner(r));
    }
    nodes(p.after, {});
    if (!phase.row_stores.empty()) {
      const std::string last =
          l_.stages ? fmt::format(" && (stage == 0 || (stage == {} && blockIdx.y == 0))", i + 2) : "";
      open(fmt::format("if (threadIdx.x == 0 && (threadIdx.y == 0 || !wide){})", last));
      for (const Store& s : phase.row_stores)
        line("store_one<{}>(p{}, {});", memory(s.buffer), s.buffer,
             to_memory(k_.buffers[s.buffer].dtype, operand(k_, s.value)));
      close();
    }
    for (Value v : p.staged)
      if (kept(v)) in_memory_.push_back(v);
  }

  std::string slots_of(uint32_t r) const {
    return r == 0 ? "row_slots" : fmt::format("row_slots + a.slot_count * {}", 16 * r);
  }

  bool kept(Value v) const { return std::find(m_.kept.begin(), m_.kept.end(), v) != m_.kept.end(); }
  /// True if an earlier phase has written it.
  bool in_memory(Value v) const { return std::find(in_memory_.begin(), in_memory_.end(), v) != in_memory_.end(); }

  void row_chunks(size_t i, const PhaseMapping& p) {
    const Phase& phase = k_.phases[i];
    open("for (int chunk = warp; chunk < chunks; chunk += warps)");
    for (uint32_t r : phase.reductions) {
      line("{}::Value r{}_lanes[kThreadLanes];", combiner(r), r);
      line("clear<{}>(r{}_lanes);", combiner(r), r);
    }
    line("const long long begin = (long long)chunk * kChunk, column = begin + threadIdx.x * {};", l_.vector);
    line("const int there = a.columns - begin < kChunk ? int(a.columns - begin) : kChunk;");
    // Where the thread begins in what the phase reads and writes.
    for (Value v : p.staged) {
      const size_t b = k_.nodes[v].imm;
      line("const char* const s{} = {};", v, at_column(staged_base(v), b, "column"));
      if (kept(v) && !p.again) line("char* const x{} = k{} + int(column) * {};", v, v, element_bytes(b));
    }
    for (Value v : p.locals)
      if (!p.again)
        line("const char* const y{} = l{} + int(column) * {};", v, k_.nodes[v].imm, codegen::size_of(k_.nodes[v].type));
    for (size_t s = 0; s < phase.stores.size(); ++s) {
      const size_t b = phase.stores[s].buffer;
      line("char* const d{} = {};", s, at_column(fmt::format("p{}", b), b, "column"));
    }
    for (size_t s = 0; s < phase.local_stores.size() && !p.again; ++s) {
      const uint32_t l = phase.local_stores[s].buffer;
      line("char* const z{} = l{} + int(column) * {};", s, l, codegen::size_of(k_.locals[l]));
    }
    line("int part = 0;");
    if (p.parts) {
      line("#pragma unroll 1");
      open(fmt::format("for (; {}part + kLanes{} <= there; part += kLanes{})", all_pieces(i), times(p.parts),
                       times(p.parts)));
      row_part(p, phase, true);
      close();
    }
    line("#pragma unroll 1");
    open("for (; part < there; part += kLanes)");
    row_part(p, phase, false);
    close();
    for (uint32_t r : phase.reductions) {
      line("r{} = chunk_result<{}, {}>(r{}_lanes);", r, combiner(r), l_.vector, r);
      line("if (wide && threadIdx.x == 0) store_slot<{}>({}, chunk, r{});", combiner(r), slots_of(r), r);
    }
    close();
  }

  static std::string times(int n) { return n == 1 ? "" : fmt::format(" * {}", n); }

  /// `whole`: p.parts parts of the row, all of whose elements are there, else one of which some may be.
  void row_part(const PhaseMapping& p, const Phase& phase, bool whole) {
    const bool several = whole && p.parts > 1;
    const std::string parts = several ? fmt::format("[{}]", p.parts) : "", u = several ? "[u]" : "";
    const char* part = several ? "(part + u * kLanes)" : "part";
    const int piece = l_.vector;
    auto each_part = [&] {
      if (!several) return;
      line("#pragma unroll");
      open(fmt::format("for (int u = 0; u < {}; ++u)", p.parts));
    };
    // In the row's own memory.
    auto load_own = [&](const std::string& to, const std::string& from, int64_t bytes) {
      return whole ? fmt::format("load_spread<{}>({}, {});", piece, to, from)
                   : fmt::format("load<{}>({}, {}, {}, left, true);", piece, to, from, bytes);
    };
    auto store_own = [&](const std::string& to, const std::string& from, int64_t bytes) {
      return whole ? fmt::format("store_spread<{}>({}, {});", piece, to, from)
                   : fmt::format("store<{}>({}, {}, {}, left, true);", piece, to, from, bytes);
    };
    if (!whole) {
      line("const int left = there - part - threadIdx.x * {};", piece);
      line("if (left <= 0) break;");
    }
    for (Value v : p.staged) line("{}", loaded(k_.nodes[v].imm, fmt::format("b{}", v), parts, kThreadElements));
    for (size_t s = 0; s < phase.stores.size(); ++s)
      line("{}", to_store(phase.stores[s].buffer, fmt::format("o{}", s), parts, kThreadElements));
    if (!p.again) {
      for (Value v : p.locals) line("{} b{}{}[kThreadLanes];", local_memory(k_.nodes[v].type), v, parts);
      for (size_t s = 0; s < phase.local_stores.size(); ++s)
        line("{} q{}{}[kThreadLanes];", local_memory(k_.locals[phase.local_stores[s].buffer]), s, parts);
    }
    each_part();
    for (Value v : p.staged) {
      const size_t b = k_.nodes[v].imm;
      const std::string from = k_.buffers[b].access == Access::uniform
                                   ? fmt::format("s{}", v)
                                   : fmt::format("s{} + {} * {}", v, part, stride(b));
      std::string load = whole && dense(b)
                             ? fmt::format("load_spread<{}>(b{}{}, {});", piece, v, u, from)
                             : fmt::format("load<{}>(b{}{}, {}, {}, {}, {});", piece, v, u, from, stride(b),
                                           whole ? "kLanes" : "left", whole ? "false" : pieces(b));
      const std::string keep = fmt::format("x{} + {} * {}", v, part, element_bytes(b));
      const std::string own = load_own(fmt::format("b{}{}", v, u), keep, element_bytes(b));
      if (!kept(v) || p.again) {
        line("{}", load);
      } else if (!in_memory(v)) {
        line("{}", load);
        line("if (keep) {}", store_own(keep, fmt::format("b{}{}", v, u), element_bytes(b)));
      } else if (p.locals.empty()) {
        line("if (keep)");
        line("  {}", own);
        line("else");
        line("  {}", load);
      } else {  // the text of a row that is kept
        line("{}", own);
      }
    }
    for (Value v : p.locals) {
      const int64_t bytes = codegen::size_of(k_.nodes[v].type);
      if (!p.again)
        line("{}", load_own(fmt::format("b{}{}", v, u), fmt::format("y{} + {} * {}", v, part, bytes), bytes));
    }
    if (several) close();
    each_part();
    line("#pragma unroll");
    open("for (int e = 0; e < kThreadLanes; ++e)");
    Cursor cursor;
    cursor.column = fmt::format("(column + {} + spread<{}>(e))", part, piece);
    cursor.subscript = u;
    cursor.lane = "e";
    cursor.again = p.again;
    if (!whole) cursor.guard = fmt::format("spread<{}>(e) < left", piece);
    elements(p, phase, cursor, "e");
    close();
    for (size_t s = 0; s < phase.stores.size(); ++s) {
      const size_t b = phase.stores[s].buffer;
      const std::string to = k_.buffers[b].access == Access::uniform ? fmt::format("d{}", s)
                                                                     : fmt::format("d{} + {} * {}", s, part, stride(b));
      const std::string from = stored(b, fmt::format("o{}{}", s, u));
      if (whole && dense(b))
        line("store_spread<{}>({}, {});", piece, to, from);
      else
        line("store<{}>({}, {}, {}, {}, {});", piece, to, from, stride(b), whole ? "kLanes" : "left",
             whole ? "false" : pieces(b));
    }
    for (size_t s = 0; s < phase.local_stores.size() && !p.again; ++s) {
      const int64_t bytes = codegen::size_of(k_.locals[phase.local_stores[s].buffer]);
      line("{}{}", p.locals.empty() ? "if (keep) " : "",
           store_own(fmt::format("z{} + {} * {}", s, part, bytes), fmt::format("q{}{}", s, u), bytes));
    }
    if (several) close();
  }

  std::vector<Value> in_memory_;  // kept loads that an earlier phase has written
};

class ColumnPrinter final : public Printer {
  using Printer::Printer;
  /// Partial accumulators: all planes of the first reduction, then of the next.
  static std::string plane_of(uint32_t r) { return r ? fmt::format("({} * a.planes + plane)", r) : "plane"; }

  void form() override {
    const PhaseMapping& p = m_.phases[0];
    const Phase& phase = k_.phases[0];
    const uint32_t reductions = static_cast<uint32_t>(k_.reductions.size());
    line("// A block takes 32 columns and a chunk of {} rows; a thread {} neighbouring rows of {} parts at a time.",
         kChunk, p.unroll, p.parts);
    line("const long long chunks = (a.count + kChunk - 1) / kChunk;");
    open("for (long long plane = blockIdx.z; plane < a.planes; plane += gridDim.z)");
    plane_addresses(false);
    nodes(p.before, {});
    open("for (long long chunk = blockIdx.y; chunk < chunks || chunk == 0; chunk += gridDim.y)");
    open(
        "for (long long first = (long long)blockIdx.x * kWarp; first < a.columns; first += (long long)gridDim.x * "
        "kWarp)");
    line("const long long column = first + threadIdx.x;");
    for (uint32_t r = 0; r < reductions; ++r) line("{}::Value r{}_tile = {}::none();", combiner(r), r, combiner(r));
    line("#pragma unroll 1");
    open("for (int half = 0; half < kTileLanes; half += kThreadLanes)");
    for (uint32_t r = 0; r < reductions; ++r) {
      line("{}::Value r{}_lanes[kThreadLanes];", combiner(r), r);
      line("clear<{}>(r{}_lanes);", combiner(r), r);
    }
    open("if (a.memory)");
    for (uint32_t r = 0; r < reductions; ++r)
      line(
          "collect<{}>(r{}_lanes, a.memory + {} * a.count * a.columns * kSlot, chunk * kChunk + half, a.count, column, "
          "a.columns);",
          combiner(r), r, plane_of(r));
    --indent_;
    line("}} else if (column < a.columns) {{");
    ++indent_;
    line("const long long top = chunk * kChunk + threadIdx.y * kTileLanes + half;");
    open("if ((chunk + 1) * kChunk <= a.rows)");
    column_rows(p, phase, true);
    --indent_;
    line("}} else {{");
    ++indent_;
    column_rows(p, phase, false);
    close();
    close();
    for (uint32_t r = 0; r < reductions; ++r) {
      line("const {}::Value r{}_half = tree<{}>(r{}_lanes);", combiner(r), r, combiner(r), r);
      line("r{}_tile = half ? {}::join(r{}_tile, r{}_half) : r{}_half;", r, combiner(r), r, r, r);
    }
    close();
    for (uint32_t r = 0; r < reductions; ++r) {
      line("finish_columns<{}, {}>(r{}_tile, reinterpret_cast<char*>(shared_memory), a.count, first, a.columns,",
           combiner(r), memory_name(result_type(r)), r);
      line("    a.slots ? a.slots + ({} * chunks + chunk) * a.columns * kSlot : nullptr,", plane_of(r));
      line("    a.results[{}].at{}, a.results[{}].column);", r, outer_offset(fmt::format("a.results[{}]", r)), r);
    }
    close();
    close();
    close();
  }

  /// Half of the lanes of a thread. `whole`: all rows of the chunk are there.
  void column_rows(const PhaseMapping& p, const Phase& phase, bool whole) {
    line("#pragma unroll 1");
    open(fmt::format("for (int part = 0; part < kChunk{}; part += kLanes * {})", whole ? "" : " && top + part < a.rows",
                     p.parts));
    if (!whole) line("const int there = count_from(top + part, a.rows, kChunk);");
    const bool grouped = p.unroll < kThreadElements;
    if (grouped) {
      line("#pragma unroll");
      open(fmt::format("for (int group = 0; group < {}; group += {})", kThreadElements, p.unroll));
    }
    const std::string group = grouped ? "group + " : "";
    const std::string guard = whole ? "" : fmt::format("t * kLanes + {}u < there", group);
    for (Value v : p.staged) line("{} b{}[{}][{}];", memory(k_.nodes[v].imm), v, p.parts, p.unroll);
    // Addresses move on from row to row: a product for each would take longer than the rest.
    for (Value v : p.staged) {
      const size_t b = k_.nodes[v].imm;
      line("const char* s{} = {};", v,
           at_column(staged_base(v, grouped ? "(top + part + group)" : "(top + part)"), b, "column"));
    }
    each_row(p);
    for (Value v : p.staged) {
      const size_t b = k_.nodes[v].imm;
      const std::string load = fmt::format("load_one<{}>(s{})", memory(b), v);
      line("b{}[t][u] = {};", v, whole ? load : fmt::format("{} ? {} : ({})(0)", guard, load, memory(b)));
      line("s{} += {}a.buffers[{}].row;", v,
           p.parts > 1 ? fmt::format("(u == {} ? kLanes - {} : 1) * ", p.unroll - 1, p.unroll - 1) : "", b);
    }
    close();
    each_row(p);
    line("const long long row = top + part + t * kLanes + {}u;", group);
    Cursor cursor;
    cursor.row_moves = true;
    cursor.subscript = "[t]";
    cursor.lane = "u";
    cursor.guard = guard;
    cursor.column = "column";
    elements(p, phase, cursor, group + "u");
    close();
    if (grouped) close();
    close();
  }

  /// Opens the loops over the rows of a thread that are in flight together.
  void each_row(const PhaseMapping& p) {
    line("#pragma unroll");
    line("for (int t = 0; t < {}; ++t)", p.parts);
    line("#pragma unroll");
    open(fmt::format("for (int u = 0; u < {}; ++u)", p.unroll));
  }
};

}  // namespace

std::string print(const Kernel& kernel, const Mapping& mapping, const std::string& entry) {
  if (mapping.launch.form == Form::loop) return LoopPrinter(kernel, mapping, entry).run();
  if (mapping.launch.form == Form::rows) return RowPrinter(kernel, mapping, entry).run();
  return ColumnPrinter(kernel, mapping, entry).run();
}

}  // namespace ingot::codegen::cuda
