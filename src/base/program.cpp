#include "base/program.h"

namespace ingot {

std::string Target::str() const {
  if (cuda_arch) return "sm_" + std::to_string(cuda_arch);
  constexpr const char* names[] = {"none", "avx2", "avx512"};
  return std::string(names[static_cast<int>(isa)]) + (bf16_dot ? "+bf16" : "");
}

}  // namespace ingot
