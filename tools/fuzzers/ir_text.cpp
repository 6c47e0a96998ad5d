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
  // Sizes that multiply out, and that stand in one another.
  for (const char* size : {"(s0+s1+1)*(s0+s1+2)*(s0+s1+3)*(s0+s1+4)", "floor_div(max(s0, 3)*s1+7, min(s1, 7))",
                           "max(max(s0, s1)*2, max(s0, s1)+1)", "s0*s0*s0*s0*s0*s0*s0-s1"})
    std::ofstream(std::string(folder) + "/" + std::to_string(number++) + ".ir")
        << "ingot.ir 1\nsymbol s0 = 3\nsymbol s1 = 2\ninput %0 = f32[s0, s1]\ninput %1 = f32[1]\n%2 = expand(%1, size=["
        << size << "])\noutput %2\n";
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
