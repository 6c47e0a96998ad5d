#include "codegen/lower/collapse.h"

namespace ingot::codegen::lowering {

CollapsedSpace collapse(DimTable& dims, const Dims& space, std::span<const Dims> strides,
                        const SmallVector<bool, 8>& fixed) {
  CollapsedSpace result;
  result.strides.resize(strides.size());
  result.position.resize(space.size(), -1);
  int last = -1;  // dim of the old space that the newest dim ends with
  for (size_t d = 0; d < space.size(); ++d) {
    if (space[d] == Dim(1) && !fixed[d]) continue;
    bool merges = last >= 0 && !fixed[d] && !fixed[last];
    for (size_t a = 0; a < strides.size() && merges; ++a)
      merges = dims.same(result.strides[a].back(), dims.mul(strides[a][d], space[d]));
    if (merges) {
      result.sizes.back() = dims.mul(result.sizes.back(), space[d]);
      for (size_t a = 0; a < strides.size(); ++a) result.strides[a].back() = strides[a][d];
    } else {
      result.sizes.push_back(space[d]);
      for (size_t a = 0; a < strides.size(); ++a) result.strides[a].push_back(strides[a][d]);
    }
    result.position[d] = static_cast<int>(result.sizes.size()) - 1;
    last = static_cast<int>(d);
  }
  return result;
}

}  // namespace ingot::codegen::lowering
