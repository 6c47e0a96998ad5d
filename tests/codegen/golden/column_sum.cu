
struct sum_d43261c953d4bcde_arguments {
  long long planes, rows, columns, count, stage, keep;
  char *memory, *slots;
  long long slot_count;
  Operand<0> buffers[1];
  Operand<0> results[1];
};
extern "C" __global__ void __launch_bounds__(512) sum_d43261c953d4bcde(const __grid_constant__ sum_d43261c953d4bcde_arguments a) {
  // A block takes 32 columns and a chunk of 1024 rows; a thread 8 neighbouring rows of a column at a time.
  const long long chunks = (a.count + kChunk - 1) / kChunk;
  for (long long plane = blockIdx.z; plane < a.planes; plane += gridDim.z) {
    char* const p0 = a.buffers[0].at;
    for (long long chunk = blockIdx.y; chunk < chunks || chunk == 0; chunk += gridDim.y) {
      for (long long first = (long long)blockIdx.x * kWarp; first < a.columns; first += (long long)gridDim.x * kWarp) {
        const long long column = first + threadIdx.x;
        Sum<float>::Value r0_lanes[kTileLanes];
        clear<Sum<float>>(r0_lanes);
        if (a.memory) {
          collect<Sum<float>>(r0_lanes, a.memory + plane * a.count * a.columns * kSlot, chunk * kChunk, a.count, column, a.columns);
        } else if (column < a.columns) {
          #pragma unroll 1
          for (int part = 0; part < kChunk; part += kLanes)
            #pragma unroll
            for (int group = 0; group < kTileLanes; group += 8) {
              const long long row = chunk * kChunk + part + threadIdx.y * kTileLanes + group;
              const int count = count_from(row, a.rows, 8);
              float b0[8];
              #pragma unroll
              for (int u = 0; u < 8; ++u) {
                b0[u] = u < count ? load_one<float>(p0 + (row + u) * a.buffers[0].row + column * 4) : (float)(0);
              }
              #pragma unroll
              for (int u = 0; u < 8; ++u) {
                const float v0 = b0[u];
                if (u < count) {
                  r0_lanes[group + u] = Sum<float>::join(r0_lanes[group + u], Sum<float>::of(v0, (row + u)));
                }
              }
            }
        }
        finish_columns<Sum<float>, float>(r0_lanes, reinterpret_cast<char*>(shared_memory), a.count, first, a.columns,
            a.slots ? a.slots + (plane * chunks + chunk) * a.columns * kSlot : nullptr,
            a.results[0].at, a.results[0].column);
      }
    }
  }
}
