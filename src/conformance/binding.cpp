#include "conformance/binding.h"

#include "conformance/functions.h"
#include "conformance/row.h"
#include "eager/call/call.h"
#include "eager/call/dispatch.h"

namespace ingot::conformance {
namespace {

using Kind = CaseValue::Kind;

eager::Operand scalar_operand(const CaseValue& v) {
  if (v.is(Kind::number)) return Scalar(v.number);
  if (v.is(Kind::boolean)) return Scalar(v.integer != 0);
  return Scalar(v.integer);
}

eager::Operand default_argument(const ir::ArgInfo& argument) {
  if (!argument.has_default) return {};
  if (argument.default_integer) return Scalar(static_cast<int64_t>(argument.default_number));
  return Scalar(argument.default_number);
}

std::vector<Tensor> run_row(const RowCall& row, const Materialize& materialize, bool inplace) {
  std::vector<Tensor> tensors;
  tensors.reserve(row.operands.size());
  std::vector<eager::Operand> operands;
  const ir::OpInfo& info = ir::info(row.op);
  for (const CaseValue* v : row.operands) {
    if (!v) {
      operands.push_back(default_argument(info.operand(static_cast<int>(operands.size()))));
    } else if (v->is(Kind::tensor)) {
      tensors.push_back(materialize(v->tensor));
      operands.emplace_back(tensors.back());
    } else {
      operands.push_back(scalar_operand(*v));
      eager::note_special(row.op, static_cast<int>(operands.size()) - 1, &operands.back());
    }
  }
  std::vector<ir::Attr> attrs = row.attrs;
  eager::OpCall call{row.op, inplace, operands, attrs, Location()};
  eager::settle(call, attrs);
  std::vector<Tensor> outputs(info.outputs);
  eager::dispatch(call, outputs);
  if (inplace) outputs[0] = tensors[0];
  return outputs;
}

}  // namespace

bool knows_op(const std::string& op) { return has_function(op) || ir::find_op(op); }

BoundCase bind(const Case& c) {
  if (const Function* function = find_function(c))
    return [&c, function](const Materialize& m) { return function->run(Arguments(c, m)); };
  const ir::OpInfo* row = ir::find_op(c.op);
  if (!row) throw Error("neither a row nor a function of the API takes these arguments");
  return [call = place(*row, c)](const Materialize& m) { return run_row(call, m, false); };
}

BoundCase bind_inplace(const Case& c) {
  if (c.outputs.size() != 1 || !c.has_tensor(0)) return {};
  const CaseTensor &self = c.args[0].tensor, &expected = c.outputs[0].expected;
  if (self.dtype != c.outputs[0].dtype || !(self.shape == expected.shape)) return {};
  if (const Function* function = find_inplace_function(c))
    return [&c, function](const Materialize& m) { return function->run(Arguments(c, m)); };
  const ir::OpInfo* row = ir::find_op(c.op);
  if (!row || !row->has(ir::kInplace) || find_function(c)) return {};
  return [call = place(*row, c)](const Materialize& m) { return run_row(call, m, true); };
}

}  // namespace ingot::conformance
