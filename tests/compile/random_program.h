// Programs made of random numbers.
#pragma once
#include <cstdint>
#include <tuple>
#include <vector>

#include "ingot.h"
#include "random_op.h"

namespace ingot::test {

// Kind, two operands, and what else. What a step does is worked out from the numbers and the tensors at hand, so that
// any numbers are a valid program, and shrinking them shrinks the program.
using Step = std::tuple<uint8_t, uint8_t, uint8_t, uint8_t>;

inline Tensor unary(uint8_t which, const Tensor& x) {
  switch (which % 8) {
    case 0:
      return x.relu();
    case 1:
      return -x;
    case 2:
      return x.abs();
    case 3:
      return x.tanh();
    case 4:
      return x.sin();
    case 5:
      return x.square();
    case 6:
      return x.sigmoid();
    default:
      return x * 0.5;
  }
}

inline Tensor binary(uint8_t which, const Tensor& x, const Tensor& y) {
  switch (which % 5) {
    case 0:
      return x + y;
    case 1:
      return x - y;
    case 2:
      return x * y;
    case 3:
      return x.maximum(y);
    default:
      return (x < y).to(x.dtype());
  }
}

inline Tensor view_of(uint8_t which, const Tensor& x) {
  int64_t rank = x.dim();
  if (!rank) return x.unsqueeze(0);
  int64_t d = which / 8 % rank;
  switch (which % 7) {
    case 0:
      return x.transpose(0, rank - 1);
    case 1:
      return x.size(d) > 1 ? x.narrow(d, 1, x.size(d) - 1) : x;
    case 2:
      return x.select(d, x.size(d) - 1);
    case 3:
      return rank < 4 ? x.unsqueeze(d) : x;
    case 4:
      return x.is_contiguous() ? x.view({x.numel()}) : x;
    case 5:
      return x.index({Slice(None, None, 2)});
    default:
      return rank == 1 ? x.unsqueeze(0).expand({3, x.size(0)}) : x;
  }
}

// Ops that are more than a scalar formula.
inline Tensor larger(uint8_t which, const Tensor& x, const Tensor& y) {
  int64_t rank = x.dim();
  if (!rank) return x.clone();
  int64_t d = which / 16 % rank, n = x.size(d);
  switch (which % 14) {
    case 0:
      return is_floating(x.dtype()) ? softmax(x, d) : x.cumsum(d);
    case 1:
      return rank >= 2 && is_floating(x.dtype()) ? x.matmul(x.transpose(-1, -2)) : x.mul(x);
    case 2:
      return cat({x, x * 2}, d);
    case 3:
      return where(x > 0, x, x.neg());
    case 4:
      return x.argmax(d);
    case 5:
      return x.amax({d}, true);
    case 6:
      return is_floating(x.dtype()) ? layer_norm(x, {x.size(-1)}) : x.amin({d});
    case 7:
      return x.index_select(d, n - 1 - arange(n));
    case 8:
      return x.clamp(-0.5, 1.5);
    case 9:
      return is_floating(x.dtype()) ? x.mean({d}) : x.prod(d);
    case 10:
      return is_floating(x.dtype()) && n > 1 ? x.var({d}, 1, true) : x.any().to(kFloat32);
    case 11:
      return x.masked_fill(x < 0, 3);
    case 12:
      return stack({x, x}, d);
    default:
      return is_floating(y.dtype()) && y.dim() == 2 && is_floating(x.dtype()) && x.dtype() == y.dtype() &&
                     x.size(-1) == y.size(1)
                 ? linear(x, y)
                 : x.reshape({-1});
  }
}

// argmax, masked_fill, any: a small difference may become a large one.
inline bool jumps(uint8_t which) { return which % 14 == 4 || which % 14 == 10 || which % 14 == 11 || which % 14 == 6; }

inline bool expanded(const Tensor& x) {
  for (int64_t d = 0; d < x.dim(); ++d)
    if (x.stride(d) == 0 && x.size(d) > 1) return true;
  return false;
}

// True if `from` broadcasts with `to`; with `into`, without changing the shape of `to`.
inline bool broadcasts(const Tensor& from, const Tensor& to, bool into) {
  if (into && from.dim() > to.dim()) return false;
  for (int64_t i = 1; i <= std::min(from.dim(), to.dim()); ++i)
    if (from.size(-i) != to.size(-i) && from.size(-i) != 1 && (into || to.size(-i) != 1)) return false;
  return true;
}

// One step; what it makes is added to what is at hand. `smooth`: without ops that jump or change the dtype. Throws
// Error where an op does not take the dtype at hand.
inline void make_step(const Step& step, std::vector<Tensor>& at_hand, bool smooth) {
  constexpr DType dtypes[] = {kFloat32, kFloat64, kInt64, kInt32, kBFloat16, kFloat16};
  const auto [kind, a, b, extra] = step;
  const Tensor x = at_hand[a % at_hand.size()], y = at_hand[b % at_hand.size()];
  switch (kind % 14) {
    case 0:
      at_hand.push_back(unary(extra, x));
      break;
    case 1:
      if (broadcasts(x, y, false)) at_hand.push_back(binary(smooth ? extra % 4 : extra, x, y));
      break;
    case 2:
    case 3:
      at_hand.push_back(view_of(extra, x));
      break;
    case 4:
      // Only floats are written: a cast of a NaN to an integer in place is the same everywhere, but an error to
      // promote.
      if (is_floating(x.dtype()) && broadcasts(y, x, true) && !expanded(x)) {
        if (extra % 3 == 0)
          x.add_(y);
        else if (extra % 3 == 1)
          x.copy_(y);
        else
          x.mul_(0.5);
      }
      break;
    case 5:
      if (!smooth) at_hand.push_back(x.to(dtypes[extra % 6]));
      break;
    case 7:
    case 8:
      if (x.numel() < 2000 && !(smooth && jumps(extra))) at_hand.push_back(larger(extra, x, y));
      break;
    case 6:
      at_hand.push_back(x.dim() ? x.sum(extra % x.dim(), extra / 16 % 2) : x.sum());
      break;
    case 9:
      at_hand.push_back(x + static_cast<double>(extra) / 16);
      break;
    default:  // any op of the table
      if (smooth) break;
      for (const Tensor& t : RandomOp((kind * 256u + a) * 65536u + b * 256u + extra, at_hand).run())
        at_hand.push_back(t);
      break;
  }
}

inline std::vector<Tensor> run(const std::vector<Step>& steps, std::vector<Tensor> at_hand, bool smooth = false) {
  for (const Step& step : steps) {
    try {
      make_step(step, at_hand, smooth);
    } catch (const Error&) {
      // The same step is refused eager and compiled.
    }
  }
  // Some results stay alive, the others are the compiler's own.
  std::vector<Tensor> results;
  for (size_t i = 0; i < at_hand.size(); i += 2) results.push_back(at_hand[i]);
  results.push_back(at_hand.back());
  return results;
}

}  // namespace ingot::test
