#include "cli/bind_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/report.h"
#include "ingot.h"
#include "runtime/profiler.h"

namespace ingot::cli {
namespace {

constexpr int64_t kWidth = 32, kHeads = 4, kVocabulary = 64;
constexpr int kLayers = 12;
constexpr int64_t kLengths = 256;  // one after the other, unless a number is given; every second times binding alone
constexpr int64_t kTurns = 8;      // that come again and again

using ManyTensors = std::vector<Tensor>;

struct NarrowBlockImpl : nn::Module {
  nn::LayerNorm before{{kWidth}}, between{{kWidth}};
  nn::Linear mix{kWidth, 3 * kWidth}, project{kWidth, kWidth}, up{kWidth, 4 * kWidth}, down{4 * kWidth, kWidth};

  static Tensor heads(const Tensor& x) {
    return x.view({x.size(0), x.size(1), kHeads, kWidth / kHeads}).transpose(1, 2);
  }
  /// `cache`: keys and values of the positions before, [1, heads, length, depth], to which those of x are added; or
  /// null, and x has all positions.
  Tensor forward(const Tensor& x, Tensor* cache) const {
    const ManyTensors parts = mix(before(x)).split(kWidth, 2);
    Tensor keys = heads(parts[1]), values = heads(parts[2]);
    if (cache) {
      keys = cache[0] = cat({cache[0], keys}, 2);
      values = cache[1] = cat({cache[1], values}, 2);
    }
    Tensor mixed = scaled_dot_product_attention(heads(parts[0]), keys, values, {}, 0.0, !cache);
    Tensor y = x + project(mixed.transpose(1, 2).contiguous().view({x.size(0), x.size(1), kWidth}));
    return y + down(gelu(up(between(y))));
  }
};
INGOT_MODULE(NarrowBlock, before, between, mix, project, up, down);

struct NarrowDecoderImpl : nn::Module {
  std::vector<NarrowBlock> blocks = std::vector<NarrowBlock>(kLayers);
  nn::Linear head{kWidth, kVocabulary};

