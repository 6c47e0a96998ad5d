
struct matmul_add_relu_3c11c98d084334d9_arguments {
  long long planes, rows, columns, count, stage, keep;
  char *memory, *slots;
  long long slot_count;
  Operand<0> buffers[3];
};
extern "C" __global__ void __launch_bounds__(256) matmul_add_relu_3c11c98d084334d9(const __grid_constant__ matmul_add_relu_3c11c98d084334d9_arguments a) {
  begin();
  const bool pieces0 = in_pieces<float, 4>(a.buffers[0]);
  const bool pieces1 = in_pieces<float, 4>(a.buffers[1]);
  const bool pieces2 = in_pieces<float, 4>(a.buffers[2]);
  const long long lines = a.planes * a.rows, tile = (long long)blockDim.x * 8;
  for (long long at = (long long)blockIdx.y * blockDim.y + threadIdx.y; at < lines; at += (long long)gridDim.y * blockDim.y) {
    const long long row = at;
    char* const p0 = a.buffers[0].at + row * a.buffers[0].row;
    char* const p1 = a.buffers[1].at + row * a.buffers[1].row;
    char* const p2 = a.buffers[2].at + row * a.buffers[2].row;
    for (long long first = blockIdx.x * tile; first < a.columns; first += gridDim.x * tile) {
      if (pieces0 && pieces1 && pieces2 && first + tile <= a.columns) {
        float b0[2][4];
        float b1[2][4];
        float o0[2][4];
        const long long column = first + threadIdx.x * 4;
        const int next = blockDim.x * 4;
        #pragma unroll
        for (int u = 0; u < 2; ++u) {
          load_pieces(b0[u], p1 + (column + u * next) * 4);
          load_pieces(b1[u], p0 + (column + u * next) * 4);
        }
        #pragma unroll
        for (int u = 0; u < 2; ++u)
          #pragma unroll
          for (int e = 0; e < 4; ++e) {
            const float v0 = b0[u][e];
            const float v1 = b1[u][e];
            const float v2 = v0 + v1;
            const bool v4 = v2 <= 0.0f;
            const float v5 = v4 ? 0.0f : v2;
            o0[u][e] = v5;
          }
        #pragma unroll
        for (int u = 0; u < 2; ++u) {
          store_pieces(p2 + (column + u * next) * 4, o0[u]);
        }
      } else {
        #pragma unroll 1
        for (long long column = first + threadIdx.x; column < a.columns && column < first + tile; column += blockDim.x) {
          const float b0 = load_one<float>(p1 + column * 4);
          const float b1 = load_one<float>(p0 + column * 4);
          float o0;
          const float v0 = b0;
          const float v1 = b1;
          const float v2 = v0 + v1;
          const bool v4 = v2 <= 0.0f;
          const float v5 = v4 ? 0.0f : v2;
          o0 = v5;
          store_one<float>(p2 + column * 4, o0);
        }
      }
    }
  }
}
