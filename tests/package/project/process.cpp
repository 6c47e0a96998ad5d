// process CASE: a program whose threads, exit handlers, destructors and children use the library at the edges of its
// life. Prints "whole" as the last thing that any destructor does; exit code 0 if every result was right until then.
#include <ingot/ingot.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <vector>

using namespace ingot;

namespace {

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "wrong: %s\n", what);
  std::_Exit(9);
}
void require(bool holds, const char* what) {
  if (!holds) fail(what);
}

struct InnerBlockWithALongNameImpl : nn::Module {
  nn::Linear projection_with_a_long_name{16, 16};
  Tensor forward(const Tensor& x) { return F::gelu(projection_with_a_long_name(x)); }
};
INGOT_MODULE(InnerBlockWithALongName, projection_with_a_long_name);
struct NetImpl : nn::Module {
  InnerBlockWithALongName first_block_with_a_long_name, second_block_with_a_long_name;
  Tensor forward(const Tensor& x) { return second_block_with_a_long_name(first_block_with_a_long_name(x)); }
};
INGOT_MODULE(Net, first_block_with_a_long_name, second_block_with_a_long_name);

Tensor chain(const Tensor& x) { return softmax(exp(x * 0.25) + x.sum(-1, true), -1); }
bool agree(const Tensor& a, const Tensor& b) { return equal(a, b); }

/// Everything that a thread does with the library: eager ops of all routes, and each kind of compiled function.
struct Everything {
  Net net;
  decltype(compile(chain)) checked = compile(chain);
  decltype(compile(chain)) frozen = compile(chain, {.mode = CompileMode::frozen});
  decltype(compile(chain)) background = compile(chain, {.background = true});
  decltype(compile(net)) model = compile(net);

  /// `rows` of a size that nothing was compiled for yet compile anew.
  void use(int64_t rows, const char* where) const {
    Tensor x = arange(rows * 16).to(kFloat32).reshape({rows, 16}) / 64.0;
    Tensor expected = chain(x);
    for (int call = 0; call < 3; ++call) {
      require(agree(checked(x), expected), where);
      require(agree(frozen(x), expected), where);
      require(agree(background(x), expected), where);
      require(agree(model(x), net(x)), where);
    }
    require(rand({4}).numel() == 4, where);
    // New code, for this call alone.
    auto fresh = compile([rows](const Tensor& t) { return chain(t.reshape({-1, 4 * rows})) * 2 + 1; });
    require(agree(fresh(x), chain(x.reshape({-1, 4 * rows})) * 2 + 1), where);
    Tensor large = ones({1 << 19});
    require(agree(compile([](const Tensor& t) { return (t + 1).sum(); })(large), (large + 1).sum()), where);
    nn::Conv2d empty{nullptr};
    try {
      empty(x);
      fail(where);
    } catch (const Error&) {
    }
  }
};

struct AtScope {
  Everything everything;
  const char* where;
  bool last;
  explicit AtScope(const char* name, bool ends = false) : where(name), last(ends) {}
  ~AtScope() {
    everything.use(3, where);
    everything.use(5, where);
    if (last) static_cast<void>(::write(1, "whole\n", 6));
  }
};

AtScope first_made("destructor of the first static", true);
AtScope second_made("destructor of the second static");

struct AtThreadEnd {
  std::string where;
  ~AtThreadEnd() {
    first_made.everything.use(7, where.c_str());
    Everything().use(2, where.c_str());
  }
};
thread_local AtThreadEnd early_in_thread, late_in_thread;
thread_local decltype(compile(chain)) of_thread = compile(chain);
const pthread_key_t key = [] {
  pthread_key_t made;
  pthread_key_create(&made, [](void*) { Everything().use(11, "destructor of a key"); });
  return made;
}();

void use_thread_locals() {
  early_in_thread.where = "destructor of a thread_local made before the library's";
  first_made.everything.use(4, "thread");
  Tensor x = ones({2, 16});
  require(agree(of_thread(x), chain(x)), "compiled function of a thread");
  late_in_thread.where = "destructor of a thread_local made after the library's";
  pthread_setspecific(key, &key);
}

