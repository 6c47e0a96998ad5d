
struct cast_cast_cast_sum_div_sub_mul_sum_div_a_e240a22c67a55672_arguments {
  long long planes, rows, columns, count, stage, keep;
  char *memory, *slots;
  long long slot_count;
  Operand<0> buffers[4];
  unsigned long long scalars[1];
};
extern "C" __global__ void __launch_bounds__(512) cast_cast_cast_sum_div_sub_mul_sum_div_a_e240a22c67a55672(const __grid_constant__ cast_cast_cast_sum_div_sub_mul_sum_div_a_e240a22c67a55672_arguments a) {
  const bool pieces0 = in_pieces<unsigned short, 8>(a.buffers[0]);
  const bool pieces1 = in_pieces<unsigned short, 8>(a.buffers[1]);
  const bool pieces2 = in_pieces<unsigned short, 8>(a.buffers[2]);
  const bool pieces3 = in_pieces<unsigned short, 8>(a.buffers[3]);
  const float v2 = scalar<float>(a.scalars[0]);
  // A warp takes a row of up to 1024 columns; a block takes a longer one, each warp a chunk in turn.
  const bool wide = a.columns > kChunk;
  const long long lines = a.planes * a.rows, chunks = (a.columns + kChunk - 1) / kChunk;
  const long long first = wide ? blockIdx.x : (long long)blockIdx.x * blockDim.y + threadIdx.y;
  const long long step = wide ? gridDim.x : (long long)gridDim.x * blockDim.y;
  const long long warp = wide ? (long long)blockIdx.y * blockDim.y + threadIdx.y : 0;
  const long long padded = (a.columns + 15) / 16 * 16;
  const long long row_bytes = padded * (a.keep ? 2 : 0);
  char* const shared = reinterpret_cast<char*>(shared_memory);
  char* const memory = a.memory ? a.memory + first * row_bytes : shared + (wide ? 0 : threadIdx.y) * row_bytes;
  char* const k0 = memory;
  char* const slots = a.slots ? a.slots : shared + (a.memory ? 0 : row_bytes);
  for (long long at = first; at < lines; at += step) {
    const long long plane = quotient(at, a.rows), row = at - plane * a.rows;
    char* const p0 = a.buffers[0].at + row * a.buffers[0].row;
    char* const p1 = a.buffers[1].at + row * a.buffers[1].row;
    char* const p2 = a.buffers[2].at + row * a.buffers[2].row;
    char* const p3 = a.buffers[3].at + row * a.buffers[3].row;
    char* const row_slots = slots + (a.slots ? at * a.slot_count * 32 : 0);
    // phase 0
    Sum<float>::Value r0 = Sum<float>::none();
    for (long long chunk = warp; chunk < chunks; chunk += (long long)gridDim.y * blockDim.y) {
      Sum<float>::Value r0_lanes[kThreadLanes];
      clear<Sum<float>>(r0_lanes);
      #pragma unroll 1
      for (int part = 0; part < kChunk; part += kLanes) {
        const long long column = chunk * kChunk + part + threadIdx.x * kThreadLanes;
        const int count = count_from(column, a.columns, kThreadLanes);
        if (count == 0) break;
        unsigned short b0[kThreadLanes];
        load(b0, p2 + column * 2, 2, count, pieces2);
        if (a.keep) store_pieces(k0 + column * 2, b0);
        #pragma unroll
        for (int e = 0; e < kThreadLanes; ++e) {
          const float v0 = from_bf16(b0[e]);
          if (e < count) {
            r0_lanes[e] = Sum<float>::join(r0_lanes[e], Sum<float>::of(v0, (column + e)));
          }
        }
      }
      r0 = chunk_result<Sum<float>>(r0_lanes);
      if (wide && threadIdx.x == 0) store_slot<Sum<float>>(row_slots, chunk, r0);
    }
    if (wide) r0 = finish_row<Sum<float>>(row_slots, chunks);
    if (a.columns == 0) r0 = Sum<float>::empty();
    // phase 1
    const float v1 = r0;
    const float v3 = divide(v1, v2);
    Sum<float>::Value r1 = Sum<float>::none();
    for (long long chunk = warp; chunk < chunks; chunk += (long long)gridDim.y * blockDim.y) {
      Sum<float>::Value r1_lanes[kThreadLanes];
      clear<Sum<float>>(r1_lanes);
      #pragma unroll 1
      for (int part = 0; part < kChunk; part += kLanes) {
        const long long column = chunk * kChunk + part + threadIdx.x * kThreadLanes;
        const int count = count_from(column, a.columns, kThreadLanes);
        if (count == 0) break;
        unsigned short b0[kThreadLanes];
        if (a.keep)
          load_pieces(b0, k0 + column * 2);
        else
          load(b0, p2 + column * 2, 2, count, pieces2);
        #pragma unroll
        for (int e = 0; e < kThreadLanes; ++e) {
          const float v0 = from_bf16(b0[e]);
          const float v6 = multiply_add(v3, -1.0f, v0);
          const float v7 = v6 * v6;
          if (e < count) {
            r1_lanes[e] = Sum<float>::join(r1_lanes[e], Sum<float>::of(v7, (column + e)));
          }
        }
      }
      r1 = chunk_result<Sum<float>>(r1_lanes);
      if (wide && threadIdx.x == 0) store_slot<Sum<float>>(row_slots + a.slot_count * 16, chunk, r1);
    }
    if (wide) r1 = finish_row<Sum<float>>(row_slots + a.slot_count * 16, chunks);
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
    for (long long chunk = warp; chunk < chunks; chunk += (long long)gridDim.y * blockDim.y) {
      #pragma unroll 1
      for (int part = 0; part < kChunk; part += kLanes) {
        const long long column = chunk * kChunk + part + threadIdx.x * kThreadLanes;
        const int count = count_from(column, a.columns, kThreadLanes);
        if (count == 0) break;
        unsigned short b0[kThreadLanes];
        if (a.keep)
          load_pieces(b0, k0 + column * 2);
        else
          load(b0, p2 + column * 2, 2, count, pieces2);
        unsigned short b9[kThreadLanes];
        load(b9, p0 + column * 2, 2, count, pieces0);
        unsigned short b10[kThreadLanes];
        load(b10, p1 + column * 2, 2, count, pieces1);
        unsigned short o0[kThreadLanes];
        #pragma unroll
        for (int e = 0; e < kThreadLanes; ++e) {
          const float v0 = from_bf16(b0[e]);
          const float v6 = multiply_add(v3, -1.0f, v0);
          const float v9 = from_bf16(b9[e]);
          const float v10 = from_bf16(b10[e]);
          const float v41 = v6 * v40;
          const float v42 = v10 * v41;
          const float v43 = v9 + v42;
          const float v44 = from_bf16(to_bf16(v43));
          o0[e] = to_bf16(v44);
        }
        store(p3 + column * 2, o0, 2, count, pieces3);
      }
    }
  }
}
