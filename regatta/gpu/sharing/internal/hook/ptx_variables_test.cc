#include "regatta/gpu/sharing/internal/hook/ptx_variables.h"

#include <random>
#include <string>

#include <gtest/gtest.h>

#include "regatta/gpu/sharing/internal/hook/allocation_table.h"

namespace regatta::sharing::hook {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

std::uint64_t bytes_of(const std::string& text) {
  const VariableBytes found = variables_of_ptx(text);
  EXPECT_TRUE(found.is_known) << text;
  return found.bytes;
}

TEST(PtxVariables, AreSummedUpInTheBlocksThatTheyLieIn) {
  EXPECT_EQ(bytes_of(".visible .entry spin() { ret; }"), 0U);
  EXPECT_EQ(bytes_of(".global .align 8 .b8 room[4194304];"), 4 * kMiB);
  EXPECT_EQ(bytes_of(".global .align 8 .b8 room[4194305];"), 6 * kMiB);
  EXPECT_EQ(bytes_of(".global .u64 one;\n.global .u32 two;"), 2 * (8 + 4));
}

TEST(PtxVariables, AreFoundHoweverTheyAreWritten) {
  for (const char* const text : {
           ".visible .global .align 16 .f32 a[1048576];",
           ".global/**/.b8/* [1] ; */ a [ 4194304 ] ;",
           ".extern .global .u64 a[512][1024];",
           ".weak .global .v4 .f32 a[0x40000];",
           ".global .b8 a[020000000];",
           ".global .b8 a[0b10000000000000000000000];",
           ".global .attribute(.managed) .b8 a[4194304U];",
           ".common .global .f16x2 a[1048576] = {1, 2};",
           ".const .b64 a[524288];",
           ".file 1 \"/* not a comment\"\n.global .b8 a[4194304];",
           "// .global .b8 none[4194304];\n.global .b8 a[4194304];",
           ".global .b8 a[2097152], b[2097152];",
           ".global .b8 a[2097152] = {1, {2, 3}}, b[2097152];",
       })
    EXPECT_EQ(bytes_of(text), 4 * kMiB) << text;
}

TEST(PtxVariables, AreFoundBehindTheValuesOfAnother) {
  EXPECT_EQ(bytes_of(".global .b8 a = 1, b[4194304];"), 2 + 4 * kMiB);
  EXPECT_EQ(bytes_of(".global .u64 a = generic(b), c[2] = {mask(0xff, d), 2}, e[524288];"),
            2 * 8 + 2 * 16 + 4 * kMiB);
}

TEST(PtxVariables, AreNotInstructions) {
  EXPECT_EQ(bytes_of("ld.global.u32 %r1, [%rd1+4]; st.global.v4.f32 [%rd2], {%f1, %f2};"), 0U);
  EXPECT_EQ(bytes_of(".shared .b8 s[4194304]; .local .b8 l[4194304];"), 0U);
}

TEST(PtxVariables, OfMoreThan64BitsDoNotWrap) {
  EXPECT_GE(bytes_of(".global .b64 a[4294967296][4294967296];"), ~0ULL - kBlockBytes);
  EXPECT_GE(bytes_of(".global .b8 a[99999999999999999999999];"), ~0ULL - kBlockBytes);
  std::string many;
  for (int i = 0; i < 40; ++i)
    many += ".global .b8 a[1152921504606846976];";
  EXPECT_GE(bytes_of(many), ~0ULL - kBlockBytes);
}

TEST(PtxVariables, WithAnExpressionAsTheirSizeAreNotKnown) {
  EXPECT_FALSE(variables_of_ptx(".global .b8 a[4*1024];").is_known);
  EXPECT_FALSE(variables_of_ptx(".global .b8 a[SIZE];").is_known);
  EXPECT_GE(bytes_of(".global .b32 a[] = {1, 2, 3};"), 3 * 4U);
}

// A variable that is put anywhere into a text of pieces counts, whatever is around it.
TEST(PtxVariables, CountWhereverTheyStand) {
  const std::string pieces[] = {
      "/* x */",  "// y\n",           ".version 8.5\n",           "\"q\"", ";",
      "{ ret; }", ".reg .b32 %r<4>;", "ld.global.u8 %r1, [%r2];", "\n",    " "};
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    std::uint64_t blocks = 0;
    for (auto i = random() % 12; i > 0; --i) {
      if (random() % 3 != 0) {
        text += pieces[random() % std::size(pieces)];
        continue;
      }
      const std::uint64_t count = 1 + random() % 5;
      text +=
          "; .global .b8 v" + std::to_string(i) + "[" + std::to_string(count * kBlockBytes) + "];";
      blocks += count;
    }
    EXPECT_EQ(bytes_of(text), blocks * kBlockBytes) << text;
  }
}

}  // namespace
}  // namespace regatta::sharing::hook
