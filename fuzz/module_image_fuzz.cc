// fuzz/module_image_fuzz.cc: any bytes as the image of a module: as they are, as a PTX text, and as
// a block of LZ4.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/gpu/sharing/internal/hook/lz4_block.h"
#include "regatta/gpu/sharing/internal/hook/module_image.h"
#include "regatta/gpu/sharing/internal/hook/ptx_variables.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace regatta::sharing::hook;  // NOLINT(google-build-using-namespace)
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const ModuleMemory memory = memory_of_image(bytes);
  // Another variable is never less.
  const VariableBytes before = variables_of_ptx(bytes);
  const std::string more = ".global .b8 more[4194304];\n" + std::string(bytes);
  const VariableBytes after = variables_of_ptx(more);
  REGATTA_CHECK(after.bytes >= before.bytes && after.bytes >= 4194304);
  const std::uint64_t expected = memory.variables % 5000;
  const auto decoded = decode_lz4(bytes, expected, 4096);
  REGATTA_CHECK(!decoded || decoded->size() == expected);
  return 0;
}
