// Takes from a random program what it does not need to fail.
#include "whole_program.h"

#include <cstddef>
#include <functional>

namespace ingot::test {
namespace {

using Mode = WholeProgram::Mode;

/// Every way to take a little away, one after the other, for as long as one of them succeeds.
class Minimizer {
 public:
  Minimizer(WholeProgram program, bool (*fails)(const WholeProgram&, void*), void* context)
      : program_(std::move(program)), fails_(fails), context_(context) {}

  WholeProgram run() {
    do {
      changed_ = false;
      plain_mode();
      calls();
      instructions([](WholeProgram& p) -> std::vector<Instruction>& { return p.instructions; });
      results();
      gradients();
    } while (changed_);
    return std::move(program_);
  }

 private:
  bool attempt(const std::function<void(WholeProgram&)>& change) {
    WholeProgram candidate = program_;
    change(candidate);
    if (!fails_(candidate, context_)) return false;
    program_ = std::move(candidate);
    return changed_ = true;
  }

  void plain_mode() {
    if (program_.mode != Mode::checked) attempt([](WholeProgram& p) { p.mode = Mode::checked; });
  }

  void calls() {
    for (size_t n = program_.calls.size(); n-- > 0;) {
      if (program_.calls.size() > 1 &&
          attempt([n](WholeProgram& p) { p.calls.erase(p.calls.begin() + static_cast<std::ptrdiff_t>(n)); }))
        continue;
      if (!program_.calls[n].events.empty()) attempt([n](WholeProgram& p) { p.calls[n].events.clear(); });
      if (program_.calls[n].region != Region::same) attempt([n](WholeProgram& p) { p.calls[n].region = Region::same; });
      if (program_.calls[n].threads) attempt([n](WholeProgram& p) { p.calls[n].threads = 0; });
      for (size_t a = 0; a < program_.calls[n].arguments.size(); ++a)
        if (program_.calls[n].arguments[a].kind != TensorRecipe::Kind::whole)
          attempt([n, a](WholeProgram& p) { p.calls[n].arguments[a].kind = TensorRecipe::Kind::whole; });
      if (!n) continue;
      auto as_before = [&](auto member, size_t count) {
        for (size_t i = 0; i < count; ++i)
          if ((program_.calls[n].*member)[i] != (program_.calls[n - 1].*member)[i])
            attempt([=](WholeProgram& p) { (p.calls[n].*member)[i] = (p.calls[n - 1].*member)[i]; });
      };
      as_before(&ProgramCall::sizes, 3);
      as_before(&ProgramCall::integers, 3);
      as_before(&ProgramCall::numbers, 2);
    }
  }

  using Place = std::function<std::vector<Instruction>&(WholeProgram&)>;
  void instructions(const Place& place) {
    for (size_t n = place(program_).size(); n-- > 0;) {
      if (attempt([&](WholeProgram& p) { place(p).erase(place(p).begin() + static_cast<std::ptrdiff_t>(n)); }))
        continue;
      for (auto member : {&Instruction::body, &Instruction::other}) {
        if ((place(program_)[n].*member).empty()) continue;
        // What stands in a block, in place of the block.
        if (attempt([&](WholeProgram& p) {
              std::vector<Instruction>& list = place(p);
              std::vector<Instruction> inner = list[n].*member;
              list.erase(list.begin() + static_cast<std::ptrdiff_t>(n));
              list.insert(list.begin() + static_cast<std::ptrdiff_t>(n), inner.begin(), inner.end());
            }))
          break;
        instructions([&place, n, member](WholeProgram& p) -> std::vector<Instruction>& { return place(p)[n].*member; });
      }
      if (n >= place(program_).size()) continue;
      const Instruction& i = place(program_)[n];
      if (i.region != Region::same) attempt([&](WholeProgram& p) { place(p)[n].region = Region::same; });
      if (i.caught) attempt([&](WholeProgram& p) { place(p)[n].caught = false; });
      if (place(program_)[n].scalar_argument >= 0) attempt([&](WholeProgram& p) { place(p)[n].scalar_argument = -1; });
    }
  }

  void results() {
    for (size_t n = program_.results.size(); n-- > 0;)
      attempt([n](WholeProgram& p) { p.results.erase(p.results.begin() + static_cast<std::ptrdiff_t>(n)); });
  }

  void gradients() {
    for (uint32_t Gradients::*member : {&Gradients::arguments, &Gradients::captures})
      for (int bit = 0; bit < 32; ++bit)
        if ((program_.gradients.*member) >> bit & 1)
          attempt([=](WholeProgram& p) { (p.gradients.*member) &= ~(uint32_t{1} << bit); });
    if (program_.gradients.kind != Gradients::Kind::none)
      attempt([](WholeProgram& p) { p.gradients.kind = Gradients::Kind::none; });
    if (program_.gradients.kind == Gradients::Kind::second)
      attempt([](WholeProgram& p) { p.gradients.kind = Gradients::Kind::grad; });
  }

  WholeProgram program_;
  bool (*fails_)(const WholeProgram&, void*);
  void* context_;
  bool changed_ = false;
};

}  // namespace

WholeProgram smaller(WholeProgram program, bool (*fails)(const WholeProgram&, void*), void* context) {
  return Minimizer(std::move(program), fails, context).run();
}

}  // namespace ingot::test
