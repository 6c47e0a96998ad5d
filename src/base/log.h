// Log topics, chosen by INGOT_LOGS=topic,... or set_log_topics; each message goes to stderr under its topic.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/export.h"

namespace ingot {

#define INGOT_LOG_TOPICS(X) \
  X(graph) X(guards) X(recompiles) X(breaks) X(fusion) X(kernels) X(asm_, "asm") X(cache) X(timings) X(writes)

enum class Topic : uint8_t {
#define INGOT_TOPIC(name, ...) name,
  INGOT_LOG_TOPICS(INGOT_TOPIC)
#undef INGOT_TOPIC
};

namespace detail {
extern INGOT_API std::atomic<uint32_t> log_mask;
}

/// One relaxed load: ask before building a message.
inline bool log_enabled(Topic topic) {
  return detail::log_mask.load(std::memory_order_relaxed) >> static_cast<int>(topic) & 1u;
}
/// Writes one message if its topic is on.
INGOT_API void log(Topic topic, std::string_view message);
/// Writes one message whatever the topics: for what a user must not miss, said once by the caller.
INGOT_API void warn(std::string_view message);
/// Turns exactly these topics on ("" for none). Throws Error with the list of topics if one is unknown.
INGOT_API void set_log_topics(std::string_view comma_separated);
INGOT_API std::string_view name_of(Topic topic);
/// All topics, comma-separated.
INGOT_API std::string log_topics();

}  // namespace ingot
