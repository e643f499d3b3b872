#include "regatta/gpu/sharing/slice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta::sharing {
namespace {

using namespace regatta::literals;
using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

TEST(GpuSlice, ReadsMemoryOfOneGpuAndOfSeveral) {
  EXPECT_THAT(parse_memory("4GiB").value(), UnorderedElementsAre(Pair(0, 4_GiB)));
  EXPECT_THAT(parse_memory("4GiB", 3).value(), UnorderedElementsAre(Pair(3, 4_GiB)));
  EXPECT_THAT(parse_memory("0=4GiB,2=512MiB").value(),
              UnorderedElementsAre(Pair(0, 4_GiB), Pair(2, 512_MiB)));
  for (const char* text : {"", "4GX", "4GiB,1=1GiB", "16=1GiB", "a=1GiB", "-1=1GiB", "0=", "=1GiB",
                           "0=1GiB,0=2GiB", "0=1GiB,"}) {
    const auto memory = parse_memory(text);
    ASSERT_FALSE(memory) << text;
    EXPECT_EQ(memory.error().code, Code::kInvalidInput);
  }
  for (const int gpu : {0, 1})
    EXPECT_THAT(parse_memory("1=4GiB", gpu).error().message, HasSubstr("leave --gpu out")) << gpu;
}

TEST(GpuSlice, HasNoMemoryOfAGpuOrEnoughForABlock) {
  EXPECT_THAT(parse_memory("0=2MiB,1=0B").value(),
              UnorderedElementsAre(Pair(0, 2_MiB), Pair(1, 0_MiB)));
  EXPECT_EQ(parse_memory("1KiB").error().message,
            "1 KiB is less than one of the 2 MiB blocks in which a program gets memory; give 2MiB "
            "or more");
  for (const char* text : {"1B", "2097151B", "-4GiB", "0=4GiB,1=1MiB"})
    EXPECT_THAT(parse_memory(text).error().message, HasSubstr("give 2MiB or more")) << text;
}

TEST(GpuSlice, ReadsAPartOfTheTime) {
  EXPECT_EQ(parse_compute("30").value(), 300'000U);
  EXPECT_EQ(parse_compute("12.5%").value(), 125'000U);
  EXPECT_EQ(parse_compute("100").value(), 1'000'000U);
  EXPECT_EQ(parse_compute("0.0001").value(), 1U);
  for (const char* text : {"", "0", "0.00004", "101", "-3", "much", "nan", "30GiB", "0.2.3"})
    EXPECT_FALSE(parse_compute(text)) << text;
}

TEST(GpuSlice, NamesALimitThatIsNotKnown) {
  GpuSlice slice;
  EXPECT_TRUE(set_limit(slice, "weight", "3"));
  EXPECT_TRUE(set_limit(slice, "priority", "high"));
  EXPECT_THAT(set_limit(slice, "colour", "3").error().message, HasSubstr("choose one of memory"));
  EXPECT_THAT(set_limit(slice, "weight", "0").error().message, HasSubstr("from 1 to 10000"));
  EXPECT_THAT(set_limit(slice, "weight", "3x").error().message, HasSubstr("whole number"));
  EXPECT_THAT(set_limit(slice, "priority", "low").error().message, HasSubstr("high or normal"));
  nlohmann::json request;
  add_to_request(request, slice);
  EXPECT_EQ(request.dump(), R"({"priority":"high","weight":3})");
}

TEST(GpuSlice, StaysWithinWhatIsAllowed) {
  GpuSlice most;
  most.memory = {{0, 4_GiB}};
  most.compute_ppm = 300'000;
  const auto all = restrict_slice(GpuSlice(), most).value();  // what is not said is what is allowed
  EXPECT_EQ(all.memory.at(0), 4_GiB);
  EXPECT_EQ(all.compute_ppm, 300'000U);
  GpuSlice less;
  less.memory = {{0, 1_GiB}};
  less.compute_ppm = 1;
  less.weight = 1;
  less.is_high_priority = false;
  EXPECT_EQ(restrict_slice(less, most).value().memory.at(0), 1_GiB);
  less.weight = 9;
  less.is_high_priority = true;
  EXPECT_EQ(restrict_slice(less, GpuSlice()).value().weight, 9U);  // nothing is limited
  GpuSlice more = most;
  more.weight = 9;
  more.is_high_priority = true;
  EXPECT_EQ(restrict_slice(less, more).value().weight, 9U);
  const auto refused = [&](auto&& change) {
    GpuSlice asked;
    change(asked);
    const auto result = restrict_slice(asked, most);
    return result ? "" : result.error().message;
  };
  EXPECT_THAT(refused([](GpuSlice& asked) {
                asked.memory = {{0, Bytes{(4_GiB).value + 1}}};
              }),
              HasSubstr("on GPU 0 is more"));
  EXPECT_THAT(refused([](GpuSlice& asked) { asked.memory = {{1, 1_GiB}}; }), HasSubstr("on GPU 1"));
  EXPECT_THAT(refused([](GpuSlice& asked) { asked.compute_ppm = 300'001; }), HasSubstr("compute"));
  EXPECT_THAT(refused([](GpuSlice& asked) { asked.is_high_priority = true; }),
              HasSubstr("priority"));
  EXPECT_THAT(refused([](GpuSlice& asked) { asked.weight = 2; }), HasSubstr("weight"));
}

}  // namespace
}  // namespace regatta::sharing
