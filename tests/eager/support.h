// Helpers that several of the eager tests share.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "eager/ops/factories.h"

namespace ingot::test {

/// The text of the Error that f throws, "no error" where it throws none.
inline std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

/// f32: 0, 1, 2, ... in these sizes.
inline Tensor counting(const IntList& sizes) {
  int64_t n = 1;
  for (int64_t s : sizes.items()) n *= s;
  std::vector<float> values(n);
  for (int64_t i = 0; i < n; ++i) values[i] = static_cast<float>(i);
  return tensor(values).view(sizes);
}

}  // namespace ingot::test
