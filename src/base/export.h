#pragma once
// Marks what the shared library shows to its users; everything else has hidden visibility.
#define INGOT_API __attribute__((visibility("default")))
