#include "base/program.h"

namespace ingot {

std::string Target::str() const {
  constexpr const char* names[] = {"none", "avx2", "avx512"};
  return std::string(names[static_cast<int>(isa)]) + (bf16_dot ? "+bf16" : "");
}

}  // namespace ingot
