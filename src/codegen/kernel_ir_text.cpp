// Kernel IR as text, written and read. One line a fact:
//
//   kernel rows scalars 1
//   b0 f16 dense
//   b1 f32 dense written
//   l0 f32
//   %0 = load f32 b0
//   %1 = scalar f32 0
//   %2 = mul f32 %0 %1
//   %3 = constant f32 0x3f800000 (1)
//   [1] %4 = sqrt f32 %2
//   r0 sum %2
//   phase 0
//     store b1 %2
//     local_store l0 %2
//     reduce r0
//     row_store b1 %2
#include <fmt/format.h>

#include <bit>
#include <charconv>

#include "codegen/kernel_ir.h"

namespace ingot::codegen {
namespace {

std::string constant_text(const Node& n) {
  switch (n.type) {
    case Type::f32:
      return fmt::format("{:#x} ({})", n.imm, std::bit_cast<float>(static_cast<uint32_t>(n.imm)));
    case Type::f64:
      return fmt::format("{:#x} ({})", n.imm, std::bit_cast<double>(n.imm));
    case Type::i32:
      return fmt::format("{}", static_cast<int32_t>(n.imm));
    default:
      return fmt::format("{}", static_cast<int64_t>(n.imm));
  }
}

void print_stores(std::string& out, const char* what, char kind, const std::vector<Store>& stores) {
  for (const Store& s : stores)
    fmt::format_to(std::back_inserter(out), "  {} {}{} %{}\n", what, kind, s.buffer, s.value);
}

std::string& number(std::string& out, uint64_t value) {
  char digits[20];
  return out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

/// Reads what print() writes, word by word.
class Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text) {}

  Kernel kernel() {
    if (!next_line()) fail("`kernel rows` or `kernel columns`");
    expect("kernel");
    k_.form = read<Form>({"rows", "columns"});
    expect("scalars");
    k_.scalars = number<uint32_t>();
    if (take("known_columns")) k_.known_columns = number<int64_t>();
    k_.few_columns = take("few_columns");
    k_.streams = take("streams");
    end();
    while (next_line()) statement();
    verify_text();
    return std::move(k_);
  }

 private:
  [[noreturn]] void fail(const std::string& expected) const {
    throw Error(fmt::format("kernel IR: line {}: got `{}`, expected {}", line_, word_, expected));
  }

  // Lines and words.
  bool next_line() {
    do {
      if (rest_.empty()) return word_ = {}, false;
      const size_t end = rest_.find('\n');
      words_ = rest_.substr(0, end);
      words_ = words_.substr(0, words_.find('#'));
      rest_ = end == std::string_view::npos ? std::string_view() : rest_.substr(end + 1);
      ++line_;
      next();
    } while (word_.empty());
    return true;
  }
  void next() {
    const size_t begin = std::min(words_.find_first_not_of(" \t\r"), words_.size());
    const size_t end = std::min(words_.find_first_of(" \t\r", begin), words_.size());
    word_ = words_.substr(begin, end - begin);
    words_ = words_.substr(end);
  }
  bool take(std::string_view word) {
    if (word_ != word) return false;
    next();
    return true;
  }
  void expect(std::string_view word) {
    if (!take(word)) fail("`" + std::string(word) + "`");
  }
  void end() const {
    if (!word_.empty()) fail("the end of the line");
  }
  bool begins(char c) const { return !word_.empty() && word_[0] == c; }

