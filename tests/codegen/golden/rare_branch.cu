
struct sin_ab11a63c1a9caccd_arguments {
  long long planes, rows, columns, count, stage, keep;
  char *memory, *slots;
  long long slot_count;
  Operand<0> buffers[2];
};
extern "C" __global__ void __launch_bounds__(256) sin_ab11a63c1a9caccd(const __grid_constant__ sin_ab11a63c1a9caccd_arguments a) {
  const bool pieces0 = in_pieces<float, 4>(a.buffers[0]);
  const bool pieces1 = in_pieces<float, 4>(a.buffers[1]);
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
            const float v7 = multiply_add(v4, 0.63661975f, 12582912.0f);
            const float v8 = v7 - 12582912.0f;
            const int v9 = to_bits(v7);
            const float v11 = multiply_add(v8, -1.5707963f, v4);
            const float v13 = multiply_add(v8, -7.5497894e-08f, v11);
            const float v15 = multiply_add(v8, -5.3903025e-15f, v13);
            const float v16 = v15 * v15;
            const float v19 = multiply_add(v16, -0.00019513998f, 0.008332139f);
            const float v21 = multiply_add(v16, v19, -0.16666654f);
            const float v24 = multiply_add(v16, 2.443165e-05f, -0.0013887306f);
            const float v26 = multiply_add(v16, v24, 0.041666646f);
            const float v28 = multiply_add(v16, v26, -0.5f);
            const float v29 = v15 * v16;
            const float v30 = multiply_add(v21, v29, v15);
            const float v32 = multiply_add(v16, v28, 1.0f);
            const int v34 = v9 & 1;
            const bool v36 = v34 != 0;
            const int v38 = v9 & 2;
            const int v40 = shift_left(v38, 30);
            const float v41 = v36 ? v32 : v30;
            const int v42 = to_bits(v41);
            const int v43 = v40 ^ v42;
            const int v46 = v1 & int(0x80000000u);
            const int v47 = v43 ^ v46;
            const float v48 = from_bits(v47);
            const bool v50 = v4 <= 8192.0f;
            const bool v52 = v50 ^ true;
            float v145 = v48;
            if (v52) {
              const long long v53 = (long long)(v3);
              const long long v55 = v53 & 8388607ll;
              const long long v57 = v55 | 8388608ll;
              const long long v59 = shift_right_logical(v53, 23ll);
              const long long v61 = sub(v59, 87ll);
              const long long v63 = shift_right_logical(v61, 5ll);
              const long long v75 = v63 & 4ll;
              const bool v76 = v75 != 0ll;
              const long long v77 = v76 ? -138578146393166112ll : 0ll;
              const long long v78 = v76 ? -388876507622061364ll : 1367130551ll;
              const long long v79 = v76 ? 7904181063698728992ll : 5871781006564002452ll;
              const long long v80 = v76 ? -7052135497440120363ll : 2819827951721491432ll;
              const long long v81 = v76 ? -60603062567443792ll : -138578146393166112ll;
              const long long v82 = v76 ? -1198552676584769763ll : -388876507622061364ll;
              const long long v84 = v63 & 2ll;
              const bool v85 = v84 != 0ll;
              const long long v86 = v85 ? v79 : v77;
              const long long v87 = v85 ? v80 : v78;
              const long long v88 = v85 ? v81 : v79;
              const long long v89 = v85 ? v82 : v80;
              const long long v91 = v63 & 1ll;
              const bool v92 = v91 != 0ll;
              const long long v93 = v92 ? v87 : v86;
              const long long v95 = v92 ? v89 : v88;
              const long long v97 = v61 & 31ll;
              const long long v98 = shift_left(v95, v97);
              const long long v100 = shift_right_logical(v98, 32ll);
              const long long v101 = mul(v57, v100);
              const long long v102 = shift_right_logical(v101, 32ll);
              const long long v104 = sub(63ll, v97);
              const long long v105 = shift_right_logical(v95, 1ll);
              const long long v106 = shift_right_logical(v105, v104);
              const long long v107 = shift_left(v93, v97);
              const long long v108 = v106 | v107;
              const long long v109 = mul(v57, v108);
              const long long v110 = add(v102, v109);
              const long long v112 = add(v110, 2305843009213693952ll);
              const long long v114 = shift_right_logical(v112, 62ll);
              const long long v115 = shift_left(v114, 62ll);
              const long long v116 = sub(v110, v115);
              const double v117 = (double)(v116);
              const double v119 = v117 * 3.4061215800865545e-19;
              const float v120 = (float)(v119);
              const int v121 = (int)(v114);
              const float v122 = v120 * v120;
              const float v123 = multiply_add(v122, -0.00019513998f, 0.008332139f);
              const float v124 = multiply_add(v122, v123, -0.16666654f);
              const float v125 = multiply_add(v122, 2.443165e-05f, -0.0013887306f);
              const float v126 = multiply_add(v122, v125, 0.041666646f);
              const float v127 = multiply_add(v122, v126, -0.5f);
              const float v128 = v120 * v122;
              const float v129 = multiply_add(v124, v128, v120);
              const float v130 = multiply_add(v122, v127, 1.0f);
              const int v131 = v121 & 1;
              const bool v132 = v131 != 0;
              const int v133 = v121 & 2;
              const int v134 = shift_left(v133, 30);
              const float v135 = v132 ? v130 : v129;
              const int v136 = to_bits(v135);
              const int v137 = v134 ^ v136;
              const int v139 = v46 ^ v137;
              const float v140 = from_bits(v139);
              const bool v142 = v4 < from_bits(2139095040);
              const float v144 = v142 ? v140 : from_bits(2143289344);
              v145 = v144;
            }
            o0[u][e] = v145;
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
          const float v7 = multiply_add(v4, 0.63661975f, 12582912.0f);
          const float v8 = v7 - 12582912.0f;
          const int v9 = to_bits(v7);
          const float v11 = multiply_add(v8, -1.5707963f, v4);
          const float v13 = multiply_add(v8, -7.5497894e-08f, v11);
          const float v15 = multiply_add(v8, -5.3903025e-15f, v13);
          const float v16 = v15 * v15;
          const float v19 = multiply_add(v16, -0.00019513998f, 0.008332139f);
          const float v21 = multiply_add(v16, v19, -0.16666654f);
          const float v24 = multiply_add(v16, 2.443165e-05f, -0.0013887306f);
          const float v26 = multiply_add(v16, v24, 0.041666646f);
          const float v28 = multiply_add(v16, v26, -0.5f);
          const float v29 = v15 * v16;
          const float v30 = multiply_add(v21, v29, v15);
          const float v32 = multiply_add(v16, v28, 1.0f);
          const int v34 = v9 & 1;
          const bool v36 = v34 != 0;
          const int v38 = v9 & 2;
          const int v40 = shift_left(v38, 30);
          const float v41 = v36 ? v32 : v30;
          const int v42 = to_bits(v41);
          const int v43 = v40 ^ v42;
          const int v46 = v1 & int(0x80000000u);
          const int v47 = v43 ^ v46;
          const float v48 = from_bits(v47);
          const bool v50 = v4 <= 8192.0f;
          const bool v52 = v50 ^ true;
          float v145 = v48;
          if (v52) {
            const long long v53 = (long long)(v3);
            const long long v55 = v53 & 8388607ll;
            const long long v57 = v55 | 8388608ll;
            const long long v59 = shift_right_logical(v53, 23ll);
            const long long v61 = sub(v59, 87ll);
            const long long v63 = shift_right_logical(v61, 5ll);
            const long long v75 = v63 & 4ll;
            const bool v76 = v75 != 0ll;
            const long long v77 = v76 ? -138578146393166112ll : 0ll;
            const long long v78 = v76 ? -388876507622061364ll : 1367130551ll;
            const long long v79 = v76 ? 7904181063698728992ll : 5871781006564002452ll;
            const long long v80 = v76 ? -7052135497440120363ll : 2819827951721491432ll;
            const long long v81 = v76 ? -60603062567443792ll : -138578146393166112ll;
            const long long v82 = v76 ? -1198552676584769763ll : -388876507622061364ll;
            const long long v84 = v63 & 2ll;
            const bool v85 = v84 != 0ll;
            const long long v86 = v85 ? v79 : v77;
            const long long v87 = v85 ? v80 : v78;
            const long long v88 = v85 ? v81 : v79;
            const long long v89 = v85 ? v82 : v80;
            const long long v91 = v63 & 1ll;
            const bool v92 = v91 != 0ll;
            const long long v93 = v92 ? v87 : v86;
            const long long v95 = v92 ? v89 : v88;
            const long long v97 = v61 & 31ll;
            const long long v98 = shift_left(v95, v97);
            const long long v100 = shift_right_logical(v98, 32ll);
            const long long v101 = mul(v57, v100);
            const long long v102 = shift_right_logical(v101, 32ll);
            const long long v104 = sub(63ll, v97);
            const long long v105 = shift_right_logical(v95, 1ll);
            const long long v106 = shift_right_logical(v105, v104);
            const long long v107 = shift_left(v93, v97);
            const long long v108 = v106 | v107;
            const long long v109 = mul(v57, v108);
            const long long v110 = add(v102, v109);
            const long long v112 = add(v110, 2305843009213693952ll);
            const long long v114 = shift_right_logical(v112, 62ll);
            const long long v115 = shift_left(v114, 62ll);
            const long long v116 = sub(v110, v115);
            const double v117 = (double)(v116);
            const double v119 = v117 * 3.4061215800865545e-19;
            const float v120 = (float)(v119);
            const int v121 = (int)(v114);
            const float v122 = v120 * v120;
            const float v123 = multiply_add(v122, -0.00019513998f, 0.008332139f);
            const float v124 = multiply_add(v122, v123, -0.16666654f);
            const float v125 = multiply_add(v122, 2.443165e-05f, -0.0013887306f);
            const float v126 = multiply_add(v122, v125, 0.041666646f);
            const float v127 = multiply_add(v122, v126, -0.5f);
            const float v128 = v120 * v122;
            const float v129 = multiply_add(v124, v128, v120);
            const float v130 = multiply_add(v122, v127, 1.0f);
            const int v131 = v121 & 1;
            const bool v132 = v131 != 0;
            const int v133 = v121 & 2;
            const int v134 = shift_left(v133, 30);
            const float v135 = v132 ? v130 : v129;
            const int v136 = to_bits(v135);
            const int v137 = v134 ^ v136;
            const int v139 = v46 ^ v137;
            const float v140 = from_bits(v139);
            const bool v142 = v4 < from_bits(2139095040);
            const float v144 = v142 ? v140 : from_bits(2143289344);
            v145 = v144;
          }
          o0 = v145;
          store_one<float>(p1 + column * 4, o0);
        }
      }
    }
  }
}
