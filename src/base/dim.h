// Sizes that may be symbols: polynomials over free symbols, interned, so that equal sizes are the same number.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/export.h"
#include "base/fields.h"
#include "base/small_vector.h"

namespace ingot {

namespace detail {
[[noreturn]] INGOT_API void fail_negative_size(int64_t value);
}

/// A non-negative size, stride or offset: a constant, or an expression of a DimTable.
struct Dim {
  int64_t code = 0;  // >= 0: the value; < 0: expression number -code - 1
  constexpr Dim() = default;
  /// Throws Error for a negative value.
  constexpr Dim(int64_t value) : code(value) {
    if (value < 0) detail::fail_negative_size(value);
  }
  static constexpr Dim expression(int64_t index) {
    Dim d;
    d.code = -index - 1;
    return d;
  }
  constexpr bool is_constant() const { return code >= 0; }
  constexpr int64_t index() const { return -code - 1; }
  /// Identity of expressions; for "has the same size", which may record a guard, use DimTable::equal.
  friend constexpr bool operator==(Dim a, Dim b) { return a.code == b.code; }
  INGOT_ALL_FIELDS(Dim, code)
};
using Dims = SmallVector<Dim, 6>;

/// A fact about symbols on which a decision relied; a call for which it does not hold needs another program.
struct DimGuard {
  enum class Relation : uint8_t { equal, not_equal, less, not_less };
  Relation relation;
  Dim a, b;
  INGOT_ALL_FIELDS(DimGuard, relation, a, b)
};

/// The expressions of one graph or program. Every symbol has a hint (its value when traced); a question that algebra
/// cannot answer is answered from the hints and recorded as a guard. Past 63 bits, or past the limits below, arithmetic
/// throws SizeOverflow: products of sums, and expressions of expressions, would multiply out.
class INGOT_API DimTable {
 public:
  /// Symbols and numbers in an expression, written out; in all expressions; how deep brackets lie in one another.
  static constexpr int64_t kLargest = 1024, kLargestTable = int64_t{1} << 20;
  static constexpr int kDeepest = 128;

  /// A new free symbol; `hint` is its value in the call that is being compiled.
  Dim symbol(int64_t hint);
  int64_t symbol_count() const { return static_cast<int64_t>(symbols_.size()); }
  Dim symbol_dim(int64_t symbol) const { return Dim::expression(symbols_[symbol]); }
  int64_t symbol_hint(int64_t symbol) const { return entries_[symbols_[symbol]].hint; }

  Dim add(Dim a, Dim b);
  /// a - b, which must not be negative for any call that the guards admit.
  Dim sub(Dim a, Dim b);
  Dim mul(Dim a, Dim b);
  /// -a, as no size is: a stride of what is read backwards. Its sums and products may be below 0, too.
  Dim opposite(Dim a);
  /// floor(a / b), b > 0; exact where the polynomial divides.
  Dim floor_div(Dim a, Dim b);
  Dim ceil_div(Dim a, Dim b);
  Dim max(Dim a, Dim b);
  Dim min(Dim a, Dim b);
  Dim product(std::span<const Dim> dims);

  bool equal(Dim a, Dim b);
  bool less(Dim a, Dim b);
  bool is_one(Dim a) { return equal(a, 1); }
  /// True if a == b for every value of the symbols. Records nothing.
  bool same(Dim a, Dim b) const { return a == b; }

  /// Whether it is a constant or an expression of this table's.
  bool knows(Dim a) const { return a.is_constant() || a.index() < static_cast<int64_t>(entries_.size()); }
  int64_t hint(Dim a) const { return a.is_constant() ? a.code : entry(a).hint; }
  const std::vector<DimGuard>& guards() const { return guards_; }
  /// What the guards make of each symbol: the number of the symbol that it must be equal to, often its own, or -1 where
  /// it must be a constant: its hint.
  std::vector<int64_t> pinned_symbols() const;
  /// Takes over the expressions and guards of another table, with these in place of its symbols. Returns what became of
  /// its entries; value_of's counterpart is translated.
  std::vector<Dim> import(const DimTable& other, std::span<const Dim> symbols);
  static Dim translated(Dim a, std::span<const Dim> imported) { return a.is_constant() ? a : imported[a.index()]; }

  /// Values of all expressions for these symbol values, in order; value_of reads one.
  std::vector<int64_t> evaluate(std::span<const int64_t> symbols) const;
  static int64_t value_of(Dim a, std::span<const int64_t> values) {
    return a.is_constant() ? a.code : values[a.index()];
  }
  bool holds(const DimGuard& guard, std::span<const int64_t> values) const;
  /// Whether every floor_div has a positive divisor; evaluate gives 0 where it has not.
  bool divides(std::span<const int64_t> values) const;
  std::string str(Dim a) const;
  /// "s0 < 64".
  std::string str(const DimGuard& guard) const;
  INGOT_SOME_FIELDS(DimTable, entries_, symbols_, guards_)

 private:
  using Monomial = std::vector<int32_t>;           // sorted atoms; empty: the constant term
  using Polynomial = std::map<Monomial, int64_t>;  // coefficients, never zero
  enum class Kind : uint8_t { symbol, polynomial, floor_div, max, min };
  struct Entry {
    Kind kind;
    int64_t symbol = -1;
    Dim a{}, b{};
    Polynomial polynomial{};
    int64_t hint = 0;
    int64_t size = 1;  // see kLargest
    int depth = 0;     // see kDeepest
    INGOT_SOME_FIELDS(Entry, kind, symbol, a, b, polynomial, hint)
  };
  const Entry& entry(Dim a) const;
  Polynomial polynomial(Dim a) const;
  int64_t size_of(const Monomial& atoms) const;
  int64_t size_of(Dim a) const { return a.is_constant() ? 1 : entry(a).size; }
  int depth_of(Dim a) const { return a.is_constant() ? 0 : entry(a).depth; }
  Dim add(Entry entry);
  Polynomial multiply(const Polynomial& a, const Polynomial& b) const;
  bool is_negative(Dim a) const;  // a number below 0, which is no constant
  Dim intern(Polynomial p, bool negative = false);
  Dim atom(Kind kind, Dim a, Dim b, int64_t hint);
  template <class ValueOf>
  static int64_t evaluate(const Polynomial& p, ValueOf&& value_of);

  std::vector<Entry> entries_;
  int64_t size_ = 0;              // of all entries
  std::vector<int64_t> symbols_;  // entry of each symbol
  std::map<Polynomial, int64_t> interned_;
  std::map<std::tuple<Kind, int64_t, int64_t>, int64_t> atoms_;
  std::vector<DimGuard> guards_;
};

}  // namespace ingot
