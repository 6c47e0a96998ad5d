// The parser of IR text (its form stands in print.cpp). The text may be hostile: every fault is an Error with line and
// column, sizes are checked for overflow, and the one recursion, over brackets in a size, is bounded.
#include <charconv>
#include <cmath>
#include <limits>
#include <unordered_set>

#include "base/first_use.h"
#include "base/float_environment.h"
#include "base/mutex.h"
#include "ir/graph.h"
#include "ir/rules/rules.h"
#include "ir/signature.h"

namespace ingot::ir {
namespace {
// Locations hold pointers to names that live forever, as those of a compiled program do.
const char* kept(const std::string& name) {
  static constinit Mutex mutex;
  static constinit FirstUse<std::unordered_set<std::string>> names;
  std::lock_guard lock(mutex);
  return names->insert(name).first->c_str();
}

class Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text) {}

  Graph graph() {
    next_line();
    if (line_ != "ingot.ir 1") fail("the version line `ingot.ir 1`");
    while (!done_ && next_line()) {
      skip_spaces();
      if (at_end() || peek() == '#') continue;
      statement();
    }
    if (!done_) fail("an `output` line");
    while (next_line()) {
      skip_spaces();
      if (!at_end()) fail("nothing after the `output` line");
    }
    return std::move(graph_);
  }

