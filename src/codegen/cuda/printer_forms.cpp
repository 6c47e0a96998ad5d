// The three forms of a kernel: pieces of rows, whole rows, tiles of columns.
#include <algorithm>

#include "base/canonical_order.h"
#include "codegen/cuda/printer.h"

namespace ingot::codegen::cuda {
namespace {

constexpr int64_t kChunk = canonical::kDeviceChunk;

class LoopPrinter final : public Printer {
  using Printer::Printer;
  void form() override {
    const PhaseMapping& p = m_.phases[0];
    const Phase& phase = k_.phases[0];
    line("const long long lines = a.planes * a.rows, tile = (long long)blockDim.x * {};", l_.vector * l_.unroll);
    open(
        "for (long long at = (long long)blockIdx.y * blockDim.y + threadIdx.y; at < lines; at += (long long)gridDim.y "
        "* blockDim.y)");
    line("const long long plane = quotient(at, a.rows), row = at - plane * a.rows;");
    plane_addresses(true);
    nodes(p.before, {});
    open("for (long long first = blockIdx.x * tile; first < a.columns; first += gridDim.x * tile)");
    std::string all;
    for (size_t b = 0; b < k_.buffers.size(); ++b)
      if (dense(b) && moved(b)) all += fmt::format("{}pieces{}", all.empty() ? "" : " && ", b);
    if (!all.empty()) {
      open(fmt::format("if ({} && first + tile <= a.columns)", all));
      loop_pieces(p, phase);
      --indent_;
      line("}} else {{");
      ++indent_;
    }
    line("#pragma unroll 1");
    open(
        "for (long long column = first + threadIdx.x; column < a.columns && column < first + tile; column += "
        "blockDim.x)");
    for (Value v : p.staged) {
      const size_t b = k_.nodes[v].imm;
      line("const {} b{} = load_one<{}>({});", memory(b), v, memory(b), at_column(staged_base(v, false), b, "column"));
    }
    for (size_t s = 0; s < phase.stores.size(); ++s) line("{} o{};", memory(phase.stores[s].buffer), s);
    Cursor cursor;
    cursor.column = "column";
    cursor.scalar = true;
    elements(p, phase, cursor, "");
    for (size_t s = 0; s < phase.stores.size(); ++s) {
      const size_t b = phase.stores[s].buffer;
      line("store_one<{}>({}, o{});", memory(b), at_column(fmt::format("p{}", b), b, "column"), s);
    }
    close();
    if (!all.empty()) close();
    close();
    close();
  }

