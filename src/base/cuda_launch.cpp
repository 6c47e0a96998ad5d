#include "base/cuda_launch.h"
#include "base/canonical_order.h"
#include "base/pieces.h"

#include <algorithm>
#include <bit>

namespace ingot {
namespace {

constexpr int64_t kChunk = canonical::kDeviceChunk;
constexpr int64_t kMaxGrid = 65535;  // of the second and third dim
constexpr int64_t kBlockThreads = 256, kWarp = 32;
constexpr int64_t kMaxWarps = 16, kRowsPerBlock = 4;
// Most blocks of a multiprocessor where each takes a whole row: what they make ready for all of their rows counts.
constexpr int64_t kRowBlocks = 32;
constexpr int64_t kStageWarps = 8;  // of a block that takes a part of a row
constexpr int64_t kFewSlots = 64;   // that each of the blocks of a row may join
constexpr int64_t kFewest = 16;     // form loop: rows and columns where tiles begin to pay
constexpr int64_t kTileRows = 16;   // form columns: threads along the rows; a warp stands along the columns

uint32_t clamp_to(int64_t x, int64_t most) { return static_cast<uint32_t>(std::clamp<int64_t>(x, 1, most)); }

/// Partial results of a row: one a chunk, and where these are many, one a chunk of them, and so on.
int64_t slots_of(int64_t chunks) {
  int64_t total = chunks;
  for (; chunks > kFewSlots; total += chunks) chunks = ceil_div(chunks, kChunk);
  return total;
}

CudaPlan plan_loop(const CudaMapping& m, int64_t lines, int64_t columns, const CudaDevice& device) {
  CudaLaunch launch;
  int64_t piece = m.vector * m.unroll;
  int64_t along = std::clamp<int64_t>(ceil_div(columns, piece), 1, kBlockThreads);
  launch.block[0] = static_cast<uint32_t>(std::bit_ceil(static_cast<uint64_t>(along)));
  launch.block[1] = static_cast<uint32_t>(kBlockThreads) / launch.block[0];
  const int64_t most = device.multiprocessors * device.blocks;
  launch.grid[0] = clamp_to(ceil_div(columns, piece * launch.block[0]), most);
  launch.grid[1] =
      clamp_to(ceil_div(lines, launch.block[1]), std::min(kMaxGrid, std::max<int64_t>(most / launch.grid[0], 1)));
  return {{launch}, 0};
}

CudaPlan plan_tiles(const CudaMapping& m, int64_t planes, int64_t rows, int64_t columns, const CudaDevice& device) {
  CudaLaunch launch;
  launch.stage = 1;
  launch.block[0] = static_cast<uint32_t>(kBlockThreads);
  launch.grid[0] = clamp_to(planes * ceil_div(rows, kCudaTile) * ceil_div(columns, kCudaTile),
                            device.multiprocessors * device.blocks);
  launch.shared_bytes = m.tile_bytes;
  return {{launch}, 0};
}

/// Phase by phase. Where a row has many partial results, a launch a level folds them into few.
void add_stages(CudaPlan& plan, const CudaMapping& m, CudaLaunch launch, int64_t chunks) {
  for (int stage = 1; stage <= m.stages; ++stage) {
    launch.stage = stage;
    launch.count = stage == 1 ? 0 : kFewSlots;
    plan.launches.push_back(launch);
    if (stage == m.stages && m.finishes) plan.launches.back().grid[1] = 1;
    CudaLaunch fold = launch;
    fold.stage = -stage;
    for (fold.count = chunks; stage < m.stages && fold.count > kFewSlots; fold.count = ceil_div(fold.count, kChunk)) {
      fold.grid[1] = std::min(launch.grid[1], clamp_to(ceil_div(fold.count, kChunk * kStageWarps), kMaxGrid));
      plan.launches.push_back(fold);
    }
  }
}

CudaPlan plan_rows(const CudaMapping& m, int64_t lines, int64_t columns, const CudaDevice& device) {
  CudaPlan plan;
  CudaLaunch launch;
  const int64_t chunks = ceil_div(columns, kChunk), padded = round_up(columns, 16);
  const bool wide = columns > kChunk;
  int64_t warps = wide ? std::min(chunks, kMaxWarps) : std::min(kRowsPerBlock, std::max<int64_t>(lines, 1));
  int64_t shared = device.shared_bytes;
  bool split = false;
  if (wide) {
    launch.slot_count = slots_of(chunks);
    int64_t slot_bytes = launch.slot_count * m.slot_bytes;
    split = m.stages && lines * 2 <= device.multiprocessors && chunks > 2 * warps;
    if (split || slot_bytes > shared / 4) {
      launch.slots = 0;
      plan.scratch_bytes = round_up(lines * slot_bytes, 256);
    } else {
      shared -= slot_bytes;
      launch.shared_bytes = slot_bytes;
    }
    if (split) {
      warps = kStageWarps;
      launch.grid[1] = clamp_to(std::min(ceil_div(chunks, warps), device.multiprocessors * 64 / lines), kMaxGrid);
    }
  }
  // What rows keep lies in shared memory, with as many rows a block as fit.
  const int64_t each = padded * m.kept_bytes;
  launch.keep = !split && each <= shared;  // what is in it does not outlive a launch
  if (!wide && each && launch.keep) warps = std::min(warps, shared / each);
  const int64_t rows_in_block = wide ? 1 : warps;
  if (launch.keep) launch.shared_bytes += each * rows_in_block;
  launch.block[0] = kWarp;
  launch.block[1] = static_cast<uint32_t>(warps);
  launch.grid[0] = clamp_to(ceil_div(lines, rows_in_block),
                            device.multiprocessors * (wide ? std::min(device.blocks, kRowBlocks) : device.blocks));
  if (split) {
    add_stages(plan, m, launch, chunks);
  } else {
    plan.launches.push_back(launch);
  }
  return plan;
}

CudaPlan plan_columns(const CudaMapping& m, int64_t planes, int64_t rows, int64_t columns) {
  CudaPlan plan;
  int64_t read = -1, end = 0;
  for (int64_t count = rows;;) {
    int64_t chunks = std::max<int64_t>(ceil_div(count, kChunk), 1);
    CudaLaunch launch;
    launch.block[0] = kWarp;
    launch.block[1] = kTileRows;
    launch.grid[0] = clamp_to(ceil_div(columns, kWarp), (int64_t(1) << 31) - 1);
    launch.grid[1] = clamp_to(chunks, kMaxGrid);
    launch.grid[2] = clamp_to(planes, kMaxGrid);
    launch.shared_bytes = m.tile_bytes;
    launch.count = count;
    launch.memory = read;
    if (chunks > 1) {
      launch.slots = end;
      end += round_up(planes * chunks * columns * m.slot_bytes, 256);
    }
    plan.launches.push_back(launch);
    if (chunks == 1) break;
    read = launch.slots;
    count = chunks;
  }
  plan.scratch_bytes = end;
  return plan;
}

}  // namespace

CudaPlan plan_launches(const CudaMapping& m, int64_t planes, int64_t rows, int64_t columns, const CudaDevice& device,
                       bool turned) {
  // A row of no columns has its row stores all the same; a kernel without points has nothing to do.
  const bool points = planes > 0 && (m.form == CudaMapping::Form::rows      ? rows > 0
                                     : m.form == CudaMapping::Form::columns ? columns > 0
                                                                            : rows > 0 && columns > 0);
  if (!points) return {};
  switch (m.form) {
    case CudaMapping::Form::loop:
      if (turned && std::min(rows, columns) >= kFewest && m.tile_bytes <= device.shared_bytes)
        return plan_tiles(m, planes, rows, columns, device);
      return plan_loop(m, planes * rows, columns, device);
    case CudaMapping::Form::rows:
      return plan_rows(m, planes * rows, columns, device);
    case CudaMapping::Form::columns:
      break;
  }
  return plan_columns(m, planes, rows, columns);
}

std::vector<uint64_t> CudaArguments::words(const CudaLaunch& launch, char* scratch) const {
  std::vector<uint64_t> out;
  auto add = [&](int64_t word) { out.push_back(static_cast<uint64_t>(word)); };
  auto address = [&](void* at) { out.push_back(reinterpret_cast<uint64_t>(at)); };
  auto in_scratch = [&](int64_t offset) { address(offset < 0 ? nullptr : scratch + offset); };
  int64_t planes = 1;
  for (int64_t size : outer) planes *= size;
  for (int64_t word : {planes, rows, columns, launch.count, launch.stage, launch.keep}) add(word);
  in_scratch(launch.memory);
  in_scratch(launch.slots);
  add(launch.slot_count);
  for (int64_t size : outer) add(size);
  for (const std::vector<CudaOperand>* list : {&buffers, &results})
    for (const CudaOperand& o : *list) {
      address(o.at);
      for (int64_t stride : {o.row, o.column, o.index}) add(stride);
      for (int64_t stride : o.outer) add(stride);
    }
  out.insert(out.end(), scalars.begin(), scalars.end());
  return out;
}

}  // namespace ingot
