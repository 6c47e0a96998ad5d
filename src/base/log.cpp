#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "base/error.h"
#include "base/first_use.h"
#include "base/mutex.h"

namespace ingot {
namespace {

// A topic whose name is a keyword of C++ gives its spelling as a second argument.
constexpr std::string_view spelling(std::string_view name, std::string_view other = {}) {
  return other.empty() ? name : other;
}

constexpr std::array kTopicNames = {
#define INGOT_TOPIC(name, ...) spelling(#name __VA_OPT__(, ) __VA_ARGS__),
    INGOT_LOG_TOPICS(INGOT_TOPIC)
#undef INGOT_TOPIC
};

constinit Mutex logger_mutex;
spdlog::logger& logger() {
  static constinit FirstUse<spdlog::logger> instance;
  return instance.get([] {
    spdlog::logger made("ingot", std::make_shared<spdlog::sinks::stderr_sink_st>());
    made.set_pattern("[%n] %v");
    return made;
  });
}

// The environment is read before main; an exception there would end the process, so the message is printed instead.
const bool environment_read = [] {
  const char* topics = std::getenv("INGOT_LOGS");
  if (!topics) return false;
  try {
    set_log_topics(topics);
  } catch (const Error& error) {
    std::fprintf(stderr, "INGOT_LOGS: %s\n", error.what());
  }
  return true;
}();

}  // namespace

std::atomic<uint32_t> detail::log_mask{0};

std::string_view name_of(Topic topic) { return kTopicNames[static_cast<int>(topic)]; }

std::string log_topics() {
  std::string list;
  for (std::string_view name : kTopicNames) list += (list.empty() ? "" : ",") + std::string(name);
  return list;
}

void set_log_topics(std::string_view topics) {
  uint32_t mask = 0;
  while (!topics.empty()) {
    size_t comma = std::min(topics.find(','), topics.size());
    std::string_view name = topics.substr(0, comma);
    topics.remove_prefix(std::min(comma + 1, topics.size()));
    if (name.empty()) continue;
    size_t i = 0;
    while (i < kTopicNames.size() && kTopicNames[i] != name) ++i;
    if (i == kTopicNames.size()) throw Error("unknown log topic '" + std::string(name) + "'; topics: " + log_topics());
    mask |= 1u << i;
  }
  detail::log_mask.store(mask, std::memory_order_relaxed);
}

void log(Topic topic, std::string_view message) {
  if (!log_enabled(topic)) return;
  std::lock_guard lock(logger_mutex);
  logger().info("{}: {}", name_of(topic), message);
}

void warn(std::string_view message) {
  std::lock_guard lock(logger_mutex);
  logger().warn("{}", message);
}

}  // namespace ingot
