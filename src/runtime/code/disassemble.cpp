#include "runtime/code/disassemble.h"

#include <Zydis/Zydis.h>
#include <fmt/format.h>

#include <algorithm>

namespace ingot::runtime {

std::string disassemble(const std::vector<uint8_t>& code, int64_t code_bytes) {
  ZydisDecoder decoder;
  ZydisFormatter formatter;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL);
  std::string text;
  size_t end = std::min(code.size(), static_cast<size_t>(code_bytes));
  for (size_t at = 0; at < end;) {
    ZydisDecodedInstruction instruction;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code.data() + at, end - at, &instruction, operands))) {
      text += fmt::format("  {:5x}  (not an instruction)\n", at);
      break;
    }
    char line[160];
    ZydisFormatterFormatInstruction(&formatter, &instruction, operands, instruction.operand_count_visible, line,
                                    sizeof line, at, nullptr);
    text += fmt::format("  {:5x}  {}\n", at, line);
    at += instruction.length;
  }
  return text;
}

}  // namespace ingot::runtime
