#include "base/dim.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <tuple>

#include "base/error.h"

namespace ingot {
namespace {

// The same question is asked by every rule and pass that meets it: its answer is one guard.
void record(std::vector<DimGuard>& guards, const DimGuard& guard) {
  bool known = std::any_of(guards.begin(), guards.end(), [&](const DimGuard& g) {
    return g.relation == guard.relation && g.a == guard.a && g.b == guard.b;
  });
  if (!known) guards.push_back(guard);
}

// Sizes come from users too: what is too large is their error.
[[noreturn]] void fail_overflow() {
  throw SizeOverflow("sizes: got a size past 2^63, expected fewer than 2^59 elements");
}
[[noreturn]] void fail_large(const std::string& got, const std::string& expected) {
  throw SizeOverflow("sizes: got " + got + ", expected " + expected);
}
void require(bool condition, const std::string& got, const char* expected) {
  if (!condition) throw Error("sizes: got " + got + ", expected " + expected);
}
void check_size(int64_t size) {
  if (size > DimTable::kLargest)
    fail_large("an expression of " + std::to_string(size) + " symbols and numbers or more",
               "at most " + std::to_string(DimTable::kLargest));
}
int64_t checked_add(int64_t a, int64_t b) {
  if (__builtin_add_overflow(a, b, &a)) fail_overflow();
  return a;
}
int64_t checked_sub(int64_t a, int64_t b) {
  if (__builtin_sub_overflow(a, b, &a)) fail_overflow();
  return a;
}
int64_t checked_mul(int64_t a, int64_t b) {
  if (__builtin_mul_overflow(a, b, &a)) fail_overflow();
  return a;
}

}  // namespace

template <class ValueOf>
int64_t DimTable::evaluate(const Polynomial& p, ValueOf&& value_of) {
  int64_t sum = 0;
  for (const auto& [atoms, coefficient] : p) {
    int64_t term = coefficient;
    for (int32_t a : atoms) term = checked_mul(term, value_of(a));
    sum = checked_add(sum, term);
  }
  return sum;
}

int64_t DimTable::size_of(const Monomial& atoms) const {
  int64_t size = 1;
  for (int32_t a : atoms) size += entries_[a].size;
  return size;
}

// The only place where an expression comes to be.
Dim DimTable::add(Entry entry) {
  check_size(entry.size);
  if (entry.depth > kDeepest)
    fail_large("an expression with " + std::to_string(entry.depth) + " brackets in one another",
               "at most " + std::to_string(kDeepest));
  if (entry.kind != Kind::symbol && size_ + entry.size > kLargestTable)
    fail_large("expressions of more than " + std::to_string(kLargestTable) + " symbols and numbers in one graph",
               "fewer of them, or smaller ones");
  size_ += entry.size;
  entries_.push_back(std::move(entry));
  return Dim::expression(static_cast<int64_t>(entries_.size()) - 1);
}

namespace detail {
void fail_negative_size(int64_t value) {
  throw Error("sizes: got " + std::to_string(value) + ", expected no negative size");
}
}  // namespace detail

Dim DimTable::symbol(int64_t hint) {
  Entry e{.kind = Kind::symbol};
  e.symbol = symbol_count();
  e.hint = hint;
  symbols_.push_back(add(std::move(e)).index());
  return Dim::expression(symbols_.back());
}

const DimTable::Entry& DimTable::entry(Dim a) const {
  require(knows(a), "an expression of another graph", "one of this");
  return entries_[a.index()];
}

DimTable::Polynomial DimTable::polynomial(Dim a) const {
  if (a.is_constant()) return a.code ? Polynomial{{{}, a.code}} : Polynomial{};
  const Entry& e = entry(a);
  if (e.kind == Kind::polynomial) return e.polynomial;
  return {{{static_cast<int32_t>(a.index())}, 1}};
}

bool DimTable::is_negative(Dim a) const {
  if (a.is_constant()) return false;
  const Polynomial& p = entry(a).polynomial;
  return p.size() == 1 && p.begin()->first.empty();
}

Dim DimTable::intern(Polynomial p, bool negative) {
  std::erase_if(p, [](const auto& term) { return term.second == 0; });
  if (p.empty()) return 0;
  if (p.size() == 1) {
    const auto& [atoms, coefficient] = *p.begin();
    if (atoms.empty() && coefficient >= 0) return coefficient;
    require(!atoms.empty() || negative, std::to_string(coefficient), "no negative size");
    if (atoms.size() == 1 && coefficient == 1) return Dim::expression(atoms[0]);
  }
  if (auto found = interned_.find(p); found != interned_.end()) return Dim::expression(found->second);
  Entry e{.kind = Kind::polynomial};
  e.hint = evaluate(p, [&](int32_t atom) { return entries_[atom].hint; });
  e.size = 0;
  for (const auto& [atoms, coefficient] : p) {
    if (coefficient == INT64_MIN) fail_overflow();  // it has no opposite
    e.size += size_of(atoms);
    for (int32_t atom : atoms) e.depth = std::max(e.depth, entries_[atom].depth + 1);
  }
  e.polynomial = p;
  const Dim dim = add(std::move(e));
  interned_.emplace(std::move(p), dim.index());
  return dim;
}

Dim DimTable::atom(Kind kind, Dim a, Dim b, int64_t hint) {
  if (auto found = atoms_.find({kind, a.code, b.code}); found != atoms_.end()) return Dim::expression(found->second);
  Entry e{.kind = kind};
  e.a = a, e.b = b, e.hint = hint;
  e.size = size_of(a) + size_of(b);
  e.depth = std::max(depth_of(a), depth_of(b)) + 1;
  const Dim dim = add(std::move(e));
  atoms_.emplace(std::tuple(kind, a.code, b.code), dim.index());
  return dim;
}

Dim DimTable::add(Dim a, Dim b) {
  if (a.is_constant() && b.is_constant()) return checked_add(a.code, b.code);
  Polynomial p = polynomial(a);
  for (const auto& [atoms, coefficient] : polynomial(b)) p[atoms] = checked_add(p[atoms], coefficient);
  return intern(std::move(p), is_negative(a) || is_negative(b));
}

Dim DimTable::sub(Dim a, Dim b) {
  if (a.is_constant() && b.is_constant()) {
    require(a.code >= b.code, std::to_string(a.code) + " - " + std::to_string(b.code), "no negative size");
    return a.code - b.code;
  }
  Polynomial p = polynomial(a);
  for (const auto& [atoms, coefficient] : polynomial(b)) p[atoms] = checked_sub(p[atoms], coefficient);
  return intern(std::move(p));
}

DimTable::Polynomial DimTable::multiply(const Polynomial& a, const Polynomial& b) const {
  Polynomial product;
  int64_t size = 0;  // known before it is multiplied out
  for (const auto& [x, cx] : a)
    for (const auto& [y, cy] : b) {
      Monomial atoms(x);
      atoms.insert(atoms.end(), y.begin(), y.end());
      std::sort(atoms.begin(), atoms.end());
      auto [term, fresh] = product.try_emplace(std::move(atoms), 0);
      if (fresh) check_size(size += size_of(term->first));
      term->second = checked_add(term->second, checked_mul(cx, cy));
    }
  return product;
}

Dim DimTable::mul(Dim a, Dim b) {
  if (a.is_constant() && b.is_constant()) return checked_mul(a.code, b.code);
  return intern(multiply(polynomial(a), polynomial(b)), is_negative(a) || is_negative(b));
}

Dim DimTable::opposite(Dim a) {
  Polynomial p = polynomial(a);
  for (auto& [atoms, coefficient] : p) coefficient = checked_sub(0, coefficient);
  return intern(std::move(p), true);
}

Dim DimTable::floor_div(Dim a, Dim b) {
  if (b == Dim(1)) return a;
  if (a.is_constant() && b.is_constant()) {
    require(b.code > 0, "a division by zero", "a positive divisor");
    return a.code / b.code;
  }
  // Exact when b is one term that divides every term of a.
  Polynomial divisor = polynomial(b);
  if (divisor.size() == 1) {
    const auto& [factors, k] = *divisor.begin();
    Polynomial quotient;
    bool exact = true;
    for (const auto& [atoms, coefficient] : polynomial(a)) {
      Monomial rest;
      std::set_difference(atoms.begin(), atoms.end(), factors.begin(), factors.end(), std::back_inserter(rest));
      exact = exact && coefficient % k == 0 && rest.size() + factors.size() == atoms.size();
      quotient[rest] = coefficient / k;
    }
    if (exact) return intern(std::move(quotient));
  }
  require(hint(b) > 0, "a division by " + str(b) + " = " + std::to_string(hint(b)), "a positive divisor");
  return atom(Kind::floor_div, a, b, hint(a) / hint(b));
}

Dim DimTable::ceil_div(Dim a, Dim b) {
  if (a.is_constant() && b.is_constant()) {
    require(b.code > 0, "a division by zero", "a positive divisor");
    return a.code / b.code + (a.code % b.code != 0);
  }
  return floor_div(add(a, sub(b, 1)), b);
}

Dim DimTable::max(Dim a, Dim b) {
  if (a == b) return a;
  if (a.is_constant() && b.is_constant()) return std::max(a.code, b.code);
  if (b.code < a.code) std::swap(a, b);
  return atom(Kind::max, a, b, std::max(hint(a), hint(b)));
}

Dim DimTable::min(Dim a, Dim b) {
  if (a == b) return a;
  if (a.is_constant() && b.is_constant()) return std::min(a.code, b.code);
  if (b.code < a.code) std::swap(a, b);
  return atom(Kind::min, a, b, std::min(hint(a), hint(b)));
}

Dim DimTable::product(std::span<const Dim> dims) {
  Dim total = 1;
  for (Dim d : dims) total = mul(total, d);
  return total;
}

bool DimTable::equal(Dim a, Dim b) {
  if (a == b) return true;
  if (a.is_constant() && b.is_constant()) return false;
  Polynomial difference = polynomial(a);
  for (const auto& [atoms, coefficient] : polynomial(b))
    difference[atoms] = checked_sub(difference[atoms], coefficient);
  std::erase_if(difference, [](const auto& term) { return term.second == 0; });
  if (difference.size() == 1 && difference.begin()->first.empty()) return false;
  bool result = hint(a) == hint(b);
  record(guards_, {result ? DimGuard::Relation::equal : DimGuard::Relation::not_equal, a, b});
  return result;
}

std::vector<int64_t> DimTable::pinned_symbols() const {
  constexpr int64_t kConstant = -1;
  std::vector<int64_t> becomes(symbols_.size());
  std::iota(becomes.begin(), becomes.end(), 0);
  auto number = [&](Dim d) { return !d.is_constant() && entry(d).kind == Kind::symbol ? entry(d).symbol : kConstant; };
  for (const DimGuard& guard : guards_) {
    if (guard.relation != DimGuard::Relation::equal) continue;
    int64_t a = number(guard.a), b = number(guard.b);
    if (a == kConstant) std::swap(a, b);
    if (a == kConstant || (b == kConstant && !guard.a.is_constant() && !guard.b.is_constant())) continue;
    const int64_t from = becomes[a], to = b == kConstant ? kConstant : becomes[b];
    if (from == kConstant)  // what is equal to a constant is one
      std::replace(becomes.begin(), becomes.end(), to, kConstant);
    else
      std::replace(becomes.begin(), becomes.end(), from, to);
  }
  return becomes;
}

std::vector<Dim> DimTable::import(const DimTable& other, std::span<const Dim> symbols) {
  INGOT_CHECK(symbols.size() == other.symbols_.size());
  std::vector<Dim> imported;
  for (const Entry& e : other.entries_) {
    const Dim a = translated(e.a, imported), b = translated(e.b, imported);
    switch (e.kind) {
      case Kind::symbol:
        imported.push_back(symbols[e.symbol]);
        break;
      case Kind::polynomial: {
        Polynomial sum;
        for (const auto& [atoms, coefficient] : e.polynomial) {
          Polynomial term{{{}, coefficient}};
          for (int32_t atom : atoms) term = multiply(term, polynomial(imported[atom]));
          for (const auto& [x, c] : term) sum[x] = checked_add(sum[x], c);
        }
        imported.push_back(intern(std::move(sum)));
        break;
      }
      case Kind::floor_div:
        imported.push_back(floor_div(a, b));
        break;
      case Kind::max:
        imported.push_back(max(a, b));
        break;
      case Kind::min:
        imported.push_back(min(a, b));
        break;
    }
  }
  for (const DimGuard& guard : other.guards_) {
    const DimGuard own{guard.relation, translated(guard.a, imported), translated(guard.b, imported)};
    const bool decided = own.a == own.b || (own.a.is_constant() && own.b.is_constant());
    if (!decided) record(guards_, own);
  }
  return imported;
}

bool DimTable::less(Dim a, Dim b) {
  if (a == b) return false;
  if (a.is_constant() && b.is_constant()) return a.code < b.code;
  bool result = hint(a) < hint(b);
  record(guards_, {result ? DimGuard::Relation::less : DimGuard::Relation::not_less, a, b});
  return result;
}

std::vector<int64_t> DimTable::evaluate(std::span<const int64_t> symbols) const {
  INGOT_CHECK(symbols.size() == symbols_.size());
  std::vector<int64_t> values(entries_.size());
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Entry& e = entries_[i];
    switch (e.kind) {
      case Kind::symbol:
        values[i] = symbols[e.symbol];
        break;
      case Kind::polynomial:
        values[i] = evaluate(e.polynomial, [&](int32_t atom) { return values[atom]; });
        break;
      case Kind::floor_div: {
        int64_t divisor = value_of(e.b, values);
        values[i] = divisor > 0 ? value_of(e.a, values) / divisor : 0;
        break;
      }
      case Kind::max:
        values[i] = std::max(value_of(e.a, values), value_of(e.b, values));
        break;
      case Kind::min:
        values[i] = std::min(value_of(e.a, values), value_of(e.b, values));
        break;
    }
  }
  return values;
}

