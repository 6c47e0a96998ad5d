// What tests of gradients share.
#pragma once
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "eager/autograd/autograd.h"
#include "eager/ops/factories.h"
#include "eager/ops/functions.h"

namespace ingot::test {

using Floats = std::vector<float>;

inline Tensor leaf(std::initializer_list<double> values, DType dtype = kFloat32) {
  return tensor(std::vector<double>(values)).to(dtype).requires_grad_();
}
inline Floats numbers(const Tensor& t) {
  const Tensor flat = t.detach().to(kFloat32).contiguous().reshape({-1});
  const float* data = flat.data_ptr<float>();
  return {data, data + flat.numel()};
}
template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return {};
}
/// "function_test.cpp:12", as errors have it.
inline std::string line_text(const char* file, int line) {
  const std::string path = file;
  return path.substr(path.rfind('/') + 1) + ":" + std::to_string(line);
}
inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace ingot::test
