// Resampling of images: every output element as a weighted sum over a box of the input.
#include <algorithm>
#include <optional>

#include "ir/reference/elementwise.h"

namespace ingot::ir::reference {
namespace {

/// What one place of a dim reads: positions and weights.
struct Reading {
  std::vector<int64_t> at;
  std::vector<double> weight;
};

struct Resampled {
  int64_t from, to;
  std::optional<double> scale;  // how far apart neighbours of the result are in the input; the sizes say it otherwise
  std::string_view mode;
  bool align_corners, antialias;
  int64_t clamped(double p) const {
    return static_cast<int64_t>(std::min(std::max(p, 0.0), static_cast<double>(from - 1)));
  }
};

/// PyTorch counts these positions in f32.
Reading nearest(const Resampled& line, int64_t i) {
  float scale =
      line.scale ? static_cast<float>(*line.scale) : static_cast<float>(line.from) / static_cast<float>(line.to);
  float at = (static_cast<float>(i) + (line.mode == "nearest-exact" ? 0.5f : 0.0f)) * scale;
  return {{line.clamped(std::floor(at))}, {1}};
}

double keys(double distance, double a = -0.75) {
  double x = std::fabs(distance);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

Reading reading(const Resampled& line, int64_t i) {
  if (line.mode == "nearest" || line.mode == "nearest-exact") return nearest(line, i);
  double scale = line.scale ? *line.scale : static_cast<double>(line.from) / static_cast<double>(line.to);
  double at = (static_cast<double>(i) + 0.5) * scale - 0.5;
  if (line.align_corners)
    at = line.to > 1 ? static_cast<double>(i) * (static_cast<double>(line.from - 1) / static_cast<double>(line.to - 1))
                     : 0;
  Reading result;
  if (line.antialias) {
    scale = std::min(scale, static_cast<double>(line.from) / static_cast<double>(line.to));
    if (line.align_corners)
      scale = line.to > 1 ? static_cast<double>(line.from - 1) / static_cast<double>(line.to - 1) : 0;
    const double centre = (static_cast<double>(i) + 0.5) * scale, width = std::max(scale, 1.0);
    double total = 0;
    for (int64_t p = 0; p < line.from; ++p) {
      const double distance = std::fabs(static_cast<double>(p) + 0.5 - centre) / width;
      const double weight = line.mode == "cubic" ? keys(distance, -0.5) : std::max(1 - distance, 0.0);
      if (weight == 0) continue;
      result.at.push_back(p);
      result.weight.push_back(weight);
      total += weight;
    }
    for (double& weight : result.weight) weight /= total;
    return result;
  }
  if (line.mode == "linear") {
    at = std::max(at, 0.0);
    double before = std::floor(at);
    return {{line.clamped(before), line.clamped(before + 1)}, {1 - (at - before), at - before}};
  }
  for (int tap = -1; tap <= 2; ++tap) {
    result.at.push_back(line.clamped(std::floor(at) + tap));
    result.weight.push_back(keys(at - std::floor(at) - tap));
  }
  return result;
}

/// One dim resampled: outer x from x inner to outer x to x inner.
std::vector<double> resampled(const std::vector<double>& x, int64_t inner, const Resampled& line, bool bytes) {
  int64_t outer = static_cast<int64_t>(x.size()) / (line.from * inner);
  std::vector<double> result;
  result.reserve(outer * line.to * inner);
  std::vector<Reading> readings;
  for (int64_t i = 0; i < line.to; ++i) readings.push_back(reading(line, i));
  for (int64_t o = 0; o < outer; ++o)
    for (const Reading& r : readings)
      for (int64_t k = 0; k < inner; ++k) {
        long double sum = 0;
        for (size_t t = 0; t < r.at.size(); ++t)
          sum += static_cast<long double>(r.weight[t]) * x[(o * line.from + r.at[t]) * inner + k];
        if (r.at.size() == 1) sum = x[(o * line.from + r.at[0]) * inner + k];
        double value = static_cast<double>(sum);
        // A half stays one where its weights are fractions that double cannot hold.
        constexpr double kHalf = 0.5 + 1e-9;
        result.push_back(bytes ? std::min(std::max(std::floor(value + kHalf), 0.0), 255.0) : value);
      }
  return result;
}

}  // namespace

void upsample(ReferenceContext& c) {
  const ReferenceTensor& x = c.tensor("input");
  std::string_view mode = c.mode("mode");
  std::vector<double> values;
  for (int64_t i = 0; i < x.size(); ++i) values.push_back(x.at(i));
  int64_t inner = 1;
  constexpr std::string_view kScales[] = {"scale_d", "scale_h", "scale_w"};
  size_t rank = x.shape.size();
  for (size_t d = rank; d-- > 2 && !values.empty();) {
    std::string_view scale = kScales[3 - (rank - d)];
    Resampled line{x.shape[d], c.out().shape[d], {}, mode, c.flag("align_corners"), c.flag("antialias")};
    if (c.has(scale) && c.number(scale) > 0) line.scale = 1 / c.number(scale);
    values = resampled(values, inner, line, !x.floating());
    inner *= line.to;
  }
  for (size_t i = 0; i < values.size(); ++i) put(c.out(), static_cast<int64_t>(i), values[i]);
}

}  // namespace ingot::ir::reference
