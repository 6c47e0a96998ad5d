#include "codegen/cuda/printer.h"

namespace ingot::codegen::cuda {

std::string Printer::run() {
  argument_struct();
  const int threads = l_.form == Form::loop ? 256 : 512;
  open(fmt::format("extern \"C\" __global__ void __launch_bounds__({}) {}(const __grid_constant__ {}_arguments a)",
                   threads, entry_, entry_));
  line("begin();");
  for (size_t b = 0; b < k_.buffers.size(); ++b)
    if (dense(b) && moved(b) && l_.form != Form::columns)
      line("const bool pieces{} = in_pieces<{}, {}>(a.buffers[{}]);", b, memory(b), l_.vector, b);
  nodes(m_.call, {});
  form();
  close();
  return std::move(out_);
}

void Printer::open(const std::string& head) {
  line("{} {{", head);
  ++indent_;
}

void Printer::close() {
  --indent_;
  line("}}");
}

bool Printer::touched(size_t buffer) const {
  for (size_t i = 0; i < k_.phases.size(); ++i) {
    for (const Store& s : k_.phases[i].row_stores)
      if (s.buffer == buffer) return true;
    for (const std::vector<Value>* list : {&m_.phases[i].before, &m_.phases[i].elements, &m_.phases[i].after})
      for (Value v : *list)
        if (k_.nodes[v].op == Op::load && k_.nodes[v].imm == buffer) return true;
  }
  return moved(buffer);
}

std::string Printer::loaded(size_t buffer, const std::string& name, const std::string& of, int lanes) const {
  if (packed(buffer)) return fmt::format("Halves<{}> {}{};", lanes, name, of);
  return fmt::format("{} {}{}[{}];", memory(buffer), name, of, lanes);
}

std::string Printer::to_store(size_t buffer, const std::string& name, const std::string& of, int lanes) const {
  return fmt::format("{} {}{}[{}];", packed(buffer) ? "float" : memory(buffer), name, of, lanes);
}

std::string Printer::stored(size_t buffer, const std::string& name) const {
  return packed(buffer) ? to_memory(k_.buffers[buffer].dtype, name) : name;
}

std::string Printer::all_pieces(size_t phase) const {
  std::string all;
  for (size_t b = 0; b < k_.buffers.size(); ++b)
    if (dense(b) && m_.moves(k_, phase, b)) all += fmt::format("pieces{} && ", b);
  return all;
}

std::string Printer::stride(size_t buffer) const {
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

std::string Printer::combiner(uint32_t r) const {
  constexpr const char* names[] = {"Sum", "Prod", "Max", "Min", "Any", "All", "ArgMax", "ArgMin"};
  const Reduction& reduction = k_.reductions[r];
  return fmt::format("{}<{}>", names[static_cast<int>(reduction.combiner)], type_name(k_.nodes[reduction.value].type));
}

DType Printer::result_type(uint32_t r) const {
  return is_index(k_.reductions[r].combiner) ? DType::i64 : memory_type(k_.nodes[k_.reductions[r].value].type);
}

void Printer::argument_struct() {
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

void Printer::line_place() {
  if (l_.outer)
    line("const long long plane = quotient(at, a.rows), row = at - plane * a.rows;");
  else
    line("const long long row = at;");
}

void Printer::plane_addresses(bool row) {
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

std::string Printer::outer_offset(const std::string& operand) const {
  std::string text;
  for (int d = 0; d < l_.outer; ++d) text += fmt::format(" + i{} * {}.outer[{}]", d, operand, d);
  return text;
}

std::string Printer::index_value(const Node& n, const Cursor& cursor) const {
  if (n.imm == 0) return cursor.column;
  if (n.imm == 1) return cursor.row;
  return fmt::format("i{}", l_.outer - static_cast<int>(n.imm) + 1);
}

std::string Printer::load_address(const Node& n, const Cursor& cursor) const {
  const size_t b = n.imm;
  std::string at = fmt::format("p{}", b);
  if (cursor.row_moves) at += fmt::format(" + {} * a.buffers[{}].row", cursor.row, b);
  if (k_.buffers[b].access != Access::uniform && cursor.column != "0")
    at += fmt::format(" + {} * {}", cursor.column, stride(b));
  if (n.a != kNone) at += fmt::format(" + {} * a.buffers[{}].index", operand(k_, n.a), b);
  return at;
}

std::string Printer::node_value(Value v, const Cursor& cursor) const {
  const Node& n = k_.nodes[v];
  switch (n.op) {
    case Op::load: {
      DType d = k_.buffers[n.imm].dtype;
      if ((cursor.scalar || !cursor.lane.empty()) && (n.a == kNone || m_.scopes[n.a] != Scope::element)) {
        if (!cursor.scalar && packed(n.imm))
          return from_memory(d, fmt::format("b{}{}, {}", v, cursor.subscript, cursor.lane));
        return from_memory(d, fmt::format("b{}{}", v, cursor.element()));
      }
      std::string element = fmt::format("load_one<{}>({})", memory_name(d), load_address(n, cursor));
      if (!cursor.guard.empty()) element = fmt::format("({} ? {} : {}(0))", cursor.guard, element, cast_name(d));
      return from_memory(d, element);
    }
    case Op::local:
      if (cursor.again) return operand(k_, Mapping::stored_in(k_, n.imm));
      return from_memory(memory_type(n.type), fmt::format("b{}{}", v, cursor.element()));
    case Op::index:
      return index_value(n, cursor);
    default:
      return expression(k_, n);
  }
}

void Printer::nodes(const std::vector<Value>& list, const Cursor& cursor) {
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
      line("const {} v{} = {};", type_name(n.type), v, node_value(v, cursor));
    }
    region = n.region;
  }
}

std::string Printer::staged_base(Value v, const char* row) const {
  const Node& n = k_.nodes[v];
  std::string at = fmt::format("p{}", n.imm);
  if (n.a != kNone) at += fmt::format(" + {} * a.buffers[{}].index", operand(k_, n.a), n.imm);
  if (*row) at += fmt::format(" + {} * a.buffers[{}].row", row, n.imm);
  return at;
}

std::string Printer::at_column(std::string base, size_t buffer, const char* column) const {
  if (k_.buffers[buffer].access == Access::uniform) return base;
  return fmt::format("{} + {} * {}", base, column, stride(buffer));
}

void Printer::elements(const PhaseMapping& p, const Phase& phase, const Cursor& cursor, const std::string& lane) {
  nodes(p.elements, cursor);
  for (size_t s = 0; s < phase.stores.size(); ++s) {
    const DType dtype = k_.buffers[phase.stores[s].buffer].dtype;
    const std::string value = operand(k_, phase.stores[s].value);
    const bool later = !cursor.scalar && packed(phase.stores[s].buffer);  // two at a time
    line("o{}{} = {};", s, cursor.element(), later ? value : to_memory(dtype, value));
  }
  for (size_t s = 0; s < phase.local_stores.size() && !cursor.again; ++s) {
    const Store& store = phase.local_stores[s];
    line("q{}{} = {};", s, cursor.element(), to_memory(memory_type(k_.locals[store.buffer]), operand(k_, store.value)));
  }
  if (phase.reductions.empty()) return;
  if (!cursor.guard.empty()) open(fmt::format("if ({})", cursor.guard));
  for (uint32_t r : phase.reductions) {
    std::string c = combiner(r), of = operand(k_, k_.reductions[r].value);
    line("r{}_lanes[{}] = {}::join(r{}_lanes[{}], {}::of({}, {}));", r, lane, c, r, lane, c, of,
         l_.form == Form::columns ? cursor.row : cursor.column);
  }
  if (!cursor.guard.empty()) close();
}

}  // namespace ingot::codegen::cuda
