
struct index_select_29f7d50804d007b4_arguments {
  long long planes, rows, columns, count, stage, keep;
  char *memory, *slots;
  long long slot_count;
  Operand<0> buffers[3];
};
extern "C" __global__ void __launch_bounds__(256) index_select_29f7d50804d007b4(const __grid_constant__ index_select_29f7d50804d007b4_arguments a) {
  begin();
  const bool pieces0 = in_pieces<float, 4>(a.buffers[0]);
  const bool pieces2 = in_pieces<float, 4>(a.buffers[2]);
  const long long lines = a.planes * a.rows, tile = (long long)blockDim.x * 8;
  for (long long at = (long long)blockIdx.y * blockDim.y + threadIdx.y; at < lines; at += (long long)gridDim.y * blockDim.y) {
    const long long row = at;
    char* const p0 = a.buffers[0].at + row * a.buffers[0].row;
    char* const p1 = a.buffers[1].at + row * a.buffers[1].row;
    char* const p2 = a.buffers[2].at + row * a.buffers[2].row;
    const long long v0 = load_one<long long>(p1);
    for (long long first = blockIdx.x * tile; first < a.columns; first += gridDim.x * tile) {
      if (pieces0 && pieces2 && first + tile <= a.columns) {
        float b1[2][4];
        float o0[2][4];
        const long long column = first + threadIdx.x * 4;
        const int next = blockDim.x * 4;
        #pragma unroll
        for (int u = 0; u < 2; ++u) {
          load_pieces(b1[u], p0 + v0 * a.buffers[0].index + (column + u * next) * 4);
        }
        #pragma unroll
        for (int u = 0; u < 2; ++u)
          #pragma unroll
          for (int e = 0; e < 4; ++e) {
            const float v1 = b1[u][e];
            o0[u][e] = v1;
          }
        #pragma unroll
        for (int u = 0; u < 2; ++u) {
          store_pieces(p2 + (column + u * next) * 4, o0[u]);
        }
      } else {
        #pragma unroll 1
        for (long long column = first + threadIdx.x; column < a.columns && column < first + tile; column += blockDim.x) {
          const float b1 = load_one<float>(p0 + v0 * a.buffers[0].index + column * 4);
          float o0;
          const float v1 = b1;
          o0 = v1;
          store_one<float>(p2 + column * 4, o0);
        }
      }
    }
  }
}