  template <class T>
  T number() {
    std::string_view digits = word_;
    const int base = digits.starts_with("0x") ? 16 : 10;
    if (base == 16) digits.remove_prefix(2);
    T value{};
    const auto [to, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    if (error != std::errc() || to != digits.data() + digits.size()) fail("a number");
    next();
    return value;
  }
  /// "b3" with the letter b.
  template <class T = uint32_t>
  T numbered(char letter) {
    if (!begins(letter)) fail(fmt::format("`{}` and a number", letter));
    word_.remove_prefix(1);
    return number<T>();
  }
  template <class T>
  T read(std::initializer_list<std::string_view> names) {
    size_t i = 0;
    std::string all;
    for (std::string_view name : names) {
      if (take(name)) return static_cast<T>(i);
      all += (i++ ? ", " : "") + std::string(name);
    }
    fail("one of " + all);
  }
  template <class T>
  T named(int count, const char* what) {
    for (int i = 0; i < count; ++i)
      if (take(name_of(static_cast<T>(i)))) return static_cast<T>(i);
    fail(what);
  }
  Type type() { return named<Type>(static_cast<int>(Type::mask) + 1, "a register type"); }
  DType dtype() {
    DType d;
    if (!parse_dtype(word_, &d)) fail("a dtype");
    next();
    return d;
  }

  // Facts.
  void statement() {
    if (begins('b')) {
      in_order(numbered('b'), k_.buffers.size());
      Buffer& b = k_.buffers.emplace_back();
      b.dtype = dtype();
      b.access = named<Access>(static_cast<int>(Access::strided) + 1, "dense, uniform or strided");
      if (take("by")) b.stride = number<int8_t>();
      b.written = take("written");
      b.same_rows = take("same_rows");
    } else if (word_.starts_with("local_store")) {
      store(&Phase::local_stores, 'l');
    } else if (begins('l')) {
      in_order(numbered('l'), k_.locals.size());
      k_.locals.push_back(type());
    } else if (begins('%') || begins('[')) {
      node();
    } else if (word_ == "row_store") {
      store(&Phase::row_stores, 'b');
    } else if (take("reduce")) {
      phase().reductions.push_back(numbered('r'));
    } else if (begins('r')) {
      in_order(numbered('r'), k_.reductions.size());
      Reduction& r = k_.reductions.emplace_back();
      r.combiner = named<Combiner>(static_cast<int>(Combiner::argmin) + 1, "a combiner");
      r.value = numbered<Value>('%');
    } else if (take("phase")) {
      in_order(number<uint32_t>(), k_.phases.size());
      k_.phases.emplace_back();
    } else {
      store(&Phase::stores, 'b');
    }
    end();
  }
  void in_order(size_t number, size_t next) const {
    if (number != next) fail(fmt::format("number {} before it", next));
  }
  Phase& phase() {
    if (k_.phases.empty()) fail("`phase 0` before it");
    return k_.phases.back();
  }
  void store(std::vector<Store> Phase::*stores, char letter) {
    if (!take("store") && !take("local_store") && !take("row_store")) fail("a buffer, local, node, reduction or store");
    Store s;
    s.buffer = numbered(letter);
    s.value = numbered<Value>('%');
    (phase().*stores).push_back(s);
  }

  void node() {
    Node n{};
    if (begins('[')) {
      if (!word_.ends_with(']')) fail("`[region]`");
      word_ = word_.substr(1, word_.size() - 2);
      n.region = number<uint16_t>();
    }
    in_order(numbered('%'), k_.nodes.size());
    expect("=");
    n.op = named<Op>(kOpCount, "an op");
    n.type = type();
    for (Value* operand : {&n.a, &n.b, &n.c})
      if (begins('%')) *operand = numbered<Value>('%');
    switch (n.op) {
      case Op::constant:
        n.imm = constant(n.type);
        break;
      case Op::load:
        n.imm = numbered<uint64_t>('b');
        break;
      case Op::local:
        n.imm = numbered<uint64_t>('l');
        break;
      case Op::reduced:
        n.imm = numbered<uint64_t>('r');
        break;
      case Op::wrap:
      case Op::round_to:
        n.imm = static_cast<uint64_t>(dtype());
        break;
      case Op::scalar:
      case Op::index:
      case Op::round:
      case Op::scale:
      case Op::rare:
        n.imm = number<uint64_t>();
        break;
      default:
        break;
    }
    k_.nodes.push_back(n);
  }
  uint64_t constant(Type type) {
    if (type == Type::i32) return static_cast<uint32_t>(number<int32_t>());
    if (type == Type::i64 || type == Type::mask) return static_cast<uint64_t>(number<int64_t>());
    const uint64_t bits = number<uint64_t>();
    if (begins('(')) next();  // the value, for who reads
    return bits;
  }

  void verify_text() const {
    try {
      verify(k_);
    } catch (const InternalError& e) {
      throw Error(e.what());
    }
  }

  std::string_view rest_, words_, word_;
  int line_ = 0;
  Kernel k_;
};

}  // namespace

std::string print(const Kernel& k) {
  std::string out = k.form == Form::rows ? "kernel rows" : "kernel columns";
  auto to = std::back_inserter(out);
  fmt::format_to(to, " scalars {}", k.scalars);
  if (k.known_columns) fmt::format_to(to, " known_columns {}", k.known_columns);
  if (k.few_columns) out += " few_columns";
  if (k.streams) out += " streams";
  out += '\n';
  for (size_t i = 0; i < k.buffers.size(); ++i) {
    const Buffer& b = k.buffers[i];
    fmt::format_to(to, "b{} {} {}{}{}{}\n", i, ingot::name_of(b.dtype), name_of(b.access),
                   b.stride ? fmt::format(" by {}", b.stride) : "", b.written ? " written" : "",
                   b.same_rows ? " same_rows" : "");
  }
  for (size_t i = 0; i < k.locals.size(); ++i) fmt::format_to(to, "l{} {}\n", i, name_of(k.locals[i]));
  for (size_t i = 0; i < k.nodes.size(); ++i) {
    const Node& n = k.nodes[i];
    // Kernels are looked up by this text: nodes are most of it, and written without a format's parsing.
    if (n.region) number(out += '[', n.region) += "] ";
    number(out += '%', i) += " = ";
    (out += name_of(n.op)) += ' ';
    out += name_of(n.type);
    for (Value v : {n.a, n.b, n.c})
      if (v != kNone) number(out += " %", v);
    switch (n.op) {
      case Op::constant:
        (out += ' ') += constant_text(n);
        break;
      case Op::load:
        number(out += " b", n.imm);
        break;
      case Op::local:
        number(out += " l", n.imm);
        break;
      case Op::reduced:
        number(out += " r", n.imm);
        break;
      case Op::wrap:
      case Op::round_to:
        if (n.imm < kDTypeCount) (out += ' ') += ingot::name_of(static_cast<DType>(n.imm));
        break;
      case Op::scalar:
      case Op::index:
      case Op::round:
      case Op::scale:
      case Op::rare:
        number(out += ' ', n.imm);
        break;
      default:
        break;
    }
    out += '\n';
  }
  for (size_t i = 0; i < k.reductions.size(); ++i)
    fmt::format_to(to, "r{} {} %{}\n", i, name_of(k.reductions[i].combiner), k.reductions[i].value);
  for (size_t i = 0; i < k.phases.size(); ++i) {
    const Phase& p = k.phases[i];
    fmt::format_to(to, "phase {}\n", i);
    print_stores(out, "store", 'b', p.stores);
    print_stores(out, "local_store", 'l', p.local_stores);
    for (uint32_t r : p.reductions) fmt::format_to(to, "  reduce r{}\n", r);
    print_stores(out, "row_store", 'b', p.row_stores);
  }
  return out;
}

std::string print(const TileSpec& t) {
  constexpr const char* kRowsOfA[] = {"", " across", " listed", " channels", " with b", " channels with b", " windows"};
  return fmt::format(
      "tile{}{}{} {}{} rows {} vectors {}{}{}", t.transposed ? " transposed" : "",
      kRowsOfA[static_cast<size_t>(t.rows_of_a)], t.taps ? fmt::format(" of {} by {}", t.taps, t.window_stride) : "",
      ingot::name_of(t.a), t.a == t.b ? "" : fmt::format(" x {}", ingot::name_of(t.b)), t.rows, t.vectors,
      t.panels == 1 ? "" : fmt::format(" panels {}", t.panels), t.finish ? " finishes\n" + print(*t.finish) : "");
}

std::string print(const PackSpec& p) {
  return fmt::format("pack {} vectors {}{}{}", ingot::name_of(p.dtype), p.vectors, p.transposed ? " transposed" : "",
                     p.padded ? "" : " unpadded");
}

Kernel parse_kernel(std::string_view text) { return Parser(text).kernel(); }

}  // namespace ingot::codegen
