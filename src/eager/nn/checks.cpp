#include "eager/nn/checks.h"

#include "eager/call/call.h"

namespace ingot::nn::detail {
namespace {

void check(const char* layer, const char* setting, int64_t value, int64_t least) {
  if (value < least)
    refuse(layer, setting, std::to_string(value), least == 1 ? "a positive number" : "no negative number");
}

const IntList& check(const char* layer, const char* setting, const IntList& values, size_t dims, int64_t least) {
  const size_t count = values.items().size();
  if (count == 0 || (dims && count != 1 && count != dims))
    refuse(layer, setting, std::to_string(count) + " numbers",
           dims == 0   ? "at least one"
           : dims == 1 ? "one"
                       : "one, or " + std::to_string(dims));
  for (int64_t value : values.items()) check(layer, setting, value, least);
  return values;
}

}  // namespace

void refuse(const char* layer, const char* setting, const std::string& got, const std::string& expected) {
  eager::fail(layer, setting, got, expected, Location::none());
}

int64_t positive(const char* layer, const char* setting, int64_t value) {
  check(layer, setting, value, 1);
  return value;
}
int64_t not_negative(const char* layer, const char* setting, int64_t value) {
  check(layer, setting, value, 0);
  return value;
}
const IntList& positive(const char* layer, const char* setting, const IntList& values, size_t dims) {
  return check(layer, setting, values, dims, 1);
}
const IntList& not_negative(const char* layer, const char* setting, const IntList& values, size_t dims) {
  return check(layer, setting, values, dims, 0);
}
double order(const char* layer, double p) {
  if (p == 0) refuse(layer, "norm_type", "0", "another number");
  return p;
}
double margin(const char* layer, double margin) {
  if (!(margin > 0)) refuse(layer, "margin", std::to_string(margin), "a number above 0");
  return margin;
}
double share(const char* layer, const char* setting, double value) {
  if (!(value >= 0 && value <= 1)) refuse(layer, setting, std::to_string(value), "a number from 0 to 1");
  return value;
}

const TensorArg& with_dims(const char* layer, const TensorArg& x, int64_t fewest, int64_t most) {
  if (const int64_t dims = eager::present(layer, "input", x).dim(); dims < fewest || dims > most)
    eager::fail(layer, "input", shape_of(*x.tensor),
                std::to_string(fewest) + (fewest == most ? "" : " or " + std::to_string(most)) + " dims", x.location);
  return x;
}

std::string shape_of(const Tensor& t) {
  std::string text;
  for (int64_t d = 0; d < t.dim(); ++d) text += (d ? ", " : "") + std::to_string(t.size(d).value());
  return "shape [" + text + "]";
}

int64_t divisible(const char* layer, const char* setting, int64_t value, const char* by, int64_t divisor) {
  if (value % divisor != 0)
    refuse(layer, setting, std::to_string(value),
           std::string("a multiple of ") + by + " (" + std::to_string(divisor) + ")");
  return value;
}

}  // namespace ingot::nn::detail
