// Tables of functions beside the driver's interface, found by number. Those of the driver are not
// documented; what counts is that they are there, with their size first, and that what is called
// through them says that it cannot.
#include <cstring>
#include <iterator>

#include "tests/standin/api.h"
#include "tests/standin/codec.h"

using namespace regatta::standin;

namespace {

constexpr std::size_t kFunctions = 15;

CUresult refuse() {
  return CUDA_ERROR_NOT_SUPPORTED;
}

struct Table {
  std::size_t bytes = sizeof(Table);
  CUresult (*functions[kFunctions])() = {refuse, refuse, refuse, refuse, refuse,
                                         refuse, refuse, refuse, refuse, refuse,
                                         refuse, refuse, refuse, refuse, refuse};
};

// What the runtime library and tools ask for.
constexpr unsigned char kKnown[][16] = {{0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a, 0x89, 0x87,
                                         0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9},
                                        {0xa0, 0x94, 0x79, 0x8c, 0x2e, 0x74, 0x2e, 0x74, 0x93, 0xf2,
                                         0x08, 0x00, 0x20, 0x0c, 0x0a, 0x66},
                                        {0x42, 0xd8, 0x5a, 0x81, 0x23, 0xf6, 0xcb, 0x47, 0x82, 0x98,
                                         0xf6, 0xe7, 0x8a, 0x3a, 0xec, 0xdc},
                                        {0xc6, 0x93, 0x33, 0x6e, 0x11, 0x21, 0xdf, 0x11, 0xa8, 0xc3,
                                         0x68, 0xf3, 0x55, 0xd8, 0x95, 0x93}};

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
extern "C" {

CUresult cuGetExportTable(const void** table, const CUuuid* id) {
  static const Table tables[std::size(kKnown)];
  if (table == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *table = nullptr;
  for (std::size_t i = 0; i < std::size(kKnown); ++i)
    if (std::memcmp(id->bytes, kKnown[i], sizeof id->bytes) == 0) *table = &tables[i];
  if (std::memcmp(id->bytes, kCodecTable.bytes, sizeof id->bytes) == 0) *table = codec_table();
  return *table == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
