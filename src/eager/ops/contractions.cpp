#include "eager/ops/contractions.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "eager/call/call.h"
#include "eager/data.h"

namespace ingot {
namespace {

using eager::fail;
using eager::present;

// As a user's: a frozen function that calls this is not held to them.
using Sizes = std::vector<Size>;

/// Sizes of some dims.
Sizes sizes_of(const Tensor& x, const Ints& dims) {
  Sizes sizes;
  for (int64_t d : dims) sizes.push_back(x.size(d));
  return sizes;
}

/// All of them, one group behind the other.
IntList list_of(std::initializer_list<Sizes> groups) {
  IntList all{};
  for (const Sizes& group : groups)
    for (const Size& size : group) all.add(size);
  return all;
}

/// How many elements there are in dims of these sizes.
Size count(const Sizes& sizes) {
  if (sizes.empty()) return Size::of(1);
  Size n = sizes[0];
  for (size_t i = 1; i < sizes.size(); ++i) n = n * sizes[i];
  return n;
}

Ints joined(std::initializer_list<Ints> lists) {
  Ints all;
  for (const Ints& list : lists)
    for (int64_t i : list) all.push_back(i);
  return all;
}

/// [batch, rows, depth] times [batch, depth, columns], each group of dims as one; without batch dims a plain product.
Tensor product(const Tensor& a, const Tensor& b, const Sizes& batch, const Sizes& rows, const Sizes& depth,
               const Sizes& columns, Location location) {
  const Sizes batches = batch.empty() ? Sizes{} : Sizes{count(batch)};
  const Size k = count(depth), m = count(rows), n = count(columns);
  Tensor x = a.reshape(list_of({batches, {m, k}}), location), y = b.reshape(list_of({batches, {k, n}}), location);
  return matmul(TensorArg(x, location), y).reshape(list_of({batch, rows, columns}), location);
}

}  // namespace

Tensor tensordot(const TensorArg& self, const TensorArg& other, const IntList& dims_self, const IntList& dims_other) {
  Tensor a = present("tensordot", "self", self), b = present("tensordot", "other", other);
  Location location = self.location;
  if (dims_self.items().size() != dims_other.items().size())
    fail("tensordot", "dims_other", std::to_string(dims_other.items().size()) + " dims",
         std::to_string(dims_self.items().size()) + ", as many as dims_self", location);
  if (!dims_self.items().empty() && (a.dim() == 0 || b.dim() == 0))
    fail("tensordot", a.dim() == 0 ? "self" : "other", "a zero-dim tensor", "at least one dim", location);
  Ints from_a, from_b, kept_a, kept_b;
  SmallVector<bool, 8> summed_a(a.dim(), false), summed_b(b.dim(), false);
  for (size_t i = 0; i < dims_self.items().size(); ++i) {
    int64_t p = eager::wrapped_dim("tensordot", "dims_self", dims_self.items()[i], a.dim(), location),
            q = eager::wrapped_dim("tensordot", "dims_other", dims_other.items()[i], b.dim(), location);
    if (summed_a[p] || summed_b[q])
      fail("tensordot", summed_a[p] ? "dims_self" : "dims_other", std::to_string(summed_a[p] ? p : q) + " twice",
           "each dim once", location);
    summed_a[p] = summed_b[q] = true;
    // A size of 1 broadcasts: the other operand is summed over the dim.
    if (a.size(p) == 1 && b.size(q) != 1)
      b = b.sum(q, true, b.dtype(), location);
    else if (b.size(q) == 1 && a.size(p) != 1)
      a = a.sum(p, true, a.dtype(), location);
    else if (a.size(p) != b.size(q))
      fail("tensordot", "other", "size " + std::to_string(b.size(q)) + " at dim " + std::to_string(q),
           std::to_string(a.size(p)) + ", the size of dim " + std::to_string(p) + " of self", location);
    from_a.push_back(p);
    from_b.push_back(q);
  }
  for (int64_t d = 0; d < a.dim(); ++d)
    if (!summed_a[d]) kept_a.push_back(d);
  for (int64_t d = 0; d < b.dim(); ++d)
    if (!summed_b[d]) kept_b.push_back(d);
  return product(a.permute(joined({kept_a, from_a}), location), b.permute(joined({from_b, kept_b}), location), {},
                 sizes_of(a, kept_a), sizes_of(a, from_a), sizes_of(b, kept_b), location);
}

Tensor tensordot(const TensorArg& self, const TensorArg& other, int64_t dims) {
  int64_t rank_a = present("tensordot", "self", self).dim(), rank_b = present("tensordot", "other", other).dim();
  if (dims < 0 || dims > std::min(rank_a, rank_b))
    fail("tensordot", "dims", std::to_string(dims), "at most " + std::to_string(std::min(rank_a, rank_b)),
         self.location);
  Ints last, first;
  for (int64_t i = 0; i < dims; ++i) {
    last.push_back(rank_a - dims + i);
    first.push_back(i);
  }
  return tensordot(self, other, last, first);
}

Tensor inner(const TensorArg& self, const TensorArg& other) {
  const Tensor &a = present("inner", "self", self), &b = present("inner", "other", other);
  if (a.dim() == 0 || b.dim() == 0) return mul(self, other);
  if (a.size(-1) != b.size(-1))
    fail("inner", "other", "a last size of " + std::to_string(b.size(-1)),
         std::to_string(a.size(-1)) + ", the last size of self", self.location);
  return tensordot(self, other, -1, -1);
}

namespace {

/// Dims are named by a letter's code; those that "..." stands for by -1, -2 ... from the last one on.
using Labels = Ints;

bool contains(const Labels& labels, int64_t label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

/// One side of an equation, a list of terms: "ij,...k".
struct Equation {
  std::string text;  // without spaces
  Location location;

  [[noreturn]] void refuse(const std::string& got, const std::string& expected) const {
    fail("einsum", "equation", got + " in \"" + text + "\"", expected, location);
  }
  /// The labels of a term for an operand with this many dims; with `broadcast`, as many dims for "..." as given.
  Labels read(std::string_view term, int64_t broadcast) const {
    Labels labels;
    bool dots = false;
    for (size_t i = 0; i < term.size(); ++i) {
      char c = term[i];
      if (std::isalpha(static_cast<unsigned char>(c))) {
        labels.push_back(c);
      } else if (term.substr(i, 3) == "..." && !dots) {
        for (int64_t d = broadcast; d > 0; --d) labels.push_back(-d);
        dots = true;
        i += 2;
      } else {
        refuse("'" + std::string(1, c) + "'", "letters, ',', \"->\" and one \"...\" a term");
      }
    }
    return labels;
  }
};

int64_t letters_in(std::string_view term) {
  return std::count_if(term.begin(), term.end(), [](char c) { return c != '.'; });
}

/// An operand with each label once; `labels` names its dims.
struct Factor {
  Tensor x;
  Labels labels;
  Size size(int64_t label) const {
    for (size_t d = 0; d < labels.size(); ++d)
      if (labels[d] == label) return x.size(static_cast<int64_t>(d));
    return Size::of(1);
  }
  /// The dims in this order, of labels that it has.
  Tensor ordered(const Labels& order, Location location) const {
    Ints dims;
    for (int64_t label : order)
      for (size_t d = 0; d < labels.size(); ++d)
        if (labels[d] == label) dims.push_back(static_cast<int64_t>(d));
    return x.permute(dims, location);
  }
};

/// A label that stands twice in one operand takes its diagonal.
void take_diagonals(Factor& f, const Equation& equation) {
  for (size_t i = 0; i < f.labels.size(); ++i)
    for (size_t j = i + 1; j < f.labels.size(); ++j) {
      if (f.labels[i] != f.labels[j]) continue;
      const Size a = f.x.size(static_cast<int64_t>(i)), b = f.x.size(static_cast<int64_t>(j));
      if (a != b)
        fail("einsum", "operands", "sizes " + std::to_string(a) + " and " + std::to_string(b),
             std::string("one size for '") + static_cast<char>(f.labels[i]) + "', which stands twice in an operand",
             equation.location);
      f.x = f.x.diagonal(0, static_cast<int64_t>(i), static_cast<int64_t>(j), equation.location);
      int64_t label = f.labels[i];
      f.labels.erase(j);
      f.labels.erase(i);
      f.labels.push_back(label);  // the diagonal is the last dim
      return take_diagonals(f, equation);
    }
}

void sum_out(Factor& f, const Labels& dropped, std::optional<DType> dtype, Location location) {
  Ints dims;
  Labels kept;
  for (size_t d = 0; d < f.labels.size(); ++d) {
    if (contains(dropped, f.labels[d]))
      dims.push_back(static_cast<int64_t>(d));
    else
      kept.push_back(f.labels[d]);
  }
  if (dims.empty()) return;
  f.x = f.x.sum(dims, false, dtype, location);
  f.labels = kept;
}

/// Two operands as one, without the labels that neither the result nor a later operand has.
Factor contracted(Factor a, Factor b, const Labels& wanted, Location location) {
  Labels batch, rows, depth, columns, only_a, only_b;
  for (int64_t label : a.labels) {
    bool both = contains(b.labels, label), keep = contains(wanted, label);
    (both ? keep ? batch : depth : keep ? rows : only_a).push_back(label);
  }
  for (int64_t label : b.labels)
    if (!contains(a.labels, label)) (contains(wanted, label) ? columns : only_b).push_back(label);
  sum_out(a, only_a, a.x.dtype(), location);
  sum_out(b, only_b, b.x.dtype(), location);
  // A size of 1 stretches to that of the other operand.
  auto stretched = [&](const Factor& f, const Factor& other) {
    Sizes sizes;
    bool stretches = false;
    for (size_t d = 0; d < f.labels.size(); ++d) {
      const Size own = f.x.size(static_cast<int64_t>(d)), others = other.size(f.labels[d]);
      const bool stretched = own == 1 && others != 1;
      stretches = stretches || stretched;
      sizes.push_back(stretched ? others : own);
    }
    return stretches ? Factor{f.x.expand(list_of({sizes}), location), f.labels} : f;
  };
  auto sizes = [](const Factor& f, const Labels& labels) {
    Sizes all;
    for (int64_t label : labels) all.push_back(f.size(label));
    return all;
  };
  Factor left = stretched(a, b), right = stretched(b, a);
  Labels result = joined({batch, rows, columns});
  if (depth.empty()) {
    // [batch, rows, 1 ...] times [batch, 1 ..., columns].
    Tensor x = left.ordered(joined({batch, rows}), location), y = right.ordered(joined({batch, columns}), location);
    const IntList wide_shape = list_of({sizes(left, batch), sizes(left, rows), Sizes(columns.size(), Size::of(1))});
    const IntList tall_shape = list_of({sizes(right, batch), Sizes(rows.size(), Size::of(1)), sizes(right, columns)});
    Tensor wide = x.reshape(wide_shape, location), tall = y.reshape(tall_shape, location);
    return {mul(TensorArg(wide, location), tall), result};
  }
  return {product(left.ordered(joined({batch, rows, depth}), location),
                  right.ordered(joined({batch, depth, columns}), location), sizes(left, batch), sizes(left, rows),
                  sizes(left, depth), sizes(right, columns), location),
          result};
}

}  // namespace

Tensor einsum(Word given, const TensorList& operands) {
  const std::string_view text = given;
  Equation equation{{}, operands.location};
  for (char c : text)
    if (c != ' ') equation.text.push_back(c);
  std::string_view left = equation.text, right;
  size_t arrow = left.find("->");
  if (arrow != std::string_view::npos) {
    right = left.substr(arrow + 2);
    left = left.substr(0, arrow);
  }
  std::vector<std::string_view> terms;
  for (std::string_view rest = left;;) {
    size_t comma = rest.find(',');
    terms.push_back(rest.substr(0, comma));
    if (comma == std::string_view::npos) break;
    rest = rest.substr(comma + 1);
  }
  if (terms.size() != operands.size)
    equation.refuse(std::to_string(terms.size()) + " terms", std::to_string(operands.size) + ", one an operand");

  std::vector<Factor> factors;
  int64_t broadcast = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    const Tensor& x = operands.data[i];
    std::string name = "operands[" + std::to_string(i) + "]";
    if (!x.defined()) fail("einsum", name, "an undefined tensor", "a tensor", operands.location);
    if (x.dtype() != operands.data[0].dtype())
      fail("einsum", name, std::string(name_of(x.dtype())),
           std::string(name_of(operands.data[0].dtype())) + ", the dtype of operands[0]", operands.location);
    int64_t covered = x.dim() - letters_in(terms[i]);
    bool dots = terms[i].find("...") != std::string_view::npos;
    Labels labels = equation.read(terms[i], std::max<int64_t>(covered, 0));
    if (covered < 0 || (covered > 0 && !dots))
      fail("einsum", name, "a tensor with " + std::to_string(x.dim()) + " dims",
           std::to_string(letters_in(terms[i])) + (dots ? " or more" : "") + ", as the term \"" +
               std::string(terms[i]) + "\" names",
           operands.location);
    broadcast = std::max(broadcast, covered);
    factors.push_back({x, labels});
    take_diagonals(factors.back(), equation);
  }

