#include "compiler/evaluate.h"

#include <cstring>
#include <memory>

#include "base/half.h"
#include "compiler/compiler.h"
#include "runtime/cpu.h"

namespace ingot::compiler {
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
    const Settings settings{.level = {runtime::host_target()}, .passes = false};
    const ReadyProgram ready = compile(key_of(constants, settings), constants, settings, {});
    alignas(64) char bytes[64] = {};
    void* output = bytes;
    ready.loaded->run(*ready.loaded->bind({}), {{}, {}, {&output, 1}, {}});
    return constant(constants.type(constants.outputs[0]).dtype, bytes);
  } catch (const Error&) {
    return std::nullopt;  // what the op refuses is for the run to say
  }
}

}  // namespace ingot::compiler
