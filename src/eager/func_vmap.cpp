// vmap: its arguments become slices of their batch, its results wholes again.
#include <algorithm>
#include <string>

#include "base/function_scope.h"
#include "eager/call/batch.h"
#include "eager/func.h"
#include "eager/ops/checks.h"
#include "eager/ops/functions.h"

namespace ingot::func {
namespace {

using eager::fail;

eager::Randomness randomness_of(const std::string& word, Location location) {
  if (word == "error") return eager::Randomness::error;
  if (word == "different") return eager::Randomness::different;
  if (word == "same") return eager::Randomness::same;
  fail("vmap", "randomness", "\"" + word + "\"", "\"error\", \"different\" or \"same\"", location);
}

}  // namespace

BatchDims::BatchDims(int64_t dim) : dims_{dim} {}
BatchDims::BatchDims(std::nullopt_t) : dims_{std::nullopt} {}
BatchDims::BatchDims(std::initializer_list<std::optional<int64_t>> each) : dims_(each), each_(true) {}

void detail::add_leaves(Tensor& t, size_t number, std::vector<VmapRun::Leaf>& all) { all.push_back({&t, number}); }
void detail::add_leaves(StateDict& state, size_t number, std::vector<VmapRun::Leaf>& all) {
  for (auto& [name, tensor] : state) all.push_back({&tensor, number});
}

struct VmapRun::State {
  struct Argument {
    Leaf leaf;
    Tensor whole;  // with the batch as dim 0; undefined: it has none
  };
  Location location;
  BatchDims out_dims;
  eager::Randomness randomness;
  std::vector<Argument> arguments;
  int64_t size = -1, chunk = 0, begin = 0, end = 0;
  std::optional<eager::Batch> batch{};
  std::vector<std::vector<Tensor>> parts{};  // of each result
  bool started = false;

  /// The dim of `number` among `count`; `dims` of a list that is as long.
  std::optional<int64_t> dim_of(const BatchDims& dims, const char* name, size_t number, size_t count) const {
    if (dims.each_ && dims.dims_.size() != count)
      fail("vmap", name, std::to_string(dims.dims_.size()) + " dims",
           std::to_string(count) + ", one for each " + (name[0] == 'i' ? "argument" : "result"), location);
    return dims.dims_[dims.each_ ? number : 0];
  }
  void add(const Leaf& leaf, std::optional<int64_t> dim) {
    Argument& argument = arguments.emplace_back(Argument{leaf, {}});
    if (!dim || !leaf.tensor->defined()) return;
    const Tensor& t = *leaf.tensor;
    if (t.dim() == 0)
      fail("vmap", "in_dims", "a dim of a zero-dim tensor", "nullopt for it, or a tensor with a batch", location);
    const int64_t at = eager::wrapped_dim("vmap", "in_dims", *dim, t.dim(), location), own = t.size(at, location);
    if (size >= 0 && own != size)
      fail("vmap", "arguments", "batches of " + std::to_string(size) + " and " + std::to_string(own) + " slices",
           "one size", location);
    size = own;
    argument.whole = at ? t.movedim(at, 0, location) : t;
  }
};

VmapRun::VmapRun(const VmapOptions& options, std::vector<Leaf> arguments, size_t count)
    : state_(new State{options.location, options.out_dims, randomness_of(options.randomness, options.location), {}}) {
  for (const Leaf& leaf : arguments) state_->add(leaf, state_->dim_of(options.in_dims, "in_dims", leaf.number, count));
  if (state_->size < 0)
    fail("vmap", "in_dims", "no argument with a batch", "a dim of at least one tensor", options.location);
  if (options.chunk_size && *options.chunk_size < 1)
    fail("vmap", "chunk_size", std::to_string(*options.chunk_size), "at least 1", options.location);
  state_->chunk = options.chunk_size ? std::min(*options.chunk_size, std::max<int64_t>(state_->size, 1)) : state_->size;
}
VmapRun::~VmapRun() = default;

bool VmapRun::next() {
  State& s = *state_;
  if (s.started && s.end == s.size) return false;
  s.started = true;
  s.begin = s.end;
  s.end = std::min(s.size, s.begin + s.chunk);
  const bool all = s.begin == 0 && s.end == s.size;
  std::vector<Tensor> wholes;
  for (const State::Argument& a : s.arguments)
    wholes.push_back(all || !a.whole.defined() ? a.whole : a.whole.slice(0, s.begin, s.end, 1, s.location));
  s.batch.emplace(s.end - s.begin, s.randomness);
  for (size_t i = 0; i < wholes.size(); ++i)
    if (wholes[i].defined()) *s.arguments[i].leaf.tensor = s.batch->slice_of(wholes[i]);
  return true;
}

void VmapRun::end(const std::vector<Leaf>& results) {
  State& s = *state_;
  const size_t count = results.empty() ? 0 : results.back().number + 1;
  s.parts.resize(results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    const Tensor& t = *results[i].tensor;
    if (!t.defined()) fail("vmap", "function", "an undefined tensor as a result", "tensors", s.location);
    const std::optional<int64_t> dim = s.dim_of(s.out_dims, "out_dims", results[i].number, count);
    if (!dim && s.batch->holds(t))
      fail("vmap", "out_dims", "nullopt for a result that each slice has its own of", "the dim of its batch",
           s.location);
    Tensor whole = dim ? s.batch->whole_of(t) : t;
    if (dim) {
      const eager::InterceptorScope around(eager::Stage::batch, s.batch->outer());
      if (const int64_t at = eager::wrapped_dim("vmap", "out_dims", *dim, whole.dim(), s.location))
        whole = whole.movedim(0, at, s.location);
    }
    if (dim || s.parts[i].empty()) s.parts[i].push_back(std::move(whole));
  }
  s.batch.reset();
}

void VmapRun::finish(const std::vector<Leaf>& results) {
  State& s = *state_;
  const size_t count = results.empty() ? 0 : results.back().number + 1;
  for (size_t i = 0; i < results.size(); ++i) {
    const std::optional<int64_t> dim = s.dim_of(s.out_dims, "out_dims", results[i].number, count);
    std::vector<Tensor>& parts = s.parts[i];
    *results[i].tensor = parts.size() == 1 ? std::move(parts[0]) : cat(TensorList(parts, s.location), *dim);
  }
}

}  // namespace ingot::func
