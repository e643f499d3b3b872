#include "tests/attacks/random_programs.h"

#include <gtest/gtest.h>

namespace regatta::attacks {
namespace {

class RandomProgram : public testing::TestWithParam<std::uint64_t> {};

TEST_P(RandomProgram, IsHeldToItsQuotaAndCountedAsTheDeviceCountsIt) {
  RandomTotals totals;
  EXPECT_EQ(run_random_program(GetParam(), totals), "");
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomProgram, testing::Range<std::uint64_t>(1, 7));

class RandomRound : public testing::TestWithParam<std::uint64_t> {};

TEST_P(RandomRound, LeavesEachTenantWhatItIsPromisedAndCountsAsTheDeviceDoes) {
  RandomTotals totals;
  EXPECT_EQ(run_random_round(GetParam(), 0, totals), "");
}

// Rounds without over-commit, which wait for nobody; the bench draws the others, too.
INSTANTIATE_TEST_SUITE_P(Seeds, RandomRound, testing::Values(2, 5, 7, 10, 13));

}  // namespace
}  // namespace regatta::attacks
