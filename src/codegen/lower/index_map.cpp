#include "codegen/lower/index_map.h"

namespace ingot::codegen::lowering {

Coordinate unit(uint32_t dim) {
  Coordinate c;
  c.terms.push_back({dim, 1});
  return c;
}

IndexMap identity_map(std::span<const Dim> shape) {
  IndexMap map(shape.size());
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] != Dim(1)) map[i] = unit(static_cast<uint32_t>(i));
  return map;
}

std::optional<IndexMap> compose(DimTable& dims, const IndexMap& inner, const IndexMap& outer) {
  IndexMap result(inner.size());
  for (size_t i = 0; i < inner.size(); ++i) {
    Coordinate& c = result[i];
    c.offset = inner[i].offset;
    c.index = inner[i].index;
    c.index_coefficient = inner[i].index_coefficient;
    for (const Term& t : inner[i].terms) {
      const Coordinate& o = outer[t.dim];
      c.offset = dims.add(c.offset, dims.mul(t.coefficient, o.offset));
      if (o.index != kNoIndex) {
        if (c.index != kNoIndex) return std::nullopt;
        c.index = o.index;
        c.index_coefficient = dims.mul(t.coefficient, o.index_coefficient);
      }
      for (const Term& u : o.terms) {
        Dim coefficient = dims.mul(t.coefficient, u.coefficient);
        bool found = false;
        for (Term& have : c.terms)
          if (have.dim == u.dim) {
            have.coefficient = dims.add(have.coefficient, coefficient);
            found = true;
          }
        if (!found) c.terms.push_back({u.dim, coefficient});
      }
    }
  }
  return result;
}

bool covers(DimTable& dims, const IndexMap& map, std::span<const Dim> shape, std::span<const Dim> space,
            const SmallVector<bool, 8>& wanted) {
  SmallVector<bool, 8> open = wanted;
  for (size_t d = 0; d < space.size(); ++d)
    if (space[d] == Dim(1)) open[d] = false;
  for (size_t d = 0; d < map.size(); ++d) {
    const Coordinate& c = map[d];
    if (c.index != kNoIndex || c.offset != Dim(0)) return false;
    Dim expected = 1;
    for (size_t i = c.terms.size(); i-- > 0;) {
      const Term& t = c.terms[i];
      if (!open[t.dim] || !dims.same(t.coefficient, expected)) return false;
      open[t.dim] = false;
      expected = dims.mul(expected, space[t.dim]);
    }
    if (!dims.same(expected, shape[d])) return false;
  }
  for (bool o : open)
    if (o) return false;
  return true;
}

bool depends_on(const IndexMap& map, uint32_t dim) {
  for (const Coordinate& c : map)
    for (const Term& t : c.terms)
      if (t.dim == dim) return true;
  return false;
}

namespace {

/// A stretch of dims of the one shape that holds the same elements as a stretch of dims of the other.
struct Stretch {
  size_t from, from_end, to, to_end;
};

/// Splits two shapes of one element count into the shortest stretches of equal size. Nothing where algebra cannot tell.
std::optional<std::vector<Stretch>> matching_stretches(DimTable& dims, std::span<const Dim> from,
                                                       std::span<const Dim> to) {
  std::vector<Stretch> stretches;
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    if (i < from.size() && from[i] == Dim(1)) {
      ++i;
      continue;
    }
    if (j < to.size() && to[j] == Dim(1)) {
      ++j;
      continue;
    }
    if (i == from.size() || j == to.size()) return std::nullopt;
    // The stretch ends at the first pair of prefixes with equal products.
    std::vector<Dim> left, right;
    Dim product = 1;
    for (size_t k = i; k < from.size(); ++k) left.push_back(product = dims.mul(product, from[k]));
    product = 1;
    for (size_t k = j; k < to.size(); ++k) right.push_back(product = dims.mul(product, to[k]));
    bool found = false;
    for (size_t total = 0; total + 1 < left.size() + right.size() && !found; ++total)
      for (size_t a = 0; a <= total && a < left.size(); ++a) {
        size_t b = total - a;
        if (b >= right.size() || !dims.same(left[a], right[b])) continue;
        stretches.push_back({i, i + a + 1, j, j + b + 1});
        i += a + 1;
        j += b + 1;
        found = true;
        break;
      }
    if (!found) return std::nullopt;
  }
  return stretches;
}

}  // namespace

std::optional<IndexMap> reshape_map(DimTable& dims, std::span<const Dim> from, std::span<const Dim> to) {
  auto stretches = matching_stretches(dims, from, to);
  if (!stretches) return std::nullopt;
  IndexMap map(from.size());
  for (const Stretch& r : *stretches) {
    size_t wide = 0, where = 0;
    for (size_t i = r.from; i < r.from_end; ++i)
      if (from[i] != Dim(1)) ++wide, where = i;
    if (wide != 1) return std::nullopt;
    Dim coefficient = 1;
    for (size_t j = r.to_end; j-- > r.to;) {
      if (to[j] != Dim(1)) map[where].terms.insert(0, {static_cast<uint32_t>(j), coefficient});
      coefficient = dims.mul(coefficient, to[j]);
    }
  }
  return map;
}

std::optional<Dims> reshape_strides(DimTable& dims, std::span<const Dim> from, std::span<const Dim> strides,
                                    std::span<const Dim> to) {
  auto stretches = matching_stretches(dims, from, to);
  if (!stretches) return std::nullopt;
  Dims result(to.size(), Dim(0));
  for (const Stretch& r : *stretches) {
    Dim inner;
    bool first = true;
    for (size_t i = r.from_end; i-- > r.from;) {
      if (from[i] == Dim(1)) continue;
      if (first)
        inner = strides[i];
      else if (!dims.same(strides[i], inner))
        return std::nullopt;
      Dim step = dims.mul(strides[i], from[i]);
      if (first) result[r.to_end - 1] = strides[i];
      inner = step;
      first = false;
    }
    // The innermost stride of the stretch, then outwards.
    Dim stride = result[r.to_end - 1];
    for (size_t j = r.to_end; j-- > r.to;) {
      result[j] = stride;
      stride = dims.mul(stride, to[j]);
    }
  }
  return result;
}

}  // namespace ingot::codegen::lowering
