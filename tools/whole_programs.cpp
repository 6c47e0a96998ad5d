// Random whole programs (tests/compile/whole_program.h) for as long as asked: rounds of seeds, each in a process of its
// own, so that a crash or a hang is a finding like any other; one seed as text, judged, and made smaller.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <thread>

#include "compile/whole_program.h"
#include "runtime/thread_pool.h"

using namespace ingot::test;

namespace {

constexpr int kSecondsEach = 60;  // for one program; what takes longer hangs

/// What a child leaves behind, however it ends.
struct Report {
  uint64_t seed;  // in work
  int64_t judged;
  ProgramCounts counts;
  bool failed;
  char text[4000];
};

Report* shared_report() {
  void* memory = mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("no memory to share");
  return new (memory) Report();
}

/// Runs body(report) in a child; empty if it ended well, else why it did not. A child that finishes no program in
/// kSecondsEach is ended.
template <class Body>
std::string in_child(Report& report, Body body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) return "cannot fork";
  if (child == 0) {
    alarm(kSecondsEach);
    body(report);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status))
    return WTERMSIG(status) == SIGALRM ? std::to_string(kSecondsEach) + " s passed without an end"
                                       : std::string(strsignal(WTERMSIG(status)));
  if (report.failed) return report.text;
  return WEXITSTATUS(status) ? "exit " + std::to_string(WEXITSTATUS(status)) : std::string();
}

void judge_into(Report& report, const WholeProgram& program) {
  const std::string text = judge(program, &report.counts);
  if (text.empty()) return;
  report.failed = true;
  std::strncpy(report.text, text.c_str(), sizeof report.text - 1);
}

/// Judges [first, first + count); prints each failure. Returns how many failed.
int64_t round_of(uint64_t first, int64_t count, int64_t most, bool gradients, ProgramCounts& counts) {
  int64_t failures = 0;
  Report* report = shared_report();
  for (int64_t done = 0; done < count && failures < most;) {
    *report = {};
    const int64_t here = std::min<int64_t>(count - done, 500);
    const std::string failure = in_child(*report, [=](Report& r) {
      for (int64_t i = 0; i < here && !r.failed; ++i) {
        alarm(kSecondsEach);
        r.seed = first + static_cast<uint64_t>(done + i);
        judge_into(r, whole_program(r.seed, gradients));
        ++r.judged;
      }
    });
    counts.add(report->counts);
    done += report->judged;
    if (failure.empty()) continue;
    if (!report->failed) ++done;  // it ended in the middle of one
    ++failures;
    std::printf("seed %llu: %s\n", static_cast<unsigned long long>(report->seed), failure.c_str());
    std::fflush(stdout);
  }
  munmap(report, sizeof(Report));
  return failures;
}

/// The first words of a failure: a smaller program fails in the same way.
std::string kind_of(const std::string& failure) {
  for (const char* words : {"InternalError", "the gradient:", "grad", "strides", "sizes", "share storage", "offset",
                            "memory of the arguments", "captured tensor", "threw", "bits"})
    if (failure.find(words) != std::string::npos) return words;
  return failure;
}

std::string failure_of(const WholeProgram& program, int tries) {
  Report* report = shared_report();
  std::string failure;
  for (int i = 0; i < tries && failure.empty(); ++i) {
    *report = {};
    failure = in_child(*report, [&](Report& r) { judge_into(r, program); });
  }
  munmap(report, sizeof(Report));
  return failure;
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t first = 1, show = 0, minimize = 0;
  int64_t count = 1000, most = 20;
  bool plain = false, gradients = false;
  CLI::App app{"Random whole programs, compiled against eager"};
  app.add_option("--first", first, "the first seed");
  app.add_option("--count", count, "how many");
  app.add_option("--most", most, "failures after which to stop");
  app.add_option("--show", show, "prints the program of this seed and judges it, in this process");
  app.add_option("--minimize", minimize, "prints the smallest program found that fails as this seed's does");
  app.add_flag("--gradients", gradients, "programs with a backward pass");
  app.add_flag("--plain", plain, "without processes of their own (for a debugger or a sanitizer)");
  CLI11_PARSE(app, argc, argv);
  if (show) {
    const WholeProgram program = whole_program(show, gradients);
    std::printf("%s", to_text(program).c_str());
    std::fflush(stdout);
    const std::string failure = judge(program);
    std::printf("%s\n", failure.empty() ? "compiled as eager" : failure.c_str());
    return !failure.empty();
  }
  if (minimize) {
    ingot::set_num_threads(1);  // programs are made in this process, which forks
    WholeProgram program = whole_program(minimize, gradients);
    const int tries = program.mode == WholeProgram::Mode::checked || program.mode == WholeProgram::Mode::frozen ? 1 : 8;
    std::pair<std::string, int> wanted{kind_of(failure_of(program, tries)), tries};
    if (wanted.first.empty()) {
      std::printf("seed %llu does not fail\n", static_cast<unsigned long long>(minimize));
      return 0;
    }
    program = smaller(
        std::move(program),
        [](const WholeProgram& p, void* context) {
          const auto& [kind, tries] = *static_cast<const std::pair<std::string, int>*>(context);
          return kind_of(failure_of(p, tries)) == kind;
        },
        &wanted);
    std::printf("%s%s\n", to_text(program).c_str(), failure_of(program, tries).c_str());
    return 1;
  }
  ProgramCounts counts;
  const auto start = std::chrono::steady_clock::now();
  int64_t failures = 0;
  if (plain) {
    for (uint64_t seed = first; seed < first + static_cast<uint64_t>(count); ++seed)
      if (const std::string failure = judge(whole_program(seed, gradients), &counts); !failure.empty()) {
        std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), failure.c_str());
        if (++failures == most) break;
      }
  } else {
    failures = round_of(first, count, most, gradients, counts);
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("%s; %.1f s; %lld failed\n", counts.str().c_str(), seconds, static_cast<long long>(failures));
  return failures != 0;
}
