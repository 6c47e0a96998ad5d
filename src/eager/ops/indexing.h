// What stands between the braces of x.index({...}).
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include "eager/tensor.h"

namespace ingot {

/// An end of a Slice that is left open.
inline constexpr std::nullopt_t None = std::nullopt;
struct EllipsisType {};
/// All dims that the other indices leave.
inline constexpr EllipsisType Ellipsis;

/// start:stop:step, with Python's rules. The step is positive.
struct Slice {
  std::optional<SizeArg> start, stop;
  std::optional<int64_t> step;
  Slice(std::optional<SizeArg> from = {}, std::optional<SizeArg> to = {}, std::optional<int64_t> by = {})
      : start(from), stop(to), step(by) {}
};

/// One index: a number, a Slice, None (a new dim of size 1), Ellipsis or "...", or a tensor: of bools or u8 a mask, of
/// other integers positions.
struct TensorIndex {
  enum class Kind : uint8_t { none, ellipsis, integer, boolean, slice, tensor } kind;
  SizeArg integer = 0;
  Slice slice;
  Tensor tensor;
  TensorIndex(std::nullopt_t) : kind(Kind::none) {}
  TensorIndex(EllipsisType) : kind(Kind::ellipsis) {}
  INGOT_API TensorIndex(const char* dots);
  template <class T>
  requires std::is_integral_v<T> TensorIndex(T i)
      : kind(std::is_same_v<T, bool> ? Kind::boolean : Kind::integer), integer(static_cast<int64_t>(i)) {}
  TensorIndex(const Size& i) : kind(Kind::integer), integer(i) {}
  TensorIndex(Slice s) : kind(Kind::slice), slice(s) {}
  TensorIndex(Tensor t) : kind(Kind::tensor), tensor(std::move(t)) {}
};

namespace indexing {
using ingot::Ellipsis;
using ingot::None;
using ingot::Slice;
using ingot::TensorIndex;
}  // namespace indexing

}  // namespace ingot
