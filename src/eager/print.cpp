// Tensors in NumPy's notation: aligned columns, at most four decimals, long dims abridged to three at each end.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ostream>
#include <vector>

#include "eager/data.h"
#include "eager/tensor.h"

namespace ingot {
namespace {

constexpr int64_t kEdge = 3, kAbridgeAbove = 1000;
constexpr size_t kLineWidth = 80;

struct Printer {
  const detail::TensorImpl& t;
  bool abridge = false;
  bool scientific = false;
  int decimals = 0;
  size_t width = 0;
  std::string out = {};

  bool shown(int64_t size, int64_t i) const { return !abridge || size <= 2 * kEdge || i < kEdge || i >= size - kEdge; }

  template <class F>
  void for_each_shown(size_t d, int64_t offset, F&& f) {
    if (d == t.sizes.size()) return f(read(offset));
    for (int64_t i = 0; i < t.sizes[d]; ++i)
      if (shown(t.sizes[d], i)) for_each_shown(d + 1, offset + i * t.strides[d], f);
  }
  Scalar read(int64_t offset) const {
    return eager::read_element(t.dtype, eager::data_of(t) + offset * size_of(t.dtype));
  }

  std::string text(Scalar v) const {
    if (v.category() == Category::boolean) return v.to<bool>() ? "True" : "False";
    if (v.category() == Category::integer) return std::to_string(v.to<int64_t>());
    double x = v.to_double();
    if (std::isnan(x)) return "nan";
    if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
    char buffer[64];
    std::snprintf(buffer, sizeof buffer, scientific ? "%.*e" : "%.*f", decimals, x);
    std::string s = buffer;
    if (decimals == 0) s.insert(scientific ? s.find('e') : s.size(), ".");
    // NumPy aligns at the point and leaves trailing zeros out.
    if (!scientific)
      for (size_t last = s.size(); s[--last] == '0' && decimals > 0;) s[last] = ' ';
    return s;
  }

  // NumPy's choice: as few decimals as tell the values, at most four; scientific where one is very large or small.
  void choose_format() {
    double low = INFINITY, high = 0;
    int needed = 0;
    auto look = [&](Scalar v) {
      double x = std::fabs(v.to_double());
      if (v.category() != Category::floating || !std::isfinite(x)) return;
      if (x != 0) low = std::min(low, x), high = std::max(high, x);
    };
    for_each_shown(0, 0, look);
    scientific = high >= 1e8 || (high > 0 && low < 1e-4);
    auto digits = [&](Scalar v) {
      double x = v.to_double();
      if (v.category() != Category::floating || !std::isfinite(x)) return;
      char buffer[64];
      std::snprintf(buffer, sizeof buffer, scientific ? "%.4e" : "%.4f", x);
      std::string s = buffer;
      size_t dot = s.find('.'), end = s.find('e');
      if (end == std::string::npos) end = s.size();
      size_t last = s.find_last_not_of('0', end - 1);
      needed = std::max(needed, static_cast<int>(last - dot));
    };
    for_each_shown(0, 0, digits);
    decimals = needed;
    for_each_shown(0, 0, [&](Scalar v) { width = std::max(width, text(v).size()); });
  }

  // Depth is the rank, so this recursion is bounded.
  void write(size_t d, int64_t offset) {
    if (d == t.sizes.size()) {
      std::string s = text(read(offset));
      out.append(width - std::min(width, s.size()), ' ');
      out += s;
      return;
    }
    size_t rank = t.sizes.size();
    bool last = d + 1 == rank, skipped = false, first = true;
    out += '[';
    for (int64_t i = 0; i < t.sizes[d]; ++i) {
      if (!shown(t.sizes[d], i)) {
        if (!skipped) separate(d, last, first), out += "...", first = false;
        skipped = true;
        continue;
      }
      separate(d, last, first);
      first = false;
      write(d + 1, offset + i * t.strides[d]);
    }
    out += ']';
  }

  void separate(size_t d, bool last, bool first) {
    if (first) return;
    size_t line = out.size() - (out.rfind('\n') + 1);
    if (!last) {
      out.append(t.sizes.size() - d - 1, '\n');
      out.append(d + 1, ' ');
    } else if (line + 1 + width > kLineWidth) {
      out += '\n';
      out.append(d + 1, ' ');
    } else {
      out += ' ';
    }
  }
};

}  // namespace

std::string Tensor::str(Location location) const {
  if (!impl_) return "undefined";
  eager::materialize(*this, "print", location);
  Printer printer{*impl_};
  int64_t n = eager::count(impl_->sizes);
  printer.abridge = n > kAbridgeAbove;
  if (n > 0) printer.choose_format();
  if (impl_->sizes.empty()) printer.width = 0;
  if (n == 0) {
    printer.out += "[]";
  } else {
    printer.write(0, 0);
  }
  if (n == 0 && impl_->sizes.size() > 1) {
    printer.out += " of size (";
    for (size_t d = 0; d < impl_->sizes.size(); ++d) printer.out += (d ? ", " : "") + std::to_string(impl_->sizes[d]);
    printer.out += ")";
  }
  return printer.out;
}

}  // namespace ingot
