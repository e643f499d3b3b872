#include "regatta/gpu/sharing/internal/hook/module_image.h"

#include <cstring>
#include <random>
#include <string>

#include <elf.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "regatta/gpu/sharing/internal/hook/allocation_table.h"

namespace regatta::sharing::hook {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
const std::string kText = ".global .b8 room[4194304];\n.visible .entry spin() { ret; }\n";

template <typename T>
void put(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

struct Section {
  std::string name;
  std::uint64_t flags;
  std::uint64_t bytes;
  std::uint32_t type = SHT_NOBITS;
};

// An ELF file of machine code, with nothing in its sections.
std::string elf_of(const std::vector<Section>& sections) {
  std::string names(1, '\0');
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_machine = 190;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = static_cast<std::uint16_t>(sections.size() + 2);
  header.e_shstrndx = static_cast<std::uint16_t>(sections.size() + 1);
  std::string table(sizeof(Elf64_Shdr), '\0');
  for (const Section& one : sections) {
    Elf64_Shdr row{};
    row.sh_name = static_cast<std::uint32_t>(names.size());
    row.sh_type = one.type;
    row.sh_flags = one.flags;
    row.sh_size = one.bytes;
    names += one.name + '\0';
    put(table, row);
  }
  Elf64_Shdr last{};
  last.sh_type = SHT_STRTAB;
  last.sh_offset = sizeof header;
  last.sh_size = names.size();
  put(table, last);
  header.e_shoff = sizeof header + names.size();
  std::string made;
  put(made, header);
  return made + names + table;
}

struct FatPart {
  std::string bytes;
  std::uint16_t kind = 1;
  std::uint64_t flags = 0x11;
  std::uint64_t decoded = 0;
};

std::string fat_of(const std::vector<FatPart>& parts) {
  std::string body;
  for (const FatPart& one : parts) {
    put(body, one.kind);
    put(body, std::uint16_t{0x101});
    put(body, std::uint32_t{64});
    put(body, std::uint64_t{one.bytes.size()});
    put(body, static_cast<std::uint32_t>(one.bytes.size()));
    put(body, std::uint32_t{0});
    put(body, std::uint32_t{0});
    put(body, std::uint32_t{90});
    put(body, std::uint64_t{0});
    put(body, one.flags);
    put(body, std::uint64_t{0});
    put(body, one.decoded);
    body += one.bytes;
  }
  std::string made;
  put(made, std::uint32_t{0xba55ed50});
  put(made, std::uint16_t{1});
  put(made, std::uint16_t{16});
  put(made, std::uint64_t{body.size()});
  return made + body;
}

// As literals only.
std::string lz4_of(const std::string& bytes) {
  std::string made(1, '\xf0');
  std::size_t rest = bytes.size() - 15;
  for (; rest >= 255; rest -= 255)
    made += '\xff';
  return made + static_cast<char>(rest) + bytes;
}

TEST(ModuleImage, OfATextHasItsVariables) {
  const ModuleMemory memory = memory_of_image(kText);
  EXPECT_EQ(memory.variables, 4 * kMiB);
  EXPECT_EQ(memory.code, kText.size());
  EXPECT_TRUE(memory.is_known && memory.is_compiled);
}

TEST(ModuleImage, OfMachineCodeHasTheSectionsThatAreLoaded) {
  const std::string image =
      elf_of({{".nv.global", SHF_ALLOC | SHF_WRITE, 6ULL << 30},
              {".nv.global.init", SHF_ALLOC | SHF_WRITE, 4 * kMiB, SHT_PROGBITS},
              {".nv.constant3", SHF_ALLOC, 1000},
              {".nv.shared.spin", SHF_ALLOC | SHF_WRITE, 227 << 10},
              {".text.spin", SHF_ALLOC | SHF_EXECINSTR, 12'800},
              {".debug_info", 0, 100 * kMiB}});
  const ModuleMemory memory = memory_of_image(image);
  EXPECT_EQ(memory.variables, (6ULL << 30) + 4 * kMiB + 2000);
  EXPECT_EQ(memory.code, 12'800U);
  EXPECT_TRUE(memory.is_known && !memory.is_compiled);
}

// The name alone says nothing: what has contents, or more than a kernel can have, is counted.
TEST(ModuleImage, OfMachineCodeCountsWhatOnlyHasTheNameOfAKernelsMemory) {
  for (const char* const name : {".nv.shared.spin", ".nv.local.spin", ".nv.reservedSmem.cap"}) {
    EXPECT_EQ(memory_of_image(elf_of({{name, SHF_ALLOC, 40 * kMiB}})).variables, 40 * kMiB);
    EXPECT_EQ(memory_of_image(elf_of({{name, SHF_ALLOC, 1000, SHT_PROGBITS}})).variables, 2000U);
    EXPECT_EQ(memory_of_image(elf_of({{name, SHF_ALLOC, 1000}})).variables, 0U);
  }
}

TEST(ModuleImage, OfAFatBinaryIsItsLargestPart) {
  const std::string code = elf_of({{".nv.global", SHF_ALLOC, 8 * kMiB}});
  const ModuleMemory memory = memory_of_image(fat_of({{kText}, {code, 2}}));
  EXPECT_EQ(memory.variables, 8 * kMiB);
  EXPECT_TRUE(memory.is_known && memory.is_compiled);
}

TEST(ModuleImage, OfCompressedCodeIsReadIfItIsLz4) {
  const std::string code = elf_of({{".nv.global", SHF_ALLOC, 8 * kMiB}});
  const ModuleMemory memory =
      memory_of_image(fat_of({{lz4_of(code) + std::string(3, '\0'), 2, 0x2011, code.size()}}));
  EXPECT_EQ(memory.variables, 8 * kMiB);
  EXPECT_TRUE(memory.is_known);
  EXPECT_FALSE(memory_of_image(fat_of({{lz4_of(code), 2, 0x8011, code.size()}})).is_known);
  EXPECT_FALSE(memory_of_image(fat_of({{lz4_of(code), 2, 0x2011, 1ULL << 40}})).is_known);
}

TEST(ModuleImage, OfAnotherKindIsNotKnown) {
  EXPECT_FALSE(memory_of_image("").is_known);
  EXPECT_FALSE(memory_of_image(std::string("\x89PNG", 4)).is_known);
  EXPECT_FALSE(memory_of_image("\x7f"
                               "ELF and then nothing")
                   .is_known);
  EXPECT_FALSE(memory_of_image(fat_of({{"none of them", 7}})).is_known);
}

TEST(ModuleImage, IsFoundAtAnAddressAsFarAsItReaches) {
  const std::string code = elf_of({{".nv.global", SHF_ALLOC, 8 * kMiB}});
  const std::string fat = fat_of({{kText}});
  struct {
    std::uint32_t magic = 0x466243b1;
    std::uint32_t version = 1;
    const void* fat_binary = nullptr;
  } wrapper;
  wrapper.fat_binary = fat.data();
  EXPECT_EQ(image_at(kText.c_str()), kText);
  EXPECT_EQ(image_at(code.data()), code);
  EXPECT_EQ(image_at(fat.data()), fat);
  EXPECT_EQ(image_at(&wrapper), fat);
  wrapper.version = 2;
  EXPECT_FALSE(image_at(&wrapper));
  EXPECT_FALSE(image_at(nullptr));
  EXPECT_FALSE(image_at("not an image"));
}

// At the very end of what is mapped: nothing behind it is touched.
TEST(ModuleImage, WhoseHeadersLieIsNotReadBeyondWhatIsMapped) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* const two =
      ::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(two, MAP_FAILED);
  ASSERT_EQ(::munmap(static_cast<char*>(two) + page, page), 0);
  const std::string whole[] = {elf_of({{".nv.global", SHF_ALLOC, 8 * kMiB}}), fat_of({{kText}}),
                               "\x7f"
                               "ELF",
                               std::string("\x50\xed\x55\xba", 4)};
  for (const std::string& image : whole) {
    const std::size_t bytes = image.size() < 8 ? image.size() : image.size() / 2;
    char* const end = static_cast<char*>(two) + page - bytes;
    std::memcpy(end, image.data(), bytes);
    EXPECT_FALSE(image_at(end)) << image.substr(0, 4);
  }
  ::munmap(two, page);
}

// Any change of some bytes of a right image is read without a fault.
TEST(ModuleImage, ThatIsDamagedIsReadAllTheSame) {
  const std::string code = elf_of({{".nv.global", SHF_ALLOC, 8 * kMiB}, {".text.a", 6, 100}});
  const std::string images[] = {
      code, fat_of({{kText}, {code, 2}, {lz4_of(code), 2, 0x2011, code.size()}}), kText};
  std::mt19937 random(11);
  for (int round = 0; round < 30000; ++round) {
    std::string image = images[random() % 3];
    for (auto i = random() % 6; i > 0; --i)
      image[random() % image.size()] = static_cast<char>(random());
    image.resize(random() % 4 == 0 ? random() % (image.size() + 1) : image.size());
    memory_of_image(image);
  }
}

}  // namespace
}  // namespace regatta::sharing::hook
