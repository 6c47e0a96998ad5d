
struct mul_sum_e1c00359eadb1727_arguments {
  long long planes, rows, columns, count, stage, keep;
  char *memory, *slots;
  long long slot_count;
  Operand<0> buffers[2];
};
extern "C" __global__ void __launch_bounds__(512) mul_sum_e1c00359eadb1727(const __grid_constant__ mul_sum_e1c00359eadb1727_arguments a) {
  const bool pieces0 = in_pieces<float, 8>(a.buffers[0]);
  // A warp takes a row of up to 1024 columns; a block takes a longer one, each warp a chunk in turn.
  const bool wide = a.columns > kChunk;
  const long long lines = a.planes * a.rows, chunks = (a.columns + kChunk - 1) / kChunk;
  const long long first = wide ? blockIdx.x : (long long)blockIdx.x * blockDim.y + threadIdx.y;
  const long long step = wide ? gridDim.x : (long long)gridDim.x * blockDim.y;
  const long long warp = wide ? (long long)blockIdx.y * blockDim.y + threadIdx.y : 0;
  char* const slots = a.slots ? a.slots : reinterpret_cast<char*>(shared_memory);
  for (long long at = first; at < lines; at += step) {
    const long long plane = quotient(at, a.rows), row = at - plane * a.rows;
    char* const p0 = a.buffers[0].at + row * a.buffers[0].row;
    char* const p1 = a.buffers[1].at + row * a.buffers[1].row;
    char* const row_slots = slots + (a.slots ? at * a.slot_count * 16 : 0);
    // phase 0
    Sum<float>::Value r0 = Sum<float>::none();
    if (a.stage != 2) {
      for (long long chunk = warp; chunk < chunks; chunk += (long long)gridDim.y * blockDim.y) {
        Sum<float>::Value r0_lanes[kThreadLanes];
        clear<Sum<float>>(r0_lanes);
        #pragma unroll 1
        for (int part = 0; part < kChunk; part += kLanes) {
          const long long column = chunk * kChunk + part + threadIdx.x * kThreadLanes;
          const int count = count_from(column, a.columns, kThreadLanes);
          if (count == 0) break;
          float b0[kThreadLanes];
          load(b0, p0 + column * 4, 4, count, pieces0);
          #pragma unroll
          for (int e = 0; e < kThreadLanes; ++e) {
            const float v0 = b0[e];
            const float v1 = v0 * v0;
            if (e < count) {
              r0_lanes[e] = Sum<float>::join(r0_lanes[e], Sum<float>::of(v1, (column + e)));
            }
          }
        }
        r0 = chunk_result<Sum<float>>(r0_lanes);
        if (wide && threadIdx.x == 0) store_slot<Sum<float>>(row_slots, chunk, r0);
      }
    }
    if (a.stage == 1) continue;
    if (wide) r0 = finish_row<Sum<float>>(row_slots, chunks);
    if (a.columns == 0) r0 = Sum<float>::empty();
    const float v2 = r0;
    if (threadIdx.x == 0 && (threadIdx.y == 0 || !wide)) {
      store_one<float>(p1, v2);
    }
  }
}
