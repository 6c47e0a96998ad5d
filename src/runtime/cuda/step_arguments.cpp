#include "runtime/cuda/step_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "runtime/scalar_bits.h"

namespace ingot::runtime::cuda {
namespace {

class Translation {
 public:
  Translation(const Program& program, const BoundValues& values) : program_(program), values_(values) {}

  /// What loop and column steps have in common.
  template <class Work>
  CudaArguments arguments(const Work& work) const {
    CudaArguments a;
    for (Dim d : work.space) a.outer.push_back(value(d));
    a.columns = taken(a.outer);
    a.rows = taken(a.outer);
    for (const Argument& argument : work.arguments) {
      CudaOperand& o = a.buffers.emplace_back(operand(argument));
      o.row = taken(o.outer);
    }
    for (const ScalarSource& s : work.scalars) a.scalars.push_back(scalar(s));
    return a;
  }
  /// Without a stride along the rows, which is the last but one where there is one.
  CudaOperand operand(const Argument& a) const {
    CudaOperand o{values_.buffers[a.buffer] + value(a.offset), 0, 0, value(a.index_stride), {}};
    for (Dim d : a.strides) o.outer.push_back(value(d));
    o.column = taken(o.outer);
    return o;
  }

 private:
  static int64_t taken(std::vector<int64_t>& list) {
    const int64_t last = list.back();
    list.pop_back();
    return last;
  }
  int64_t value(Dim d) const { return DimTable::value_of(d, values_.sizes); }
  uint64_t scalar(const ScalarSource& s) const {
    if (s.kind == ScalarSource::Kind::size) return converted(value(s.size), s.type);
    const uint64_t given = values_.scalars[s.number];
    return program_.scalars[s.number] == Category::floating ? converted(std::bit_cast<double>(given), s.type)
                                                            : converted(static_cast<int64_t>(given), s.type);
  }

  const Program& program_;
  const BoundValues& values_;
};

}  // namespace

CudaPlan KernelCall::plan(const CudaDevice& device) const {
  int64_t planes = 1;
  for (int64_t size : arguments.outer) planes *= size;
  const CudaMapping& mapping = kernel->cuda->mapping;
  const bool turned = std::any_of(mapping.turning.begin(), mapping.turning.end(), [&](const CudaMapping::Turning& t) {
    const CudaOperand& o = arguments.buffers[t.buffer];
    return o.row == t.element_bytes && o.column != t.element_bytes;
  });
  return plan_launches(mapping, planes, arguments.rows, arguments.columns, device, turned);
}

KernelCall kernel_call(const Program& program, const Step& step, const BoundValues& values) {
  const Translation translation(program, values);
  KernelCall call;
  if (const auto* loop = std::get_if<LoopStep>(&step.work)) {
    call = {loop->kernel.get(), translation.arguments(*loop)};
  } else if (const auto* column = std::get_if<ColumnStep>(&step.work)) {
    call = {column->kernel.get(), translation.arguments(*column)};
    for (const ColumnStep::Result& r : column->results) call.arguments.results.push_back(translation.operand(r.out));
  }
  if (!call.kernel || !call.kernel->cuda)
    throw Error(fmt::format("CUDA: step {}: a library's or the host's, expected a kernel of the device", step.name));
  return call;
}

}  // namespace ingot::runtime::cuda
