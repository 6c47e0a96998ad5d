#include "conformance/sizes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "compile/compile.h"
#include "conformance/interpreter.h"
#include "conformance/judge.h"
#include "conformance/tensors.h"
#include "ir/op.h"
#include "ir/reference.h"
#include "ir/traits.h"

namespace ingot::conformance {
namespace {

constexpr int64_t kMostElements = 1 << 16;  // of a tensor that was made larger

/// Which dims of the other tensors are the same dim as one of the first tensor: if they have its size and stand at its
/// place from the right (as in broadcasting), at its place from the left, or anywhere; or none.
enum class Same { none, right, left, size };

struct FreeDim {
  Ints shape;  // of the first tensor
  size_t dim;
  Same same;
  int64_t size() const { return shape[dim]; }
  bool is(const CaseTensor& t, size_t d, bool first) const {
    if (t.shape[d] != size()) return false;
    if (first && d == dim) return true;
    const size_t right = shape.size() - dim;
    return same == Same::size || (same == Same::left && d == dim) ||
           (same == Same::right && t.shape.size() - d == right);
  }
};

/// The tensor with `size` elements along the free dim: each is repeated, so that what is sorted stays so.
CaseTensor resized(const CaseTensor& t, const FreeDim& free, bool first, int64_t size) {
  CaseTensor result = t;
  for (size_t d = 0; d < t.shape.size(); ++d) {
    if (!free.is(t, d, first)) continue;
    CaseTensor wider = result;
    wider.shape[d] = size;
    wider.bytes.clear();
    int64_t inner = size_of(t.dtype), outer = 1;
    for (size_t i = d + 1; i < t.shape.size(); ++i) inner *= result.shape[i];
    for (size_t i = 0; i < d; ++i) outer *= result.shape[i];
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < size; ++i)
        wider.bytes.append(result.bytes, (o * t.shape[d] + i * t.shape[d] / size) * inner, inner);
    result = std::move(wider);
  }
  return result;
}

Pool resized_pool(const Case& c, const FreeDim& free, int64_t size) {
  const CaseTensor* first = nullptr;
  return Pool(Storage::dense, c, [&](const CaseTensor& t) {
    if (!first) first = &t;
    return resized(t, free, &t == first, size);
  });
}

std::vector<CaseTensor> run(const BoundCase& bound, const Pool& pool, const std::vector<Tensor>& tensors) {
  return read(bound([&](const CaseTensor& t) { return pool.find(t, tensors); }));
}

double largest_of(const std::vector<CaseTensor>& tensors) {
  double largest = 0;
  for (const CaseTensor& t : tensors)
    for (double x : ir::ReferenceTensor::from_bytes(t.dtype, t.shape, t.bytes.data()).real)
      if (std::isfinite(x)) largest = std::max(largest, std::fabs(x));
  return largest;
}

bool small_enough(const std::vector<Tensor>& tensors) {
  return std::all_of(tensors.begin(), tensors.end(), [](const Tensor& t) { return t.numel() <= kMostElements; });
}

/// The case as the interpreter answers it at this size; nothing where the op has no such size.
std::optional<Case> resized_case(const Case& c, const BoundCase& bound, const FreeDim& free, int64_t size) {
  const Pool pool = resized_pool(c, free, size);
  if (!small_enough(pool.tensors)) return std::nullopt;
  try {
    InterpretedScope scope(false);
    Case result = c;
    std::vector<CaseTensor> expected = run(bound, pool, pool.tensors);
    if (const ir::OpInfo* op = ir::find_op(c.op); !op || op->kind != ir::OpKind::elementwise) {
      // The error bound of a sum, its length times the sum of magnitudes, grows with the square of the repeats; what
      // cancels has the errors of what does not.
      const double growth = static_cast<double>(size) / static_cast<double>(free.size());
      result.atol = result.atol * growth * growth + result.rtol * largest_of(expected);
      result.rtol *= growth;
    }
    result.outputs.resize(expected.size(), c.outputs[0]);  // a list of pieces grows
    for (size_t i = 0; i < expected.size(); ++i) result.outputs[i].expected = std::move(expected[i]);
    const CaseTensor* first = nullptr;
    for_each_tensor(c, [&](const CaseTensor& t) { first = first ? first : &t; });
    if (c.has_tensor(0)) result.args[0].tensor = resized(*first, free, true, size);
    return result;
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// Whether sums of this many of the case's numbers may overflow on the way, where the interpreter's do not.
bool may_overflow(const Case& c, int64_t size) {
  bool huge = false;
  for_each_tensor(c, [&](const CaseTensor& t) {
    if (!is_floating(t.dtype)) return;
    const double limit = ir::round_to(t.dtype, t.dtype == DType::f16 ? 65504.0 : t.dtype == DType::f64 ? 1e308 : 3e38);
    const auto values = ir::ReferenceTensor::from_bytes(t.dtype, t.shape, t.bytes.data());
    for (double x : values.real) huge = huge || (std::isfinite(x) && std::fabs(x) > limit / static_cast<double>(size));
  });
  return huge;
}

bool same_bits(const CaseTensor& a, const CaseTensor& b) {
  if (a.dtype != b.dtype || !(a.shape == b.shape)) return false;
  if (a.bytes == b.bytes) return true;
  const auto x = ir::ReferenceTensor::from_bytes(a.dtype, a.shape, a.bytes.data());
  const auto y = ir::ReferenceTensor::from_bytes(b.dtype, b.shape, b.bytes.data());
  if (!x.floating()) return false;
  for (int64_t i = 0; i < x.size(); ++i) {
    const bool nan = std::isnan(x.real[i]) && std::isnan(y.real[i]);  // all NaNs are equal
    if (!nan && (x.real[i] != y.real[i] || std::signbit(x.real[i]) != std::signbit(y.real[i]))) return false;
  }
  return true;
}

/// The most programs that the same ops have; what calls other ops at another size (multi_dot) may compile those.
int64_t most_programs_of_ops(const Explanation& e) {
  std::map<std::string, int64_t> programs;
  int64_t most = 0;
  for (const Explanation::Program& program : e.programs) {
    std::string ops;
    for (const Explanation::Op& op : program.traced_ops) {
      ops += op.op;
      for (const std::string& operand : op.operands) ops += " " + operand;
      ops += "\n";
    }
    most = std::max(most, ++programs[ops]);
  }
  return most;
}

bool factors_matrices(const Explanation& e) {
  for (const Explanation::Program& program : e.programs)
    for (const Explanation::Op& traced : program.traced_ops)
      if (const ir::OpInfo* op = ir::find_op(traced.op); op && ir::has_trait(op->id, ir::kMatrices)) return true;
  return false;
}

/// Runs one compiled function over the sizes; empty if the op has no such free dim.
std::optional<Outcome> vary(const Case& c, const BoundCase& bound, const FreeDim& free) {
  // The first three leave the same remainders by small strides, on which a window's count may depend.
  const int64_t sizes[] = {free.size(), free.size() + 12, free.size() + 60, 2 * free.size() + 1};
  std::vector<Case> expected;
  for (int64_t size : sizes) {
    std::optional<Case> one = resized_case(c, bound, free, size);
    if (!one) return std::nullopt;
    expected.push_back(std::move(*one));
  }
  const Pool* pool = nullptr;
  auto compiled = compile([&](const std::vector<Tensor>& tensors) {
    return bound([&](const CaseTensor& t) { return pool->find(t, tensors); });
  });
  Outcome outcome;
  for (size_t i : {0, 1, 2, 3, 0}) {
    const Pool now = resized_pool(c, free, sizes[i]);
    pool = &now;
    const std::vector<CaseTensor> eager = run(bound, now, now.tensors);
    outcome.results = read(compiled(now.tensors));
    const std::string where =
        "dim " + std::to_string(free.dim) + " of the first tensor with size " + std::to_string(sizes[i]) + ": ";
    // Edge cases with numbers near the limit are judged at their own size by the other modes; so are factors of
    // matrices, which are singular where rows are repeated.
    const bool repeats_rows = free.dim + 2 >= free.shape.size();
    auto judged_elsewhere = [&] {
      return i && (may_overflow(c, sizes[i]) || (repeats_rows && factors_matrices(compiled.explain())));
    };
    if (std::string why = judge(expected[i], eager); !why.empty() && !judged_elsewhere())
      throw Error(where + "eager: " + why);
    for (size_t k = 0; k < eager.size(); ++k)
      if (!same_bits(eager[k], outcome.results[k])) throw Error(where + "compiled differs from eager");
    if (const Explanation e = compiled.explain(); i == 2 && e.breaks.empty() && most_programs_of_ops(e) > 2)
      throw Error(where + std::to_string(most_programs_of_ops(e)) + " compilations for three sizes");
  }
  const Explanation e = compiled.explain();
  if (!e.fallbacks.empty()) throw Error("fell back: " + e.fallbacks[0].reason);
  outcome.sizes_varied = 1;
  return outcome;
}

}  // namespace

Outcome run_sizes(const Case& c, const BoundCase& bound) {
  Outcome outcome;
  const CaseTensor* first = nullptr;
  for_each_tensor(c, [&](const CaseTensor& t) { first = first ? first : &t; });
  const bool sorted_by_index = c.find(c.args.size(), "sorter") != nullptr;  // which does not sort what is repeated
  for (size_t d = 0; first && !sorted_by_index && d < first->shape.size(); ++d) {
    if (first->shape[d] < 2) continue;
    for (Same same : {Same::none, Same::right, Same::left, Same::size})
      if (std::optional<Outcome> varied = vary(c, bound, {first->shape, d, same})) {
        varied->sizes_varied += outcome.sizes_varied;
        outcome = std::move(*varied);
        break;
      }
  }
  if (!outcome.sizes_varied) {
    const Pool pool(Storage::dense, c);
    outcome.results = run(bound, pool, pool.tensors);
  }
  return outcome;
}

}  // namespace ingot::conformance
