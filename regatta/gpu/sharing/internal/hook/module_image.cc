#include "regatta/gpu/sharing/internal/hook/module_image.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include "regatta/gpu/sharing/internal/hook/allocation_table.h"
#include "regatta/gpu/sharing/internal/hook/lz4_block.h"
#include "regatta/gpu/sharing/internal/hook/ptx_variables.h"

namespace regatta::sharing::hook {
namespace {

constexpr std::uint32_t kWrapper = 0x466243b1;
constexpr std::uint32_t kFatBinary = 0xba55ed50;
constexpr std::uint64_t kLongest = 4ULL << 30;       // of an image that is looked at
constexpr std::uint64_t kMostDecoded = 64ULL << 20;  // of the compressed parts of one

struct Wrapper {
  std::uint32_t magic;
  std::uint32_t version;
  const void* fat_binary;
};
struct FatHeader {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t header_bytes;
  std::uint64_t bytes;  // of the parts
};
struct FatPart {
  std::uint16_t kind;
  std::uint16_t version;
  std::uint32_t header_bytes;
  std::uint64_t bytes;  // padded
  std::uint32_t compressed_bytes;
  std::uint32_t options;
  std::uint32_t code_version;
  std::uint32_t architecture;
  std::uint64_t name;
  std::uint64_t flags;
  std::uint64_t rest;
  std::uint64_t decoded_bytes;
};
static_assert(sizeof(FatHeader) == 16 && sizeof(FatPart) == 64);
constexpr std::uint16_t kPtx = 1;
constexpr std::uint16_t kMachineCode = 2;
constexpr std::uint64_t kCompressedByLz4 = 0x2000;
constexpr std::uint64_t kCompressed = 0x1f000;  // by one way or another

template <typename T>
bool read_at(std::string_view image, std::uint64_t offset, T& value) {
  if (offset > image.size() || image.size() - offset < sizeof value) return false;
  std::memcpy(&value, image.data() + offset, sizeof value);
  return true;
}

std::string_view part_of(std::string_view image, std::uint64_t offset, std::uint64_t bytes) {
  if (offset > image.size() || image.size() - offset < bytes) return {};
  return image.substr(offset, bytes);
}

ModuleMemory unknown() {
  return {.is_known = false};
}

bool begins_as_text(std::string_view image) {
  const char first = image.empty() ? '\0' : image.front();
  return first == '.' || first == '/' || std::isspace(static_cast<unsigned char>(first)) != 0;
}

ModuleMemory memory_of_text(std::string_view text) {
  text = text.substr(0, text.find('\0'));
  const VariableBytes variables = variables_of_ptx(text);
  return {.variables = variables.bytes,
          .code = text.size(),
          .is_known = variables.is_known,
          .is_compiled = true};
}

// Shared and local memory is a kernel's while it runs, and not the module's: it has no contents,
// and no kernel can have more of it than some hundred KiB.
bool is_of_kernels(std::string_view name, const Elf64_Shdr& section) {
  constexpr std::uint64_t kMostOfKernel = 1 << 20;
  const bool is_named = name.starts_with(".nv.shared") || name.starts_with(".nv.local") ||
                        name.starts_with(".nv.reservedSmem");
  return is_named && section.sh_type == SHT_NOBITS && section.sh_size <= kMostOfKernel;
}

ModuleMemory memory_of_elf(std::string_view image) {
  Elf64_Ehdr header;
  Elf64_Shdr names;
  if (!read_at(image, 0, header) || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shnum == 0 ||
      header.e_shstrndx >= header.e_shnum)
    return unknown();
  const auto section_at = [&](std::uint64_t number) {
    return saturated_sum(header.e_shoff, number * sizeof(Elf64_Shdr));
  };
  if (!read_at(image, section_at(header.e_shstrndx), names)) return unknown();
  const std::string_view texts = part_of(image, names.sh_offset, names.sh_size);
  ModuleMemory memory;
  for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    if (!read_at(image, section_at(i), section)) return unknown();
    if ((section.sh_flags & SHF_ALLOC) == 0) continue;
    if (section.sh_name >= texts.size()) return unknown();
    std::string_view name = texts.substr(section.sh_name);
    name = name.substr(0, name.find('\0'));
    if (is_of_kernels(name, section)) continue;
    if ((section.sh_flags & SHF_EXECINSTR) != 0)
      memory.code = saturated_sum(memory.code, section.sh_size);
    else
      memory.variables = saturated_sum(memory.variables, bytes_of_variable(section.sh_size));
  }
  return memory;
}

ModuleMemory memory_of_part(const FatPart& part, std::string_view bytes, std::uint64_t& decoded) {
  std::optional<std::string> opened;
  if ((part.flags & kCompressed) == kCompressedByLz4) {
    const std::uint64_t most = kMostDecoded - std::min(decoded, kMostDecoded);
    opened = decode_lz4(bytes, part.decoded_bytes, most);
    if (!opened) return unknown();
    decoded += opened->size();
    bytes = *opened;
  } else if ((part.flags & kCompressed) != 0) {
    return unknown();
  }
  if (part.kind == kPtx) return memory_of_text(bytes);
  return part.kind == kMachineCode ? memory_of_elf(bytes) : unknown();
}

// The driver loads one of the parts: nobody takes more than the largest.
ModuleMemory memory_of_fat_binary(std::string_view image) {
  FatHeader header;
  if (!read_at(image, 0, header)) return unknown();
  const std::uint64_t end =
      std::min<std::uint64_t>(image.size(), saturated_sum(header.header_bytes, header.bytes));
  std::uint64_t at = header.header_bytes;
  std::uint64_t decoded = 0;
  ModuleMemory most;
  FatPart part;
  while (read_at(image.substr(0, end), at, part)) {
    if (part.header_bytes < sizeof part || part.header_bytes > end - at ||
        part.bytes > end - at - part.header_bytes)
      return unknown();
    const ModuleMemory one =
        memory_of_part(part, part_of(image, at + part.header_bytes, part.bytes), decoded);
    most.variables = std::max(most.variables, one.variables);
    most.code = std::max(most.code, one.code);
    most.is_known = most.is_known && one.is_known;
    most.is_compiled = most.is_compiled || one.is_compiled;
    at += part.header_bytes + part.bytes;
  }
  return most;
}

// Whether memory is there at all these addresses. Nothing else is done to it.
bool is_mapped(const void* address, std::uint64_t bytes) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(address) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(address) + bytes;
  return bytes <= kLongest && end >= begin &&
         ::msync(reinterpret_cast<void*>(begin), end - begin, MS_ASYNC) == 0;
}

