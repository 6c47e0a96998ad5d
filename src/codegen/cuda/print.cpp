#include "codegen/cuda/print.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/cuda/expression.h"

namespace ingot::codegen::cuda {
namespace {

using Form = CudaMapping::Form;
constexpr int kChunk = 1024, kLanes = 256;  // of the canonical order, as the prelude has it

class Printer {
 public:
  Printer(const Kernel& kernel, const Mapping& mapping, const std::string& entry)
      : k_(kernel), m_(mapping), l_(mapping.launch), entry_(entry) {}

  std::string run() {
    argument_struct();
    int threads = l_.form == Form::loop ? 256 : 512;
    open(fmt::format("extern \"C\" __global__ void __launch_bounds__({}) {}(const __grid_constant__ {}_arguments a)",
                     threads, entry_, entry_));
    for (size_t b = 0; b < k_.buffers.size(); ++b)
      if (dense(b) && moved(b)) line("const bool pieces{} = in_pieces<{}, {}>(a.buffers[{}]);", b, memory(b), l_.vector, b);
    nodes(m_.call, {});
    switch (l_.form) {
      case Form::loop:
        loop();
        break;
      case Form::rows:
        rows();
        break;
      case Form::columns:
        columns();
        break;
    }
    close();
    return std::move(out_);
  }

 private:
  // Text.
  template <class... A>
  void line(fmt::format_string<A...> format, A&&... arguments) {
    out_.append(static_cast<size_t>(indent_) * 2, ' ');
    fmt::format_to(std::back_inserter(out_), format, std::forward<A>(arguments)...);
    out_ += '\n';
  }
  void open(const std::string& head) {
    line("{} {{", head);
    ++indent_;
  }
  void close() {
    --indent_;
    line("}}");
  }

  /// True if elements of the buffer are read or written side by side.
  bool moved(size_t buffer) const {
    for (size_t i = 0; i < k_.phases.size(); ++i) {
      for (const Store& s : k_.phases[i].stores)
        if (s.buffer == buffer) return true;
      for (Value v : m_.phases[i].staged)
        if (k_.nodes[v].imm == buffer) return true;
    }
    return false;
  }
  const char* memory(size_t buffer) const { return memory_name(k_.buffers[buffer].dtype); }
  int64_t element_bytes(size_t buffer) const { return ingot::size_of(k_.buffers[buffer].dtype); }
  bool dense(size_t buffer) const { return k_.buffers[buffer].access == Access::dense; }
  std::string pieces(size_t buffer) const { return dense(buffer) ? fmt::format("pieces{}", buffer) : "false"; }
  /// From column to column, in bytes.
  std::string stride(size_t buffer) const {
    switch (k_.buffers[buffer].access) {
      case Access::dense:
        return std::to_string(element_bytes(buffer));
      case Access::uniform:
        return "0";
      case Access::strided:
        break;
    }
    return fmt::format("a.buffers[{}].column", buffer);
  }
  std::string combiner(uint32_t r) const {
    constexpr const char* names[] = {"Sum", "Prod", "Max", "Min", "Any", "All", "ArgMax", "ArgMin"};
    const Reduction& reduction = k_.reductions[r];
    return fmt::format("{}<{}>", names[static_cast<int>(reduction.combiner)],
                       type_name(k_.nodes[reduction.value].type));
  }
  DType result_type(uint32_t r) const {
    return is_index(k_.reductions[r].combiner) ? DType::i64 : memory_type(k_.nodes[k_.reductions[r].value].type);
  }

  void argument_struct() {
    open(fmt::format("struct {}_arguments", entry_));
    line("long long planes, rows, columns, count, stage, keep;");
    line("char *memory, *slots;");
    line("long long slot_count;");
    if (l_.outer) line("long long outer[{}];", l_.outer);
    if (!k_.buffers.empty()) line("Operand<{}> buffers[{}];", l_.outer, k_.buffers.size());
    if (l_.form == Form::columns) line("Operand<{}> results[{}];", l_.outer, k_.reductions.size());
    if (k_.scalars) line("unsigned long long scalars[{}];", k_.scalars);
    --indent_;
    line("}};");
  }

