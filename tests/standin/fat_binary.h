// tests/standin/fat_binary.h: a PTX text as compilers leave it in programs: a fat binary of one
// part, and the wrapper that points to it. The layout is what NVIDIA's fatbinary writes.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

namespace regatta::standin {

// For the compute capability `architecture`, as 75.
inline std::string fat_binary_of(const std::string& ptx, std::uint32_t architecture) {
  struct {
    std::uint32_t magic = 0xba55ed50;
    std::uint16_t version = 1;
    std::uint16_t header_bytes = 16;
    std::uint64_t bytes = 0;
  } header;
  struct {
    std::uint16_t kind = 1;  // PTX
    std::uint16_t version = 0x101;
    std::uint32_t header_bytes = 80;
    std::uint64_t bytes = 0;
    std::uint32_t compressed_bytes = 0;
    std::uint32_t options = 64;
    std::uint16_t minor = 4;  // of the PTX: 6.4
    std::uint16_t major = 6;
    std::uint32_t architecture = 0;
    std::uint64_t name = 0;
    std::uint64_t flags = 0x11;  // 64 bits, Linux
    std::uint64_t rest[2] = {};
    std::uint64_t end = 0x48;
    std::uint64_t none = 0;
  } part;
  static_assert(sizeof part == 80);
  part.architecture = architecture;
  part.bytes = (ptx.size() / 8 + 1) * 8;  // ends with a zero
  header.bytes = sizeof part + part.bytes;
  std::string made(sizeof header + header.bytes, '\0');
  std::memcpy(made.data(), &header, sizeof header);
  std::memcpy(made.data() + sizeof header, &part, sizeof part);
  std::memcpy(made.data() + sizeof header + sizeof part, ptx.data(), ptx.size());
  return made;
}

struct FatBinaryWrapper {
  std::uint32_t magic = 0x466243b1;
  std::uint32_t version = 1;
  const void* fat_binary = nullptr;
  const void* more = nullptr;
};

}  // namespace regatta::standin
