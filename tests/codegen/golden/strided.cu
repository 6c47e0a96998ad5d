
struct add_7e121bb4da063e20_arguments {
  long long planes, rows, columns, count, stage, keep;
  char *memory, *slots;
  long long slot_count;
  long long outer[1];
  Operand<1> buffers[3];
};
extern "C" __global__ void __launch_bounds__(256) add_7e121bb4da063e20(const __grid_constant__ add_7e121bb4da063e20_arguments a) {
  begin();
  const bool pieces0 = in_pieces<double, 2>(a.buffers[0]);
  const bool pieces1 = in_pieces<double, 2>(a.buffers[1]);
  const bool pieces2 = in_pieces<double, 2>(a.buffers[2]);
  const long long lines = a.planes * a.rows, tile = (long long)blockDim.x * 8;
  for (long long at = (long long)blockIdx.y * blockDim.y + threadIdx.y; at < lines; at += (long long)gridDim.y * blockDim.y) {
    const long long plane = quotient(at, a.rows), row = at - plane * a.rows;
    long long rest = plane;
    const long long i0 = rest;
    char* const p0 = a.buffers[0].at + row * a.buffers[0].row + i0 * a.buffers[0].outer[0];
    char* const p1 = a.buffers[1].at + row * a.buffers[1].row + i0 * a.buffers[1].outer[0];
    char* const p2 = a.buffers[2].at + row * a.buffers[2].row + i0 * a.buffers[2].outer[0];
    for (long long first = blockIdx.x * tile; first < a.columns; first += gridDim.x * tile) {
      if (pieces0 && pieces1 && pieces2 && first + tile <= a.columns) {
        double b0[4][2];
        double b1[4][2];
        double o0[4][2];
        const long long column = first + threadIdx.x * 2;
        const int next = blockDim.x * 2;
        #pragma unroll
        for (int u = 0; u < 4; ++u) {
          load_pieces(b0[u], p1 + (column + u * next) * 8);
          load_pieces(b1[u], p0 + (column + u * next) * 8);
        }
        #pragma unroll
        for (int u = 0; u < 4; ++u)
          #pragma unroll
          for (int e = 0; e < 2; ++e) {
            const double v0 = b0[u][e];
            const double v1 = b1[u][e];
            const double v2 = v0 + v1;
            o0[u][e] = v2;
          }
        #pragma unroll
        for (int u = 0; u < 4; ++u) {
          store_pieces(p2 + (column + u * next) * 8, o0[u]);
        }
      } else {
        #pragma unroll 1
        for (long long column = first + threadIdx.x; column < a.columns && column < first + tile; column += blockDim.x) {
          const double b0 = load_one<double>(p1 + column * 8);
          const double b1 = load_one<double>(p0 + column * 8);
          double o0;
          const double v0 = b0;
          const double v1 = b1;
          const double v2 = v0 + v1;
          o0 = v2;
          store_one<double>(p2 + column * 8, o0);
        }
      }
    }
  }
}
