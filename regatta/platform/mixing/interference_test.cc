#include "regatta/platform/mixing/interference.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "regatta/base/core/test_files.h"
#include "regatta/platform/mixing/duty_tables.h"
#include "regatta/platform/packing/random_sequence.h"

namespace regatta::mixing {
namespace {

const std::filesystem::path kPairs =
    std::filesystem::path(REGATTA_TESTDATA "/../../../../../shared/data/cluster/gavel")
        .lexically_normal();

// Speeds of two jobs whose duties are known, by the model's own definition: a job that would be
// alone on the device for `duty` of a step needs it for longer beside another.
JobPair pair_of(int first, int second, const std::vector<double>& duties, double k) {
  const double u = duties[static_cast<std::size_t>(first)];
  const double v = duties[static_cast<std::size_t>(second)];
  const double need = u * (1 + k * v);
  const double other = v * (1 + k * u);
  JobPair pair{"gpu", std::to_string(first), std::to_string(second), 1, 1};
  if (need + other <= 1) return pair;
  const double time = need <= 0.5 ? need : other <= 0.5 ? 1 - other : 0.5;
  pair.speed = time / need;
  pair.other_speed = std::min(1.0, (1 - time) / other);
  return pair;
}

TEST(MixedDemand, IsTheSumWithoutInterferenceAndForOneWorkload) {
  EXPECT_FLOAT_EQ(mixed_demand(0.7F, 0.29F, 0), 0.7F);
  EXPECT_FLOAT_EQ(mixed_demand(0.6F, 0.36F, 1), 0.6F);
  // 0.5 (1 + 0.2 * 0.3) + 0.3 (1 + 0.2 * 0.5)
  EXPECT_FLOAT_EQ(mixed_demand(0.8F, 0.34F, 0.2F), 0.86F);
}

TEST(FitInterference, FindsTheFactorThatMadeThePairs) {
  for (const double k : {0.0, 0.3, 0.9}) {
    packing::RandomSequence random(7);
    std::vector<double> duties;
    for (int job = 0; job < 16; ++job)
      duties.push_back(0.3 + 0.7 * random.uniform());
    duties[0] = 1;  // jobs that fill the device show the factor apart from their duty
    duties[1] = 1;
    std::vector<JobPair> pairs;
    for (int first = 0; first < 16; ++first)
      for (int second = first; second < 16; ++second)
        pairs.push_back(pair_of(first, second, duties, k));
    const auto fit = fit_interference(pairs, 0.3, 1);
    ASSERT_TRUE(fit) << fit.error().message;
    // A larger factor and lower duties predict nearly the same speeds.
    EXPECT_NEAR(fit->interference, k, 0.05 + 0.3 * k) << k;
    EXPECT_LT(fit->held_out_error, 0.03) << k;
    EXPECT_EQ(fit->fitted_pairs + fit->held_out_pairs, 136);
  }
}

TEST(FitInterference, PairsThatDidNotFitTogetherDoNotCount) {
  const std::vector<JobPair> pairs(30, {"gpu", "a", "b", 0, 0.5});
  const auto fit = fit_interference(pairs, 0.3, 1);
  ASSERT_FALSE(fit);
  EXPECT_EQ(fit.error().message,
            "0 pairs of jobs ran together; give at least 20 to fit interference");
}

TEST(FitInterference, PredictsMeasuredPairsThatWereHeldOutBetterThanTheirMean) {
  if (!std::filesystem::exists(kPairs)) GTEST_SKIP() << "no " << kPairs;
  const auto pairs = read_job_pairs(read_test_file(kPairs / "gavel_throughputs.csv"), "gavel");
  ASSERT_TRUE(pairs);
  for (const char* device : {"k80", "p100", "v100"}) {
    std::vector<JobPair> of_device;
    for (const JobPair& pair : *pairs)
      if (pair.device == device) of_device.push_back(pair);
    const auto fit = fit_interference(of_device, 0.3, 1);
    ASSERT_TRUE(fit);
    EXPECT_LT(fit->held_out_error, 0.85 * fit->error_constant) << device;
  }
}

}  // namespace
}  // namespace regatta::mixing
