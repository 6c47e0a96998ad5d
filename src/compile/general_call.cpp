#include "compile/general_call.h"

#include <algorithm>

#include "eager/data.h"

namespace ingot::detail {
namespace {

/// True if leaf i is as it was seen but for its identity and the sizes of free dims; all dims are free where `free` is
/// null.
bool fits(const LeafGuard& seen, const std::vector<bool>* free, std::span<const Leaf> leaves, size_t i) {
  const Leaf& leaf = leaves[i];
  if (leaf.kind != seen.kind) return false;
  if (leaf.kind != Leaf::Kind::tensor) return leaf.bits == seen.bits && leaf.text() == seen.text;
  if (!leaf.tensor()->defined()) return !seen.tensor.facts.tensor();
  const TensorImpl& now = *leaf.tensor()->impl();
  if (!seen.tensor.holds(now)) return false;
  for (size_t d = 0; free && d < now.sizes.size(); ++d)
    if (!(*free)[d] && seen.tensor.sizes[d] != now.sizes[d]) return false;
  int32_t same_as = -1;
  for (size_t j = 0; j < i && same_as < 0; ++j)
    if (leaves[j].kind == Leaf::Kind::tensor && leaves[j].tensor()->impl() == &now) same_as = static_cast<int32_t>(j);
  return same_as == seen.same_as;
}

/// False, with nothing computed, where the script would go another way, or where `agrees`, which is asked before
/// anything is computed, does not.
template <class Agrees>
bool repeat_script(const GeneralCall& call, const Arguments& arguments, trace::Recorder& recorder,
                   trace::Purpose purpose, std::vector<Tensor>& results, Agrees agrees) {
  SmallVector<const TensorImpl*, 16> impls;
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < arguments.guards.size(); ++i)
    if (arguments.guards[i].kind == Leaf::Kind::tensor) {
      tensors.push_back(arguments.tensors[i]);
      impls.push_back(arguments.tensors[i].impl());
    }
  recorder.begin(impls, purpose);
  results.assign(call.result.size(), Tensor());
  try {
    if (!call.script.repeat(tensors, call.result, results) || !agrees()) {
      recorder.discard();
      return false;
    }
  } catch (const Error&) {
    recorder.discard();  // the callable is to throw it
    return false;
  } catch (...) {
    recorder.discard();
    throw;
  }
  recorder.finish();
  return true;
}

}  // namespace

GeneralCall::GeneralCall(const GeneralCall& other)
    : key(other.key),
      watch(other.watch),
      guards(other.guards),
      free(other.free),
      any_free(other.any_free),
      script(other.script),
      result(other.result),
      form(other.form),
      latest(other.latest.load()) {}

bool GeneralCall::captures(const Tensor& tensor) const {
  auto is = [&](const eager::ScriptTensor& t) {
    return t.kind == eager::ScriptTensor::Kind::captured && t.captured.is_same(tensor);
  };
  return tensor.defined() && (script.captures(tensor) || std::any_of(result.begin(), result.end(), is));
}

bool GeneralCall::holds(const LeafList& arguments, const CallKey& now) const {
  const std::span<const Leaf> leaves = arguments.items();
  if (!any_free || key != now || leaves.size() != guards.size()) return false;
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (!fits(guards[i], &free[i], leaves, i)) return false;
    if (guards[i].storage && !guards[i].identity_holds(*leaves[i].tensor()->impl())) return false;
  }
  return true;
}

bool GeneralCall::is_like(const LeafList& arguments, const CallKey& now) const {
  const std::span<const Leaf> leaves = arguments.items();
  if (key != now || leaves.size() != guards.size()) return false;
  for (size_t i = 0; i < leaves.size(); ++i)
    if (!fits(guards[i], nullptr, leaves, i)) return false;
  return true;
}

bool GeneralCall::repeat(const Arguments& arguments, trace::Recorder& recorder, std::vector<Tensor>& results) const {
  constexpr auto agrees = [] { return true; };
  return repeat_script(*this, arguments, recorder, trace::Purpose::observed, results, agrees);
}

bool GeneralCall::try_out(const Arguments& arguments, trace::Recorder& recorder, std::span<const Tensor> writes,
                          std::vector<Tensor>& results) const {
  std::vector<Tensor> copies;
  auto put_back = [&] {
    const eager::WithoutInterceptors without_chain;
    for (size_t i = 0; i < copies.size(); ++i) writes[i].copy_(copies[i]);
  };
  auto agrees = [&] {
    const std::vector<Tensor> now = recorder.segment().writes();
    if (!std::equal(now.begin(), now.end(), writes.begin(), writes.end(), [](const Tensor& a, const Tensor& b) {
          return a.dtype() == b.dtype() && eager::same_places(*a.impl(), *b.impl());
        }))
      return false;
    const eager::WithoutInterceptors without_chain;
    for (const Tensor& tensor : writes) copies.push_back(tensor.clone());
    return true;
  };
  try {
    const bool ran = repeat_script(*this, arguments, recorder, trace::Purpose::trial, results, agrees);
    put_back();
    return ran;
  } catch (...) {
    put_back();
    throw;
  }
}

void GeneralCall::free_sizes(const std::vector<LeafGuard>& foretold) {
  keep_common_identities(guards, foretold);
  for (size_t i = 0; i < guards.size(); ++i)
    for (size_t d = 0; d < free[i].size(); ++d)
      if (foretold[i].tensor.sizes[d] != guards[i].tensor.sizes[d]) free[i][d] = any_free = true;
}

void GeneralCall::give_identities(FrozenCall& call, const Arguments& arguments) const {
  for (size_t i = 0; i < call.guards.size(); ++i)
    if (!captures(arguments.tensors[i])) call.guards[i].take_identity(guards[i]);
}

}  // namespace ingot::detail