 private:
  // Lines and characters.
  bool next_line() {
    if (rest_.empty() && line_number_ > 0) return false;
    size_t end = rest_.find('\n');
    line_ = rest_.substr(0, end);
    rest_ = end == std::string_view::npos ? std::string_view() : rest_.substr(end + 1);
    ++line_number_;
    at_ = 0;
    return true;
  }
  [[noreturn]] void fail(const std::string& expected) const {
    std::string got = at_ < line_.size() ? "`" + std::string(line_.substr(at_, 24)) + "`" : "the end of the line";
    fail_text("got " + got + ", expected " + expected);
  }
  [[noreturn]] void fail_text(const std::string& what) const {
    throw Error("IR text: " + std::to_string(line_number_) + ":" + std::to_string(at_ + 1) + ": " + what);
  }
  bool at_end() const { return at_ >= line_.size(); }
  char peek() const { return at_end() ? '\0' : line_[at_]; }
  void skip_spaces() {
    while (peek() == ' ' || peek() == '\t' || peek() == '\r') ++at_;
  }
  bool take(std::string_view symbol) {
    skip_spaces();
    if (line_.substr(at_, symbol.size()) != symbol) return false;
    at_ += symbol.size();
    return true;
  }
  void need(std::string_view symbol) {
    if (!take(symbol)) fail("`" + std::string(symbol) + "`");
  }
  static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  }
  std::string_view word() {
    skip_spaces();
    size_t start = at_;
    while (is_word(peek())) ++at_;
    return line_.substr(start, at_ - start);
  }
  /// Takes this word if it is the next one; the word of a mode may have hyphens.
  bool take_word(std::string_view expected) {
    skip_spaces();
    size_t end = at_ + expected.size();
    if (line_.substr(at_, expected.size()) != expected) return false;
    if (end < line_.size() && (is_word(line_[end]) || line_[end] == '-')) return false;
    at_ = end;
    return true;
  }
  std::string_view name(const char* what) {
    skip_spaces();
    size_t start = at_;
    std::string_view text = word();
    if (text.empty() || (text[0] >= '0' && text[0] <= '9')) {
      at_ = start;
      fail(what);
    }
    return text;
  }

  template <class T>
  T numeral(const char* what) {
    skip_spaces();
    T value{};
    auto [end, error] = std::from_chars(line_.data() + at_, line_.data() + line_.size(), value);
    if (error != std::errc()) fail(what);
    at_ = static_cast<size_t>(end - line_.data());
    return value;
  }
  int64_t natural(const char* what) {
    skip_spaces();
    if (peek() < '0' || peek() > '9') fail(what);
    return numeral<int64_t>(what);
  }
  double number() {
    if (take_word("nan")) return std::numeric_limits<double>::quiet_NaN();
    if (take_word("inf")) return std::numeric_limits<double>::infinity();
    if (take("-inf")) return -std::numeric_limits<double>::infinity();
    return numeral<double>("a number");
  }
  std::string string() {
    need("\"");
    std::string text;
    while (peek() != '"') {
      if (at_end()) fail("`\"`");
      if (peek() == '\\') {
        ++at_;
        if (peek() != '"' && peek() != '\\' && peek() != 'n') fail("an escape: \\\", \\\\ or \\n");
        text += peek() == 'n' ? '\n' : peek();
      } else {
        text += peek();
      }
      ++at_;
    }
    ++at_;
    return text;
  }

  // Sizes. A difference is collected as what is added and what is taken away, since no size may fall below zero.
  Dim size(int brackets = 0) {
    if (brackets > DimTable::kDeepest) fail("fewer brackets");
    DimTable& dims = graph_.dims;
    Dim plus = 0, minus = 0;
    bool negative = take("-");
    do {
      Dim term = factor(brackets);
      while (take("*")) term = dims.mul(term, factor(brackets));
      Dim& side = negative ? minus : plus;
      side = dims.add(side, term);
      negative = take("-");
    } while (negative || take("+"));
    if (minus == Dim(0)) return plus;
    if (dims.hint(plus) < dims.hint(minus)) fail_text("got a size below zero, expected a size");
    return dims.sub(plus, minus);
  }
  Dim factor(int brackets) {
    skip_spaces();
    if (take("(")) {
      Dim inner = size(brackets + 1);
      need(")");
      return inner;
    }
    if (peek() >= '0' && peek() <= '9') return natural("a size");
    size_t start = at_;
    std::string_view text = name("a size");
    DimTable& dims = graph_.dims;
    if (text == "floor_div" || text == "max" || text == "min") {
      need("(");
      Dim a = size(brackets + 1);
      need(",");
      Dim b = size(brackets + 1);
      need(")");
      if (text == "max") return dims.max(a, b);
      if (text == "min") return dims.min(a, b);
      if (dims.hint(b) < 1) fail_text("got a division by zero, expected a positive divisor");
      return dims.floor_div(a, b);
    }
    int64_t symbol = -1;
    std::from_chars(text.data() + 1, text.data() + text.size(), symbol);
    if (symbol >= 0 && symbol < dims.symbol_count() && text == symbol_name(symbol)) return dims.symbol_dim(symbol);
    at_ = start;
    fail("a symbol that was declared");
  }
  Dims sizes() {
    Dims list;
    need("[");
    if (take("]")) return list;
    do list.push_back(size());
    while (take(","));
    need("]");
    return list;
  }
  Dims naturals() {
    Dims list;
    need("[");
    if (take("]")) return list;
    do list.push_back(natural("a number that is not negative"));
    while (take(","));
    need("]");
    return list;
  }
  DType dtype() {
    skip_spaces();
    size_t start = at_;
    DType type;
    if (parse_dtype(word(), &type)) return type;
    at_ = start;
    fail("a dtype");
  }
  TensorType type() {
    DType element = dtype();
    return {element, sizes()};
  }

  // Statements.
  void statement() {
    try {
      if (take_word("symbol"))
        symbol();
      else if (take_word("scalar"))
        scalar();
      else if (take_word("input"))
        input();
      else if (take_word("output"))
        output();
      else
        node();
      skip_spaces();
      if (!at_end()) fail("the end of the line");
    } catch (const InternalError& error) {
      fail_text(error.what());
    } catch (const Error& error) {
      if (std::string_view(error.what()).starts_with("IR text: ")) throw;
      fail_text(error.what());
    }
  }

  void symbol() {
    const std::string expected = symbol_name(graph_.dims.symbol_count());
    if (!take_word(expected)) fail("`" + expected + "`");
    need("=");
    graph_.dims.symbol(natural("a size"));
  }
  static std::string symbol_name(int64_t number) { return "s" + std::to_string(number); }

  void scalar() {
    need("$" + std::to_string(graph_.scalars.size()));
    need("=");
    if (take_word("boolean"))
      graph_.add_scalar(Category::boolean);
    else if (take_word("integer"))
      graph_.add_scalar(Category::integer);
    else if (take_word("floating"))
      graph_.add_scalar(Category::floating);
    else
      fail("boolean, integer or floating");
  }

  void define(const std::vector<int64_t>& names) {
    for (size_t i = 0; i < names.size(); ++i)
      if (names[i] != static_cast<int64_t>(defined_ + i))
        fail_text("got %" + std::to_string(names[i]) + ", expected %" + std::to_string(defined_ + i) +
                  ", the next value");
    defined_ += names.size();
  }

  void input() {
    if (!graph_.nodes.empty()) fail_text("got an input after a node, expected inputs first");
    need("%");
    int64_t number = natural("the number of a value");
    need("=");
    TensorType given = type();
    if (category_of(given.dtype) == Category::complex)
      fail_text("got a complex input, expected a dtype that kernels compute with");
    graph_.dims.product(given.shape);  // past 63 bits is an error
    Dims strides = take_word("strides") ? sizes() : contiguous_strides(graph_.dims, given.shape);
    if (strides.size() != given.shape.size()) fail("a stride for each dim");
    graph_.add_input(given.dtype, given.shape, strides);
    graph_.inputs.back().constant = take_word("constant");
    define({number});
  }

  ValueId value() {
    need("%");
    size_t start = at_;
    int64_t number = natural("the number of a value");
    if (number < static_cast<int64_t>(defined_)) return static_cast<ValueId>(number);
    at_ = start;
    fail("a value that was defined before");
  }

  void output() {
    skip_spaces();
    if (!at_end()) {
      do graph_.outputs.push_back(value());
      while (take(","));
    }
    done_ = true;
  }

  Operand operand() {
    skip_spaces();
    if (peek() == '%') return Operand::value(value());
    if (take("$")) {
      size_t start = at_;
      int64_t number = natural("the number of a scalar");
      if (number < static_cast<int64_t>(graph_.scalars.size()))
        return Operand::scalar(static_cast<uint32_t>(number), graph_.scalars[number]);
      at_ = start;
      fail("a scalar that was declared");
    }
    if (take_word("none")) return Operand::none();
    if (take_word("true")) return Operand::constant(true);
    if (take_word("false")) return Operand::constant(false);
    if (take_word("size")) {
      need("(");
      Dim dim = size();
      need(")");
      return Operand::size(dim);
    }
    // An integer has neither point nor exponent.
    size_t start = at_;
    double floating = number();
    std::string_view text = line_.substr(start, at_ - start);
    if (text.find_first_of(".einf") != std::string_view::npos) return Operand::constant(floating);
    at_ = start;
    return Operand::constant(numeral<int64_t>("an integer of 64 bits"));
  }

  Attr attribute(const ArgInfo& argument) {
    switch (argument.kind) {
      case ArgKind::boolean:
        if (take_word("true")) return Attr::of(true);
        if (take_word("false")) return Attr::of(false);
        fail("true or false");
      case ArgKind::dim:
      case ArgKind::new_dim:
        return Attr::of(natural("a dim"));
      case ArgKind::integer:
        return Attr::of(numeral<int64_t>("an integer"));
      case ArgKind::number:
        return Attr::number(number());
      case ArgKind::dtype:
        return Attr::of(dtype());
      case ArgKind::mode:
        for (size_t i = 0; i < argument.modes.size(); ++i)
          if (take_word(argument.modes[i])) return Attr::mode(static_cast<int>(i));
        fail("a mode of `" + argument.name + "`, such as " + argument.modes[0]);
      case ArgKind::size:
        return Attr::of(Dims{size()});
      case ArgKind::sizes:
        return Attr::of(sizes());
      case ArgKind::dims:
      case ArgKind::integers:
        return Attr::of(naturals());
      case ArgKind::tensor:
      case ArgKind::operand:
      case ArgKind::value:
      case ArgKind::tensors:
        break;
    }
    fail("an attribute");
  }

  /// If "name=" follows, the number of that attribute; else -1.
  int attribute_name(const OpInfo& op) {
    skip_spaces();
    size_t start = at_;
    std::string_view text = word();
    skip_spaces();
    if (text.empty() || peek() != '=') {
      at_ = start;
      return -1;
    }
    int position = attribute_position(op, text);
    if (position < 0) {
      at_ = start;
      fail("an attribute of " + std::string(op.name));
    }
    ++at_;
    return position;
  }

  const OpInfo& op(bool* inplace) {
    skip_spaces();
    size_t start = at_;
    std::string_view text = name("an op");
    const OpInfo* found = find_op(text);
    if (!found && text.ends_with("_")) {
      found = find_op(text.substr(0, text.size() - 1));
      *inplace = found != nullptr;
      if (found && !found->has(kInplace)) fail_text(std::string(found->name) + " has no in-place form");
    }
    if (found) return *found;
    at_ = start;
    fail("the name of an op");
  }

  /// "vjp[110][01]", which may stand before the name of an op.
  const Derivative* derivative() {
    if (!take_word("vjp")) return nullptr;
    const Derivative* made = nullptr;
    while (take("[")) {
      std::vector<bool> wanted;
      while (!take("]")) {
        if (take("1"))
          wanted.push_back(true);
        else if (take("0"))
          wanted.push_back(false);
        else
          fail("0 or 1 for each operand");
      }
      made = derivative_of(made, wanted);
    }
    if (!made) fail("the wanted operands of a derivative");
    return made;
  }

  /// If "shapeN=" follows, N; else -1.
  int64_t shape_number() {
    const size_t start = at_;
    if (take("shape") && peek() >= '0' && peek() <= '9') {
      const int64_t number = natural("the number of an operand");
      if (take("=")) return number;
    }
    at_ = start;
    return -1;
  }

  void node() {
    std::vector<int64_t> names;
    do {
      need("%");
      names.push_back(natural("the number of a value"));
    } while (take(","));
    need("=");
    bool inplace = false;
    const Derivative* const derived = derivative();
    const OpInfo& row = op(&inplace);
    if (inplace && derived) fail_text("a derivative has no in-place form");
    const int results = derived ? derived->results() : row.outputs;
    if (names.size() != static_cast<size_t>(results))
      fail_text("got " + std::to_string(names.size()) + " results, expected " + std::to_string(results));
    std::vector<Operand> operands;
    const size_t attributes_of_row = row.arguments.size() - row.operand_count;
    size_t attribute_count = attributes_of_row;
    for (const Derivative* d = derived; d; d = d->of) attribute_count += d->wanted.size();
    std::vector<Attr> attrs(attribute_count);
    need("(");
    if (!take(")")) {
      bool attributes = false;
      do {
        skip_spaces();
        if (int64_t number = derived ? shape_number() : -1; number >= 0) {
          attributes = true;
          if (attributes_of_row + static_cast<size_t>(number) >= attrs.size()) fail_text("got a shape of no operand");
          const TensorType shape = type();
          attrs[attributes_of_row + static_cast<size_t>(number)] = Attr::shape_of(shape.dtype, shape.shape);
          continue;
        }
        int position = attribute_name(row);
        if (position >= 0) {
          attributes = true;
          if (attrs[position].present()) fail_text("got an attribute twice");
          attrs[position] = attribute(row.attribute(position));
        } else {
          if (attributes) fail("operands before attributes");
          operands.push_back(operand());
          if (derived) continue;
          if (!row.list_first && operands.size() > static_cast<size_t>(row.operand_count))
            fail_text("got too many operands, expected " + std::to_string(row.operand_count));
          if (row.list_first && !operands.back().is_value()) fail_text("got a scalar in a list, expected tensors");
        }
      } while (take(","));
      need(")");
    }
    std::vector<TensorType> types;
    if (take(":")) {
      do types.push_back(type());
      while (take(","));
    }
    Location location = Location::none();
    std::string module;
    if (take_word("at")) {
      location.file = kept(string());
      need(":");
      location.line = numeral<int32_t>("a line");
    }
    if (take_word("in")) module = string();

    graph_.add(row.id, std::move(operands), std::move(attrs), location, inplace, derived);
    graph_.nodes.back().module = std::move(module);
    check_types(types);
    define(names);
  }

  void check_types(const std::vector<TensorType>& given) {
    if (given.empty()) return;
    const std::vector<ValueId>& outputs = graph_.nodes.back().outputs;
    if (given.size() != outputs.size()) fail_text("got another number of types than of results");
    for (size_t i = 0; i < given.size(); ++i) {
      const TensorType& inferred = graph_.type(outputs[i]);
      bool same = given[i].dtype == inferred.dtype && given[i].shape.size() == inferred.shape.size();
      for (size_t d = 0; same && d < given[i].shape.size(); ++d)
        same = graph_.dims.equal(given[i].shape[d], inferred.shape[d]);
      if (!same)
        fail_text("got type " + std::string(name_of(given[i].dtype)) + shape_text(graph_.dims, given[i].shape) +
                  ", expected " + std::string(name_of(inferred.dtype)) + shape_text(graph_.dims, inferred.shape));
    }
  }

  std::string_view rest_, line_;
  size_t line_number_ = 0, at_ = 0;
  Graph graph_;
  size_t defined_ = 0;
  bool done_ = false;
};

}  // namespace

Graph parse(std::string_view text) {
  const FloatEnvironment environment;
  return Parser(text).graph();
}

}  // namespace ingot::ir