  Labels result;
  if (arrow != std::string_view::npos) {
    result = equation.read(right, broadcast);
    for (size_t i = 0; i < result.size(); ++i) {
      std::string label = result[i] > 0 ? "'" + std::string(1, static_cast<char>(result[i])) + "'" : "\"...\"";
      bool known = false;
      for (const Factor& f : factors) known = known || contains(f.labels, result[i]);
      if (!known) equation.refuse(label + " in the result", "what an operand has");
      if (std::count(result.begin(), result.end(), result[i]) > 1)
        equation.refuse(label + " twice in the result", "once");
    }
  } else {
    for (int64_t d = broadcast; d > 0; --d) result.push_back(-d);
    for (char c = 'A'; c <= 'z'; ++c)
      if (std::count(left.begin(), left.end(), c) == 1 && std::isalpha(static_cast<unsigned char>(c)))
        result.push_back(c);
  }

  for (size_t i = 0; i < factors.size(); ++i)
    for (int64_t label : factors[i].labels)
      for (size_t j = 0; j < i; ++j) {
        if (!contains(factors[j].labels, label)) continue;
        const Size a = factors[i].size(label), b = factors[j].size(label);
        if (a != b && a != 1 && b != 1)
          fail("einsum", "operands[" + std::to_string(i) + "]", "size " + std::to_string(a),
               std::to_string(b) + ", the size that operands[" + std::to_string(j) + "] has for " +
                   (label > 0 ? "'" + std::string(1, static_cast<char>(label)) + "'" : "\"...\""),
               operands.location);
      }

  Factor all = factors[0];
  for (size_t i = 1; i < factors.size(); ++i) {
    Labels wanted = result;
    for (size_t later = i + 1; later < factors.size(); ++later) wanted = joined({wanted, factors[later].labels});
    all = contracted(all, factors[i], wanted, operands.location);
  }
  Labels dropped;
  for (int64_t label : all.labels)
    if (!contains(result, label)) dropped.push_back(label);
  sum_out(all, dropped, {}, operands.location);
  return all.ordered(result, operands.location);
}

Tensor Tensor::inner(const TensorArg& other, Location location) const { return ingot::inner({*this, location}, other); }

}  // namespace ingot
