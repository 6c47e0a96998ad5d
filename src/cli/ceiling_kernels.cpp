#include "cli/ceiling_kernels.h"

#include <xbyak/xbyak.h>

#include "base/error.h"

namespace ingot::cli {
namespace {

constexpr int kAccumulators = 12;  // more than latency (4 cycles) times units (2); fits 16 registers with two operands
constexpr int kUnroll = 8;

class CeilingGenerator : public Xbyak::CodeGenerator {
 public:
  CeilingGenerator(CeilingLoop loop, const Target& target) : CodeGenerator(1 << 14), wide_(target.isa == Isa::avx512) {
    using namespace Xbyak::util;
    mov(rsi, ptr[rdi + offsetof(CeilingFrame, source)]);
    mov(rdx, ptr[rdi + offsetof(CeilingFrame, destination)]);
    mov(rcx, ptr[rdi + offsetof(CeilingFrame, bytes)]);
    mov(r8, ptr[rdi + offsetof(CeilingFrame, repeats)]);
    if (loop == CeilingLoop::fma_f32 || loop == CeilingLoop::dot_bf16)
      arithmetic(loop == CeilingLoop::dot_bf16);
    else if (loop == CeilingLoop::copy_lines)
      lines();
    else
      memory(loop);
    vzeroupper();
    ret();
  }

 private:
  void arithmetic(bool bf16) {
    using namespace Xbyak::util;
    for (int i = 0; i < kAccumulators + 2; ++i) zero(i);
    align(64);
    Xbyak::Label head;
    L(head);
    for (int u = 0; u < kUnroll; ++u)
      for (int i = 0; i < kAccumulators; ++i) {
        int a = kAccumulators, b = kAccumulators + 1;
        if (bf16)
          vdpbf16ps(Xbyak::Zmm(i), Xbyak::Zmm(a), Xbyak::Zmm(b));
        else if (wide_)
          vfmadd231ps(Xbyak::Zmm(i), Xbyak::Zmm(a), Xbyak::Zmm(b));
        else
          vfmadd231ps(Xbyak::Ymm(i), Xbyak::Ymm(a), Xbyak::Ymm(b));
      }
    dec(r8);
    jnz(head, T_NEAR);
  }

  void memory(CeilingLoop loop) {
    using namespace Xbyak::util;
    const int width = wide_ ? 64 : 32, steps = 512 / width;
    for (int i = 0; i < steps; ++i) zero(i);
    Xbyak::Label again, head;
    L(again);
    xor_(rax, rax);
    align(64);
    L(head);
    for (int i = 0; i < steps; ++i) {
      auto from = ptr[rsi + rax + i * width];
      auto to = ptr[rdx + rax + i * width];
      if (loop == CeilingLoop::read) {
        if (wide_)
          vpord(Xbyak::Zmm(i), Xbyak::Zmm(i), from);
        else
          vorps(Xbyak::Ymm(i), Xbyak::Ymm(i), from);
      } else if (loop == CeilingLoop::copy) {
        if (wide_)
          vmovups(Xbyak::Zmm(i), from), vmovups(to, Xbyak::Zmm(i));
        else
          vmovups(Xbyak::Ymm(i), from), vmovups(to, Xbyak::Ymm(i));
      } else {
        if (wide_)
          vmovups(Xbyak::Zmm(i), from), vmovntps(to, Xbyak::Zmm(i));
        else
          vmovups(Xbyak::Ymm(i), from), vmovntps(to, Xbyak::Ymm(i));
      }
    }
    add(rax, 512);
    cmp(rax, rcx);
    jl(head, T_NEAR);
    dec(r8);
    jnz(again, T_NEAR);
    if (loop == CeilingLoop::copy_streaming) sfence();
  }

  // A square of f32 as if it were transposed: 16 rows at a time, of which a line each goes to 16 rows of the
  // destination at the place of those rows, the next line of each to the next 16.
  void lines() {
    using namespace Xbyak::util;
    constexpr int kRows = 16;
    Xbyak::Label again, group, line;
    L(again);
    mov(r9, rsi);    // the 16 rows
    xor_(r10, r10);  // what stands before their place in a row of the destination
    L(group);
    lea(r11, ptr[rdx + r10]);
    xor_(rdi, rdi);
    align(64);
    L(line);
    mov(rax, r9);
    for (int i = 0; i < kRows; ++i, add(rax, rcx), add(r11, rcx))
      for (int part = 0; part < (wide_ ? 1 : 2); ++part) {
        const auto from = ptr[rax + rdi + 32 * part], to = ptr[r11 + 32 * part];
        if (wide_)
          vmovups(zmm0, from), vmovntps(to, zmm0);
        else
          vmovups(ymm0, from), vmovntps(to, ymm0);
      }
    add(rdi, 64);
    cmp(rdi, rcx);
    jl(line, T_NEAR);
    mov(r9, rax);
    add(r10, 64);
    cmp(r10, rcx);
    jl(group, T_NEAR);
    dec(r8);
    jnz(again, T_NEAR);
    sfence();
  }

  void zero(int i) {
    if (wide_)
      vpxord(Xbyak::Zmm(i), Xbyak::Zmm(i), Xbyak::Zmm(i));
    else
      vxorps(Xbyak::Ymm(i), Xbyak::Ymm(i), Xbyak::Ymm(i));
  }

  bool wide_;
};

const char* loop_name(CeilingLoop loop) {
  switch (loop) {
    case CeilingLoop::fma_f32:
      return "fma_f32";
    case CeilingLoop::dot_bf16:
      return "dot_bf16";
    case CeilingLoop::read:
      return "read";
    case CeilingLoop::copy:
      return "copy";
    case CeilingLoop::copy_streaming:
      return "copy_streaming";
    case CeilingLoop::copy_lines:
      return "copy_lines";
  }
  return "";
}

}  // namespace

// Whether products use it or not.
static bool has_bf16_dot(const Target& target) {
  return target.isa == Isa::avx512 && __builtin_cpu_supports("avx512bf16");
}

int64_t fma_operations(const Target& target) {
  return int64_t{2} * kAccumulators * kUnroll * (target.isa == Isa::avx512 ? 16 : 8);
}

KernelPtr ceiling_kernel(CeilingLoop loop, const Target& target) {
  if (target.isa == Isa::none || (loop == CeilingLoop::dot_bf16 && !has_bf16_dot(target))) return nullptr;
  CeilingGenerator generator(loop, target);
  auto source = std::make_shared<KernelSource>();
  source->name = std::string("ceiling_") + loop_name(loop);
  source->key = source->name + " " + target.str();
  source->code.assign(generator.getCode(), generator.getCode() + generator.getSize());
  source->code_bytes = static_cast<int64_t>(source->code.size());
  return source;
}

}  // namespace ingot::cli
