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
constexpr int64_t kTileRows = 16;  // form columns: threads along the rows; a warp stands along the columns

uint32_t clamp_to(int64_t x, int64_t most) { return static_cast<uint32_t>(std::clamp<int64_t>(x, 1, most)); }

/// Partial results of a row: one a chunk, and where these are more than a chunk, one a chunk of them, and so on.
int64_t slots_of(int64_t chunks) {
  int64_t total = chunks;
  for (; chunks > kChunk; total += chunks) chunks = ceil_div(chunks, kChunk);
  return total;
}

CudaPlan plan_loop(const CudaMapping& m, int64_t lines, int64_t columns, const CudaDevice& device) {
  CudaLaunch launch;
  int64_t piece = m.vector * m.unroll;
  int64_t along = std::clamp<int64_t>(ceil_div(columns, piece), 1, kBlockThreads);
  launch.block[0] = static_cast<uint32_t>(std::bit_ceil(static_cast<uint64_t>(along)));
  launch.block[1] = static_cast<uint32_t>(kBlockThreads) / launch.block[0];
  // Enough blocks to fill the device several times; beyond that each block goes on to the next piece.
  int64_t most = int64_t(device.multiprocessors) * 64;
  launch.grid[0] = clamp_to(ceil_div(columns, piece * launch.block[0]), most);
  launch.grid[1] =
      clamp_to(ceil_div(lines, launch.block[1]), std::min(kMaxGrid, std::max<int64_t>(most / launch.grid[0], 1)));
  return {{launch}, 0};
}

CudaPlan plan_rows(const CudaMapping& m, int64_t lines, int64_t columns, const CudaDevice& device) {
  CudaPlan plan;
  CudaLaunch launch;
  const int64_t chunks = ceil_div(columns, kChunk), padded = round_up(columns, 16);
  const bool wide = columns > kChunk;
  int64_t warps = wide ? std::min(chunks, kMaxWarps) : std::min(kRowsPerBlock, std::max<int64_t>(lines, 1));
  int64_t shared = device.shared_bytes, offset = 0;
  if (wide) {
    launch.slot_count = slots_of(chunks);
    int64_t slot_bytes = launch.slot_count * m.slot_bytes;
    const bool split = m.splits && lines * 2 <= device.multiprocessors && chunks > 2 * warps;
    if (split || slot_bytes > shared / 4) {
      launch.slots = 0;
      offset = round_up(lines * slot_bytes, 256);
    } else {
      shared -= slot_bytes;
      launch.shared_bytes = slot_bytes;
    }
    if (split) {
      launch.stage = 1;
      launch.grid[1] = clamp_to(
          std::min(ceil_div(chunks, warps), device.multiprocessors * 4 / std::max<int64_t>(lines, 1)), kMaxGrid);
    }
  }
  // What rows keep: in shared memory, with as many rows a block as fit; else local buffers in device memory.
  int64_t each = padded * (m.local_bytes + m.kept_bytes);
  if (!wide) warps = std::clamp<int64_t>(each ? shared / each : warps, 1, warps);
  launch.keep = each <= shared;
  if (!launch.keep) each = padded * m.local_bytes;
  int64_t rows_in_block = wide ? 1 : warps;
  launch.block[0] = kWarp;
  launch.block[1] = static_cast<uint32_t>(warps);
  launch.grid[0] = clamp_to(ceil_div(lines, rows_in_block), int64_t(device.multiprocessors) * 32);
  if (each <= shared) {
    launch.shared_bytes += each * rows_in_block;
  } else {
    launch.memory = offset;
    offset += each * rows_in_block * launch.grid[0];
  }
  plan.launches.push_back(launch);
  if (launch.stage == 1) {
    launch.stage = 2;
    launch.grid[1] = 1;
    plan.launches.push_back(launch);
  }
  plan.scratch_bytes = offset;
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

CudaPlan plan_launches(const CudaMapping& m, int64_t planes, int64_t rows, int64_t columns, const CudaDevice& device) {
  // A row of no columns has its row stores all the same; a kernel without points has nothing to do.
  const bool points = planes > 0 && (m.form == CudaMapping::Form::rows      ? rows > 0
                                     : m.form == CudaMapping::Form::columns ? columns > 0
                                                                            : rows > 0 && columns > 0);
  if (!points) return {};
  switch (m.form) {
    case CudaMapping::Form::loop:
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
