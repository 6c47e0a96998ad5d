
struct amax_sub_exp_sum_reciprocal_mul_31cd5a3aa4bb7597_arguments {
  long long planes, rows, columns, count, stage, keep;
  char *memory, *slots;
  long long slot_count;
  Operand<0> buffers[2];
};
extern "C" __global__ void __launch_bounds__(512) amax_sub_exp_sum_reciprocal_mul_31cd5a3aa4bb7597(const __grid_constant__ amax_sub_exp_sum_reciprocal_mul_31cd5a3aa4bb7597_arguments a) {
  const bool pieces0 = in_pieces<float, 8>(a.buffers[0]);
  const bool pieces1 = in_pieces<float, 8>(a.buffers[1]);
  // A warp takes a row of up to 1024 columns; a block takes a longer one, each warp a chunk in turn.
  const bool wide = a.columns > kChunk;
  const long long lines = a.planes * a.rows, chunks = (a.columns + kChunk - 1) / kChunk;
  const long long first = wide ? blockIdx.x : (long long)blockIdx.x * blockDim.y + threadIdx.y;
  const long long step = wide ? gridDim.x : (long long)gridDim.x * blockDim.y;
  const long long warp = wide ? (long long)blockIdx.y * blockDim.y + threadIdx.y : 0;
  const long long padded = (a.columns + 15) / 16 * 16;
  const long long row_bytes = padded * (a.keep ? 8 : 4);
  char* const shared = reinterpret_cast<char*>(shared_memory);
  char* const memory = a.memory ? a.memory + first * row_bytes : shared + (wide ? 0 : threadIdx.y) * row_bytes;
  char* const l0 = memory;
  char* const k0 = memory + padded * 4;
  char* const slots = a.slots ? a.slots : shared + (a.memory ? 0 : row_bytes);
  for (long long at = first; at < lines; at += step) {
    const long long plane = quotient(at, a.rows), row = at - plane * a.rows;
    char* const p0 = a.buffers[0].at + row * a.buffers[0].row;
    char* const p1 = a.buffers[1].at + row * a.buffers[1].row;
    char* const row_slots = slots + (a.slots ? at * a.slot_count * 32 : 0);
    // phase 0
    Max<float>::Value r0 = Max<float>::none();
    for (long long chunk = warp; chunk < chunks; chunk += (long long)gridDim.y * blockDim.y) {
      Max<float>::Value r0_lanes[kThreadLanes];
      clear<Max<float>>(r0_lanes);
      #pragma unroll 1
      for (int part = 0; part < kChunk; part += kLanes) {
        const long long column = chunk * kChunk + part + threadIdx.x * kThreadLanes;
        const int count = count_from(column, a.columns, kThreadLanes);
        if (count == 0) break;
        float b0[kThreadLanes];
        load(b0, p0 + column * 4, 4, count, pieces0);
        if (a.keep) store_pieces(k0 + column * 4, b0);
        #pragma unroll
        for (int e = 0; e < kThreadLanes; ++e) {
          const float v0 = b0[e];
          if (e < count) {
            r0_lanes[e] = Max<float>::join(r0_lanes[e], Max<float>::of(v0, (column + e)));
          }
        }
      }
      r0 = chunk_result<Max<float>>(r0_lanes);
      if (wide && threadIdx.x == 0) store_slot<Max<float>>(row_slots, chunk, r0);
    }
    if (wide) r0 = finish_row<Max<float>>(row_slots, chunks);
    if (a.columns == 0) r0 = Max<float>::empty();
    // phase 1
    const float v1 = r0;
    Sum<float>::Value r1 = Sum<float>::none();
    for (long long chunk = warp; chunk < chunks; chunk += (long long)gridDim.y * blockDim.y) {
      Sum<float>::Value r1_lanes[kThreadLanes];
      clear<Sum<float>>(r1_lanes);
      #pragma unroll 1
      for (int part = 0; part < kChunk; part += kLanes) {
        const long long column = chunk * kChunk + part + threadIdx.x * kThreadLanes;
        const int count = count_from(column, a.columns, kThreadLanes);
        if (count == 0) break;
        float b0[kThreadLanes];
        if (a.keep)
          load_pieces(b0, k0 + column * 4);
        else
          load(b0, p0 + column * 4, 4, count, pieces0);
        float q0[kThreadLanes];
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
          const float v29 = scale(v28, v13);
          q0[e] = v29;
          if (e < count) {
            r1_lanes[e] = Sum<float>::join(r1_lanes[e], Sum<float>::of(v29, (column + e)));
          }
        }
        store_pieces(l0 + column * 4, q0);
      }
      r1 = chunk_result<Sum<float>>(r1_lanes);
      if (wide && threadIdx.x == 0) store_slot<Sum<float>>(row_slots + a.slot_count * 16, chunk, r1);
    }
    if (wide) r1 = finish_row<Sum<float>>(row_slots + a.slot_count * 16, chunks);
    if (a.columns == 0) r1 = Sum<float>::empty();
    // phase 2
    const float v30 = r1;
    const float v32 = divide(1.0f, v30);
    for (long long chunk = warp; chunk < chunks; chunk += (long long)gridDim.y * blockDim.y) {
      #pragma unroll 1
      for (int part = 0; part < kChunk; part += kLanes) {
        const long long column = chunk * kChunk + part + threadIdx.x * kThreadLanes;
        const int count = count_from(column, a.columns, kThreadLanes);
        if (count == 0) break;
        float b31[kThreadLanes];
        load_pieces(b31, l0 + column * 4);
        float o0[kThreadLanes];
        #pragma unroll
        for (int e = 0; e < kThreadLanes; ++e) {
          const float v31 = b31[e];
          const float v33 = v31 * v32;
          o0[e] = v33;
        }
        store(p1 + column * 4, o0, 4, count, pieces1);
      }
    }
  }
}
