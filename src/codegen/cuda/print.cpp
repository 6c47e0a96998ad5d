#include "codegen/cuda/print.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/cuda/expression.h"

namespace ingot::codegen::cuda {
namespace {

using Form = CudaMapping::Form;
constexpr int kChunk = 1024;  // of the canonical order, as the prelude has it

class Printer {
 public:
  Printer(const Kernel& kernel, const Mapping& mapping, const std::string& entry)
      : k_(kernel), m_(mapping), l_(mapping.launch), entry_(entry) {}

  std::string run() {
    argument_struct();
    const int threads = l_.form == Form::loop ? 256 : 512;
    open(fmt::format("extern \"C\" __global__ void __launch_bounds__({}) {}(const __grid_constant__ {}_arguments a)",
                     threads, entry_, entry_));
    for (size_t b = 0; b < k_.buffers.size(); ++b)
      if (dense(b) && moved(b) && l_.form != Form::columns)
        line("const bool pieces{} = in_pieces<{}, {}>(a.buffers[{}]);", b, memory(b), l_.vector, b);
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
  /// True if anything of it is read or written: what folding made needless may stay a buffer.
  bool touched(size_t buffer) const {
    for (size_t i = 0; i < k_.phases.size(); ++i) {
      for (const Store& s : k_.phases[i].row_stores)
        if (s.buffer == buffer) return true;
      for (const std::vector<Value>* list : {&m_.phases[i].before, &m_.phases[i].elements, &m_.phases[i].after})
        for (Value v : *list)
          if (k_.nodes[v].op == Op::load && k_.nodes[v].imm == buffer) return true;
    }
    return moved(buffer);
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
      if (!touched(b)) continue;
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
    bool scalar = false;     // staged values are no arrays
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
        if ((place.scalar || !place.subscript.empty()) && (n.a == kNone || m_.levels[n.a] != Level::element))
          return from_memory(d, fmt::format("b{}{}", v, place.subscript));
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
          line("const {} v{} = {} ? {} : {};", type_name(n.type), v, operand(k_, n.a), operand(k_, n.c),
               operand(k_, n.b));
        }
      } else {
        line("const {} v{} = {};", type_name(n.type), v, node_value(v, place));
      }
      region = n.region;
    }
  }

  /// Where a staged load begins, without its column.
  std::string staged_base(Value v, bool row_moves) const {
    const Node& n = k_.nodes[v];
    std::string at = fmt::format("p{}", n.imm);
    if (n.a != kNone) at += fmt::format(" + {} * a.buffers[{}].index", operand(k_, n.a), n.imm);
    if (row_moves) at += fmt::format(" + (row + u) * a.buffers[{}].row", n.imm);
    return at;
  }
  std::string at_column(std::string base, size_t buffer, const char* column) const {
    if (k_.buffers[buffer].access == Access::uniform) return base;
    return fmt::format("{} + {} * {}", base, column, stride(buffer));
  }
  const char* local_memory(Type t) const { return memory_name(memory_type(t)); }

  /// What the elements compute: nodes, then stores into o and q, subscripted by `place`, then lanes of reductions.
  void elements(const PhaseMapping& p, const Phase& phase, const Place& place, const std::string& lane) {
    nodes(p.elements, place);
    for (size_t s = 0; s < phase.stores.size(); ++s)
      line("o{}{} = {};", s, place.subscript,
           to_memory(k_.buffers[phase.stores[s].buffer].dtype, operand(k_, phase.stores[s].value)));
    for (size_t s = 0; s < phase.local_stores.size(); ++s) {
      const Store& store = phase.local_stores[s];
      line("q{}{} = {};", s, place.subscript,
           to_memory(memory_type(k_.locals[store.buffer]), operand(k_, store.value)));
    }
    if (phase.reductions.empty()) return;
    open(fmt::format("if ({})", place.guard));
    for (uint32_t r : phase.reductions) {
      std::string c = combiner(r), of = operand(k_, k_.reductions[r].value);
      line("r{}_lanes[{}] = {}::join(r{}_lanes[{}], {}::of({}, {}));", r, lane, c, r, lane, c, of,
           l_.form == Form::columns ? place.row : place.column);
    }
    close();
  }

  void loop() {
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
    Place place;
    place.column = "column";
    place.scalar = true;
    elements(p, phase, place, "");
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
    Place place;
    place.column = "(column + u * next + e)";
    place.subscript = "[u][e]";
    elements(p, phase, place, "");
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
    Place place;
    place.column = "(column + e)";
    place.subscript = "[e]";
    place.guard = "e < count";
    elements(p, phase, place, "e");
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

  void columns() {
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
    Place place;
    place.row_moves = true;
    place.subscript = "[u]";
    place.guard = "u < count";
    place.column = "column";
    place.row = "(row + u)";
    elements(p, phase, place, "group + u");
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

  /// Partial results of form columns: all planes of the first reduction, then of the next.
  static std::string plane_of(uint32_t r) { return r ? fmt::format("({} * a.planes + plane)", r) : "plane"; }

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
