// The passes from a traced, functional graph to the graph that is lowered: one flat, named list.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/passes/passes.h"

namespace ingot::ir {

struct PipelineOptions {
  std::vector<std::string> disabled;                                    // names of passes; others are ignored
  Evaluate evaluate;                                                    // for fold, which does nothing without
  OpCost cost = {};                                                     // for recompute
  bool convolves_bf16 = false;                                          // for decompose: there are tiles for that
  bool one_op = false;                                                  // for decompose: of an eager call
  int64_t recomputed_from = kRecomputedFrom;                            // for recompute, bytes
  std::vector<uint32_t>* saved_outputs = nullptr;                       // for recompute_saved, which changes it
  std::vector<Recipe>* recipes = nullptr;                               // that it gives
  std::function<void(std::string_view pass, const Graph&)> after = {};  // told of every pass that ran
#ifdef NDEBUG
  bool verify = false;
#else
  bool verify = true;
#endif
};

struct Pass {
  std::string_view name;
  void (*function)(Graph&, const PipelineOptions&);
  bool required = false;  // what follows relies on it: cannot be disabled
};
std::span<const Pass> passes();

struct PassTime {
  std::string_view name;
  double milliseconds;
  size_t nodes;  // of the graph after it
};
/// Runs every pass that is not disabled; returns what each took.
std::vector<PassTime> run_pipeline(Graph& graph, const PipelineOptions& options = {});

}  // namespace ingot::ir
