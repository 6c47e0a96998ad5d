// What the memory checks see. Tests run as guarded_* (tests/CMakeLists.txt) rely on this.
#include "runtime/memory/checked_memory.h"

#include <gtest/gtest.h>

namespace ingot::runtime {
namespace {

TEST(CheckedMemory, TheBlockItselfIsFree) {
  for (int64_t bytes : {0, 1, 63, 4096, 4097, 1 << 20}) {
    auto* block = static_cast<volatile char*>(allocate_checked(bytes));
    for (int64_t i = 0; i < bytes; ++i) block[i] = static_cast<char>(i);
    deallocate_checked(const_cast<char*>(block), bytes);
  }
}

TEST(CheckedMemoryDeathTest, AWriteNextToTheBlockIsFound) {
  auto write = [](int64_t bytes, int64_t at) {
    auto* block = static_cast<volatile char*>(allocate_checked(bytes));
    block[at] = 1;
    deallocate_checked(const_cast<char*>(block), bytes);
  };
  // Whichever end lies against the guarded page, one side is the pattern and the other a fault.
  EXPECT_DEATH(write(100, -1), "");
  EXPECT_DEATH(write(100, 100), "");
}

TEST(CheckedMemoryDeathTest, AReadBeyondTheGuardedEndOrOfABlockGivenBackFaults) {
  auto read = [](volatile const char* at) { static_cast<void>(*at); };
  auto* block = static_cast<char*>(allocate_checked(8192));
  EXPECT_DEATH(read(block - 1), "");
  EXPECT_DEATH(read(block + 8192), "");
  deallocate_checked(block, 8192);
  EXPECT_DEATH(read(block), "");
}

}  // namespace
}  // namespace ingot::runtime
