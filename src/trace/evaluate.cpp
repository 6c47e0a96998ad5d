#include "trace/evaluate.h"

#include <cstring>
#include <memory>

#include "base/half.h"
#include "codegen/lower.h"
#include "runtime/cpu.h"
#include "runtime/program_runner.h"

namespace ingot::trace {
namespace {

template <class T>
T read(const void* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

ir::Operand constant(DType dtype, const void* bytes) {
  auto integer = [](int64_t x) { return ir::Operand::constant(x); };
  switch (dtype) {
    case DType::f64:
      return ir::Operand::constant(read<double>(bytes));
    case DType::f32:
      return ir::Operand::constant(static_cast<double>(read<float>(bytes)));
    case DType::f16:
      return ir::Operand::constant(static_cast<double>(f32_from_f16(read<uint16_t>(bytes))));
    case DType::bf16:
      return ir::Operand::constant(static_cast<double>(f32_from_bf16(read<uint16_t>(bytes))));
    case DType::i64:
      return integer(read<int64_t>(bytes));
    case DType::i32:
      return integer(read<int32_t>(bytes));
    case DType::i16:
      return integer(read<int16_t>(bytes));
    case DType::i8:
      return integer(read<int8_t>(bytes));
    case DType::u8:
      return integer(read<uint8_t>(bytes));
    case DType::bool_:
      return ir::Operand::constant(read<uint8_t>(bytes) != 0);
    case DType::c64:
    case DType::c128:
      break;
  }
  INGOT_CHECK(false, std::string(name_of(dtype)));
}

}  // namespace

std::optional<ir::Operand> evaluate(const ir::Graph& constants) {
  try {
    codegen::LowerResult lowered = codegen::lower(constants, runtime::host_target());
    runtime::LoadedProgram program(std::make_shared<const Program>(std::move(lowered.program)));
    alignas(64) char bytes[64] = {};
    void* output = bytes;
    program.run(*program.bind({}), {{}, {}, {&output, 1}, {}});
    return constant(constants.type(constants.outputs[0]).dtype, bytes);
  } catch (const Error&) {
    return std::nullopt;  // what the op refuses is for the run to say
  }
}

}  // namespace ingot::trace
