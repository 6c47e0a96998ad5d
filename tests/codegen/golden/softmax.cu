
struct amax_sub_exp_sum_reciprocal_mul_a33f203b8fa5fb0e_arguments {
  long long planes, rows, columns, count, stage, keep;
  char *memory, *slots;
  long long slot_count;
  Operand<0> buffers[2];
};
extern "C" __global__ void __launch_bounds__(512) amax_sub_exp_sum_reciprocal_mul_a33f203b8fa5fb0e(const __grid_constant__ amax_sub_exp_sum_reciprocal_mul_a33f203b8fa5fb0e_arguments a) {
  begin();
  const bool pieces0 = in_pieces<float, 4>(a.buffers[0]);
  const bool pieces1 = in_pieces<float, 4>(a.buffers[1]);
  // A warp takes a row of up to 1024 columns; a block takes a longer one, each warp a chunk in turn.
  const bool wide = a.columns > kChunk;
  const int chunks = int((a.columns + kChunk - 1) / kChunk), stage = int(a.stage);
  const long long lines = a.planes * a.rows;
  const long long first = wide ? blockIdx.x : (long long)blockIdx.x * blockDim.y + threadIdx.y;
  const long long step = wide ? gridDim.x : (long long)gridDim.x * blockDim.y;
  const int warp = wide ? int(blockIdx.y * blockDim.y + threadIdx.y) : 0, warps = int(gridDim.y * blockDim.y);
  char* const shared = reinterpret_cast<char*>(shared_memory);
  const bool keep = a.keep;
  const int padded = keep ? int(a.columns + 15) / 16 * 16 : 0;
  char* const memory = shared + (wide ? 0 : threadIdx.y) * padded * 4;
  char* const l0 = memory;
  char* const k0 = l0;
  char* const slots = a.slots ? a.slots : shared + padded * 4;
  for (long long at = first; at < lines; at += step) {
    const long long row = at;
    char* const p0 = a.buffers[0].at + row * a.buffers[0].row;
    char* const p1 = a.buffers[1].at + row * a.buffers[1].row;
    char* const row_slots = slots + (a.slots ? at * a.slot_count * 32 : 0);
    // phase 0
    Max<float>::Value r0 = Max<float>::none();
    if (stage == -1) {
      fold_level<Max<float>>(row_slots, chunks, a.count, warp, warps);
      continue;
    }
    if (stage == 0 || stage == 1) {
      for (int chunk = warp; chunk < chunks; chunk += warps) {
        Max<float>::Value r0_lanes[kThreadLanes];
        clear<Max<float>>(r0_lanes);
        const long long begin = (long long)chunk * kChunk, column = begin + threadIdx.x * 4;
        const int there = a.columns - begin < kChunk ? int(a.columns - begin) : kChunk;
        const char* const s0 = p0 + column * 4;
        char* const x0 = k0 + int(column) * 4;
        int part = 0;
        #pragma unroll 1
        for (; pieces0 && part + kLanes * 2 <= there; part += kLanes * 2) {
          float b0[2][8];
          #pragma unroll
          for (int u = 0; u < 2; ++u) {
            load_spread<4>(b0[u], s0 + (part + u * kLanes) * 4);
            if (keep) store_spread<4>(x0 + (part + u * kLanes) * 4, b0[u]);
          }
          #pragma unroll
          for (int u = 0; u < 2; ++u) {
            #pragma unroll
            for (int e = 0; e < kThreadLanes; ++e) {
              const float v0 = b0[u][e];
              r0_lanes[e] = Max<float>::join(r0_lanes[e], Max<float>::of(v0, (column + (part + u * kLanes) + spread<4>(e))));
            }
          }
        }
        #pragma unroll 1
        for (; part < there; part += kLanes) {
          const int left = there - part - threadIdx.x * 4;
          if (left <= 0) break;
          float b0[8];
          load<4>(b0, s0 + part * 4, 4, left, pieces0);
          if (keep) store<4>(x0 + part * 4, b0, 4, left, true);
          #pragma unroll
          for (int e = 0; e < kThreadLanes; ++e) {
            const float v0 = b0[e];
            if (spread<4>(e) < left) {
              r0_lanes[e] = Max<float>::join(r0_lanes[e], Max<float>::of(v0, (column + part + spread<4>(e))));
            }
          }
        }
        r0 = chunk_result<Max<float>, 4>(r0_lanes);
        if (wide && threadIdx.x == 0) store_slot<Max<float>>(row_slots, chunk, r0);
      }
      if (stage) continue;
    }
    if (wide) r0 = finish_row<Max<float>>(row_slots, chunks, a.count);
    if (a.columns == 0) r0 = Max<float>::empty();
    // phase 1
    const float v1 = r0;
    Sum<float>::Value r1 = Sum<float>::none();
    if (stage == -2) {
      fold_level<Sum<float>>(row_slots + a.slot_count * 16, chunks, a.count, warp, warps);
      continue;
    }
    if (stage == 0 || stage == 2) {
      for (int chunk = warp; chunk < chunks; chunk += warps) {
        Sum<float>::Value r1_lanes[kThreadLanes];
        clear<Sum<float>>(r1_lanes);
        const long long begin = (long long)chunk * kChunk, column = begin + threadIdx.x * 4;
        const int there = a.columns - begin < kChunk ? int(a.columns - begin) : kChunk;
        const char* const s0 = p0 + column * 4;
        char* const x0 = k0 + int(column) * 4;
        char* const z0 = l0 + int(column) * 4;
        int part = 0;
        #pragma unroll 1
        for (; part < there; part += kLanes) {
          const int left = there - part - threadIdx.x * 4;
          if (left <= 0) break;
          float b0[8];
          float q0[kThreadLanes];
          if (keep)
            load<4>(b0, x0 + part * 4, 4, left, true);
          else
            load<4>(b0, s0 + part * 4, 4, left, pieces0);
          #pragma unroll
          for (int e = 0; e < kThreadLanes; ++e) {
            const float v0 = b0[e];
            const float v4 = multiply_add(v1, -1.0f, v0);
            const bool v6 = v4 < -104.5f;
            const float v7 = v6 ? -104.5f : v4;
            const bool v9 = 89.0f < v7;
            const float v10 = v9 ? 89.0f : v7;
            const float v12 = v10 * 1.442695f;
            const float v13 = round_even(v12);
            const float v15 = multiply_add(v13, -0.6931472f, v10);
            const float v17 = multiply_add(v13, 1.9046542e-09f, v15);
            const float v20 = multiply_add(v17, 0.0013883072f, 0.008366818f);
            const float v22 = multiply_add(v17, v20, 0.04166735f);
            const float v24 = multiply_add(v17, v22, 0.16666542f);
            const float v26 = multiply_add(v17, v24, 0.49999997f);
            const float v27 = multiply_add(v17, v26, 1.0f);
            const float v28 = multiply_add(v17, v27, 1.0f);
            const float v29 = scale_near_one(v28, v13);
            q0[e] = v29;
            if (spread<4>(e) < left) {
              r1_lanes[e] = Sum<float>::join(r1_lanes[e], Sum<float>::of(v29, (column + part + spread<4>(e))));
            }
          }
          if (keep) store<4>(z0 + part * 4, q0, 4, left, true);
        }
        r1 = chunk_result<Sum<float>, 4>(r1_lanes);
        if (wide && threadIdx.x == 0) store_slot<Sum<float>>(row_slots + a.slot_count * 16, chunk, r1);
      }
      if (stage) continue;
    }
    if (wide) r1 = finish_row<Sum<float>>(row_slots + a.slot_count * 16, chunks, a.count);
    if (a.columns == 0) r1 = Sum<float>::empty();
    // phase 2
    const float v30 = r1;
    const float v32 = divide(1.0f, v30);
    if (stage == -3) {
      continue;
    }
    if (stage == 0 || stage == 3) {
      if (keep) {
        for (int chunk = warp; chunk < chunks; chunk += warps) {
          const long long begin = (long long)chunk * kChunk, column = begin + threadIdx.x * 4;
          const int there = a.columns - begin < kChunk ? int(a.columns - begin) : kChunk;
          const char* const y31 = l0 + int(column) * 4;
          char* const d0 = p1 + column * 4;
          int part = 0;
          #pragma unroll 1
          for (; pieces1 && part + kLanes * 2 <= there; part += kLanes * 2) {
            float o0[2][8];
            float b31[2][kThreadLanes];
            #pragma unroll
            for (int u = 0; u < 2; ++u) {
              load_spread<4>(b31[u], y31 + (part + u * kLanes) * 4);
            }
            #pragma unroll
            for (int u = 0; u < 2; ++u) {
              #pragma unroll
              for (int e = 0; e < kThreadLanes; ++e) {
                const float v31 = b31[u][e];
                const float v33 = v31 * v32;
                o0[u][e] = v33;
              }
              store_spread<4>(d0 + (part + u * kLanes) * 4, o0[u]);
            }
          }
          #pragma unroll 1
          for (; part < there; part += kLanes) {
            const int left = there - part - threadIdx.x * 4;
            if (left <= 0) break;
            float o0[8];
            float b31[kThreadLanes];
            load<4>(b31, y31 + part * 4, 4, left, true);
            #pragma unroll
            for (int e = 0; e < kThreadLanes; ++e) {
              const float v31 = b31[e];
              const float v33 = v31 * v32;
              o0[e] = v33;
            }
            store<4>(d0 + part * 4, o0, 4, left, pieces1);
          }
        }
      } else {
        for (int chunk = warp; chunk < chunks; chunk += warps) {
          const long long begin = (long long)chunk * kChunk, column = begin + threadIdx.x * 4;
          const int there = a.columns - begin < kChunk ? int(a.columns - begin) : kChunk;
          const char* const s0 = p0 + column * 4;
          char* const d0 = p1 + column * 4;
          int part = 0;
          #pragma unroll 1
          for (; part < there; part += kLanes) {
            const int left = there - part - threadIdx.x * 4;
            if (left <= 0) break;
            float b0[8];
            float o0[8];
            load<4>(b0, s0 + part * 4, 4, left, pieces0);
            #pragma unroll
            for (int e = 0; e < kThreadLanes; ++e) {
              const float v0 = b0[e];
              const float v4 = multiply_add(v1, -1.0f, v0);
              const bool v6 = v4 < -104.5f;
              const float v7 = v6 ? -104.5f : v4;
              const bool v9 = 89.0f < v7;
              const float v10 = v9 ? 89.0f : v7;
              const float v12 = v10 * 1.442695f;
              const float v13 = round_even(v12);
              const float v15 = multiply_add(v13, -0.6931472f, v10);
              const float v17 = multiply_add(v13, 1.9046542e-09f, v15);
              const float v20 = multiply_add(v17, 0.0013883072f, 0.008366818f);
              const float v22 = multiply_add(v17, v20, 0.04166735f);
              const float v24 = multiply_add(v17, v22, 0.16666542f);
              const float v26 = multiply_add(v17, v24, 0.49999997f);
              const float v27 = multiply_add(v17, v26, 1.0f);
              const float v28 = multiply_add(v17, v27, 1.0f);
              const float v29 = scale_near_one(v28, v13);
              const float v31 = v29;
              const float v33 = v31 * v32;
              o0[e] = v33;
            }
            store<4>(d0 + part * 4, o0, 4, left, pieces1);
          }
        }
      }
      if (stage) continue;
    }
  }
}