  /// Indices of a plane in the dims outside, and where its buffers begin. `row`: added to every address.
  void plane_addresses(bool row) {
    if (l_.outer) line("long long rest = plane;");
    for (int d = l_.outer - 1; d > 0; --d) {
      line("const long long next{} = quotient(rest, a.outer[{}]);", d, d);
      line("const long long i{} = rest - next{} * a.outer[{}];", d, d, d);
      line("rest = next{};", d);
    }
    if (l_.outer) line("const long long i0 = rest;");
    for (size_t b = 0; b < k_.buffers.size(); ++b) {
      std::string at = fmt::format("a.buffers[{}].at", b);
      if (row) at += fmt::format(" + row * a.buffers[{}].row", b);
      line("char* const p{} = {}{};", b, at, outer_offset(fmt::format("a.buffers[{}]", b)));
    }
  }
  std::string outer_offset(const std::string& operand) const {
    std::string text;
    for (int d = 0; d < l_.outer; ++d) text += fmt::format(" + i{} * {}.outer[{}]", d, operand, d);
    return text;
  }

  /// Where an element is: names of its column and row, and how staged values are subscripted.
  struct Place {
    std::string column = "0", row = "row", subscript, guard;
    bool row_moves = false;  // form columns: addresses do not hold the row
  };

  std::string index_value(const Node& n, const Place& place) const {
    if (n.imm == 0) return place.column;
    if (n.imm == 1) return place.row;
    return fmt::format("i{}", l_.outer - static_cast<int>(n.imm) + 1);
  }

  std::string load_address(const Node& n, const Place& place) const {
    const size_t b = n.imm;
    std::string at = fmt::format("p{}", b);
    if (place.row_moves) at += fmt::format(" + {} * a.buffers[{}].row", place.row, b);
    if (k_.buffers[b].access != Access::uniform && place.column != "0")
      at += fmt::format(" + {} * {}", place.column, stride(b));
    if (n.a != kNone) at += fmt::format(" + {} * a.buffers[{}].index", operand(k_, n.a), b);
    return at;
  }

  std::string node_value(Value v, const Place& place) const {
    const Node& n = k_.nodes[v];
    switch (n.op) {
      case Op::load: {
        DType d = k_.buffers[n.imm].dtype;
        if (n.a == kNone && !place.subscript.empty()) return from_memory(d, fmt::format("b{}{}", v, place.subscript));
        std::string element = fmt::format("load_one<{}>({})", memory_name(d), load_address(n, place));
        if (!place.guard.empty()) element = fmt::format("({} ? {} : {}(0))", place.guard, element, cast_name(d));
        return from_memory(d, element);
      }
      case Op::local:
        return from_memory(memory_type(n.type), fmt::format("b{}{}", v, place.subscript));
      case Op::index:
        return index_value(n, place);
      default:
        return expression(k_, n);
    }
  }
  /// A type that can be called like a function: "unsigned short" cannot.
  static std::string cast_name(DType d) { return fmt::format("({})", memory_name(d)); }

  /// Statements of nodes in order; those of a rare region in the branch of its node.
  void nodes(const std::vector<Value>& list, const Place& place) {
    uint16_t region = 0;
    for (Value v : list) {
      const Node& n = k_.nodes[v];
      if (n.region != region && n.region) {
        Value rare = v;
        while (k_.nodes[rare].op != Op::rare || k_.nodes[rare].imm != n.region) ++rare;
        const Node& r = k_.nodes[rare];
        line("{} v{} = {};", type_name(r.type), rare, operand(k_, r.b));
        open(fmt::format("if ({})", operand(k_, r.a)));
      }
      if (n.op == Op::rare) {
        if (region) {
          line("v{} = {};", v, operand(k_, n.c));
          close();
        } else {  // its region is a constant
          line("const {} v{} = {} ? {} : {};", type_name(n.type), v, operand(k_, n.a), operand(k_, n.c), operand(k_, n.b));
        }
      } else {
        line("const {} v{} = {};", type_name(n.type), v, node_value(v, place));
      }
      region = n.region;
    }
  }

