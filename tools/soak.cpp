// Calls of eleven kinds for as long as asked; resident memory may not grow once it has warmed up (docs/soak.md).
#include <malloc.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "ingot.h"

using namespace ingot;

namespace {

/// Memory of this process that stands in the machine's, in bytes.
int64_t resident() {
  int64_t pages = 0, ours = 0;
  std::ifstream("/proc/self/statm") >> pages >> ours;
  return ours * sysconf(_SC_PAGESIZE);
}

/// One kind of program that runs for days: call(i) is its i-th call.
struct Kind {
  const char* name;
  std::function<void(int64_t)> call;
};

std::vector<Kind> kinds() {
  std::vector<Kind> all;

  all.push_back(
      {"scalars",
       [w = randn({16, 16}), fast = compile([](const Tensor& x, const Tensor& weight, double rate) {
                               return x.matmul(weight) * rate + rate * 2;
                             }),
        frozen = compile([](const Tensor& x, double rate) { return x * rate; }, {.mode = CompileMode::frozen}),
        x = randn({4, 16})](int64_t i) {
         const double rate = static_cast<double>(i) * 1e-3;
         if (i % 2)
           fast(x, w, rate);
         else
           frozen(x, rate);
       }});

  // 2^20 paths through one function, and a loop whose length the data decides.
  all.push_back({"branches", [fast = compile([](const Tensor& x, int64_t bits) {
                                Tensor y = x;
                                for (int b = 0; b < 20; ++b) y = (bits >> b & 1) ? y + 1 : y * 0.5;
                                for (int64_t n = y.sum().item<int64_t>() & 7; n > 0; --n) y = y.tanh();
                                return y;
                              }),
                              x = randn({8})](int64_t i) { fast(x, i * 2654435761 >> 7 & 1048575); }});

  all.push_back(
      {"shapes",
       [fast = compile([](const Tensor& x, const Tensor& w) { return softmax(x.matmul(w), 1).sum(0); }),
        w = randn({24, 8}), x = randn({512, 24})](int64_t i) { fast(x.narrow(0, i % 7, 1 + i * 37 % 500), w); }});

  all.push_back({"functions", [x = randn({6, 5})](int64_t i) {
                   const double own = static_cast<double>(i % 97);
                   auto fast = compile([own](const Tensor& t) { return (t + own).relu().sum(1); });
                   fast(x);
                   if (i % 3 == 0) fast(x);
                 }});

  {
    auto weight = std::make_shared<Tensor>(randn({32, 32}));
    auto fast = compile([weight](const Tensor& x) { return x.matmul(*weight).relu(); });
    all.push_back({"weights", [weight, fast, x = randn({8, 32})](int64_t i) {
                     if (i % 5 == 0)
                       *weight = randn({32, 32});
                     else if (i % 5 == 2)
                       weight->mul_(0.5);
                     fast(x);
                   }});
  }

  all.push_back(
      {"threads", [fast = compile([](const Tensor& x) { return x.tanh() * 2 + x.sum(); }), x = randn({33})](int64_t i) {
         if (i % 20) {
           fast(x);
           return;
         }
         std::thread([&] { fast(x); }).join();
       }});

  all.push_back({"views", [fast = compile([w = randn({64, 16, 16})](const Tensor& x, int64_t i) {
                             return x.narrow(0, i % 5, 3).matmul(w[i % 64]).transpose(0, 1);
                           }),
                           x = randn({8, 16})](int64_t i) { fast(x, i); }});

  all.push_back({"frozen", [fast = compile([w = randn({16, 16})](const Tensor& x) { return x.matmul(w).relu(); },
                                           {.mode = CompileMode::frozen}),
                            x = randn({256, 16})](int64_t i) { fast(x.narrow(0, 0, 1 + i % 251)); }});

  all.push_back(
      {"errors", [fast = compile([w = randn({5, 7})](const Tensor& x, const Tensor& index) {
                    Tensor y = x + 1;
                    try {
                      y = x.matmul(w);
                    } catch (const Error&) {
                      y = x * 2;
                    }
                    return y.index_select(0, index);
                  }),
                  x = randn({6, 5}), z = randn({6, 4}), good = tensor({0, 3}), bad = tensor({0, 6})](int64_t i) {
         try {
           fast(i % 2 ? x : z, i % 3 ? good : bad);
         } catch (const Error&) {
         }
       }});

  all.push_back({"tensors", [fast = compile([](const Tensor& x, int64_t n) {
                               Tensor table = tensor({0.5f, 1.5f, 2.5f, 3.5f}), line = zeros({n, 64});
                               return (x * table).sum() + line.sum() + arange(n).sum();
                             }),
                             frozen = compile(
                                 [](const Tensor& x) {
                                   return x + tensor({0.5f, 1.5f, 2.5f, 3.5f});
                                 },
                                 {.mode = CompileMode::frozen}),
                             x = randn({9, 4})](int64_t i) {
                   if (i % 2)
                     fast(x, 1 + i % 300);
                   else
                     frozen(x);
                 }});

  // On ways back of several sizes and wishes; some are never gone, some end with an error, some are gone twice.
  all.push_back(
      {"gradients",
       [fast = compile([](const Tensor& x, const Tensor& w, const Tensor& v) { return x.matmul(w).tanh().matmul(v); }),
        w = randn({16, 16}).requires_grad_(), v = randn({16, 4}).requires_grad_(), x = randn({64, 16})](int64_t i) {
         const Tensor loss = fast(x.narrow(0, 0, 1 + i % 61), w, v).sum();
         if (i % 5 == 0) return;
         if (i % 5 == 1) {
           (void)autograd::grad({loss}, {i % 2 ? w : v});
           return;
         }
         loss.backward();
         try {
           if (i % 5 == 2) loss.backward();
         } catch (const Error&) {
         }
         if (i % 3 == 0) w.set_grad({}), v.set_grad({});
       }});
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  int64_t calls = 1000000, limit = 2 << 20;
  std::string only, json;
  bool quiet = false;
  CLI::App app{"Calls of eleven kinds: resident memory may grow by 2 MiB after the first tenth"};
  app.add_option("--calls", calls, "how many, of all kinds together")
      ->check(CLI::Range(int64_t{1000}, int64_t{1} << 40));
  app.add_option("--kind", only, "of one kind alone");
  app.add_option("--limit", limit, "bytes that resident memory may grow by after the first tenth");
  app.add_option("--json", json, "writes the samples to this file");
  app.add_flag("--quiet", quiet, "no line a tenth");
  CLI11_PARSE(app, argc, argv);

  std::vector<Kind> all = kinds();
  if (!only.empty()) {
    std::vector<Kind> chosen;
    std::string names;
    for (Kind& kind : all) {
      names += std::string(names.empty() ? "" : ", ") + kind.name;
      if (only == kind.name) chosen.push_back(std::move(kind));
    }
    if (chosen.empty()) {
      std::fprintf(stderr, "no kind \"%s\": the kinds are %s\n", only.c_str(), names.c_str());
      return 2;
    }
    all = std::move(chosen);
  }
  const int64_t kinds_count = static_cast<int64_t>(all.size()), sample = std::max<int64_t>(calls / 100, 1);
  const auto start = std::chrono::steady_clock::now();
  auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  std::vector<int64_t> samples;
  for (int64_t i = 0; i < calls; ++i) {
    // Kinds take turns of a thousand calls, so that each finds what the others left.
    const int64_t turn = i / 1000 / kinds_count * 1000 + i % 1000;
    all[static_cast<size_t>(i / 1000 % kinds_count)].call(turn);
    if ((i + 1) % sample) continue;
    malloc_trim(0);  // what the C library keeps of what was given back is no growth of ours
    samples.push_back(resident());
    if (!quiet && samples.size() % 10 == 0)
      std::printf("%10" PRId64 " calls %8.1f MiB %8.1f s\n", i + 1, static_cast<double>(samples.back()) / (1 << 20),
                  seconds());
    std::fflush(stdout);
  }
  const int64_t growth = samples.back() - samples[samples.size() / 10];
  std::printf("%s: %" PRId64 " calls in %.1f s; resident memory grew by %.2f MiB after the first tenth\n",
              only.empty() ? "all kinds" : only.c_str(), calls, seconds(), static_cast<double>(growth) / (1 << 20));
  if (!json.empty()) {
    std::ofstream out(json);
    out << "{\"kind\": \"" << only << "\", \"calls\": " << calls << ", \"seconds\": " << seconds()
        << ", \"growth\": " << growth << ", \"resident\": [";
    for (size_t i = 0; i < samples.size(); ++i) out << (i ? ", " : "") << samples[i];
    out << "]}\n";
  }
  return growth > limit;
}