bool DimTable::divides(std::span<const int64_t> values) const {
  return std::all_of(entries_.begin(), entries_.end(),
                     [&](const Entry& e) { return e.kind != Kind::floor_div || value_of(e.b, values) > 0; });
}

bool DimTable::holds(const DimGuard& guard, std::span<const int64_t> values) const {
  int64_t a = value_of(guard.a, values), b = value_of(guard.b, values);
  switch (guard.relation) {
    case DimGuard::Relation::equal:
      return a == b;
    case DimGuard::Relation::not_equal:
      return a != b;
    case DimGuard::Relation::less:
      return a < b;
    case DimGuard::Relation::not_less:
      return a >= b;
  }
  return false;
}

std::string DimTable::str(const DimGuard& guard) const {
  constexpr const char* relations[] = {" == ", " != ", " < ", " >= "};
  return str(guard.a) + relations[static_cast<int>(guard.relation)] + str(guard.b);
}

std::string DimTable::str(Dim a) const {
  if (a.is_constant()) return std::to_string(a.code);
  const Entry& e = entry(a);
  switch (e.kind) {
    case Kind::symbol:
      return "s" + std::to_string(e.symbol);
    case Kind::floor_div:
      return "floor_div(" + str(e.a) + ", " + str(e.b) + ")";
    case Kind::max:
    case Kind::min: {
      auto [first, second] = std::minmax({str(e.a), str(e.b)});
      return (e.kind == Kind::max ? "max(" : "min(") + first + ", " + second + ")";
    }
    case Kind::polynomial:
      break;
  }
  // Ordered by text, what is taken away behind what is added, the constant last: the same for equal polynomials of
  // different tables.
  std::vector<std::pair<std::string, int64_t>> terms;
  for (const auto& [atoms, coefficient] : e.polynomial) {
    std::vector<std::string> factors;
    for (int32_t atom : atoms) factors.push_back(str(Dim::expression(atom)));
    std::sort(factors.begin(), factors.end());
    std::string product;
    for (const std::string& factor : factors) product += (product.empty() ? "" : "*") + factor;
    terms.emplace_back(std::move(product), coefficient);
  }
  std::sort(terms.begin(), terms.end(), [](const auto& a, const auto& b) {
    auto order = [](const auto& term) { return std::tuple(term.first.empty(), term.second < 0, term.first); };
    return order(a) < order(b);
  });
  std::string text;
  for (const auto& [product, coefficient] : terms) {
    if (!text.empty()) text += coefficient < 0 ? " - " : " + ";
    int64_t shown = text.empty() ? coefficient : std::abs(coefficient);
    if (product.empty())
      text += std::to_string(shown);
    else
      text += (shown == 1 ? "" : std::to_string(shown) + "*") + product;
  }
  return "(" + text + ")";
}

}  // namespace ingot
