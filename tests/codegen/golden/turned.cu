
struct mul_add_23c9fb589f6c487c_arguments {
  long long planes, rows, columns, count, stage, keep;
  char *memory, *slots;
  long long slot_count;
  Operand<0> buffers[4];
};
extern "C" __global__ void __launch_bounds__(256) mul_add_23c9fb589f6c487c(const __grid_constant__ mul_add_23c9fb589f6c487c_arguments a) {
  begin();
  const bool pieces2 = in_pieces<float, 4>(a.buffers[2]);
  const bool pieces3 = in_pieces<float, 4>(a.buffers[3]);
  if (a.stage) {
    const long long across = (a.columns + kTile - 1) / kTile, down = (a.rows + kTile - 1) / kTile;
    unsigned short* const t2 = reinterpret_cast<unsigned short*>(reinterpret_cast<char*>(shared_memory) + 0);
    for (long long tile = blockIdx.x; tile < a.planes * down * across; tile += gridDim.x) {
      const long long at = quotient(tile, across), plane = quotient(at, down);
      const long long first_column = (tile - at * across) * kTile, first_row = (at - plane * down) * kTile;
      const int columns = count_from(first_column, a.columns, kTile), rows = count_from(first_row, a.rows, kTile);
      char* const p0 = a.buffers[0].at;
      char* const p1 = a.buffers[1].at;
      char* const p2 = a.buffers[2].at;
      char* const p3 = a.buffers[3].at;
      load_tile(t2, p1 + first_row * a.buffers[1].row + first_column * a.buffers[1].column, a.buffers[1].row, a.buffers[1].column, rows, columns);
      __syncthreads();
      const int c = threadIdx.x % kTile;
      int r = threadIdx.x / kTile;
      const long long column = first_column + c;
      long long row = first_row + r;
      const char* s1 = p2 + row * a.buffers[2].row + column * 4;
      char* d0 = p3 + row * a.buffers[3].row + column * 4;
      if (rows == kTile && columns == kTile) {
        #pragma unroll 4
        for (int i = 0; i < kTile / kTileStep; ++i) {
          const float v0 = load_one<float>(p0 + row * a.buffers[0].row);
          const float b1 = load_one<float>(s1);
          const unsigned short b2 = t2[tile_place<unsigned short>(r, c)];
          float o0;
          const float v1 = b1;
          const float v2 = from_bf16(b2);
          const float v3 = v1 * v2;
          const float v4 = v0 + v3;
          o0 = v4;
          store_one<float>(d0, o0);
          r += kTileStep, row += kTileStep;
          s1 += kTileStep * a.buffers[2].row;
          d0 += kTileStep * a.buffers[3].row;
        }
      } else if (c < columns) {
        #pragma unroll 1
        for (; r < rows;) {
          const float v0 = load_one<float>(p0 + row * a.buffers[0].row);
          const float b1 = load_one<float>(s1);
          const unsigned short b2 = t2[tile_place<unsigned short>(r, c)];
          float o0;
          const float v1 = b1;
          const float v2 = from_bf16(b2);
          const float v3 = v1 * v2;
          const float v4 = v0 + v3;
          o0 = v4;
          store_one<float>(d0, o0);
          r += kTileStep, row += kTileStep;
          s1 += kTileStep * a.buffers[2].row;
          d0 += kTileStep * a.buffers[3].row;
        }
      }
      __syncthreads();
    }
    return;
  }
  const long long lines = a.planes * a.rows, tile = (long long)blockDim.x * 8;
  for (long long at = (long long)blockIdx.y * blockDim.y + threadIdx.y; at < lines; at += (long long)gridDim.y * blockDim.y) {
    const long long row = at;
    char* const p0 = a.buffers[0].at + row * a.buffers[0].row;
    char* const p1 = a.buffers[1].at + row * a.buffers[1].row;
    char* const p2 = a.buffers[2].at + row * a.buffers[2].row;
    char* const p3 = a.buffers[3].at + row * a.buffers[3].row;
    const float v0 = load_one<float>(p0);
    for (long long first = blockIdx.x * tile; first < a.columns; first += gridDim.x * tile) {
      if (pieces2 && pieces3 && first + tile <= a.columns) {
        float b1[2][4];
        Halves<4> b2[2];
        float o0[2][4];
        const long long column = first + threadIdx.x * 4;
        const int next = blockDim.x * 4;
        #pragma unroll
        for (int u = 0; u < 2; ++u) {
          load_pieces(b1[u], p2 + (column + u * next) * 4);
          gather(b2[u], p1 + (column + u * next) * a.buffers[1].column, a.buffers[1].column);
        }
        #pragma unroll
        for (int u = 0; u < 2; ++u)
          #pragma unroll
          for (int e = 0; e < 4; ++e) {
            const float v1 = b1[u][e];
            const float v2 = from_bf16(b2[u], e);
            const float v3 = v1 * v2;
            const float v4 = v0 + v3;
            o0[u][e] = v4;
          }
        #pragma unroll
        for (int u = 0; u < 2; ++u) {
          store_pieces(p3 + (column + u * next) * 4, o0[u]);
        }
      } else {
        #pragma unroll 1
        for (long long column = first + threadIdx.x; column < a.columns && column < first + tile; column += blockDim.x) {
          const float b1 = load_one<float>(p2 + column * 4);
          const unsigned short b2 = load_one<unsigned short>(p1 + column * a.buffers[1].column);
          float o0;
          const float v1 = b1;
          const float v2 = from_bf16(b2);
          const float v3 = v1 * v2;
          const float v4 = v0 + v3;
          o0 = v4;
          store_one<float>(p3 + column * 4, o0);
        }
      }
    }
  }
}