  // The elements of one phase: `unroll` pieces of `vector` columns. Expects arrays `column` (or `row`) and `count`.
  void stage_loads(const PhaseMapping& p, bool rows_move) {
    for (Value v : p.staged) line("{} b{}[{}][{}];", memory(k_.nodes[v].imm), v, p.unroll, l_.vector);
    for (Value v : p.locals)
      line("{} b{}[{}][{}];", memory_name(memory_type(k_.nodes[v].type)), v, p.unroll, l_.vector);
    if (p.staged.empty() && p.locals.empty()) return;
    line("#pragma unroll");
    open(fmt::format("for (int u = 0; u < {}; ++u)", p.unroll));
    for (Value v : p.staged) {
      const size_t b = k_.nodes[v].imm;
      std::string at = fmt::format("p{}", b);
      if (rows_move) at += fmt::format(" + row[u] * a.buffers[{}].row", b);
      if (k_.buffers[b].access != Access::uniform) at += fmt::format(" + {} * {}", rows_move ? "column" : "column[u]", stride(b));
      std::string load = fmt::format("load(b{}[u], {}, {}, count[u], {});", v, at, stride(b), pieces(b));
      if (kept_now(v)) {
        line("if (a.keep && count[u] > 0)");
        line("  load_pieces(b{}[u], k{} + column[u] * {});", v, v, element_bytes(b));
        line("else");
        line("  {}", load);
      } else {
        line("{}", load);
        if (kept(v)) line("if (a.keep && count[u] > 0) store_pieces(k{} + column[u] * {}, b{}[u]);", v, element_bytes(b), v);
      }
    }
    for (Value v : p.locals)
      line("if (count[u] > 0) load_pieces(b{}[u], l{} + column[u] * {});", v, k_.nodes[v].imm,
           codegen::size_of(k_.nodes[v].type));
    close();
  }
  bool kept(Value v) const { return std::find(m_.kept.begin(), m_.kept.end(), v) != m_.kept.end(); }
  /// True if an earlier phase has written it.
  bool kept_now(Value v) const { return kept(v) && std::find(in_memory_.begin(), in_memory_.end(), v) != in_memory_.end(); }

  void compute(const PhaseMapping& p, const Phase& phase) {
    const bool rows_move = l_.form == Form::columns;
    for (size_t s = 0; s < phase.stores.size(); ++s)
      line("{} o{}[{}][{}];", memory(phase.stores[s].buffer), s, p.unroll, l_.vector);
    for (size_t s = 0; s < phase.local_stores.size(); ++s)
      line("{} q{}[{}][{}];", memory_name(memory_type(k_.locals[phase.local_stores[s].buffer])), s, p.unroll, l_.vector);
    line("#pragma unroll");
    line("for (int u = 0; u < {}; ++u)", p.unroll);
    ++indent_;
    line("#pragma unroll");
    open(fmt::format("for (int e = 0; e < {}; ++e)", l_.vector));
    Place place;
    place.subscript = "[u][e]";
    place.row_moves = rows_move;
    place.guard = "e < count[u]";
    place.column = rows_move ? "(column + e)" : "(column[u] + e)";
    if (rows_move) place.row = "row[u]";
    nodes(p.elements, place);
    for (size_t s = 0; s < phase.stores.size(); ++s)
      line("o{}[u][e] = {};", s, to_memory(k_.buffers[phase.stores[s].buffer].dtype, operand(k_, phase.stores[s].value)));
    for (size_t s = 0; s < phase.local_stores.size(); ++s) {
      const Store& store = phase.local_stores[s];
      line("q{}[u][e] = {};", s, to_memory(memory_type(k_.locals[store.buffer]), operand(k_, store.value)));
    }
    if (!phase.reductions.empty()) {
      open("if (e < count[u])");
      for (uint32_t r : phase.reductions) {
        std::string lane = rows_move ? fmt::format("r{}_lanes[e][u]", r) : fmt::format("r{}_lanes[e]", r), c = combiner(r);
        line("{} = {}::join({}, {}::of({}, {}));", lane, c, lane, c, operand(k_, k_.reductions[r].value),
             rows_move ? place.row : place.column);
      }
      close();
    }
    close();
    --indent_;
    if (phase.stores.empty() && phase.local_stores.empty()) return;
    line("#pragma unroll");
    open(fmt::format("for (int u = 0; u < {}; ++u)", p.unroll));
    for (size_t s = 0; s < phase.stores.size(); ++s) {
      const size_t b = phase.stores[s].buffer;
      line("store(p{} + column[u] * {}, o{}[u], {}, count[u], {});", b, stride(b), s, stride(b), pieces(b));
    }
    for (size_t s = 0; s < phase.local_stores.size(); ++s) {
      const Store& store = phase.local_stores[s];
      line("if (count[u] > 0) store_pieces(l{} + column[u] * {}, q{}[u]);", store.buffer,
           codegen::size_of(k_.locals[store.buffer]), s);
    }
    close();
  }

