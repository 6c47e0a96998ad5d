#include "codegen/x86/frame.h"
#include "codegen/x86/arithmetic.h"
#include "codegen/x86/lanes.h"

#include <algorithm>
#include <cstddef>

namespace ingot::codegen::x86 {

// rdi: the KernelFrame.
Frame::Frame(const Analysis& analysis, Vectors& vectors) : v_(vectors), code_(vectors.code()) {
  const Kernel& k = analysis.kernel();
  for (Mem& slot : slots_) slot = reserve();
  auto field = [](size_t offset) { return Mem::at(Gpr::rdi, static_cast<int64_t>(offset)); };
  auto copy = [&](size_t offset, Slot slot) {
    code_.load(Gpr::rax, field(offset));
    code_.store(at(slot), Gpr::rax);
  };
  code_.store(at(Slot::kernel_frame), Gpr::rdi);
  copy(offsetof(KernelFrame, columns), Slot::columns);
  copy(offsetof(KernelFrame, rows), Slot::rows_left);
  copy(offsetof(KernelFrame, row_index), Slot::row_index);
  copy(offsetof(KernelFrame, column_index), Slot::column_index);
  auto copy_array = [&](size_t offset, std::vector<Mem>& slots, auto wanted) {
    slots.resize(k.buffers.size());
    code_.load(Gpr::rsi, field(offset));
    for (uint32_t b = 0; b < k.buffers.size(); ++b) {
      if (!wanted(b)) continue;
      slots[b] = reserve();
      code_.load(Gpr::rax, Mem::at(Gpr::rsi, 8 * b));
      code_.store(slots[b], Gpr::rax);
    }
  };
  auto every = [](uint32_t) { return true; };
  auto strided = [&](uint32_t b) { return k.buffers[b].access == Access::strided; };
  copy_array(offsetof(KernelFrame, buffers), rows_, every);
  copy_array(offsetof(KernelFrame, row_strides), row_strides_, every);
  if (std::any_of(k.buffers.begin(), k.buffers.end(), [](const Buffer& b) { return b.access == Access::strided; }))
    copy_array(offsetof(KernelFrame, column_strides), column_strides_, strided);
  copy_array(offsetof(KernelFrame, index_strides), index_strides_, [&](uint32_t b) { return analysis.indexed(b); });
}

void Frame::exchange_row(Row& row) {
  std::swap(slots_[static_cast<size_t>(Slot::row_index)], row.index);
  std::swap(rows_, row.addresses);
}

void Frame::load_field(Gpr to, size_t offset, Gpr frame) {
  code_.load(frame, at(Slot::kernel_frame));
  code_.load(to, Mem::at(frame, static_cast<int64_t>(offset)));
}

void Frame::begin_tail() {
  masked_ = true;
  code_.load(Gpr::rax, at(Slot::columns));
  code_.g(VOp::g_sub, Gpr::rax, Gpr::rcx);
  code_.store(at(Slot::tail_count), Gpr::rax);
  if (v_.avx512()) {
    tail_ = v_.blank(Type::mask);
    code_.g(VOp::g_imm, Gpr::rbx, -1);
    code_.g(VOp::g_bzhi, Gpr::rbx, Gpr::rax);
    code_.add({.op = VOp::k_from_gpr, .g = Gpr::rbx, .dst = tail_.part[0].reg});
    return;
  }
  Vector count = broadcast(v_, Type::i32, Gpr::rax), lanes = lane_numbers(v_, Type::i32);
  tail_ = compare(v_, Op::lt, lanes, count);
}

}  // namespace ingot::codegen::x86
