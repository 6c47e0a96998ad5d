// How losses of elements become one: the words that functions over ops take as the op table's losses do. Not part of
// the API.
#pragma once
#include <string_view>

#include "eager/call/call.h"
#include "eager/ops/functions.h"

namespace ingot::nn::detail {

enum class Reduction : uint8_t { none, mean, sum };

inline Reduction reduction_of(const char* op, std::string_view word, Location location) {
  if (word == "none") return Reduction::none;
  if (word == "mean") return Reduction::mean;
  if (word == "sum") return Reduction::sum;
  eager::fail(op, "reduction", "\"" + std::string(word) + "\"", "one of \"none\", \"mean\", \"sum\"", location);
}

inline Tensor reduced(const Tensor& losses, Reduction reduction) {
  if (reduction == Reduction::none) return losses;
  return reduction == Reduction::mean ? losses.mean() : losses.sum();
}

}  // namespace ingot::nn::detail
