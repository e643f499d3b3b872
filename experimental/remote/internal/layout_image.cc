// Sizes of module images, by their own headers.
#include <algorithm>
#include <cstring>

#include <elf.h>

#include "experimental/remote/internal/launch_argument_kinds.h"

namespace regatta::remote {
namespace {

constexpr std::uint32_t kFatBinary = 0xba55ed50;
constexpr std::uint32_t kFatBinaryWrapper = 0x466243b1;  // as compilers embed it in programs

struct FatHeader {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t header_bytes;
  std::uint64_t bytes;
};
struct Wrapper {
  std::uint32_t magic;
  std::uint32_t version;
  const void* data;
};

template <typename T>
T read_at(const void* from, std::uint64_t offset = 0) {
  T value;
  std::memcpy(&value, static_cast<const char*>(from) + offset, sizeof value);
  return value;
}

bool is_elf(const void* image) {
  return std::memcmp(image, ELFMAG, SELFMAG) == 0;
}

// Until the end of its tables and sections. `most`: received bytes.
std::size_t elf_bytes(const void* image, std::uint64_t most) {
  if (most < sizeof(Elf64_Ehdr)) return 0;
  const auto header = read_at<Elf64_Ehdr>(image);
  std::uint64_t end = sizeof header;
  const auto reach = [&](std::uint64_t offset, std::uint64_t bytes) {
    const bool fits = offset <= most && bytes <= most - offset;
    if (fits) end = std::max(end, offset + bytes);
    return fits;
  };
  if (!reach(header.e_phoff, std::uint64_t{header.e_phnum} * sizeof(Elf64_Phdr)) ||
      !reach(header.e_shoff, std::uint64_t{header.e_shnum} * sizeof(Elf64_Shdr)))
    return 0;
  for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
    const auto section = read_at<Elf64_Shdr>(image, header.e_shoff + i * sizeof(Elf64_Shdr));
    if (section.sh_type != SHT_NOBITS && !reach(section.sh_offset, section.sh_size)) return 0;
  }
  return end;
}

}  // namespace

std::size_t image_bytes(const void*& image) {
  if (read_at<std::uint8_t>(image) == 0) return 0;
  const char first = read_at<char>(image);
  if (first == ELFMAG0 && is_elf(image)) return elf_bytes(image, kLongestMessage);
  if (static_cast<unsigned char>(first) == (kFatBinaryWrapper & 0xff) &&
      read_at<std::uint32_t>(image) == kFatBinaryWrapper)
    image = read_at<Wrapper>(image).data;
  if (read_at<std::uint8_t>(image) == (kFatBinary & 0xff) &&
      read_at<std::uint32_t>(image) == kFatBinary) {
    const auto header = read_at<FatHeader>(image);
    return header.header_bytes + header.bytes;
  }
  return std::strlen(static_cast<const char*>(image));
}

bool holds_image(const std::vector<std::byte>& bytes) {
  const std::size_t size = bytes.size() - 1;
  if (size < sizeof(std::uint32_t)) return true;  // a text, if anything
  const auto magic = read_at<std::uint32_t>(bytes.data());
  if (magic == kFatBinaryWrapper) return false;  // points into the client
  if (magic == kFatBinary) {
    if (size < sizeof(FatHeader)) return false;
    const auto header = read_at<FatHeader>(bytes.data());
    return header.header_bytes <= size && header.bytes <= size - header.header_bytes;
  }
  return !is_elf(bytes.data()) || elf_bytes(bytes.data(), size) > 0;
}

std::size_t layout_bytes(const ParameterLayout& layout) {
  std::size_t bytes = 0;
  for (const KernelParameter& one : layout)
    bytes = std::max<std::size_t>(bytes, std::size_t{one.offset} + one.bytes);
  return bytes;
}

// Attributes that hold handles, or pointers into the server's process.
bool are_plain_attributes(const void* attributes, std::size_t count) {
  constexpr std::uint32_t kWithHandles[] = {7, 12, 13};
  if (attributes == nullptr) return count == 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto id = read_at<std::uint32_t>(attributes, i * kAttributeBytes);
    if (std::ranges::count(kWithHandles, id) != 0) return false;
  }
  return true;
}

}  // namespace regatta::remote