  /// Whole tiles of a loop: `unroll` pieces a thread, loaded before any is computed.
  void loop_pieces(const PhaseMapping& p, const Phase& phase) {
    for (Value v : p.staged) line("{} b{}[{}][{}];", memory(k_.nodes[v].imm), v, l_.unroll, l_.vector);
    for (size_t s = 0; s < phase.stores.size(); ++s)
      line("{} o{}[{}][{}];", memory(phase.stores[s].buffer), s, l_.unroll, l_.vector);
    line("const long long column = first + threadIdx.x * {};", l_.vector);
    line("const int next = blockDim.x * {};", l_.vector);
    if (!p.staged.empty()) {
      line("#pragma unroll");
      open(fmt::format("for (int u = 0; u < {}; ++u)", l_.unroll));
      for (Value v : p.staged) {
        const size_t b = k_.nodes[v].imm;
        std::string at = at_column(staged_base(v, false), b, "(column + u * next)");
        if (dense(b))
          line("load_pieces(b{}[u], {});", v, at);
        else
          line("load(b{}[u], {}, {}, {}, false);", v, at, stride(b), l_.vector);
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
    cursor.subscript = "[u][e]";
    elements(p, phase, cursor, "");
    close();
    --indent_;
    line("#pragma unroll");
    open(fmt::format("for (int u = 0; u < {}; ++u)", l_.unroll));
    for (size_t s = 0; s < phase.stores.size(); ++s) {
      const size_t b = phase.stores[s].buffer;
      std::string at = at_column(fmt::format("p{}", b), b, "(column + u * next)");
      if (dense(b))
        line("store_pieces({}, o{}[u]);", at, s);
      else
        line("store({}, o{}[u], {}, {}, false);", at, s, stride(b), l_.vector);
    }
    close();
  }
};

class RowPrinter final : public Printer {
  using Printer::Printer;
  void form() override {
    line("// A warp takes a row of up to {} columns; a block takes a longer one, each warp a chunk in turn.", kChunk);
    line("const bool wide = a.columns > kChunk;");
    line("const long long lines = a.planes * a.rows, chunks = (a.columns + kChunk - 1) / kChunk;");
    line("const long long first = wide ? blockIdx.x : (long long)blockIdx.x * blockDim.y + threadIdx.y;");
    line("const long long step = wide ? gridDim.x : (long long)gridDim.x * blockDim.y;");
    line("const long long warp = wide ? (long long)blockIdx.y * blockDim.y + threadIdx.y : 0;");
    row_memory();
    open("for (long long at = first; at < lines; at += step)");
    line("const long long plane = quotient(at, a.rows), row = at - plane * a.rows;");
    plane_addresses(true);
    if (!k_.reductions.empty())
      line("char* const row_slots = slots + (a.slots ? at * a.slot_count * {} : 0);", l_.slot_bytes);
    for (size_t i = 0; i < k_.phases.size(); ++i) row_phase(i);
    close();
  }

  /// Local row buffers, then what several phases read, each of the columns rounded up to 16.
  void row_memory() {
    if (k_.locals.empty() && m_.kept.empty()) {
      line("char* const slots = a.slots ? a.slots : reinterpret_cast<char*>(shared_memory);");
      return;
    }
    line("const long long padded = (a.columns + 15) / 16 * 16;");
    line("const long long row_bytes = padded * (a.keep ? {} : {});", l_.local_bytes + l_.kept_bytes, l_.local_bytes);
    line("char* const shared = reinterpret_cast<char*>(shared_memory);");
    line(
        "char* const memory = a.memory ? a.memory + first * row_bytes : shared + (wide ? 0 : threadIdx.y) * "
        "row_bytes;");
    int64_t offset = 0;
    for (size_t l = 0; l < k_.locals.size(); ++l) {
      row_part("l", l, offset);
      offset += codegen::size_of(k_.locals[l]);
    }
    for (Value v : m_.kept) {
      row_part("k", v, offset);
      offset += element_bytes(k_.nodes[v].imm);
    }
    line("char* const slots = a.slots ? a.slots : shared + (a.memory ? 0 : row_bytes);");
  }

  void row_part(const char* kind, size_t number, int64_t offset) {
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
      if (l_.splits) open("if (a.stage != 2)");
      row_chunks(p, phase);
      if (l_.splits) {
        close();
        line("if (a.stage == 1) continue;");
      }
    }
    for (uint32_t r : phase.reductions) {
      line("if (wide) r{} = finish_row<{}>({}, chunks);", r, combiner(r), slots_of(r));
      line("if (a.columns == 0) r{} = {}::empty();", r, combiner(r));
    }
    nodes(p.after, {});
    if (!phase.row_stores.empty()) {
      open("if (threadIdx.x == 0 && (threadIdx.y == 0 || !wide))");
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

  void row_chunks(const PhaseMapping& p, const Phase& phase) {
    open("for (long long chunk = warp; chunk < chunks; chunk += (long long)gridDim.y * blockDim.y)");
    for (uint32_t r : phase.reductions) {
      line("{}::Value r{}_lanes[kThreadLanes];", combiner(r), r);
      line("clear<{}>(r{}_lanes);", combiner(r), r);
    }
    line("#pragma unroll 1");
    open("for (int part = 0; part < kChunk; part += kLanes)");
    line("const long long column = chunk * kChunk + part + threadIdx.x * kThreadLanes;");
    line("const int count = count_from(column, a.columns, kThreadLanes);");
    line("if (count == 0) break;");
    for (Value v : p.staged) {
      const size_t b = k_.nodes[v].imm;
      line("{} b{}[kThreadLanes];", memory(b), v);
      std::string load = fmt::format("load(b{}, {}, {}, count, {});", v, at_column(staged_base(v, false), b, "column"),
                                     stride(b), pieces(b));
      if (kept(v) && in_memory(v)) {
        line("if (a.keep)");
        line("  load_pieces(b{}, k{} + column * {});", v, v, element_bytes(b));
        line("else");
        line("  {}", load);
      } else {
        line("{}", load);
        if (kept(v)) line("if (a.keep) store_pieces(k{} + column * {}, b{});", v, element_bytes(b), v);
      }
    }
    for (Value v : p.locals) {
      const Node& n = k_.nodes[v];
      line("{} b{}[kThreadLanes];", local_memory(n.type), v);
      line("load_pieces(b{}, l{} + column * {});", v, n.imm, codegen::size_of(n.type));
    }
    for (size_t s = 0; s < phase.stores.size(); ++s) line("{} o{}[kThreadLanes];", memory(phase.stores[s].buffer), s);
    for (size_t s = 0; s < phase.local_stores.size(); ++s)
      line("{} q{}[kThreadLanes];", local_memory(k_.locals[phase.local_stores[s].buffer]), s);
    line("#pragma unroll");
    open("for (int e = 0; e < kThreadLanes; ++e)");
    Cursor cursor;
    cursor.column = "(column + e)";
    cursor.subscript = "[e]";
    cursor.guard = "e < count";
    elements(p, phase, cursor, "e");
    close();
    for (size_t s = 0; s < phase.stores.size(); ++s) {
      const size_t b = phase.stores[s].buffer;
      line("store({}, o{}, {}, count, {});", at_column(fmt::format("p{}", b), b, "column"), s, stride(b), pieces(b));
    }
    for (size_t s = 0; s < phase.local_stores.size(); ++s) {
      const uint32_t l = phase.local_stores[s].buffer;
      line("store_pieces(l{} + column * {}, q{});", l, codegen::size_of(k_.locals[l]), s);
    }
    close();
    for (uint32_t r : phase.reductions) {
      line("r{} = chunk_result<{}>(r{}_lanes);", r, combiner(r), r);
      line("if (wide && threadIdx.x == 0) store_slot<{}>({}, chunk, r{});", combiner(r), slots_of(r), r);
    }
    close();
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
    line("// A block takes 32 columns and a chunk of {} rows; a thread {} neighbouring rows of a column at a time.",
         kChunk, p.unroll);
    line("const long long chunks = (a.count + kChunk - 1) / kChunk;");
    open("for (long long plane = blockIdx.z; plane < a.planes; plane += gridDim.z)");
    plane_addresses(false);
    nodes(p.before, {});
    open("for (long long chunk = blockIdx.y; chunk < chunks || chunk == 0; chunk += gridDim.y)");
    open(
        "for (long long first = (long long)blockIdx.x * kWarp; first < a.columns; first += (long long)gridDim.x * "
        "kWarp)");
    line("const long long column = first + threadIdx.x;");
    for (uint32_t r = 0; r < reductions; ++r) {
      line("{}::Value r{}_lanes[kTileLanes];", combiner(r), r);
      line("clear<{}>(r{}_lanes);", combiner(r), r);
    }
    open("if (a.memory)");
    for (uint32_t r = 0; r < reductions; ++r)
      line(
          "collect<{}>(r{}_lanes, a.memory + {} * a.count * a.columns * kSlot, chunk * kChunk, a.count, column, "
          "a.columns);",
          combiner(r), r, plane_of(r));
    --indent_;
    line("}} else if (column < a.columns) {{");
    ++indent_;
    line("#pragma unroll 1");
    line("for (int part = 0; part < kChunk; part += kLanes)");
    ++indent_;
    line("#pragma unroll");
    open(fmt::format("for (int group = 0; group < kTileLanes; group += {})", p.unroll));
    line("const long long row = chunk * kChunk + part + threadIdx.y * kTileLanes + group;");
    line("const int count = count_from(row, a.rows, {});", p.unroll);
    for (Value v : p.staged) line("{} b{}[{}];", memory(k_.nodes[v].imm), v, p.unroll);
    line("#pragma unroll");
    open(fmt::format("for (int u = 0; u < {}; ++u)", p.unroll));
    for (Value v : p.staged) {
      const size_t b = k_.nodes[v].imm;
      line("b{}[u] = u < count ? load_one<{}>({}) : ({})(0);", v, memory(b),
           at_column(staged_base(v, true), b, "column"), memory(b));
    }
    close();
    line("#pragma unroll");
    open(fmt::format("for (int u = 0; u < {}; ++u)", p.unroll));
    Cursor cursor;
    cursor.row_moves = true;
    cursor.subscript = "[u]";
    cursor.guard = "u < count";
    cursor.column = "column";
    cursor.row = "(row + u)";
    elements(p, phase, cursor, "group + u");
    close();
    close();
    --indent_;
    close();
    for (uint32_t r = 0; r < reductions; ++r) {
      line("finish_columns<{}, {}>(r{}_lanes, reinterpret_cast<char*>(shared_memory), a.count, first, a.columns,",
           combiner(r), memory_name(result_type(r)), r);
      line("    a.slots ? a.slots + ({} * chunks + chunk) * a.columns * kSlot : nullptr,", plane_of(r));
      line("    a.results[{}].at{}, a.results[{}].column);", r, outer_offset(fmt::format("a.results[{}]", r)), r);
    }
    close();
    close();
    close();
  }
};

}  // namespace

std::string print(const Kernel& kernel, const Mapping& mapping, const std::string& entry) {
  if (mapping.launch.form == Form::loop) return LoopPrinter(kernel, mapping, entry).run();
  if (mapping.launch.form == Form::rows) return RowPrinter(kernel, mapping, entry).run();
  return ColumnPrinter(kernel, mapping, entry).run();
}

}  // namespace ingot::codegen::cuda
