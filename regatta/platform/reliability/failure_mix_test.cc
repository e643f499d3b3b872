#include "regatta/platform/reliability/failure_mix.h"

#include <gtest/gtest.h>

#include "regatta/base/core/test_files.h"

namespace regatta::reliability {
namespace {

constexpr const char* kColumns = "source,population,cause,class,count,share_pct,read\n";

std::string error_of(const std::string& rows) {
  const auto mixes = read_failure_mixes(kColumns + rows, "m.csv");
  return mixes ? "" : mixes.error().message;
}

FailureMix llama3() {
  const auto mixes =
      read_failure_mixes(read_test_file(REGATTA_TESTDATA "/llama3_mix.csv"), "llama3_mix.csv");
  EXPECT_TRUE(mixes) << mixes.error().message;
  return *find_failure_mix(*mixes, "llama3");
}

TEST(FailureMix, OfLlama3HasThePublishedCountsThatSumTo419) {
  const FailureMix mix = llama3();
  EXPECT_EQ(mix.population, "16384 H100, 54 days, 419 unexpected interruptions");
  EXPECT_EQ(mix.causes.size(), 18U);
  EXPECT_EQ(mix.count(), 419);
  EXPECT_EQ(mix.causes.front().name, "faulty gpu");
  EXPECT_EQ(mix.causes.front().effect, FailureEffect::kRelapse);
  for (const FailureCause& cause : mix.causes)
    EXPECT_NEAR(cause.share, cause.count / 419.0, 6e-5) << cause.name;
}

TEST(FailureMix, GetsRatesThatRepeatItsCounts) {
  const auto mix = with_rates(llama3(), 16384, 54 * kDay);
  ASSERT_TRUE(mix) << mix.error().message;
  EXPECT_NEAR(time_between(16384 * mix->per_device()) / kHour, 3.093, 0.001);
  EXPECT_NEAR(mix->causes[1].per_device * (54 * kDay) * 16384, 72, 1e-9);
}

TEST(FailureMix, WithoutCountsHasNoRates) {
  const auto mixes = read_failure_mixes(std::string(kColumns) + "u,,ecc,gpu,,5.0,x\n", "m.csv");
  ASSERT_TRUE(mixes);
  EXPECT_EQ(with_rates(mixes->front(), 8, kDay).error().message,
            "failure mix u: cause 'ecc' has no count; take a mix with counts");
  EXPECT_EQ(with_rates(mixes->front(), 0, kDay).error().message,
            "failure mix u: 0 devices in 86400 s; give a positive number of each");
}

TEST(FailureMix, ErrorsNameLineColumnAndRemedy) {
  EXPECT_EQ(error_of("a,p,x,gpu,1,2,r\na,,y,gpus,1,2,r\n"),
            "m.csv:3: class: 'gpus' is not gpu, host, network, storage, software, facility or "
            "unknown; correct it");
  EXPECT_EQ(error_of("a,p,x,gpu,0,2,r\n"),
            "m.csv:2: count: '0' is not a whole number from 1 to 1000000000; correct it");
  EXPECT_EQ(error_of("a,p,x,gpu,1,101,r\n"),
            "m.csv:2: share_pct: '101' is not a number from 0 to 100; correct it");
  EXPECT_EQ(error_of("a,p,x,gpu,1,nan,r\n"),
            "m.csv:2: share_pct: 'nan' is not a number from 0 to 100; correct it");
  EXPECT_EQ(error_of(",p,x,gpu,1,2,r\n"),
            "m.csv:2: source: '' is not the name of a source; correct it");
}

TEST(FindFailureMix, NamesTheMixesThatThereAre) {
  const auto mixes = read_failure_mixes(std::string(kColumns) + "u,,ecc,gpu,,5.0,x\n", "m.csv");
  EXPECT_EQ(find_failure_mix(*mixes, "v").error().message, "no failure mix 'v'; there are u");
}

}  // namespace
}  // namespace regatta::reliability
