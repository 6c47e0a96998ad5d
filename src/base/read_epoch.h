// Reading without locks what others replace: a writer frees what it has unlinked once no reader can still hold it.
#pragma once
#include <cstdint>

#include "base/export.h"

namespace ingot {

/// While it lives, nothing is freed that was reachable when it began. Sections nest; each ends on its own thread. What
/// it protects is read and unlinked by sequentially consistent loads and stores.
class INGOT_API ReadSection {
 public:
  ReadSection();
  ~ReadSection();
  ReadSection(const ReadSection&) = delete;
  ReadSection& operator=(const ReadSection&) = delete;
};

/// The epoch that ends now: what was unlinked before may be freed once oldest_reader() is beyond it.
uint64_t end_epoch();
/// The epoch in which the oldest section in progress began; the largest number if there is none.
uint64_t oldest_reader();

}  // namespace ingot
