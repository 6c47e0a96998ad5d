// What a frozen function was seen to do, as it can be done again at other sizes without running its callable.
//
// While a call is observed, each call of the op API becomes a line of its script: the op, where its tensors come from,
// and its attributes as they were given, before negative numbers and open sizes were settled. A Size keeps an
// expression over sizes of tensors; where such a number reaches an argument, the line keeps the expression. What is
// decided by sizes is kept as a check. Functions that are made of ops and look at sizes themselves are lines too.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "eager/autograd/autograd.h"
#include "eager/call/dispatch.h"

namespace ingot::nn {
class Module;
}

namespace ingot::eager {

/// Of sizes; throws Error for a division by zero.
int64_t combined(detail::SizeOperator op, int64_t a, int64_t b);

/// Where a tensor of a line comes from.
struct ScriptTensor {
  enum class Kind : uint8_t { none, argument, captured, value } kind = Kind::none;
  uint32_t number = 0;  // of the argument, of the value
  Tensor captured;
};

class Script {
 public:
  /// A function of the API that is made of ops, of one tensor and perhaps sizes.
  using Composite = std::function<std::vector<Tensor>(const Tensor& self, const IntList& sizes)>;

  /// Why the script holds for the sizes that it was written at only; empty if it can be repeated at others.
  const std::string& only_here() const { return only_here_; }
  /// Where a tensor that the call has returned comes from.
  ScriptTensor source(const Tensor& tensor) const;
  /// True if a line uses this very tensor as one from outside.
  bool captures(const Tensor& tensor) const;
  /// Does it again with these arguments: gives the tensors named by `results`. False, with nothing computed, where a
  /// decision would go another way.
  bool repeat(std::span<const Tensor> arguments, std::span<const ScriptTensor> results, std::span<Tensor> out) const;

 private:
  friend class ScriptWriter;
  struct Expression {
    enum class Kind : uint8_t { number, argument_size, value_size, combined } kind = Kind::number;
    detail::SizeOperator op{};
    int64_t a = 0, b = 0;  // number a; dim b of tensor a; of expressions a and b
    friend bool operator==(const Expression&, const Expression&) = default;
  };
  struct Check {
    uint32_t a, b;  // expressions
    bool less;      // a < b, else a == b
    bool holds;
    size_t line;  // made before it
  };
  /// A number of a line that follows from an expression.
  struct Source {
    uint32_t attribute, item, expression;
  };
  struct LineOperand {
    ScriptTensor tensor;
    bool scalar = false;
    Operand value;            // of a scalar
    int64_t expression = -1;  // of an integer scalar that follows from sizes
  };
  struct Line {
    OpId op{};
    bool inplace = false;
    bool gradients = GradMode::is_enabled();  // they were recorded: off under a NoGradGuard of the callable's own
    Location location = Location::none();
    std::string module;
    std::vector<LineOperand> operands;
    std::vector<ir::Attr> attrs;
    std::vector<Source> sources;
    Composite composite;             // if set, what is called instead of the op, with operand 0 and attribute 0
    std::vector<ScriptTensor> made;  // outputs
  };
  struct Repetition;

  std::vector<Expression> expressions_;
  std::vector<Check> checks_;
  std::vector<Line> lines_;
  std::vector<const detail::TensorImpl*> arguments_;
  uint64_t segment_ = 0;
  std::string only_here_;
};

/// Writes the script of the call in progress on this thread: looks on in its chain.
class ScriptWriter final : public Interceptor {
 public:
  /// `segment`: marks the tensors that the call makes.
  ScriptWriter(std::span<const detail::TensorImpl* const> arguments, uint64_t segment);
  static ScriptWriter* current() { return static_cast<ScriptWriter*>(interceptor(Stage::observe)); }
  using Interceptor::call;
  void call(const OpCall& call, std::span<Tensor> outputs) override;
  const Script& script() const { return script_; }
  Script take() { return std::move(script_); }

  /// Attribute `attribute` of the call that is being put together has this number at `item`.
  void attribute(int attribute, size_t item, uint64_t origin);
  /// The attributes of that call as they were given.
  void given(OpId op, std::span<const ir::Attr> attrs);
  void line(const OpCall& call, std::span<const Tensor> outputs);
  /// The call that was being put together threw: what was noted of it belongs to no other, and the script holds for
  /// these sizes only.
  void refused();
  void line(const Tensor& self, const IntList& sizes, Script::Composite composite, std::span<const Tensor> outputs,
            Location location);

  Size size(const detail::TensorImpl& impl, int64_t dim);
  Size combine(detail::SizeOperator op, const Size& a, const Size& b, int64_t value);
  void check(const Size& a, const Size& b, bool less, bool holds);
  void only_here(const char* reason);
  /// A module is called.
  void module(const std::shared_ptr<nn::Module>& module);
  /// Those that were called, each once: a module comes before those that it calls.
  const std::vector<std::weak_ptr<nn::Module>>& modules() const { return modules_; }
  /// While above 0, ops and sizes belong to a composite.
  int inside = 0;

 private:
  /// What is noted of a call that is being put together, before it is made.
  struct Noted {
    std::vector<Script::Source> sources;
    OpId op{};
    std::vector<ir::Attr> attrs;
  };

 public:
  /// Calls that are made while it lives are others than the one that is being put together.
  class Aside {
   public:
    Aside() : writer_(current()) { exchange(); }
    ~Aside() { exchange(); }
    Aside(const Aside&) = delete;

   private:
    void exchange() {
      if (writer_) std::swap(writer_->noted_, noted_);
    }
    ScriptWriter* const writer_;
    Noted noted_;
  };

 private:
  ScriptTensor source(const Tensor& tensor) const;
  std::optional<uint32_t> expression(int64_t value, uint64_t origin);
  uint32_t add(const Script::Expression& e);

  Script script_;
  uint64_t serial_;
  Noted noted_;
  std::vector<std::weak_ptr<nn::Module>> modules_;
  std::unordered_set<const nn::Module*> known_modules_;
};

/// Runs `body(self, sizes)`, a function made of ops that looks at sizes by itself; gives a Tensor or a vector of them.
template <class Body>
auto composite(const Tensor& self, const IntList& sizes, Location location, Body body) {
  ScriptWriter* writer = ScriptWriter::current();
  if (!writer || writer->inside) return body(self, sizes);
  struct Inside {
    ScriptWriter* writer;
    explicit Inside(ScriptWriter* w) : writer(w) { ++w->inside; }
    ~Inside() { --writer->inside; }
  };
  auto result = [&] {
    Inside inside(writer);
    try {
      return body(self, sizes);
    } catch (...) {
      writer->refused();
      throw;
    }
  }();
  if constexpr (std::is_same_v<decltype(result), Tensor>)
    writer->line(
        self, sizes, [body](const Tensor& x, const IntList& s) { return std::vector<Tensor>{body(x, s)}; },
        {&result, 1}, location);
  else
    writer->line(self, sizes, body, result, location);
  return result;
}

}  // namespace ingot::eager
