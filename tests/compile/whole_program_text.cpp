// A random program as a person reads it, and what was met while they were judged.
#include "whole_program.h"

#include <sstream>

#include "whole_program_run.h"

namespace ingot::test {
namespace {

using Kind = Instruction::Kind;

/// Names of registers: x0 .. are arguments, w0 .. captured tensors, t0 .. what the program makes.
class Printer {
 public:
  explicit Printer(const WholeProgram& program) : program_(program), late_(may_fail_late(program.instructions)) {}

  std::string run() {
    constexpr const char* modes[] = {"checked", "checked, background", "frozen", "checked, three threads"};
    out_ << "seed " << program_.seed << ", " << modes[static_cast<int>(program_.mode)] << "\n";
    for (size_t i = 0; i < program_.captures.size(); ++i)
      out_ << "w" << i << ": " << tensor(program_.captures[i], program_.capture_shapes[i], nullptr) << "\n";
    out_ << "program(";
    for (size_t i = 0; i < program_.argument_shapes.size(); ++i)
      out_ << (i ? ", x" : "x") << i << " " << shape(program_.argument_shapes[i], nullptr);
    out_ << ", i0, i1, i2, d0, d1)\n";
    print(program_.instructions, 1);
    out_ << "  return";
    for (int r : program_.results) out_ << " " << name(r);
    out_ << "\n";
    print(program_.gradients);
    for (size_t n = 0; n < program_.calls.size(); ++n) print(program_.calls[n], n);
    return out_.str();
  }

 private:
  static const char* text_of(Region region) {
    constexpr const char* kTexts[] = {"", "  (no autocast)", "  (autocast to bf16)", "  (autocast to f16)"};
    return kTexts[static_cast<int>(region)];
  }
  std::string name(int r) const {
    const int arguments = static_cast<int>(program_.argument_shapes.size()),
              outside = arguments + static_cast<int>(program_.captures.size());
    if (r < 0) return "nothing";
    if (r < arguments) return "x" + std::to_string(r);
    return r < outside ? "w" + std::to_string(r - arguments) : "t" + std::to_string(r - outside);
  }

  std::string number(const HostNumber& n) const {
    switch (n.kind) {
      case HostNumber::Kind::constant:
        return std::to_string(n.value);
      case HostNumber::Kind::argument:
        return "i" + std::to_string(n.value);
      default:
        return std::string(n.kind == HostNumber::Kind::size ? "" : "int64_t(") + name(n.value) + ".size(" +
               std::to_string(n.dim) + ")" + (n.kind == HostNumber::Kind::size ? "" : ")");
    }
  }

  std::string condition(const Condition& c) const {
    if (c.kind == Condition::Kind::asked) return "asked > 0";
    const std::string what = c.kind == Condition::Kind::rank ? name(c.number.value) + ".dim()" : number(c.number);
    return what + " > " + std::to_string(c.bound);
  }

  std::string op(const Instruction& i) const {
    std::string text;
    for (const char* p = op_rows()[static_cast<size_t>(i.row)].text; *p; ++p) {
      if (*p != '%') {
        text += *p;
        continue;
      }
      switch (*++p) {
        case 'k':
        case 'l':
          text += std::to_string(i.dims[static_cast<size_t>(*p - 'k')]);
          break;
        case '0':
        case '1':
          text += number(i.numbers[static_cast<size_t>(*p - '0')]);
          break;
        case 's': {
          std::ostringstream value;
          value << i.scalar;
          text += i.scalar_argument < 0 ? value.str() : "d" + std::to_string(i.scalar_argument);
          break;
        }
        default:
          text += name(i.operands[static_cast<size_t>(*p - 'a')]);
      }
    }
    return i.result >= 0 ? name(i.result) + " = " + text : text;
  }

  void print(const std::vector<Instruction>& instructions, int depth) {
    for (const Instruction& i : instructions) {
      const std::string indent(static_cast<size_t>(2 * depth), ' ');
      out_ << indent;
      switch (i.kind) {
        case Kind::op:
          out_ << (!i.caught ? "" : late_ ? "flush; try " : "try ") << op(i) << text_of(i.region) << "\n";
          break;
        case Kind::branch:
          out_ << "if " << condition(i.condition) << "\n";
          print(i.body, depth + 1);
          if (i.other.empty()) break;
          out_ << indent << "else\n";
          print(i.other, depth + 1);
          break;
        case Kind::repeat:
          out_ << "repeat " << number(i.numbers[0]) << "\n";
          print(i.body, depth + 1);
          break;
        case Kind::attempt:
          out_ << "try" << (late_ ? ", flushed before and after" : "") << "\n";
          print(i.body, depth + 1);
          break;
        case Kind::ask:
          out_ << "asked = " << name(i.operands[0]) << ".to(kFloat64).sum().item<double>()\n";
          break;
        case Kind::replace:
          out_ << name(i.operands[0]) << " = " << name(i.operands[1]) << "\n";
          break;
        case Kind::drop:
          out_ << name(i.operands[0]) << " = nothing\n";
          break;
        case Kind::fail:
          out_ << "if " << condition(i.condition) << " throw\n";
          break;
      }
    }
  }

