// The table of slots against a list that is searched: additions, cuts and clears in random order.
#include "trace/slot_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace ingot::trace {
namespace {

TEST(SlotTable, FindsWhatAListFinds) {
  // Addresses alone are looked at.
  static char memory[4096];
  auto tensor = [](uint64_t i) { return reinterpret_cast<detail::TensorImpl*>(memory + 16 * (i % 256)); };
  std::mt19937_64 random(7);
  for (uint32_t most : {1u, 8u, 9u, 40u, 256u}) {
    SlotTable table;
    std::vector<detail::TensorImpl*> list;
    for (int step = 0; step < 20000; ++step) {
      detail::TensorImpl* t = tensor(random());
      const auto at = std::find(list.begin(), list.end(), t);
      const uint32_t expected = at == list.end() ? SlotTable::kNone : static_cast<uint32_t>(at - list.begin());
      ASSERT_EQ(table.find(t), expected) << step;
      if (expected == SlotTable::kNone && list.size() < most) {
        list.push_back(t);
        table.add(t);
      } else if (random() % 16 == 0) {
        list.resize(random() % (list.size() + 1));
        table.cut(static_cast<uint32_t>(list.size()));
      } else if (random() % 1024 == 0) {
        list.clear();
        table.clear();
      }
      ASSERT_EQ(table.size(), list.size());
    }
    for (uint32_t slot = 0; slot < list.size(); ++slot) EXPECT_EQ(table[slot], list[slot]);
  }
}

}  // namespace
}  // namespace ingot::trace
