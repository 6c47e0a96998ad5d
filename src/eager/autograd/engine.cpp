#include "eager/autograd/engine.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "base/mutex.h"
#include "eager/autograd/autograd.h"
#include "eager/autograd/stretch.h"
#include "eager/call/call.h"
#include "eager/call/dispatch.h"
#include "eager/data.h"
#include "eager/ops/functions.h"
#include "runtime/memory/storage.h"

namespace ingot::autograd {
namespace {

// Not Tensor::is_contiguous(): a recording would be held to these sizes.
bool is_row_major(const ingot::detail::TensorImpl& t) {
  int64_t elements = 1;
  for (size_t d = t.sizes.size(); d-- > 0; elements *= t.sizes[d])
    if (t.sizes[d] != 1 && t.strides[d] != elements) return eager::count(t.sizes) == 0;
  return true;
}

/// True if nobody else sees this tensor, nor its memory, and that is laid out as a new one is.
bool is_sole(const Tensor& t) {
  const ingot::detail::TensorImpl& impl = *t.impl();
  if (!is_row_major(impl)) return false;
  if (impl.storage) return impl.references.load() == 1 && impl.storage->references() == 1;
  const eager::Interceptor* recorder = eager::interceptor(eager::Stage::record);
  // Pending: the recording holds it, too.
  return recorder && impl.references.load() <= 2 && recorder->will_own_memory(impl);
}

class Engine {
 public:
  explicit Engine(const BackwardRequest& request) : request_(request) {}
  std::vector<Tensor> run();

 private:
  struct Visit {
    NodePtr node;
    bool needed = false;
    std::vector<Tensor> cotangents;
  };
  struct Leaf {
    Tensor tensor;
    size_t arrivals = 0;  // that are still to come
    bool needed = false;
    Tensor gradient;
  };

  void find_nodes(const std::vector<Edge>& roots);
  void find_needed();
  void add(const Edge& edge, const Tensor& gradient);
  void arrive(const Edge& edge);
  void run_nodes();
  void run_node(Visit& visit);
  void enter(const StretchPtr& stretch);
  void compute();
  void leave();
  void finish_waiting(bool all);
  void finish_leaf(Leaf& leaf);
  void accumulate(const Tensor& tensor, Tensor gradient);
  void keep_result(const ingot::detail::TensorImpl* input, const Tensor& gradient);

  const BackwardRequest& request_;
  std::vector<Visit> visits_;                   // descending by sequence
  std::unordered_map<const Node*, size_t> at_;  // in visits_
  std::unordered_map<const ingot::detail::TensorImpl*, Leaf> leaves_;
  std::unordered_map<const Node*, std::vector<std::pair<uint32_t, size_t>>> asked_;  // outputs that are inputs
  std::unordered_map<const ingot::detail::TensorImpl*, std::vector<size_t>> asked_leaves_;
  std::vector<Tensor> results_;

