
struct tanh_mul_add_74357aa7fbe6f83d_arguments {
  long long planes, rows, columns, count, stage, keep;
  char *memory, *slots;
  long long slot_count;
  Operand<0> buffers[2];
  unsigned long long scalars[1];
};
extern "C" __global__ void __launch_bounds__(256) tanh_mul_add_74357aa7fbe6f83d(const __grid_constant__ tanh_mul_add_74357aa7fbe6f83d_arguments a) {
  const bool pieces0 = in_pieces<float, 4>(a.buffers[0]);
  const bool pieces1 = in_pieces<float, 4>(a.buffers[1]);
  const float v54 = scalar<float>(a.scalars[0]);
  const long long lines = a.planes * a.rows, tile = (long long)blockDim.x * 8;
  for (long long at = (long long)blockIdx.y * blockDim.y + threadIdx.y; at < lines; at += (long long)gridDim.y * blockDim.y) {
    const long long plane = quotient(at, a.rows), row = at - plane * a.rows;
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
            const float v8 = multiply_add(v5, -0.0061433283f, 0.02099041f);
            const float v10 = multiply_add(v5, v8, -0.05383628f);
            const float v12 = multiply_add(v5, v10, 0.13332482f);
            const float v14 = multiply_add(v5, v12, -0.33333316f);
            const float v15 = v4 + v4;
            const bool v17 = 20.0f < v15;
            const float v18 = v17 ? 20.0f : v15;
            const float v20 = v18 * 1.442695f;
            const float v21 = round_even(v20);
            const float v23 = multiply_add(v21, -0.6931472f, v18);
            const float v26 = multiply_add(v23, 0.0013883072f, 0.008366818f);
            const float v28 = multiply_add(v23, v26, 0.04166735f);
            const float v30 = multiply_add(v23, v28, 0.16666542f);
            const float v32 = multiply_add(v23, v30, 0.49999997f);
            const float v34 = multiply_add(v23, v32, 1.0f);
            const float v35 = multiply_add(v23, v34, 1.0f);
            const float v36 = scale(v35, v21);
            const bool v38 = v4 < 0.5625f;
            const float v39 = v5 * v14;
            const float v40 = v36 + 1.0f;
            const float v41 = divide(1.0f, v40);
            const float v43 = multiply_add(v41, -2.0f, 1.0f);
            const float v44 = multiply_add(v4, v39, v4);
            const float v45 = v38 ? v44 : v43;
            const int v47 = v1 & int(0x80000000u);
            const int v48 = to_bits(v45);
            const int v49 = v48 & 2147483647;
            const int v51 = v47 | v49;
            const float v52 = from_bits(v51);
            const float v53 = v0 * v52;
            const float v55 = v53 + v54;
            o0[u][e] = v55;
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
          const float v8 = multiply_add(v5, -0.0061433283f, 0.02099041f);
          const float v10 = multiply_add(v5, v8, -0.05383628f);
          const float v12 = multiply_add(v5, v10, 0.13332482f);
          const float v14 = multiply_add(v5, v12, -0.33333316f);
          const float v15 = v4 + v4;
          const bool v17 = 20.0f < v15;
          const float v18 = v17 ? 20.0f : v15;
          const float v20 = v18 * 1.442695f;
          const float v21 = round_even(v20);
          const float v23 = multiply_add(v21, -0.6931472f, v18);
          const float v26 = multiply_add(v23, 0.0013883072f, 0.008366818f);
          const float v28 = multiply_add(v23, v26, 0.04166735f);
          const float v30 = multiply_add(v23, v28, 0.16666542f);
          const float v32 = multiply_add(v23, v30, 0.49999997f);
          const float v34 = multiply_add(v23, v32, 1.0f);
          const float v35 = multiply_add(v23, v34, 1.0f);
          const float v36 = scale(v35, v21);
          const bool v38 = v4 < 0.5625f;
          const float v39 = v5 * v14;
          const float v40 = v36 + 1.0f;
          const float v41 = divide(1.0f, v40);
          const float v43 = multiply_add(v41, -2.0f, 1.0f);
          const float v44 = multiply_add(v4, v39, v4);
          const float v45 = v38 ? v44 : v43;
          const int v47 = v1 & int(0x80000000u);
          const int v48 = to_bits(v45);
          const int v49 = v48 & 2147483647;
          const int v51 = v47 | v49;
          const float v52 = from_bits(v51);
          const float v53 = v0 * v52;
          const float v55 = v53 + v54;
          o0 = v55;
          store_one<float>(p1 + column * 4, o0);
        }
      }
    }
  }
}