  void print(const Gradients& g) {
    constexpr const char* kinds[] = {"", "gradients of the results", "gradients of the results, and theirs",
                                     "backward"};
    if (g.kind == Gradients::Kind::none) return;
    out_ << (g.outside ? "outside: " : "  inside: ") << kinds[static_cast<int>(g.kind)] << " by";
    const size_t arguments = program_.argument_shapes.size();
    for (size_t i = 0; i < arguments + program_.captures.size(); ++i)
      if ((i < arguments ? g.arguments >> i : g.captures >> (i - arguments)) & 1)
        out_ << " " << name(static_cast<int>(i));
    out_ << "\n";
  }

  std::string shape(const ShapeTemplate& s, const std::array<int, 3>* sizes) const {
    constexpr const char* dtypes[] = {"f32", "f64", "i64", "bf16"};
    std::string text = std::string(dtypes[s.dtype]) + "[";
    for (size_t d = 0; d < s.dims.size(); ++d) {
      const int n = s.dims[d];
      text += (d ? ", " : "") + (n >= 0  ? std::to_string(n)
                                 : sizes ? std::to_string((*sizes)[static_cast<size_t>(~n)])
                                         : std::string(1, static_cast<char>('a' + ~n)));
    }
    return text + "]";
  }

  std::string tensor(const TensorRecipe& r, const ShapeTemplate& s, const std::array<int, 3>* sizes) const {
    const std::string text = shape(s, sizes), source = std::to_string(r.source), shift = std::to_string(r.shift);
    using RecipeKind = TensorRecipe::Kind;
    switch (r.kind) {
      case RecipeKind::whole:
        return text;
      case RecipeKind::permuted:
        return text + " with its first and last dim turned in memory";
      case RecipeKind::offset:
        return text + " at offset " + shift;
      case RecipeKind::strided:
        return text + " with a step of 2 in its last dim";
      case RecipeKind::expanded:
        return text + " expanded along its first dim";
      case RecipeKind::same:
        return "x" + source + " again";
      case RecipeKind::overlapping:
        return text + " over the memory of x" + source + ", " + shift + " elements on";
      case RecipeKind::capture:
        return "w" + source;
      case RecipeKind::capture_view:
        return text + " over the memory of w" + source + ", " + shift + " elements on";
      default:
        return "result " + shift + " of call " + source + " (modulo their numbers)";
    }
  }

  void print(const ProgramCall& call, size_t number) {
    constexpr const char* events[] = {"is loaded in place",   "has a part overwritten", "is written through a pointer",
                                      "is another tensor",    "grows by a row",         "is turned in memory",
                                      "is a slice of another"};
    for (const Event& event : call.events)
      out_ << "  w" << static_cast<size_t>(event.capture) % std::max<size_t>(1, program_.captures.size()) << " "
           << events[static_cast<int>(event.kind)] << "\n";
    if (call.region != Region::same) out_ << text_of(call.region) << "\n";
    if (call.threads) out_ << "  set_num_threads(" << call.threads << ")\n";
    out_ << "call " << number << ":";
    for (size_t i = 0; i < call.arguments.size(); ++i)
      out_ << (i ? "; " : " ") << "x" << i << " = "
           << tensor(call.arguments[i], program_.argument_shapes[i], &call.sizes);
    for (int64_t n : call.integers) out_ << ", " << n;
    for (double n : call.numbers) out_ << ", " << n;
    out_ << "\n";
  }

  const WholeProgram& program_;
  const bool late_;
  std::ostringstream out_;
};

}  // namespace

std::string to_text(const WholeProgram& program) { return Printer(program).run(); }

void ProgramCounts::add(const ProgramCounts& other) {
  for (auto member : {&ProgramCounts::programs, &ProgramCounts::calls, &ProgramCounts::results, &ProgramCounts::threw,
                      &ProgramCounts::caught, &ProgramCounts::frozen, &ProgramCounts::hits, &ProgramCounts::flushes,
                      &ProgramCounts::empty_arguments, &ProgramCounts::aliases, &ProgramCounts::events,
                      &ProgramCounts::gradients, &ProgramCounts::written})
    this->*member += other.*member;
}

std::string ProgramCounts::str() const {
  std::ostringstream out;
  out << programs << " programs, " << calls << " calls (" << hits << " hits, " << threw << " threw), " << results
      << " results, " << caught << " errors caught inside, " << flushes << " breaks, " << frozen << " frozen, "
      << empty_arguments << " empty arguments, " << aliases << " aliasing arguments, " << events
      << " changes of captured tensors, " << gradients << " gradients, " << written << " writes to saved tensors";
  return out.str();
}

}  // namespace ingot::test