  // Who records already has all of it; anomaly mode looks at each gradient.
  const bool in_stretches_ = !eager::interceptor(eager::Stage::record) && !AnomalyMode::is_enabled();
  // The stretch that the engine goes through. Leaves that all gradients have come to wait for its end: only then are
  // these more than recorded, and only then may other threads add to them.
  StretchPtr stretch_;
  std::unique_ptr<Stretch::Pass> pass_;
  int recorded_ = 0;  // nodes since something was computed
  std::vector<Leaf*> waiting_;
};

void Engine::find_nodes(const std::vector<Edge>& roots) {
  std::vector<NodePtr> open;
  auto reach = [&](const Edge& edge) {
    if (edge.leaf.defined()) {
      Leaf& leaf = leaves_[edge.leaf.impl()];
      leaf.tensor = edge.leaf;
      ++leaf.arrivals;
    } else if (edge.node && at_.emplace(edge.node.get(), 0).second) {
      open.push_back(edge.node);
    }
  };
  for (const Edge& root : roots) reach(root);
  while (!open.empty()) {
    visits_.push_back({std::move(open.back()), false, {}});
    open.pop_back();
    const NodePtr node = visits_.back().node;
    for (const Edge& edge : node->edges) reach(edge);
  }
  std::sort(visits_.begin(), visits_.end(),
            [](const Visit& a, const Visit& b) { return a.node->sequence > b.node->sequence; });
  for (size_t i = 0; i < visits_.size(); ++i) at_[visits_[i].node.get()] = i;
}

// A node is needed where a gradient that is asked for lies behind it.
void Engine::find_needed() {
  for (size_t i = 0; i < request_.inputs.size(); ++i) {
    const Edge edge = edge_of(request_.inputs[i]);
    if (edge.node)
      asked_[edge.node.get()].emplace_back(edge.output, i);
    else
      asked_leaves_[request_.inputs[i].impl()].push_back(i);
  }
  for (auto& [impl, leaf] : leaves_) leaf.needed = request_.inputs.empty() || asked_leaves_.contains(impl);
  for (size_t i = visits_.size(); i-- > 0;) {
    Visit& visit = visits_[i];
    for (const Edge& edge : visit.node->edges) {
      if (edge.leaf.defined()) visit.needed |= leaves_[edge.leaf.impl()].needed;
      if (!edge.node) continue;
      visit.needed |= visits_[at_[edge.node.get()]].needed || asked_.contains(edge.node.get());
    }
  }
}

void Engine::add(const Edge& edge, const Tensor& gradient) {
  Tensor* sum;
  if (edge.leaf.defined()) {
    sum = &leaves_[edge.leaf.impl()].gradient;
  } else {
    Visit& visit = visits_[at_[edge.node.get()]];
    visit.cotangents.resize(visit.node->outputs.size());
    sum = &visit.cotangents[edge.output];
  }
  *sum = sum->defined() ? sum->add(gradient, 1, Location::none()) : gradient;
}

void Engine::arrive(const Edge& edge) {
  if (!edge.leaf.defined()) return;
  Leaf& leaf = leaves_[edge.leaf.impl()];
  if (--leaf.arrivals) return;
  if (pass_)
    waiting_.push_back(&leaf);
  else
    finish_leaf(leaf);
}

void Engine::keep_result(const ingot::detail::TensorImpl* input, const Tensor& gradient) {
  if (auto found = asked_leaves_.find(input); found != asked_leaves_.end())
    for (size_t i : found->second) results_[i] = gradient;
}

// What .grad holds is the tensor's alone: the user may write to it. Where the way there is recorded, the tape may still
// hold the gradient.
void Engine::accumulate(const Tensor& tensor, Tensor gradient) {
  const Tensor& sum = meta_of(tensor).grad;
  if (!sum.defined())
    set_gradient(tensor, !request_.record && is_sole(gradient) ? std::move(gradient) : gradient.clone());
  else if (request_.record)
    set_gradient(tensor, sum.add(gradient));
  else
    sum.add_(gradient);
}

void Engine::finish_leaf(Leaf& leaf) {
  if (!leaf.needed || !leaf.gradient.defined() || !leaf.tensor.impl()->requires_grad) return;
  // Other threads may add to the same leaf.
  std::unique_lock lock(gradient_lock(leaf.tensor));
  Meta& meta = meta_of(leaf.tensor);
  const std::vector<NumberedHook> hooks = meta.hooks;
  const auto accumulated = meta.accumulated;
  lock.unlock();
  const Node::Output like{leaf.tensor.impl()->dtype, leaf.tensor.impl()->sizes};
  Tensor gradient = after_hooks(hooks, 0, std::exchange(leaf.gradient, Tensor()), like, false);
  if (!request_.accumulate) return keep_result(leaf.tensor.impl(), gradient);
  lock.lock();
  accumulate(leaf.tensor, std::move(gradient));
  lock.unlock();
  for (const auto& [id, hook] : accumulated) hook(leaf.tensor);
}

void Engine::run_node(Visit& visit) {
  Node& node = *visit.node;
  std::vector<Tensor> cotangents = std::move(visit.cotangents);
  const bool reached = std::any_of(cotangents.begin(), cotangents.end(), [](const Tensor& t) { return t.defined(); });
  if (reached) {
    // A hook may look at what leaves have by now.
    if (!node.hooks.empty() && !waiting_.empty()) compute();
    for (uint32_t i = 0; i < cotangents.size(); ++i)
      if (cotangents[i].defined() && !node.hooks.empty())
        cotangents[i] = after_hooks(node.hooks, i, std::move(cotangents[i]), node.outputs[i], request_.accumulate);
    if (auto found = asked_.find(&node); found != asked_.end())
      for (auto [output, i] : found->second) {
        if (!request_.accumulate) {
          results_[i] = cotangents[output];
        } else if (cotangents[output].defined()) {
          accumulate(request_.inputs[i], cotangents[output]);
        }
      }
  }
  if (reached && visit.needed) {
    if (in_stretches_) enter(node.stretch);
    const CallerLine line(node.location);
    const std::vector<Tensor> gradients = node.apply(cotangents, request_.keep);
    cotangents.clear();
    for (size_t i = 0; i < node.edges.size(); ++i) {
      if (!node.edges[i].valid() || !gradients[i].defined()) continue;
      if (AnomalyMode::is_enabled() && gradients[i].isnan().any().item<bool>())
        throw Error("backward: " + node.name() + ": the gradient of its operand " + std::to_string(i) +
                    " has a NaN (anomaly mode)" + lines_of(node));
      add(node.edges[i], gradients[i]);
    }
  } else if (!request_.keep && visit.needed) {
    node.release();
  }
  for (const Edge& edge : node.edges) arrive(edge);
}

// What is recorded keeps what it reads: in parts of so many nodes, what was saved goes little by little, as in eager.
void Engine::enter(const StretchPtr& stretch) {
  constexpr int kMostRecorded = 64;
  if (!(stretch == stretch_)) {
    leave();
    if (!stretch) return;
    pass_ = stretch->begin();
    stretch_ = stretch;
    recorded_ = 0;
  } else if (pass_ && recorded_ == kMostRecorded) {
    compute();
  }
  ++recorded_;
}

void Engine::compute() {
  pass_->compute();
  recorded_ = 0;
  const eager::WithoutInterceptors unseen(eager::Stage::record);
  finish_waiting(true);
}

void Engine::leave() {
  if (!pass_) return;
  stretch_ = {};
  const std::unique_ptr<Stretch::Pass> pass = std::move(pass_);
  try {
    pass->finish();
  } catch (...) {
    finish_waiting(false);
    throw;
  }
  finish_waiting(true);
}

// Not all: those whose gradient was computed before an error.
void Engine::finish_waiting(bool all) {
  const std::vector<Leaf*> leaves = std::move(waiting_);
  waiting_.clear();
  for (Leaf* leaf : leaves)
    if (all || (leaf->gradient.defined() && leaf->gradient.impl()->storage)) finish_leaf(*leaf);
}

void Engine::run_nodes() {
  try {
    for (Visit& visit : visits_) {
      run_node(visit);
      visit.node = {};
    }
    leave();
  } catch (...) {
    if (const std::unique_ptr<Stretch::Pass> pass = std::move(pass_)) {
      pass->abandon();
      finish_waiting(false);
    }
    throw;
  }
}

std::vector<Tensor> Engine::run() {
  std::vector<Edge> roots;
  std::vector<Tensor> gradients;
  results_.resize(request_.inputs.size());
  for (size_t i = 0; i < request_.roots.size(); ++i) {
    const Tensor& root = request_.roots[i];
    roots.push_back(edge_of(root));
    if (!roots.back().valid())
      eager::fail("backward", "self", "a tensor that does not require grad",
                  "one that was made from a tensor that requires grad, while gradients are recorded",
                  request_.location);
    const Tensor& given = i < request_.gradients.size() ? request_.gradients[i] : Tensor();
    const Node::Output like{root.impl()->dtype, root.impl()->sizes};
    if (given.defined()) {
      check_gradient("backward", given, like, request_.location);
      gradients.push_back(request_.record ? given : given.detach());
    } else {
      int64_t elements = 1;
      for (int64_t n : root.impl()->sizes) elements *= n;
      if (elements != 1)
        eager::fail("backward", "gradient", "none for a tensor of " + std::to_string(elements) + " elements",
                    "one of its sizes: only a tensor with one element has a gradient of its own, 1", request_.location);
      gradients.push_back(ones_like(root.detach()));
    }
  }
  find_nodes(roots);
  find_needed();
  for (size_t i = 0; i < roots.size(); ++i) add(roots[i], gradients[i]);
  for (const Edge& root : roots) arrive(root);
  gradients.clear();
  run_nodes();
  return std::move(results_);
}

}  // namespace

std::vector<Tensor> run_backward(const BackwardRequest& request) {
  const AutoGradMode mode(request.record);
  const BackwardLine line(caller_line(request.location));
  return Engine(request).run();
}

}  // namespace ingot::autograd
