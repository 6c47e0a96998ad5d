
struct cast_cast_cast_sum_div_sub_mul_sum_div_a_455a3f4478c29a72_arguments {
  long long planes, rows, columns, count, stage, keep;
  char *memory, *slots;
  long long slot_count;
  Operand<0> buffers[4];
  unsigned long long scalars[1];
};
extern "C" __global__ void __launch_bounds__(512) cast_cast_cast_sum_div_sub_mul_sum_div_a_455a3f4478c29a72(const __grid_constant__ cast_cast_cast_sum_div_sub_mul_sum_div_a_455a3f4478c29a72_arguments a) {
  begin();
  const bool pieces0 = in_pieces<unsigned short, 8>(a.buffers[0]);
  const bool pieces1 = in_pieces<unsigned short, 8>(a.buffers[1]);
  const bool pieces2 = in_pieces<unsigned short, 8>(a.buffers[2]);
  const bool pieces3 = in_pieces<unsigned short, 8>(a.buffers[3]);
  const float v2 = scalar<float>(a.scalars[0]);
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
  char* const memory = shared + (wide ? 0 : threadIdx.y) * padded * 2;
  char* const k0 = memory;
  char* const slots = a.slots ? a.slots : shared + padded * 2;
  for (long long at = first; at < lines; at += step) {
    const long long row = at;
    char* const p0 = a.buffers[0].at + row * a.buffers[0].row;
    char* const p1 = a.buffers[1].at + row * a.buffers[1].row;
    char* const p2 = a.buffers[2].at + row * a.buffers[2].row;
    char* const p3 = a.buffers[3].at + row * a.buffers[3].row;
    char* const row_slots = slots + (a.slots ? at * a.slot_count * 32 : 0);
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
        const long long begin = (long long)chunk * kChunk, column = begin + threadIdx.x * 8;
        const int there = a.columns - begin < kChunk ? int(a.columns - begin) : kChunk;
        const char* const s0 = p2 + column * 2;
        char* const x0 = k0 + int(column) * 2;
        int part = 0;
        #pragma unroll 1
        for (; pieces2 && part + kLanes * 2 <= there; part += kLanes * 2) {
          Halves<8> b0[2];
          #pragma unroll
          for (int u = 0; u < 2; ++u) {
            load_spread<8>(b0[u], s0 + (part + u * kLanes) * 2);
            if (keep) store_spread<8>(x0 + (part + u * kLanes) * 2, b0[u]);
          }
          #pragma unroll
          for (int u = 0; u < 2; ++u) {
            #pragma unroll
            for (int e = 0; e < kThreadLanes; ++e) {
              const float v0 = from_bf16(b0[u], e);
              r0_lanes[e] = Sum<float>::join(r0_lanes[e], Sum<float>::of(v0, (column + (part + u * kLanes) + spread<8>(e))));
            }
          }
        }
        #pragma unroll 1
        for (; part < there; part += kLanes) {
          const int left = there - part - threadIdx.x * 8;
          if (left <= 0) break;
          Halves<8> b0;
          load<8>(b0, s0 + part * 2, 2, left, pieces2);
          if (keep) store<8>(x0 + part * 2, b0, 2, left, true);
          #pragma unroll
          for (int e = 0; e < kThreadLanes; ++e) {
            const float v0 = from_bf16(b0, e);
            if (spread<8>(e) < left) {
              r0_lanes[e] = Sum<float>::join(r0_lanes[e], Sum<float>::of(v0, (column + part + spread<8>(e))));
            }
          }
        }
        r0 = chunk_result<Sum<float>, 8>(r0_lanes);
        if (wide && threadIdx.x == 0) store_slot<Sum<float>>(row_slots, chunk, r0);
      }
      if (stage) continue;
    }
    if (wide) r0 = finish_row<Sum<float>>(row_slots, chunks, a.count);
    if (a.columns == 0) r0 = Sum<float>::empty();
    // phase 1
    const float v1 = r0;
    const float v3 = divide(v1, v2);
    Sum<float>::Value r1 = Sum<float>::none();
    if (stage == -2) {
      fold_level<Sum<float>>(row_slots + a.slot_count * 16, chunks, a.count, warp, warps);
      continue;
    }
    if (stage == 0 || stage == 2) {
      for (int chunk = warp; chunk < chunks; chunk += warps) {
        Sum<float>::Value r1_lanes[kThreadLanes];
        clear<Sum<float>>(r1_lanes);
        const long long begin = (long long)chunk * kChunk, column = begin + threadIdx.x * 8;
        const int there = a.columns - begin < kChunk ? int(a.columns - begin) : kChunk;
        const char* const s0 = p2 + column * 2;
        char* const x0 = k0 + int(column) * 2;
        int part = 0;
        #pragma unroll 1
        for (; pieces2 && part + kLanes * 2 <= there; part += kLanes * 2) {
          Halves<8> b0[2];
          #pragma unroll
          for (int u = 0; u < 2; ++u) {
            if (keep)
              load_spread<8>(b0[u], x0 + (part + u * kLanes) * 2);
            else
              load_spread<8>(b0[u], s0 + (part + u * kLanes) * 2);
          }
          #pragma unroll
          for (int u = 0; u < 2; ++u) {
            #pragma unroll
            for (int e = 0; e < kThreadLanes; ++e) {
              const float v0 = from_bf16(b0[u], e);
              const float v6 = multiply_add(v3, -1.0f, v0);
              const float v7 = v6 * v6;
              r1_lanes[e] = Sum<float>::join(r1_lanes[e], Sum<float>::of(v7, (column + (part + u * kLanes) + spread<8>(e))));
            }
          }
        }
        #pragma unroll 1
        for (; part < there; part += kLanes) {
          const int left = there - part - threadIdx.x * 8;
          if (left <= 0) break;
          Halves<8> b0;
          if (keep)
            load<8>(b0, x0 + part * 2, 2, left, true);
          else
            load<8>(b0, s0 + part * 2, 2, left, pieces2);
          #pragma unroll
          for (int e = 0; e < kThreadLanes; ++e) {
            const float v0 = from_bf16(b0, e);
            const float v6 = multiply_add(v3, -1.0f, v0);
            const float v7 = v6 * v6;
            if (spread<8>(e) < left) {
              r1_lanes[e] = Sum<float>::join(r1_lanes[e], Sum<float>::of(v7, (column + part + spread<8>(e))));
            }
          }
        }
        r1 = chunk_result<Sum<float>, 8>(r1_lanes);
        if (wide && threadIdx.x == 0) store_slot<Sum<float>>(row_slots + a.slot_count * 16, chunk, r1);
      }
      if (stage) continue;
    }
    if (wide) r1 = finish_row<Sum<float>>(row_slots + a.slot_count * 16, chunks, a.count);
    if (a.columns == 0) r1 = Sum<float>::empty();
    // phase 2
    const float v8 = r1;
    const float v11 = divide(v8, v2);
    const float v13 = multiply_add(1.0f, 1e-05f, v11);
    const bool v15 = v13 <= 4.2535296e+37f;
    const bool v17 = 2.3509887e-38f <= v13;
    const bool v18 = v15 & v17;
    const float v19 = divide(1.0f, v13);
    const float v20 = square_root(v19);
    const bool v22 = v18 ^ true;
    float v40 = v20;
    if (v22) {
      const bool v23 = v13 < 1.0f;
      const float v26 = v23 ? 1.8446744e+19f : 5.421011e-20f;
      const float v27 = v13 * v26;
      const float v30 = v23 ? 4294967300.0f : 2.3283064e-10f;
      const float v31 = divide(1.0f, v27);
      const float v32 = square_root(v31);
      const float v33 = v30 * v32;
      const bool v35 = v13 < 0.0f;
      const float v37 = v35 ? from_bits(2143289344) : v33;
      const bool v38 = v13 == 0.0f;
      const float v39 = v38 ? v19 : v37;
      v40 = v39;
    }
    if (stage == -3) {
      continue;
    }
    if (stage == 0 || stage == 3) {
      for (int chunk = warp; chunk < chunks; chunk += warps) {
        const long long begin = (long long)chunk * kChunk, column = begin + threadIdx.x * 8;
        const int there = a.columns - begin < kChunk ? int(a.columns - begin) : kChunk;
        const char* const s0 = p2 + column * 2;
        char* const x0 = k0 + int(column) * 2;
        const char* const s9 = p0 + column * 2;
        const char* const s10 = p1 + column * 2;
        char* const d0 = p3 + column * 2;
        int part = 0;
        #pragma unroll 1
        for (; pieces0 && pieces1 && pieces2 && pieces3 && part + kLanes <= there; part += kLanes) {
          Halves<8> b0;
          Halves<8> b9;
          Halves<8> b10;
          float o0[8];
          if (keep)
            load_spread<8>(b0, x0 + part * 2);
          else
            load_spread<8>(b0, s0 + part * 2);
          load_spread<8>(b9, s9 + part * 2);
          load_spread<8>(b10, s10 + part * 2);
          #pragma unroll
          for (int e = 0; e < kThreadLanes; ++e) {
            const float v0 = from_bf16(b0, e);
            const float v6 = multiply_add(v3, -1.0f, v0);
            const float v9 = from_bf16(b9, e);
            const float v10 = from_bf16(b10, e);
            const float v41 = v6 * v40;
            const float v42 = v10 * v41;
            const float v43 = v9 + v42;
            o0[e] = v43;
          }
          store_spread<8>(d0 + part * 2, to_bf16(o0));
        }
        #pragma unroll 1
        for (; part < there; part += kLanes) {
          const int left = there - part - threadIdx.x * 8;
          if (left <= 0) break;
          Halves<8> b0;
          Halves<8> b9;
          Halves<8> b10;
          float o0[8];
          if (keep)
            load<8>(b0, x0 + part * 2, 2, left, true);
          else
            load<8>(b0, s0 + part * 2, 2, left, pieces2);
          load<8>(b9, s9 + part * 2, 2, left, pieces0);
          load<8>(b10, s10 + part * 2, 2, left, pieces1);
          #pragma unroll
          for (int e = 0; e < kThreadLanes; ++e) {
            const float v0 = from_bf16(b0, e);
            const float v6 = multiply_add(v3, -1.0f, v0);
            const float v9 = from_bf16(b9, e);
            const float v10 = from_bf16(b10, e);
            const float v41 = v6 * v40;
            const float v42 = v10 * v41;
            const float v43 = v9 + v42;
            o0[e] = v43;
          }
          store<8>(d0 + part * 2, to_bf16(o0), 2, left, pieces3);
        }
      }
      if (stage) continue;
    }
  }
}
