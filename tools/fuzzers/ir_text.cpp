// libFuzzer over the parser of IR text: any text is parsed or refused with ingot::Error, and what is parsed prints,
// parses and prints again to the same bytes. INGOT_FUZZ_SEEDS=FOLDER writes a graph for each op there and leaves.
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

#include "base/error.h"
#include "ir/graph.h"
#include "ir/samples.h"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* folder = std::getenv("INGOT_FUZZ_SEEDS");
  if (!folder) return 0;
  int number = 0;
  for (const auto& sample : ingot::ir::samples())
    std::ofstream(std::string(folder) + "/" + std::to_string(number++) + ".ir") << sample.text;
  std::exit(0);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  std::string text;
  try {
    text = ingot::ir::print(ingot::ir::parse({reinterpret_cast<const char*>(data), bytes}));
  } catch (const ingot::Error&) {
    return 0;
  }
  if (ingot::ir::print(ingot::ir::parse(text)) != text) std::abort();
  return 0;
}