  /// x, then the caches of all blocks or nothing. Gives the caches back, then what the head says.
  ManyTensors forward(const ManyTensors& in) const {
    ManyTensors results(in.begin() + 1, in.end());
    Tensor y = in[0];
    for (size_t i = 0; i < blocks.size(); ++i) y = blocks[i]->forward(y, results.empty() ? nullptr : &results[2 * i]);
    results.push_back(head(y));
    return results;
  }
};
INGOT_MODULE(NarrowDecoder, blocks, head);

ManyTensors token_with_cache(int64_t length) {
  ManyTensors in{rand({1, 1, kWidth})};
  for (int i = 0; i < 2 * kLayers; ++i) in.push_back(rand({1, kHeads, length, kWidth / kHeads}));
  return in;
}
ManyTensors whole_text(int64_t length) { return {rand({1, length, kWidth})}; }

struct Decoding {
  const char* name;
  ManyTensors (*inputs)(int64_t length);
  int64_t first;  // length
};
constexpr Decoding kDecodings[] = {{"one token a call, with a cache", token_with_cache, 64},
                                   {"the whole text at each call", whole_text, 2}};

struct BindTimes {
  size_t steps = 0;
  int64_t compilations = 0, fallbacks = 0;
  double eager_us = 0, known_us = 0;  // of a call
  double fresh_us = 0, turns_us = 0;  // more, where the length is new, or was there a few lengths ago
  double bind_us = 0;                 // of fresh_us, binding the program; the rest is the shapes of the ops
  int64_t bound_steps = 0;            // whose sizes move with the length
  bool equal_bits = true;
};

// A call with another length than the last, then one with the same: what the first takes longer is binding.
BindTimes measure_binding(const NarrowDecoder& model, const Decoding& decoding, int64_t lengths) {
  auto fast = compile(model, {.name = "decoder"});
  BindTimes times;
  auto check = [&](const ManyTensors& in) {
    const ManyTensors expected = model(in), got = fast(in);
    times.equal_bits = bitwise_equal(expected, got) && times.equal_bits;
  };
  auto time = [&](auto& f, const ManyTensors& in) {
    const double start = now_us();
    (void)f(in);
    return now_us() - start;
  };
  std::vector<double> eager, known, fresh, turns, binding;
  int64_t length = decoding.first;
  for (; length < decoding.first + 4; ++length) check(decoding.inputs(length));
  {
    runtime::Profile profile;
    (void)fast(decoding.inputs(length++));
    times.steps = profile.steps().size();
  }
  // After eager a call with the length of before, so that the caches are those of compiled calls.
  ManyTensors last = decoding.inputs(length++);
  for (int64_t i = 0; i < lengths / 2; ++i) {
    const ManyTensors in = decoding.inputs(length++);
    eager.push_back(time(model, in));
    (void)fast(last);
    const double first = time(fast, in), again = time(fast, in);
    known.push_back(again);
    fresh.push_back(first - again);
    last = decoding.inputs(length++);
    runtime::Profile profile;
    (void)fast(last);
    const runtime::BindingTime bound = profile.bindings();
    binding.push_back(bound.total_ns / 1e3);
    times.bound_steps = std::max(times.bound_steps, bound.steps);
  }
  std::vector<ManyTensors> inputs;
  for (int64_t i = 1; i <= kTurns; ++i) inputs.push_back(decoding.inputs(length - i));
  for (int64_t i = 0; i < lengths; ++i) {
    const ManyTensors& in = inputs[static_cast<size_t>(i % kTurns)];
    (void)model(in);  // its data are in the cache then
    const double first = time(fast, in), again = time(fast, in);
    if (i >= kTurns) turns.push_back(first - again);
  }
  check(decoding.inputs(length));
  check(inputs[0]);
  times.compilations = fast.stats().compilations, times.fallbacks = fast.stats().fallbacks;
  times.eager_us = median(eager), times.known_us = median(known);
  times.fresh_us = median(fresh), times.turns_us = median(turns), times.bind_us = median(binding);
  return times;
}

}  // namespace

int bench_bind(const BenchOptions& options) {
  const NarrowDecoder model;
  bool good = true;
  nlohmann::json list = nlohmann::json::array();
  for (const Decoding& decoding : kDecodings) {
    const BindTimes t =
        measure_binding(model, decoding, options.length ? std::max<int64_t>(options.length, 2 * kTurns) : kLengths);
    const double each = t.fresh_us / static_cast<double>(t.steps);
    const double bind_ns_a_step = t.bind_us * 1e3 / static_cast<double>(std::max<int64_t>(t.bound_steps, 1));
    good = good && t.equal_bits && t.fallbacks == 0;
    list.push_back({{"decoding", decoding.name},
                    {"steps", t.steps},
                    {"compilations", t.compilations},
                    {"eager_us", t.eager_us},
                    {"known_length_us", t.known_us},
                    {"new_length_adds_us", t.fresh_us},
                    {"new_length_adds_us_a_step", each},
                    {"bind_us", t.bind_us},
                    {"bound_steps", t.bound_steps},
                    {"bind_ns_a_step", bind_ns_a_step},
                    {"length_in_turns_adds_us", t.turns_us},
                    {"bitwise_equal", t.equal_bits}});
    if (options.json) continue;
    fmt::print("{} layers of width {}, {}: {} steps, {} compilations, {}\n", kLayers, kWidth, decoding.name, t.steps,
               t.compilations, t.equal_bits ? "same bits" : "BITS DIFFER");
    fmt::print("  eager                             {:>10}\n", duration(t.eager_us));
    fmt::print("  compiled, the length of before    {:>10}\n", duration(t.known_us));
    fmt::print("  a new length adds                 {:>10}   ({:.2f} us a step)\n", duration(t.fresh_us), each);
    fmt::print("  of that, binding the program      {:>10}   ({} steps whose sizes move, {:.0f} ns each)\n",
               duration(t.bind_us), t.bound_steps, bind_ns_a_step);
    fmt::print("  one of {} lengths in turns adds    {:>10}\n", kTurns, duration(t.turns_us));
  }
  if (options.json)
    fmt::print("{}\n", nlohmann::json{{"name", "bind"}, {"threads", num_threads()}, {"decodings", list}}.dump());
  return good ? 0 : 1;
}

}  // namespace ingot::cli
