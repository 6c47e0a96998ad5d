// The constants of the canonical orders (docs/numerics.md). Results depend on them, so each stands here alone.
#pragma once
#include <cstdint>

namespace ingot::canonical {

// On a processor. A sum adds up in lanes, over blocks; a product over blocks of k.
inline constexpr int kLanes = 16;
inline constexpr int64_t kBlock = 256;
inline constexpr int64_t kProductBlock = 256;

// On a GPU. A sum adds up in lanes, over chunks.
inline constexpr int64_t kDeviceChunk = 1024;
inline constexpr int kDeviceLanes = 256;

}  // namespace ingot::canonical