  void loop() {
    const PhaseMapping& p = m_.phases[0];
    const int piece = l_.vector * p.unroll;
    line("const long long lines = a.planes * a.rows;");
    open("for (long long at = (long long)blockIdx.y * blockDim.y + threadIdx.y; at < lines; at += (long long)gridDim.y * blockDim.y)");
    line("const long long plane = quotient(at, a.rows), row = at - plane * a.rows;");
    plane_addresses(true);
    nodes(p.before, {});
    line("const long long step = (long long)gridDim.x * blockDim.x * {};", piece);
    open(fmt::format("for (long long first = (long long)blockIdx.x * blockDim.x * {}; first < a.columns; first += step)", piece));
    line("long long column[{}];", p.unroll);
    line("int count[{}];", p.unroll);
    line("#pragma unroll");
    open(fmt::format("for (int u = 0; u < {}; ++u)", p.unroll));
    line("column[u] = first + (long long)(u * blockDim.x + threadIdx.x) * {};", l_.vector);
    line("count[u] = count_from(column[u], a.columns, {});", l_.vector);
    close();
    stage_loads(p, false);
    compute(p, k_.phases[0]);
    close();
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
    line("char* const memory = a.memory ? a.memory + first * row_bytes : shared + (wide ? 0 : threadIdx.y) * row_bytes;");
    int64_t offset = 0;
    for (size_t l = 0; l < k_.locals.size(); ++l) {
      line("char* const l{} = memory + padded * {};", l, offset);
      offset += codegen::size_of(k_.locals[l]);
    }
    for (Value v : m_.kept) {
      line("char* const k{} = memory + padded * {};", v, offset);
      offset += element_bytes(k_.nodes[v].imm);
    }
    line("char* const slots = a.slots ? a.slots : shared + (a.memory ? 0 : row_bytes);");
  }

  void rows() {
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
        line("store_one<{}>(p{}, {});", memory(s.buffer), s.buffer, to_memory(k_.buffers[s.buffer].dtype, operand(k_, s.value)));
      close();
    }
    for (Value v : p.staged)
      if (kept(v)) in_memory_.push_back(v);
  }
  std::string slots_of(uint32_t r) const {
    return r == 0 ? "row_slots" : fmt::format("row_slots + a.slot_count * {}", 16 * r);
  }

