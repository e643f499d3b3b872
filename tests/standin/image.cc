// Images that hold several: fat binaries, as compilers leave them in programs. Their layout is what
// NVIDIA's fatbinary writes.
#include <cstring>
#include <string>
#include <string_view>

#include "tests/standin/module.h"

namespace regatta::standin {
namespace {

constexpr std::uint32_t kWrapper = 0x466243b1;
constexpr std::uint32_t kFatBinary = 0xba55ed50;
constexpr std::uint16_t kPtx = 1;
constexpr std::uint64_t kCompressed = 0xa000;  // by one way or another

struct Wrapper {
  std::uint32_t magic;
  std::uint32_t version;
  const void* fat_binary;
};
struct Header {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t header_bytes;
  std::uint64_t bytes;  // of the parts
};
struct Part {
  std::uint16_t kind;
  std::uint16_t version;
  std::uint32_t header_bytes;
  std::uint64_t bytes;  // padded
  std::uint32_t compressed_bytes;
  std::uint32_t options;
  std::uint32_t code_version;
  std::uint32_t architecture;
  std::uint32_t name_offset;
  std::uint32_t name_bytes;
  std::uint64_t flags;
};

template <typename T>
T read_at(const void* from, std::uint64_t offset = 0) {
  T value;
  std::memcpy(&value, static_cast<const char*>(from) + offset, sizeof value);
  return value;
}

// The last PTX text that can be read; without data there is none.
std::string_view text_in(const void* fat_binary) {
  const auto header = read_at<Header>(fat_binary);
  std::string_view text;
  std::uint64_t at = header.header_bytes;
  const std::uint64_t end = at + header.bytes;
  while (at + sizeof(Part) <= end) {
    const auto part = read_at<Part>(fat_binary, at);
    if (part.header_bytes < sizeof(Part) || part.header_bytes > end - at ||
        part.bytes > end - at - part.header_bytes)
      return {};
    const char* const bytes = static_cast<const char*>(fat_binary) + at + part.header_bytes;
    if (part.kind == kPtx && (part.flags & kCompressed) == 0)
      text = {bytes, strnlen(bytes, part.bytes)};
    at += part.header_bytes + part.bytes;
  }
  return text;
}

bool begins_with(const void* image, std::uint32_t magic) {
  // A text may be shorter than the magic.
  return std::strncmp(static_cast<const char*>(image), reinterpret_cast<const char*>(&magic),
                      sizeof magic) == 0;
}

}  // namespace

CUresult text_of_image(const void* image, std::string* text) {
  const bool is_wrapped = begins_with(image, kWrapper);
  if (is_wrapped) image = read_at<Wrapper>(image).fat_binary;
  if (image == nullptr || (is_wrapped && !begins_with(image, kFatBinary)))
    return CUDA_ERROR_INVALID_IMAGE;
  if (!begins_with(image, kFatBinary)) {
    *text = static_cast<const char*>(image);
    return CUDA_SUCCESS;
  }
  const std::string_view found = text_in(image);
  if (found.data() == nullptr) return CUDA_ERROR_NO_BINARY_FOR_GPU;
  *text = found;
  return CUDA_SUCCESS;
}

}  // namespace regatta::standin
