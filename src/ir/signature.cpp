#include "ir/signature.h"

#include <array>
#include <cstdlib>

namespace ingot::ir {
namespace {
constexpr std::array<std::string_view, 15> kKindNames = {"tensor",  "operand", "value",   "tensors", "dim",
                                                         "new_dim", "dims",    "boolean", "integer", "integers",
                                                         "number",  "dtype",   "mode",    "size",    "sizes"};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// Cuts off and returns what stands before the separator; the whole text if there is none.
std::string_view cut(std::string_view* text, std::string_view separator) {
  size_t at = text->find(separator);
  std::string_view head = text->substr(0, at);
  *text = at == std::string_view::npos ? std::string_view() : text->substr(at + separator.size());
  return trimmed(head);
}

void parse_default(std::string_view text, ArgInfo* argument) {
  argument->has_default = true;
  if (argument->kind == ArgKind::mode) {
    while (argument->default_mode < static_cast<int>(argument->modes.size()) &&
           argument->modes[argument->default_mode] != text)
      ++argument->default_mode;
    INGOT_CHECK(argument->default_mode < static_cast<int>(argument->modes.size()), std::string(text));
    return;
  }
  std::string digits(text);
  char* end = nullptr;
  argument->default_number = std::strtod(digits.c_str(), &end);
  argument->default_integer = digits.find_first_of(".e") == std::string::npos;
  INGOT_CHECK(!digits.empty() && *end == '\0', digits);
}

ArgInfo parse_argument(std::string_view text) {
  ArgInfo argument;
  std::string_view rest = text;
  argument.name = cut(&rest, ":");
  std::string_view kind = cut(&rest, "="), positions = kind;
  argument.wraps = kind.find(" around ") != std::string_view::npos;
  kind = cut(&positions, argument.wraps ? " around " : " in ");
  argument.positions = positions;
  if (!kind.empty() && kind.back() == '?') {
    argument.optional = true;
    kind.remove_suffix(1);
  }
  if (!kind.empty() && kind.front() == '{') {
    INGOT_CHECK(kind.back() == '}', std::string(text));
    argument.kind = ArgKind::mode;
    std::string_view words = kind.substr(1, kind.size() - 2);
    while (!words.empty()) argument.modes.emplace_back(cut(&words, "|"));
  } else if (kind == "mask") {
    argument.kind = ArgKind::tensor;
    argument.mask = true;
  } else {
    if (!kind.empty() && kind.back() == '}') {
      std::string_view numbers = kind.substr(kind.find('{') + 1);
      numbers.remove_suffix(1);
      while (!numbers.empty())
        argument.special.push_back(std::strtod(std::string(cut(&numbers, "|")).c_str(), nullptr));
      kind = kind.substr(0, kind.find('{'));
    }
    size_t number = 0;
    while (number < kKindNames.size() && kKindNames[number] != kind) ++number;
    INGOT_CHECK(number < kKindNames.size(), std::string(text));
    argument.kind = static_cast<ArgKind>(number);
  }
  rest = trimmed(rest);
  if (!rest.empty()) parse_default(rest, &argument);
  return argument;
}
}  // namespace

std::string_view name_of(ArgKind kind) { return kKindNames[static_cast<int>(kind)]; }

void parse_signature(std::string_view text, OpInfo* op) {
  std::string_view arguments = cut(&text, "->");
  if (!text.empty()) op->outputs = std::atoi(std::string(trimmed(text)).c_str());
  while (!arguments.empty()) {
    op->arguments.push_back(parse_argument(cut(&arguments, ",")));
    const ArgInfo& argument = op->arguments.back();
    if (!is_operand(argument.kind)) continue;
    if (argument.kind == ArgKind::tensors) {
      INGOT_CHECK(op->operand_count == 0, "a list of tensors comes first");
      op->list_first = true;
    }
    if (!argument.positions.empty()) op->checked_positions = op->operand_count;
    ++op->operand_count;
  }
}

}  // namespace ingot::ir