  void row_chunks(const PhaseMapping& p, const Phase& phase) {
    open("for (long long chunk = warp; chunk < chunks; chunk += (long long)gridDim.y * blockDim.y)");
    for (uint32_t r : phase.reductions) {
      line("{}::Value r{}_lanes[kThreadLanes];", combiner(r), r);
      line("clear<{}>(r{}_lanes);", combiner(r), r);
    }
    const int parts = kChunk / kLanes / p.unroll;
    if (parts > 1) line("#pragma unroll 1");
    open(fmt::format("for (int part = 0; part < kChunk; part += {} * kLanes)", p.unroll));
    line("long long column[{}];", p.unroll);
    line("int count[{}];", p.unroll);
    line("#pragma unroll");
    open(fmt::format("for (int u = 0; u < {}; ++u)", p.unroll));
    line("column[u] = chunk * kChunk + part + u * kLanes + threadIdx.x * kThreadLanes;");
    line("count[u] = count_from(column[u], a.columns, kThreadLanes);");
    close();
    stage_loads(p, false);
    compute(p, phase);
    close();
    for (uint32_t r : phase.reductions) {
      line("r{} = warp_tree<{}>(thread_tree<{}>(r{}_lanes));", r, combiner(r), combiner(r), r);
      line("if (wide && threadIdx.x == 0) store_slot<{}>({}, chunk, r{});", combiner(r), slots_of(r), r);
    }
    close();
  }

  void columns() {
    const PhaseMapping& p = m_.phases[0];
    const Phase& phase = k_.phases[0];
    const size_t reductions = k_.reductions.size();
    line("// A block takes a tile of {} columns and a chunk of {} rows; a thread {} neighbouring rows at a time.", 16 * l_.vector,
         kChunk, 8);
    line("const long long chunks = (a.count + kChunk - 1) / kChunk;");
    line("const long long tile = kTileThreads * {};", l_.vector);
    open("for (long long plane = blockIdx.z; plane < a.planes; plane += gridDim.z)");
    plane_addresses(false);
    nodes(p.before, {});
    open("for (long long chunk = blockIdx.y; chunk < chunks || chunk == 0; chunk += gridDim.y)");
    open("for (long long first = blockIdx.x * tile; first < a.columns; first += gridDim.x * tile)");
    line("const long long column = first + threadIdx.x * {};", l_.vector);
    for (uint32_t r = 0; r < reductions; ++r) {
      line("{}::Value r{}_lanes[{}][kThreadLanes];", combiner(r), r, l_.vector);
      line("#pragma unroll");
      line("for (int e = 0; e < {}; ++e) clear<{}>(r{}_lanes[e]);", l_.vector, combiner(r), r);
    }
    open("if (a.memory)");
    for (uint32_t r = 0; r < reductions; ++r)
      line("collect<{}>(r{}_lanes, a.memory + ({} * a.planes + plane) * a.count * a.columns * kSlot, chunk * kChunk, a.count, column, a.columns);",
           combiner(r), r, r);
    --indent_;
    line("}} else {{");
    ++indent_;
    line("#pragma unroll 1");
    open("for (int part = 0; part < kChunk; part += kLanes)");
    line("long long row[{}];", p.unroll);
    line("int count[{}];", p.unroll);
    line("#pragma unroll");
    open(fmt::format("for (int u = 0; u < {}; ++u)", p.unroll));
    line("row[u] = chunk * kChunk + part + threadIdx.y * kThreadLanes + u;");
    line("count[u] = row[u] < a.rows ? count_from(column, a.columns, {}) : 0;", l_.vector);
    close();
    stage_loads(p, true);
    compute(p, phase);
    close();
    close();
    for (uint32_t r = 0; r < reductions; ++r) {
      line("finish_columns<{}, {}>(r{}_lanes, reinterpret_cast<char*>(shared_memory), a.count, first, a.columns,",
           combiner(r), memory_name(result_type(r)), r);
      line("    a.slots ? a.slots + (({} * a.planes + plane) * chunks + chunk) * a.columns * kSlot : nullptr,", r);
      line("    a.results[{}].at{}, a.results[{}].column);", r, outer_offset(fmt::format("a.results[{}]", r)), r);
    }
    close();
    close();
    close();
  }

  const Kernel& k_;
  const Mapping& m_;
  const CudaMapping& l_;
  const std::string& entry_;
  std::string out_;
  int indent_ = 0;
  std::vector<Value> in_memory_;  // kept loads that an earlier phase has written
};

}  // namespace

std::string print(const Kernel& kernel, const Mapping& mapping, const std::string& entry) {
  return Printer(kernel, mapping, entry).run();
}

}  // namespace ingot::codegen::cuda
