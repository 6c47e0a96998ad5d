#include "ir/signature.h"

#include <array>
#include <cstdlib>
#include <vector>

#include "ir/rules/rules.h"

namespace ingot::ir {
namespace {
constexpr std::array<std::string_view, 15> kKindNames = {"tensor",  "operand", "value",   "tensors", "dim",
                                                         "new_dim", "dims",    "boolean", "integer", "integers",
                                                         "number",  "dtype",   "mode",    "size",    "sizes"};

constexpr std::array<std::string_view, 6> kSettlings = {"none", "inferred", "kept", "wrapped", "clamped", "cyclic"};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// Cuts off and returns what stands before the separator; the whole text if there is none.
std::string_view cut_word(std::string_view* text, std::string_view separator) {
  size_t at = text->find(separator);
  std::string_view head = text->substr(0, at);
  *text = at == std::string_view::npos ? std::string_view() : text->substr(at + separator.size());
  return trimmed(head);
}

double number(const std::string& digits) {
  char* end = nullptr;
  const double value = std::strtod(digits.c_str(), &end);
  INGOT_CHECK(!digits.empty() && *end == '\0', digits);
  return value;
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
  argument->default_number = number(std::string(text));
  argument->default_integer = text.find_first_of(".e") == std::string_view::npos;
}

/// The words of an argument; what they name are arguments of the whole row.
void parse_words(std::string_view words, OpInfo* op, ArgInfo* argument) {
  using Kind = DataCheck::Kind;
  DataCheck& check = argument->check;
  auto attribute = [&](std::string_view name) {
    const int position = attribute_position(*op, name);
    INGOT_CHECK(position >= 0, std::string(name));
    return position;
  };
  while (!words.empty()) {
    const std::string_view word = cut_word(&words, " ");
    if (word == "in" || word == "around") {
      const std::string given(cut_word(&words, " "));
      const size_t dots = given.find("..");
      check.kind = dots == std::string::npos ? Kind::positions : Kind::interval;
      check.wraps = word == "around";
      if (check.kind == Kind::interval) {
        check.low = number(given.substr(0, dots));
        if (dots + 2 < given.size()) check.high = number(given.substr(dots + 2));
      } else if (given == "channel") {
        check.of = DataCheck::Of::channel;
      } else if (given == "dim") {
        check.of = DataCheck::Of::attribute;
        check.dim = attribute(given);
      } else {
        check.dim = static_cast<int>(number(given));
      }
    } else if (word == "except") {
      check.ignored = attribute(cut_word(&words, " "));
    } else if (word == "weights") {
      check.kind = Kind::weights;
    } else if (word == "finished") {
      check.kind = Kind::finished;
    } else if (word == "nonzero") {
      check.kind = Kind::divisor;
    } else if (word == "at_least" || word == "above") {
      check.kind = Kind::order;
      check.strict = word == "above";
      INGOT_CHECK(operand_position(*op, cut_word(&words, " ")) + 1 == operand_position(*op, argument->name),
                  argument->name);
    } else if (word == "held" || word == "lower" || word == "upper") {
      check.kind = Kind::held;
      if (word != "held") check.bound = word == "lower" ? DataCheck::Bound::lower : DataCheck::Bound::upper;
    } else if (word == "with") {
      check.with = attribute(cut_word(&words, " "));
    } else if (word == "without") {
      check.without = operand_position(*op, cut_word(&words, " "));
      INGOT_CHECK(check.without >= 0, argument->name);
    } else {
      size_t settling = 0;
      while (settling < kSettlings.size() && kSettlings[settling] != word) ++settling;
      INGOT_CHECK(settling < kSettlings.size(), std::string(word));
      argument->settling = static_cast<Settling>(settling);
    }
  }
}

/// An argument but for its words, which are cut off.
ArgInfo parse_argument(std::string_view text, std::string_view* words) {
  ArgInfo argument;
  std::string_view rest = text;
  argument.name = cut_word(&rest, ":");
  *words = cut_word(&rest, "=");
  std::string_view kind = cut_word(words, " ");
  if (!kind.empty() && kind.back() == '?') {
    argument.optional = true;
    kind.remove_suffix(1);
  }
  if (!kind.empty() && kind.front() == '{') {
    INGOT_CHECK(kind.back() == '}', std::string(text));
    argument.kind = ArgKind::mode;
    std::string_view words = kind.substr(1, kind.size() - 2);
    while (!words.empty()) argument.modes.emplace_back(cut_word(&words, "|"));
  } else if (kind == "mask") {
    argument.kind = ArgKind::tensor;
    argument.mask = true;
  } else {
    if (!kind.empty() && kind.back() == '}') {
      std::string_view numbers = kind.substr(kind.find('{') + 1);
      numbers.remove_suffix(1);
      while (!numbers.empty())
        argument.special.push_back(std::strtod(std::string(cut_word(&numbers, "|")).c_str(), nullptr));
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
  std::string_view arguments = cut_word(&text, "->");
  if (!text.empty()) op->outputs = std::atoi(std::string(trimmed(text)).c_str());
  std::vector<std::string_view> words;
  while (!arguments.empty()) {
    op->arguments.push_back(parse_argument(cut_word(&arguments, ","), &words.emplace_back()));
    const ArgInfo& argument = op->arguments.back();
    if (!is_operand(argument.kind)) continue;
    if (argument.kind == ArgKind::tensors) {
      INGOT_CHECK(op->operand_count == 0, "a list of tensors comes first");
      op->list_first = true;
    }
    ++op->operand_count;
  }
  int operand = 0;
  for (size_t i = 0; i < words.size(); ++i) {
    ArgInfo& argument = op->arguments[i];
    parse_words(words[i], op, &argument);
    if (argument.check.kind != DataCheck::Kind::none) op->checked.push_back(operand);
    operand += is_operand(argument.kind);
  }
}

}  // namespace ingot::ir
