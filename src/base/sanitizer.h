// INGOT_ASAN and INGOT_TSAN: whether this is code for AddressSanitizer or ThreadSanitizer, which GCC and Clang say in
// ways of their own.
#pragma once

#ifdef __has_feature
#define INGOT_SANITIZED_BY(feature) __has_feature(feature)
#else
#define INGOT_SANITIZED_BY(feature) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || INGOT_SANITIZED_BY(address_sanitizer)
#define INGOT_ASAN 1
#else
#define INGOT_ASAN 0
#endif
#if defined(__SANITIZE_THREAD__) || INGOT_SANITIZED_BY(thread_sanitizer)
#define INGOT_TSAN 1
#else
#define INGOT_TSAN 0
#endif
#undef INGOT_SANITIZED_BY
