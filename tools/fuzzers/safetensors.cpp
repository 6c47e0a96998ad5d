// libFuzzer over the safetensors reader: any file is read whole or refused with ingot::Error; what is read can be
// touched to the last byte, and written again.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "runtime/files/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  const int file = memfd_create("safetensors", 0);
  if (file < 0 || write(file, data, bytes) != static_cast<ssize_t>(bytes)) std::abort();
  for (bool mapped : {true, false}) try {
      unsigned sum = 0;
      const std::string path = "/proc/self/fd/" + std::to_string(file);
      for (const auto& tensor : ingot::runtime::read_safetensors(path, mapped).tensors) {
        const auto* at = static_cast<const unsigned char*>(tensor.storage->data());
        for (int64_t i = 0; i < tensor.storage->bytes(); ++i) sum += at[i];
      }
      static_cast<void>(*const_cast<volatile unsigned*>(&sum));
    } catch (const ingot::Error&) {
    }
  close(file);
  return 0;
}
