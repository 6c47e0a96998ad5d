#include "base/dtype.h"

#include <gtest/gtest.h>

#include <complex>

namespace ingot {
namespace {

TEST(DType, SizesAreThoseOfTheNumbers) {
  const std::pair<DType, size_t> sizes[] = {{DType::f64, sizeof(double)},
                                            {DType::f32, sizeof(float)},
                                            {DType::f16, 2},
                                            {DType::bf16, 2},
                                            {DType::i64, sizeof(int64_t)},
                                            {DType::i32, sizeof(int32_t)},
                                            {DType::i16, sizeof(int16_t)},
                                            {DType::i8, sizeof(int8_t)},
                                            {DType::u8, sizeof(uint8_t)},
                                            {DType::bool_, sizeof(bool)},
                                            {DType::c64, sizeof(std::complex<float>)},
                                            {DType::c128, sizeof(std::complex<double>)}};
  EXPECT_EQ(std::size(sizes), static_cast<size_t>(kDTypeCount));
  for (auto [dtype, size] : sizes) EXPECT_EQ(size_of(dtype), static_cast<int64_t>(size)) << static_cast<int>(dtype);
}

}  // namespace
}  // namespace ingot
