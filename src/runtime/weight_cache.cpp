#include "runtime/weight_cache.h"

namespace ingot::runtime {

void update_weight(std::shared_ptr<const PackedWeight>& mine, const void* source, const InputIdentity& identity,
                   int64_t rows, int64_t columns, WeightSlot& slot,
                   const std::function<std::shared_ptr<PackedWeight>()>& pack) {
  auto current = [&](const std::shared_ptr<const PackedWeight>& w) {
    return w && w->source == source && w->identity.storage == identity.storage &&
           w->identity.version == identity.version && w->rows == rows && w->columns == columns;
  };
  if (current(mine)) return;
  mine.reset();
  if (identity.storage == 0) return;
  std::lock_guard lock(slot.mutex);
  if (!current(slot.current)) {
    slot.current.reset();
    if (slot.packs > WeightSlot::kRepacks) return;
    ++slot.packs;
    std::shared_ptr<PackedWeight> fresh = pack();
    fresh->source = source, fresh->identity = identity, fresh->rows = rows, fresh->columns = columns;
    slot.current = std::move(fresh);
  }
  mine = slot.current;
}

}  // namespace ingot::runtime
