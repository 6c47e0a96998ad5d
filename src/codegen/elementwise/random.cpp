// Random bits: Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3" (SC 2011), Philox 4x32 with
// ten rounds. The 32-bit words stand in 64-bit integers, where their products are exact.
#include "codegen/elementwise/definitions.h"

namespace ingot::codegen::define {
namespace {

Expr low(Expr x) { return x & int64_t{0xFFFFFFFF}; }
Expr high(Expr x) { return shift_right_logical(x, 32); }

}  // namespace

Expr random_bits(const ElementwiseContext& c) {
  Expr at = c.operands[0] + c.operands[2], seed = c.operands[1], none = lift(at, 0);
  Expr counter[4] = {low(at), high(at), none, none}, key[2] = {low(seed), high(seed)};
  for (int round = 0; round < 10; ++round) {
    Expr a = counter[0] * int64_t{0xD2511F53}, b = counter[2] * int64_t{0xCD9E8D57};
    Expr next[4] = {high(b) ^ counter[1] ^ key[0], low(b), high(a) ^ counter[3] ^ key[1], low(a)};
    for (int i = 0; i < 4; ++i) counter[i] = next[i];
    key[0] = low(key[0] + int64_t{0x9E3779B9});
    key[1] = low(key[1] + int64_t{0xBB67AE85});
  }
  int word = c.attributes[0].integer ? 2 : 0;
  return (counter[word + 1] << 32) | counter[word];
}

}  // namespace ingot::codegen::define
