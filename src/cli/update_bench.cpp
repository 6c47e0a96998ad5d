#include "cli/update_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "cli/report.h"
#include "eager/execute/caches.h"
#include "ingot.h"
#include "runtime/thread_pool.h"

namespace ingot::cli {
namespace {

constexpr int kTensors = 200;
constexpr int64_t kElements = 500'000;  // of each, unless a length is given: 100 M parameters in all

/// Parameters, gradients and two states, of the same numbers each time they are made.
struct Parameters {
  std::vector<Tensor> p, g, m, v;
  Parameters(int tensors, int64_t elements) {
    manual_seed(1);
    for (int i = 0; i < tensors; ++i) {
      p.push_back(randn({elements})), g.push_back(randn({elements}));
      m.push_back(zeros({elements})), v.push_back(zeros({elements}));
    }
  }
};

void sgd(const Parameters& all) {
  for (size_t i = 0; i < all.p.size(); ++i) {
    all.m[i].mul_(0.9).add_(all.g[i]);
    all.p[i].add_(all.m[i], -1e-3);
  }
}

void adamw(const Parameters& all) {
  for (size_t i = 0; i < all.p.size(); ++i) {
    all.p[i].mul_(1 - 1e-5);
    all.m[i].mul_(0.9).add_(all.g[i], 0.1);
    all.v[i].mul_(0.999).addcmul_(all.g[i], all.g[i], 0.001);
    all.p[i].addcdiv_(all.m[i], all.v[i].sqrt() + 1e-8, -1e-3);
  }
}

/// By hand, and with the library's optimizer.
struct Update {
  const char* name;
  void (*step)(const Parameters&);  // null: optim::AdamW
  int64_t bytes;                    // read and written, a parameter
  bool clipped = false;             // by the norm of all gradients, which reads them once more
};
constexpr Update kUpdates[] = {{"sgd", sgd, 20},
                               {"adamw", adamw, 28},
                               {"optim::AdamW", nullptr, 28},
                               {"optim::AdamW, clipped", nullptr, 32, true}};

/// A step of an update on these parameters.
std::function<void()> step_of(const Update& update, const Parameters& all) {
  if (update.step) return [&update, &all] { update.step(all); };
  for (size_t i = 0; i < all.p.size(); ++i) {
    Tensor p = all.p[i];
    p.requires_grad_().set_grad(all.g[i]);
  }
  auto optimizer = std::make_shared<optim::AdamW>(all.p);
  if (!update.clipped) return [optimizer] { optimizer->step(); };
  // As in a training step: nobody keeps the gradients that are scaled.
  return [optimizer, &all] {
    for (size_t i = 0; i < all.p.size(); ++i) all.p[i].set_grad(all.g[i].clone());
    nn::utils::clip_grad_norm_(all.p, 1.0);
    optimizer->step();
    optimizer->zero_grad();
  };
}

/// On tensors of all lengths around a vector's, before anything is timed.
bool gives_eagers_bits(const Update& update) {
  for (int64_t elements : {1, 15, 17, 1000, 70'000}) {
    const Parameters mine(5, elements), theirs(5, elements);
    auto step = compile(step_of(update, mine));
    const auto eager = step_of(update, theirs);
    for (int i = 0; i < 4; ++i) step(), eager();
    if (!bitwise_equal(mine.p, theirs.p) || !bitwise_equal(mine.m, theirs.m) || !bitwise_equal(mine.v, theirs.v))
      return false;
  }
  return true;
}

/// One row of 16 KiB written into a cache of this many rows, by a compiled function and eagerly; medians, us.
struct RowTimes {
  int64_t cache_bytes = 0;
  double eager_us = 0, compiled_us = 0;
  bool equal_bits = true;
};
RowTimes write_rows(int64_t rows, double seconds) {
  constexpr int64_t kRow = 4096;
  Tensor cache = zeros({rows, kRow});
  const Tensor x = randn({1, kRow});
  auto put = [&](int64_t row) { cache.narrow(0, row, 1).copy_(x); };
  auto fast = compile(put);
  RowTimes times{rows * kRow * 4};
  for (int64_t row = 0; row < 4; ++row) fast(row);
  times.equal_bits = ingot::bitwise_equal(cache.narrow(0, 0, 4), x.expand({4, kRow}).contiguous()) &&
                     cache.slice(0, 4).abs().sum().item<float>() == 0;
  int64_t next = 0;
  const auto both = interleave({[&] { put(++next % rows); }, [&] { fast(++next % rows); }}, seconds);
  times.eager_us = both[0].median, times.compiled_us = both[1].median;
  return times;
}

}  // namespace

int bench_update(const BenchOptions& options) {
  nlohmann::json rows = nlohmann::json::array();
  bool equal_bits = true;
  for (const Update& update : kUpdates) equal_bits = gives_eagers_bits(update) && equal_bits;
  const int64_t elements = options.length ? options.length : kElements;
  // a += b over 256 MB, or as much as the parameters take.
  const int64_t roof_elements = std::min<int64_t>(64 << 20, kTensors * elements);
  double roof = 0;  // GB/s
  {
    const Tensor a = zeros({roof_elements}), b = ones({roof_elements});
    roof = 12e-3 * static_cast<double>(roof_elements) / interleave({[&] { a.add_(b); }}, options.seconds)[0].median;
  }
  if (!options.json)
    fmt::print("{} threads; a += b over {} MB in place: {:.1f} GB/s\n{:<22}{:>14}{:>14}{:>12}{:>12}{:>12}\n",
               num_threads(), roof_elements * 4 >> 20, roof, "update", "eager ms", "compiled ms", "GB/s", "of a += b",
               "new MB");
  for (const Update& update : kUpdates) {
    const Parameters all(kTensors, elements);
    const auto eager = step_of(update, all);
    if (!update.step) eager();  // makes its states
    auto step = compile(eager);
    const int64_t before = memory_stats().allocated_bytes;
    step(), step();
    const auto times = interleave({eager, [&] { step(); }}, options.seconds);
    const int64_t after = memory_stats().allocated_bytes;
    const double rate = 1e-3 * static_cast<double>(update.bytes * kTensors * elements) / times[1].median;
    const double more = static_cast<double>(after - before) / (1 << 20);
    rows.push_back({{"name", update.name},
                    {"parameters", kTensors * elements},
                    {"tensors", kTensors},
                    {"bytes_a_parameter", update.bytes},
                    {"eager_ms", times[0].median / 1e3},
                    {"compiled_ms", times[1].median / 1e3},
                    {"compiled_gbps", rate},
                    {"of_in_place_add", rate / roof},
                    {"allocated_beyond_state_bytes", after - before}});
    if (!options.json)
      fmt::print("{:<22}{:>14.2f}{:>14.2f}{:>12.1f}{:>11.0f}%{:>12.1f}\n", update.name, times[0].median / 1e3,
                 times[1].median / 1e3, rate, 100 * rate / roof, more);
  }
  nlohmann::json caches = nlohmann::json::array();
  for (int64_t cache_rows : {64, 1024, 8192}) {
    const RowTimes times = write_rows(cache_rows, options.seconds / 4);
    equal_bits = equal_bits && times.equal_bits;
    caches.push_back({{"cache_bytes", times.cache_bytes},
                      {"row_bytes", times.cache_bytes / cache_rows},
                      {"eager_us", times.eager_us},
                      {"compiled_us", times.compiled_us}});
    if (!options.json)
      fmt::print("a row of 16 KiB into a cache of {} MiB: eager {:.1f} us, compiled {:.1f} us\n",
                 times.cache_bytes >> 20, times.eager_us, times.compiled_us);
  }
  if (options.json)
    fmt::print("{}\n", nlohmann::json{{"name", "update"},
                                      {"threads", num_threads()},
                                      {"bitwise_equal", equal_bits},
                                      {"in_place_add_gbps", roof},
                                      {"rows", rows},
                                      {"caches", caches}}
                           .dump());
  else
    fmt::print("{}\n", equal_bits ? "same bits as eager" : "BITS DIFFER");
  return equal_bits ? 0 : 1;
}

}  // namespace ingot::cli