bool begins_with(const void* image, std::uint32_t magic) {
  // A text may be shorter than the magic.
  return std::strncmp(static_cast<const char*>(image), reinterpret_cast<const char*>(&magic),
                      sizeof magic) == 0;
}

std::optional<std::string_view> view_of(const void* image, std::uint64_t bytes) {
  if (!is_mapped(image, bytes)) return std::nullopt;
  return std::string_view(static_cast<const char*>(image), bytes);
}

// As far as the table of sections and their names reach: that is all that is read.
std::optional<std::string_view> elf_at(const void* image) {
  const auto head = view_of(image, sizeof(Elf64_Ehdr));
  Elf64_Ehdr header;
  if (!head || !read_at(*head, 0, header) || header.e_shentsize != sizeof(Elf64_Shdr))
    return std::nullopt;
  const std::uint64_t table = std::uint64_t{header.e_shnum} * sizeof(Elf64_Shdr);
  const std::uint64_t end = saturated_sum(header.e_shoff, table);
  const auto sections = view_of(image, std::max<std::uint64_t>(end, sizeof header));
  Elf64_Shdr names;
  if (!sections || header.e_shstrndx >= header.e_shnum ||
      !read_at(*sections, header.e_shoff + header.e_shstrndx * sizeof names, names))
    return std::nullopt;
  return view_of(image, std::max(sections->size(), saturated_sum(names.sh_offset, names.sh_size)));
}

std::optional<std::string_view> fat_binary_at(const void* image) {
  const auto head = view_of(image, sizeof(FatHeader));
  FatHeader header;
  if (!head || !read_at(*head, 0, header)) return std::nullopt;
  return view_of(image, saturated_sum(header.header_bytes, header.bytes));
}

}  // namespace

ModuleMemory memory_of_image(std::string_view image) {
  std::uint32_t magic = 0;
  if (read_at(image, 0, magic) && magic == kFatBinary) return memory_of_fat_binary(image);
  if (image.starts_with(ELFMAG)) return memory_of_elf(image);
  return begins_as_text(image) ? memory_of_text(image) : unknown();
}

std::optional<std::string_view> image_at(const void* address) {
  if (address == nullptr || !is_mapped(address, 1)) return std::nullopt;
  if (begins_with(address, kWrapper)) {
    Wrapper wrapper;
    const auto head = view_of(address, sizeof wrapper);
    if (!head || !read_at(*head, 0, wrapper) || wrapper.fat_binary == nullptr ||
        wrapper.version != 1 || !is_mapped(wrapper.fat_binary, sizeof(FatHeader)) ||
        !begins_with(wrapper.fat_binary, kFatBinary))
      return std::nullopt;
    return fat_binary_at(wrapper.fat_binary);
  }
  if (begins_with(address, kFatBinary)) return fat_binary_at(address);
  const auto* const text = static_cast<const char*>(address);
  if (*text == ELFMAG[0]) return elf_at(address);
  if (!begins_as_text({text, 1})) return std::nullopt;
  return std::string_view(text);  // the driver reads as far
}

}  // namespace regatta::sharing::hook
