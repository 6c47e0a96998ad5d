// The ways in which a case is run.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "conformance/binding.h"

namespace ingot {
struct Explanation;
enum class Isa : uint8_t;
}  // namespace ingot

namespace ingot::conformance {

/// What made a result in a compiled mode.
enum class Source : uint8_t { generated, view, host, graph_break, fallback };
inline constexpr const char* kSourceNames[] = {"generated", "view", "host step", "break", "fallback"};

struct Outcome {
  std::vector<CaseTensor> results;
  bool compiled = false;
  Source source = Source::generated;  // where compiled
  std::string reason;                 // of a break or fallback
  int sizes_varied = 0;               // dims along which one compiled function met three sizes
  bool judged = false;                // they are not those of the case, and were found right
};

struct Mode {
  std::string name;
  std::string unavailable;                 // why this machine cannot run it; empty: it can
  bool inplace = false;                    // runs the op's in-place form
  bool gradients = false;                  // and the backward pass
  std::function<bool(const Case&)> takes;  // empty: every case
  std::function<Outcome(const Case&, const BoundCase&)> run;
};

/// Fills in what made the results of a compiled function.
void note_source(const Explanation& e, Isa isa, Outcome& outcome);

/// Eager, its in-place forms, interpreted as it is and after the passes, compiled for each instruction set, eager and
/// compiled on views that are not contiguous, compiled with sizes that vary, and gradients in each way (gradients.h).
std::vector<Mode> modes();

}  // namespace ingot::conformance
