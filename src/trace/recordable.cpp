#include "trace/recordable.h"

#include <algorithm>

#include "base/overlap.h"

namespace ingot::trace {

bool writes_overlap(const eager::OpCall& call) {
  if (!call.inplace) return false;
  const detail::TensorImpl& self = *call.operands[0].tensor->impl();
  return elements_overlap(self.sizes, self.strides);
}

bool reads_beyond(const eager::OpCall& call) {
  const detail::TensorImpl& self = *call.operands[0].tensor->impl();
  const Dims &sizes = call.attrs[0].list, &strides = call.attrs[1].list;
  int64_t elements = 1, last = call.attrs[2].present() ? call.attrs[2].list[0].code : 0;
  if (sizes.size() != strides.size()) return true;
  for (size_t d = self.sizes.size(); d-- > 0; elements *= self.sizes[d])
    if (self.sizes[d] != 1 && self.strides[d] != elements) return true;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (int64_t reach; __builtin_mul_overflow(std::max<int64_t>(sizes[d].code - 1, 0), strides[d].code, &reach) ||
                       __builtin_add_overflow(last, reach, &last))
      return true;
  return self.offset != 0 || last >= elements;
}

const char* why_not_recorded(const eager::OpCall& call) {
  if (ir::info(call.op).has(ir::kMayBreak) && !call.derivative) return "the shape depends on data";
  return writes_overlap(call) ? "a write to elements that overlap" : nullptr;
}

}  // namespace ingot::trace
