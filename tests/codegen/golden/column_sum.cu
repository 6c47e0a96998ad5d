
struct sum_d43261c953d4bcde_arguments {
  long long planes, rows, columns, count, stage, keep;
  char *memory, *slots;
  long long slot_count;
  Operand<0> buffers[1];
  Operand<0> results[1];
};
extern "C" __global__ void __launch_bounds__(512) sum_d43261c953d4bcde(const __grid_constant__ sum_d43261c953d4bcde_arguments a) {
  begin();
  // A block takes 32 columns and a chunk of 1024 rows; a thread 8 neighbouring rows of 2 parts at a time.
  const long long chunks = (a.count + kChunk - 1) / kChunk;
  for (long long plane = blockIdx.z; plane < a.planes; plane += gridDim.z) {
    char* const p0 = a.buffers[0].at;
    for (long long chunk = blockIdx.y; chunk < chunks || chunk == 0; chunk += gridDim.y) {
      for (long long first = (long long)blockIdx.x * kWarp; first < a.columns; first += (long long)gridDim.x * kWarp) {
        const long long column = first + threadIdx.x;
        Sum<float>::Value r0_tile = Sum<float>::none();
        #pragma unroll 1
        for (int half = 0; half < kTileLanes; half += kThreadLanes) {
          Sum<float>::Value r0_lanes[kThreadLanes];
          clear<Sum<float>>(r0_lanes);
          if (a.memory) {
            collect<Sum<float>>(r0_lanes, a.memory + plane * a.count * a.columns * kSlot, chunk * kChunk + half, a.count, column, a.columns);
          } else if (column < a.columns) {
            const long long top = chunk * kChunk + threadIdx.y * kTileLanes + half;
            if ((chunk + 1) * kChunk <= a.rows) {
              #pragma unroll 1
              for (int part = 0; part < kChunk; part += kLanes * 2) {
                float b0[2][8];
                const char* s0 = p0 + (top + part) * a.buffers[0].row + column * 4;
                #pragma unroll
                for (int t = 0; t < 2; ++t)
                #pragma unroll
                for (int u = 0; u < 8; ++u) {
                  b0[t][u] = load_one<float>(s0);
                  s0 += (u == 7 ? kLanes - 7 : 1) * a.buffers[0].row;
                }
                #pragma unroll
                for (int t = 0; t < 2; ++t)
                #pragma unroll
                for (int u = 0; u < 8; ++u) {
                  const long long row = top + part + t * kLanes + u;
                  const float v0 = b0[t][u];
                  r0_lanes[u] = Sum<float>::join(r0_lanes[u], Sum<float>::of(v0, row));
                }
              }
            } else {
              #pragma unroll 1
              for (int part = 0; part < kChunk && top + part < a.rows; part += kLanes * 2) {
                const int there = count_from(top + part, a.rows, kChunk);
                float b0[2][8];
                const char* s0 = p0 + (top + part) * a.buffers[0].row + column * 4;
                #pragma unroll
                for (int t = 0; t < 2; ++t)
                #pragma unroll
                for (int u = 0; u < 8; ++u) {
                  b0[t][u] = t * kLanes + u < there ? load_one<float>(s0) : (float)(0);
                  s0 += (u == 7 ? kLanes - 7 : 1) * a.buffers[0].row;
                }
                #pragma unroll
                for (int t = 0; t < 2; ++t)
                #pragma unroll
                for (int u = 0; u < 8; ++u) {
                  const long long row = top + part + t * kLanes + u;
                  const float v0 = b0[t][u];
                  if (t * kLanes + u < there) {
                    r0_lanes[u] = Sum<float>::join(r0_lanes[u], Sum<float>::of(v0, row));
                  }
                }
              }
            }
          }
          const Sum<float>::Value r0_half = tree<Sum<float>>(r0_lanes);
          r0_tile = half ? Sum<float>::join(r0_tile, r0_half) : r0_half;
        }
        finish_columns<Sum<float>, float>(r0_tile, reinterpret_cast<char*>(shared_memory), a.count, first, a.columns,
            a.slots ? a.slots + (plane * chunks + chunk) * a.columns * kSlot : nullptr,
            a.results[0].at, a.results[0].column);
      }
    }
  }
}
