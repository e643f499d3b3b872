#include "tests/attacks/random_programs.h"

#include <gtest/gtest.h>

namespace regatta::attacks {
namespace {

class RandomProgram : public testing::TestWithParam<std::uint64_t> {};

TEST_P(RandomProgram, IsHeldToItsQuotaAndCountedAsTheDeviceCountsIt) {
  EXPECT_EQ(run_random_program(GetParam()), "");
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomProgram, testing::Range<std::uint64_t>(1, 13));

}  // namespace
}  // namespace regatta::attacks
