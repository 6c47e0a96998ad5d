#include "codegen/x86/streams.h"

#include <algorithm>
#include <bit>

namespace ingot::codegen::x86 {

Stream& Streams::get(uint32_t number, bool local, Value index) {
  for (Stream& s : streams_)
    if (s.number == number && s.local == local && s.index == index) return s;
  Mem slot = !local && index == kNone ? frame_.row(number) : frame_.reserve();
  streams_.push_back({number, local, index, slot, Gpr::none, false});
  return streams_.back();
}

std::vector<Stream*> Streams::used_by(const Phase& phase, const std::vector<bool>& live) {
  std::vector<Stream*> used;
  auto use = [&](uint32_t number, bool local, Value index) {
    Stream* s = &get(number, local, index);
    if (std::find(used.begin(), used.end(), s) == used.end()) used.push_back(s);
  };
  for (Value v = 0; v < analysis_.size(); ++v) {
    const Node& n = analysis_.node(v);
    if (!live[v] || analysis_.level(v) != Level::column) continue;
    if (n.op == Op::load) use(static_cast<uint32_t>(n.imm), false, analysis_.uniform_index(v));
    if (n.op == Op::local) use(static_cast<uint32_t>(n.imm), true, kNone);
  }
  for (const Store& s : phase.stores) use(s.buffer, false, kNone);
  for (const Store& s : phase.local_stores) use(s.buffer, true, kNone);
  return used;
}

std::vector<Stream*> Streams::used_by_rows(const std::vector<bool>& live) {
  std::vector<Stream*> used;
  for (Value v = 0; v < analysis_.size(); ++v) {
    const Node& n = analysis_.node(v);
    if (!live[v] || n.op != Op::load || n.a != kNone || analysis_.level(v) != Level::row) continue;
    Stream* s = &get(static_cast<uint32_t>(n.imm), false);
    if (std::find(used.begin(), used.end(), s) == used.end()) used.push_back(s);
  }
  return used;
}

bool Streams::wants_register(const Stream& s) const { return s.local || k_.buffers[s.number].access == Access::dense; }

void Streams::assign_registers(const std::vector<Stream*>& used) {
  for (Stream* s : used)
    if (wants_register(*s)) s->reg = free_register();
}

Gpr Streams::free_register() {
  return next_register_ < std::size(kStreamRegisters) ? kStreamRegisters[next_register_++] : Gpr::none;
}

bool Streams::keep_in_registers(const std::vector<Stream*>& used, const std::vector<Stream*>& of_rows) {
  std::vector<Stream*> all;
  for (Stream* s : used)
    if (wants_register(*s) && std::find(all.begin(), all.end(), s) == all.end()) all.push_back(s);
  if (all.size() + of_rows.size() > std::size(kStreamRegisters)) return false;
  free_registers();
  assign_registers(all);
  for (Stream* s : of_rows) s->reg = free_register();
  all.insert(all.end(), of_rows.begin(), of_rows.end());
  for (Stream* s : all) {
    if (s->index == kNone) code_.load(s->reg, s->slot);
    s->moves = !s->local && s->index == kNone;
  }
  return true;
}

void Streams::begin(Stream& s, Vector* index, bool resident) {
  if (index) {
    index_to_rax(s.number, *index);
    code_.store(s.slot, Gpr::rax);
  }
  if (s.reg != Gpr::none && (index || !resident)) code_.load(s.reg, s.slot);
}

void Streams::advance_row() {
  for (uint32_t b = 0; b < k_.buffers.size(); ++b) {
    if (k_.buffers[b].same_rows) continue;
    bool slot_is_read = true;
    for (const Stream& s : streams_)
      if (s.moves && s.number == b) {
        code_.g(VOp::g_addm, s.reg, frame_.row_stride(b));
        slot_is_read = analysis_.indexed(b);
        for (const Phase& phase : k_.phases)
          for (const Store& store : phase.row_stores) slot_is_read |= store.buffer == b;
      }
    if (!slot_is_read) continue;
    code_.load(Gpr::rax, frame_.row_stride(b));
    code_.g(VOp::g_add_to, Gpr::rax, frame_.row(b));
  }
}

void Streams::put_back() {
  for (const Stream& s : streams_)
    if (s.moves && !k_.buffers[s.number].same_rows) code_.store(s.slot, s.reg);
}

Mem Streams::address(const Stream& s, int64_t bytes) {
  Gpr base = s.reg;
  if (base == Gpr::none) {
    base = Gpr::rax;
    code_.load(base, s.slot);
  }
  return Mem::at(base, Gpr::rcx, static_cast<int>(bytes), frame_.column_offset() * bytes);
}

void Streams::address_to_rax(const Stream& s, bool moves) {
  if (!moves) return code_.load(Gpr::rax, s.slot);
  code_.g(VOp::g_mov, Gpr::rax, Gpr::rcx);
  if (frame_.column_offset()) code_.g(VOp::g_addi, Gpr::rax, frame_.column_offset());
  const Buffer& b = k_.buffers[s.number];
  if (b.access == Access::strided) {
    code_.g(VOp::g_imulm, Gpr::rax, frame_.column_stride(s.number));
  } else {
    code_.g(VOp::g_shli, Gpr::rax, std::countr_zero(static_cast<uint64_t>(ingot::size_of(b.dtype))));
  }
  code_.g(VOp::g_addm, Gpr::rax, s.slot);
}

void Streams::index_to_rax(uint32_t buffer, Vector& index) {
  code_.add({.op = VOp::q_to_gpr, .g = Gpr::rax, .a = index.part[0].reg});
  code_.g(VOp::g_imulm, Gpr::rax, frame_.index_stride(buffer));
  code_.g(VOp::g_addm, Gpr::rax, frame_.row(buffer));
}

/// While there is much to compute: in a kernel of one phase the same streams further on, else the row behind this one
/// and where this row's results will go.
void Streams::fetch_ahead(int steps) {
  constexpr int64_t kAhead = 1024;
  if (k_.known_columns) return;  // what comes next is another row
  for (const Stream& s : streams_) {
    if (!s.moves || k_.buffers[s.number].access != Access::dense) continue;
    const int64_t bytes = ingot::size_of(k_.buffers[s.number].dtype);
    Gpr base = s.reg;
    if (k_.phases.size() > 1 && !k_.buffers[s.number].written) {
      base = Gpr::rax;
      code_.g(VOp::g_mov, base, s.reg);
      code_.g(VOp::g_addm, base, frame_.row_stride(s.number));
    }
    for (int64_t at = 0; at < steps * kLanes * bytes; at += 64)
      code_.add({.op = VOp::prefetch,
                 .mem = Mem::at(base, Gpr::rcx, static_cast<int>(bytes), at + (k_.phases.size() > 1 ? 0 : kAhead))});
  }
}

}  // namespace ingot::codegen::x86