void start_background_compiles(int count) {
  Tensor x = ones({4, 16});
  for (int i = 0; i < count; ++i) {
    static std::vector<decltype(compile(std::function<Tensor(const Tensor&)>()))>& functions =
        *new std::vector<decltype(compile(std::function<Tensor(const Tensor&)>()))>;
    functions.push_back(compile(std::function<Tensor(const Tensor&)>([i](const Tensor& t) {
                                  Tensor y = t;
                                  for (int n = 0; n < 20 + i; ++n) y = sin(y) * 0.5 + chain(y);
                                  return y;
                                }),
                                {.background = true}));
    functions.back()(x);
  }
}

// In a child: everything once more, new code too; the clock ends it if it waits for what is not there.
[[noreturn]] void live_as_child(int number, bool handlers) {
  ::alarm(60);
  first_made.everything.use(6 + number % 3, "child");
  start_background_compiles(1);
  std::thread([] { use_thread_locals(); }).join();
  if (handlers) std::exit(0);
  std::_Exit(0);
}
void run_child(int number, bool handlers) {
  std::fflush(nullptr);
  pid_t child = ::fork();
  require(child >= 0, "fork");
  if (child == 0) live_as_child(number, handlers);
  int status = 0;
  require(::waitpid(child, &status, 0) == child, "waitpid");
  if (WIFSIGNALED(status)) std::fprintf(stderr, "child %d ended by signal %d\n", number, WTERMSIG(status));
  require(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a child did not end well");
}

/// Threads that call, compile and log until the last child has ended.
struct BusyThreads {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  BusyThreads() {
    for (int number = 0; number < 3; ++number)
      threads.emplace_back([this, number] {
        for (int64_t round = 0; !stop; ++round) {
          first_made.everything.use(1 + (round + number) % 4, "busy thread");
          if (number == 0) start_background_compiles(1);
          if (number == 1) Everything().use(3, "busy thread");
          static_cast<void>(second_made.everything.frozen.explain());
        }
      });
  }
  ~BusyThreads() {
    stop = true;
    for (std::thread& t : threads) t.join();
  }
};

/// Results that depend on how floats are computed: subnormal numbers, ties, sums that lose bits; of eager ops of all
/// routes, of compiled functions and of what the compiler and the modules compute by themselves.
std::vector<Tensor> sensitive_results() {
  constexpr float kSubnormal = 1e-41f;
  std::vector<Tensor> results;
  auto model = [](const Tensor& x) {
    Tensor third = (ones({1}) / 3.0).to(kFloat16).to(kFloat32);  // folded
    Tensor y = x * 0.7 + third;
    return cumsum(softmax(y, -1) * 1e-39 + y.matmul(y.t()).mean(-1, true), -1) / 3.0;
  };
  auto checked = compile(model);
  auto frozen = compile(model, {.mode = CompileMode::frozen});
  for (int64_t rows : {3, 700}) {
    Tensor x = arange(0.1, 5000.0, 0.1).slice(0, 0, rows * 64);
    x = x.to(kFloat32).reshape({rows, 64}) / 7.0;
    for (int call = 0; call < 3; ++call) {
      results.push_back(model(x));
      results.push_back(checked(x));
      results.push_back(frozen(x));
    }
    results.push_back(x.to(kFloat16));
    results.push_back(pow(x * std::numeric_limits<float>::quiet_NaN(), 1e-310).isnan());
    results.push_back(x * kSubnormal + kSubnormal);
    results.push_back(std::get<0>(x.sort(-1)).to(kFloat64).prod(-1));
    results.push_back(F::interpolate(x.reshape({1, 1, rows, 64}), {}, {1.7, 0.3}, "bilinear"));
  }
  manual_seed(1);
  results.push_back(nn::Linear(5, 7)->weight);
  results.push_back(nn::PReLU(1, 0.1)->weight);
  results.push_back(tensor({0.1, 1e-41, 3.0}));
  results.push_back(scalar_tensor(Tensor(full({1}, kSubnormal)).item<double>()).to(kFloat64));
  return results;
}

/// A child computes them with the modes that a process starts with, and this process with other ones, from its first
/// op and first thread on.
void check_modes(uint32_t modes) {
  constexpr size_t kBytes = 4 << 20;
  char* shared = static_cast<char*>(::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  auto lay_out = [&](auto&& each) {
    size_t at = 0;
    for (const Tensor& t : sensitive_results()) {
      Tensor dense = t.contiguous();
      require(at + static_cast<size_t>(dense.nbytes()) <= kBytes, "room for results");
      each(shared + at, dense.data_ptr(), static_cast<size_t>(dense.nbytes()));
      at += static_cast<size_t>(dense.nbytes());
    }
    return at;
  };
  pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    std::_Exit(lay_out([](char* to, const void* from, size_t bytes) { std::memcpy(to, from, bytes); }) ? 0 : 1);
  }
  int status = 0;
  require(::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0, "child with results");
  __builtin_ia32_ldmxcsr(modes);
  bool same = true;
  lay_out([&](char* to, const void* from, size_t bytes) { same = same && std::memcmp(to, from, bytes) == 0; });
  uint32_t after = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(0x1f80);
  require(same, "a result depends on the caller's modes");
  require((after & ~0x3fu) == modes, "the caller's modes are lost");
}

int run(const std::string& name) {
  if (name.rfind("modes=", 0) == 0) {
    check_modes(static_cast<uint32_t>(std::stoul(name.substr(6), nullptr, 16)));
    return 0;
  }
  first_made.everything.use(8, "main");
  if (name == "exit") return 0;
  if (name == "handlers") {
    std::atexit([] { first_made.everything.use(9, "exit handler"); });
    std::at_quick_exit([] { first_made.everything.use(9, "quick exit handler"); });
    return 0;
  }
  if (name == "threads") {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back(use_thread_locals);
    for (std::thread& t : threads) t.join();
    use_thread_locals();  // of the main thread: they end with the process
    return 0;
  }
  if (name == "background") {
    start_background_compiles(24);
    std::exit(0);
  }
  if (name == "background-thread") {
    start_background_compiles(24);
    std::thread([] { std::exit(0); }).join();
  }
  if (name == "detached") {  // threads that go on while the process ends, with what nobody destroys
    Everything& kept = *new Everything;
    std::atomic<int>& rounds = *new std::atomic<int>{0};
    for (int i = 0; i < 3; ++i)
      std::thread([&kept, &rounds, i] {
        for (int64_t round = 0;; ++round, ++rounds) kept.use(1 + (round + i) % 5, "detached thread");
      }).detach();
    while (rounds < 10) ::usleep(1000);
    return 0;
  }
  if (name == "inside") {  // the process ends in the middle of a call, which never returns
    compile([](const Tensor& x) {
      Tensor y = chain(x);
      std::exit(0);
      return y;
    })(ones({2, 16}));
  }
  if (name == "fork") {
    start_background_compiles(2);
    while (first_made.everything.background.stats().compilations == 0) {
      first_made.everything.use(8, "main");
      ::usleep(1000);
    }
    for (int i = 0; i < 6; ++i) run_child(i, i % 2);
    return 0;
  }
  if (name == "fork-busy") {
    BusyThreads busy;
    for (int i = 0; i < 24; ++i) run_child(i, false);
    std::thread([] { run_child(1, false); }).join();
    compile([](const Tensor& x) {  // a child that is made in the middle of a call
      Tensor y = chain(x);
      run_child(2, false);
      return y;
    })(ones({2, 16}));
    return 0;
  }
  if (name == "fork-twice") {
    start_background_compiles(8);
    pid_t child = ::fork();
    if (child == 0) {
      ::alarm(60);
      run_child(0, true);
      live_as_child(1, true);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    require(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a child that forked did not end well");
    return 0;
  }
  std::fprintf(stderr, "unknown case %s\n", name.c_str());
  return 2;
}

}  // namespace

int main(int count, char** arguments) { return count == 2 ? run(arguments[1]) : 2; }
