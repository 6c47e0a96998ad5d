#include "codegen/cuda/expression.h"

#include "codegen/cuda/mapping.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdlib>

namespace ingot::codegen::cuda {
namespace {

/// The shortest decimal that is this number, however a compiler reads it; else its bits.
std::string float_literal(Type type, uint64_t bits) {
  if (type == Type::f32) {
    float x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    std::string text = fmt::format("{}", x);
    if (!std::isnormal(x) && x != 0)
      return fmt::format("from_bits({})", static_cast<int32_t>(static_cast<uint32_t>(bits)));
    if (static_cast<float>(std::strtod(text.c_str(), nullptr)) != x) return fmt::format("{:a}f", x);
    return text + (text.find_first_of(".e") == std::string::npos ? ".0f" : "f");
  }
  double x = std::bit_cast<double>(bits);
  if (!std::isnormal(x) && x != 0) return fmt::format("from_bits((long long){:#x}ull)", bits);
  std::string text = fmt::format("{}", x);
  return text + (text.find_first_of(".e") == std::string::npos ? ".0" : "");
}

std::string literal(const Node& n) {
  switch (n.type) {
    case Type::f32:
    case Type::f64:
      return float_literal(n.type, n.imm);
    case Type::i32: {
      int32_t x = static_cast<int32_t>(static_cast<uint32_t>(n.imm));
      return x == INT32_MIN ? "int(0x80000000u)" : fmt::format("{}", x);
    }
    case Type::i64: {
      int64_t x = static_cast<int64_t>(n.imm);
      return x == INT64_MIN ? "(long long)0x8000000000000000ull" : fmt::format("{}ll", x);
    }
    case Type::mask:
      break;
  }
  return n.imm ? "true" : "false";
}

/// How an operation is written: {0}, {1}, {2} are its operands.
std::string pattern(const Node& n, Type operand) {
  const bool floats = is_float(operand);
  switch (n.op) {
    case Op::add:
      return floats ? "{0} + {1}" : "add({0}, {1})";
    case Op::sub:
      return floats ? "{0} - {1}" : "sub({0}, {1})";
    case Op::mul:
      return floats ? "{0} * {1}" : "mul({0}, {1})";
    case Op::div:
      return "divide({0}, {1})";
    case Op::min:
      return "minimum({0}, {1})";
    case Op::max:
      return "maximum({0}, {1})";
    case Op::fma:
      return "multiply_add({0}, {1}, {2})";
    case Op::sqrt:
      return "square_root({0})";
    case Op::round: {
      constexpr const char* modes[] = {"round_even({0})", "round_down({0})", "round_up({0})", "round_to_zero({0})"};
      return modes[n.imm];
    }
    case Op::scale: {
      constexpr const char* kinds[] = {"scale({0}, {1})", "scale_normal({0}, {1})", "scale_near_one({0}, {1})"};
      return kinds[n.imm];
    }
    case Op::round_to:
      return static_cast<DType>(n.imm) == DType::f16 ? "from_f16(to_f16({0}))" : "from_bf16(to_bf16({0}))";
    case Op::bit_and:
      return "{0} & {1}";
    case Op::bit_or:
      return "{0} | {1}";
    case Op::bit_xor:
      return "{0} ^ {1}";
    case Op::shl:
      return "shift_left({0}, {1})";
    case Op::shr:
      return "shift_right_logical({0}, {1})";
    case Op::sar:
      return "{0} >> {1}";
    case Op::wrap:
      return fmt::format("int(({})({{0}}))", memory_name(static_cast<DType>(n.imm)));
    case Op::eq:
      return "{0} == {1}";
    case Op::ne:
      return "{0} != {1}";
    case Op::lt:
      return "{0} < {1}";
    case Op::le:
      return "{0} <= {1}";
    case Op::select:
      return "{0} ? {1} : {2}";
    case Op::convert:
      if (floats && !is_float(n.type)) return fmt::format("to_integer<{}>({{0}})", type_name(n.type));
      return fmt::format("({})({{0}})", type_name(n.type));
    case Op::bitcast:
      return floats ? "to_bits({0})" : "from_bits({0})";
    default:
      break;
  }
  INGOT_CHECK(false, std::string("no CUDA expression for ") + name_of(n.op));
  return {};
}

}  // namespace

const char* type_name(Type type) {
  constexpr const char* names[] = {"float", "double", "int", "long long", "bool"};
  return names[static_cast<int>(type)];
}

const char* memory_name(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return "double";
    case DType::f32:
      return "float";
    case DType::f16:
    case DType::bf16:
      return "unsigned short";
    case DType::i64:
      return "long long";
    case DType::i32:
      return "int";
    case DType::i16:
      return "short";
    case DType::i8:
      return "signed char";
    case DType::u8:
    case DType::bool_:
      return "unsigned char";
    case DType::c64:
    case DType::c128:
      break;
  }
  INGOT_CHECK(!"no kernel computes with complex numbers");
}

std::string operand(const Kernel& k, Value v) {
  return k.nodes[v].op == Op::constant ? literal(k.nodes[v]) : fmt::format("v{}", v);
}

std::string expression(const Kernel& k, const Node& n) {
  if (n.op == Op::scalar) return fmt::format("scalar<{}>(a.scalars[{}])", type_name(n.type), n.imm);
  if (n.op == Op::reduced) return fmt::format("r{}{}", n.imm, is_index(k.reductions[n.imm].combiner) ? ".index" : "");
  auto text = [&](Value v) { return v == kNone ? std::string() : operand(k, v); };
  return fmt::format(fmt::runtime(pattern(n, k.nodes[n.a].type)), text(n.a), text(n.b), text(n.c));
}

std::string from_memory(DType dtype, const std::string& element) {
  switch (dtype) {
    case DType::f16:
      return "from_f16(" + element + ")";
    case DType::bf16:
      return "from_bf16(" + element + ")";
    case DType::bool_:
      return element + " != 0";
    default:
      return element;
  }
}

std::string to_memory(DType dtype, const std::string& value) {
  switch (dtype) {
    case DType::f16:
      return "to_f16(" + value + ")";
    case DType::bf16:
      return "to_bf16(" + value + ")";
    case DType::i16:
    case DType::i8:
    case DType::u8:
    case DType::bool_:
      return std::string("(") + memory_name(dtype) + ")(" + value + ")";
    default:
      return value;
  }
}

}  // namespace ingot::codegen::cuda
