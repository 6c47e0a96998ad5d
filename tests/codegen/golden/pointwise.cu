
struct tanh_mul_add_1832eea8a9778dc8_arguments {
  long long planes, rows, columns, count, stage, keep;
  char *memory, *slots;
  long long slot_count;
  Operand<0> buffers[2];
  unsigned long long scalars[1];
};
extern "C" __global__ void __launch_bounds__(256) tanh_mul_add_1832eea8a9778dc8(const __grid_constant__ tanh_mul_add_1832eea8a9778dc8_arguments a) {
  begin();
  const bool pieces0 = in_pieces<float, 4>(a.buffers[0]);
  const bool pieces1 = in_pieces<float, 4>(a.buffers[1]);
  const float v56 = scalar<float>(a.scalars[0]);
  const long long lines = a.planes * a.rows, tile = (long long)blockDim.x * 8;
  for (long long at = (long long)blockIdx.y * blockDim.y + threadIdx.y; at < lines; at += (long long)gridDim.y * blockDim.y) {
    const long long row = at;
    char* const p0 = a.buffers[0].at + row * a.buffers[0].row;
    char* const p1 = a.buffers[1].at + row * a.buffers[1].row;
    for (long long first = blockIdx.x * tile; first < a.columns; first += gridDim.x * tile) {
      if (pieces0 && pieces1 && first + tile <= a.columns) {
        float b0[2][4];
        float o0[2][4];
        const long long column = first + threadIdx.x * 4;
        const int next = blockDim.x * 4;
        #pragma unroll
        for (int u = 0; u < 2; ++u) {
          load_pieces(b0[u], p0 + (column + u * next) * 4);
        }
        #pragma unroll
        for (int u = 0; u < 2; ++u)
          #pragma unroll
          for (int e = 0; e < 4; ++e) {
            const float v0 = b0[u][e];
            const int v1 = to_bits(v0);
            const int v3 = v1 & 2147483647;
            const float v4 = from_bits(v3);
            const float v5 = v4 * v4;
            const float v8 = multiply_add(v5, -0.00035487794f, 0.0022953227f);
            const float v10 = multiply_add(v5, v8, -0.007948037f);
            const float v12 = multiply_add(v5, v10, 0.021496132f);
            const float v14 = multiply_add(v5, v12, -0.053886436f);
            const float v16 = multiply_add(v5, v14, 0.13332513f);
            const float v18 = multiply_add(v5, v16, -0.33333308f);
            const bool v20 = 10.0f < v4;
            const float v21 = v20 ? 10.0f : v4;
            const float v22 = v21 + v21;
            const float v24 = v22 * 1.442695f;
            const float v25 = round_even(v24);
            const float v27 = multiply_add(v25, -0.6931472f, v22);
            const float v30 = multiply_add(v27, 0.0013883072f, 0.008366818f);
            const float v32 = multiply_add(v27, v30, 0.04166735f);
            const float v34 = multiply_add(v27, v32, 0.16666542f);
            const float v36 = multiply_add(v27, v34, 0.49999997f);
            const float v38 = multiply_add(v27, v36, 1.0f);
            const float v39 = multiply_add(v27, v38, 1.0f);
            const float v40 = scale_normal(v39, v25);
            const bool v41 = v4 < 1.0f;
            const float v42 = v5 * v18;
            const float v43 = v40 + 1.0f;
            const float v44 = divide(1.0f, v43);
            const float v46 = multiply_add(v44, -2.0f, 1.0f);
            const float v47 = multiply_add(v4, v42, v4);
            const float v48 = v41 ? v47 : v46;
            const int v50 = v1 & int(0x80000000u);
            const int v51 = to_bits(v48);
            const int v52 = v51 & 2147483647;
            const int v53 = v50 | v52;
            const float v54 = from_bits(v53);
            const float v55 = v0 * v54;
            const float v57 = v55 + v56;
            o0[u][e] = v57;
          }
        #pragma unroll
        for (int u = 0; u < 2; ++u) {
          store_pieces(p1 + (column + u * next) * 4, o0[u]);
        }
      } else {
        #pragma unroll 1
        for (long long column = first + threadIdx.x; column < a.columns && column < first + tile; column += blockDim.x) {
          const float b0 = load_one<float>(p0 + column * 4);
          float o0;
          const float v0 = b0;
          const int v1 = to_bits(v0);
          const int v3 = v1 & 2147483647;
          const float v4 = from_bits(v3);
          const float v5 = v4 * v4;
          const float v8 = multiply_add(v5, -0.00035487794f, 0.0022953227f);
          const float v10 = multiply_add(v5, v8, -0.007948037f);
          const float v12 = multiply_add(v5, v10, 0.021496132f);
          const float v14 = multiply_add(v5, v12, -0.053886436f);
          const float v16 = multiply_add(v5, v14, 0.13332513f);
          const float v18 = multiply_add(v5, v16, -0.33333308f);
          const bool v20 = 10.0f < v4;
          const float v21 = v20 ? 10.0f : v4;
          const float v22 = v21 + v21;
          const float v24 = v22 * 1.442695f;
          const float v25 = round_even(v24);
          const float v27 = multiply_add(v25, -0.6931472f, v22);
          const float v30 = multiply_add(v27, 0.0013883072f, 0.008366818f);
          const float v32 = multiply_add(v27, v30, 0.04166735f);
          const float v34 = multiply_add(v27, v32, 0.16666542f);
          const float v36 = multiply_add(v27, v34, 0.49999997f);
          const float v38 = multiply_add(v27, v36, 1.0f);
          const float v39 = multiply_add(v27, v38, 1.0f);
          const float v40 = scale_normal(v39, v25);
          const bool v41 = v4 < 1.0f;
          const float v42 = v5 * v18;
          const float v43 = v40 + 1.0f;
          const float v44 = divide(1.0f, v43);
          const float v46 = multiply_add(v44, -2.0f, 1.0f);
          const float v47 = multiply_add(v4, v42, v4);
          const float v48 = v41 ? v47 : v46;
          const int v50 = v1 & int(0x80000000u);
          const int v51 = to_bits(v48);
          const int v52 = v51 & 2147483647;
          const int v53 = v50 | v52;
          const float v54 = from_bits(v53);
          const float v55 = v0 * v54;
          const float v57 = v55 + v56;
          o0 = v57;
          store_one<float>(p1 + column * 4, o0);
        }
      }
    }
  }
}
