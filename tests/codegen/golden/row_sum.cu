
struct mul_sum_e1c00359eadb1727_arguments {
  long long planes, rows, columns, count, stage, keep;
  char *memory, *slots;
  long long slot_count;
  Operand<0> buffers[2];
};
extern "C" __global__ void __launch_bounds__(512) mul_sum_e1c00359eadb1727(const __grid_constant__ mul_sum_e1c00359eadb1727_arguments a) {
  begin();
  const bool pieces0 = in_pieces<float, 4>(a.buffers[0]);
  // A warp takes a row of up to 1024 columns; a block takes a longer one, each warp a chunk in turn.
  const bool wide = a.columns > kChunk;
  const int chunks = int((a.columns + kChunk - 1) / kChunk), stage = int(a.stage);
  const long long lines = a.planes * a.rows;
  const long long first = wide ? blockIdx.x : (long long)blockIdx.x * blockDim.y + threadIdx.y;
  const long long step = wide ? gridDim.x : (long long)gridDim.x * blockDim.y;
  const int warp = wide ? int(blockIdx.y * blockDim.y + threadIdx.y) : 0, warps = int(gridDim.y * blockDim.y);
  char* const shared = reinterpret_cast<char*>(shared_memory);
  char* const slots = a.slots ? a.slots : shared;
  for (long long at = first; at < lines; at += step) {
    const long long row = at;
    char* const p0 = a.buffers[0].at + row * a.buffers[0].row;
    char* const p1 = a.buffers[1].at + row * a.buffers[1].row;
    char* const row_slots = slots + (a.slots ? at * a.slot_count * 16 : 0);
    // phase 0
    Sum<float>::Value r0 = Sum<float>::none();
    if (stage == -1) {
      fold_level<Sum<float>>(row_slots, chunks, a.count, warp, warps);
      continue;
    }
    if (stage == 0 || stage == 1) {
      for (int chunk = warp; chunk < chunks; chunk += warps) {
        Sum<float>::Value r0_lanes[kThreadLanes];
        clear<Sum<float>>(r0_lanes);
        const long long begin = (long long)chunk * kChunk, column = begin + threadIdx.x * 4;
        const int there = a.columns - begin < kChunk ? int(a.columns - begin) : kChunk;
        const char* const s0 = p0 + column * 4;
        int part = 0;
        #pragma unroll 1
        for (; pieces0 && part + kLanes * 2 <= there; part += kLanes * 2) {
          float b0[2][8];
          #pragma unroll
          for (int u = 0; u < 2; ++u) {
            load_spread<4>(b0[u], s0 + (part + u * kLanes) * 4);
          }
          #pragma unroll
          for (int u = 0; u < 2; ++u) {
            #pragma unroll
            for (int e = 0; e < kThreadLanes; ++e) {
              const float v0 = b0[u][e];
              const float v1 = v0 * v0;
              r0_lanes[e] = Sum<float>::join(r0_lanes[e], Sum<float>::of(v1, (column + (part + u * kLanes) + spread<4>(e))));
            }
          }
        }
        #pragma unroll 1
        for (; part < there; part += kLanes) {
          const int left = there - part - threadIdx.x * 4;
          if (left <= 0) break;
          float b0[8];
          load<4>(b0, s0 + part * 4, 4, left, pieces0);
          #pragma unroll
          for (int e = 0; e < kThreadLanes; ++e) {
            const float v0 = b0[e];
            const float v1 = v0 * v0;
            if (spread<4>(e) < left) {
              r0_lanes[e] = Sum<float>::join(r0_lanes[e], Sum<float>::of(v1, (column + part + spread<4>(e))));
            }
          }
        }
        r0 = chunk_result<Sum<float>, 4>(r0_lanes);
        if (wide && threadIdx.x == 0) store_slot<Sum<float>>(row_slots, chunk, r0);
      }
      if (stage) continue;
    }
    if (wide) r0 = finish_row<Sum<float>>(row_slots, chunks, a.count);
    if (a.columns == 0) r0 = Sum<float>::empty();
    const float v2 = r0;
    if (threadIdx.x == 0 && (threadIdx.y == 0 || !wide) && (stage == 0 || (stage == 2 && blockIdx.y == 0))) {
      store_one<float>(p1, v2);
    }
  }
}
