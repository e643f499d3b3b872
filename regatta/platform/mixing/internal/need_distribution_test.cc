#include "regatta/platform/mixing/internal/need_distribution.h"

#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "regatta/platform/mixing/interference.h"
#include "regatta/platform/packing/random_sequence.h"

namespace regatta::mixing {
namespace {

TEST(NeedDistribution, AgreesWithAllCombinationsOfSamplesOfThreeWorkloads) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    packing::RandomSequence random(seed);
    std::vector<std::vector<float>> samples(3, std::vector<float>(24));
    for (auto& series : samples)
      for (float& demand : series)
        demand = random.uniform() < 0.5 ? 0 : static_cast<float>(0.7 * random.uniform());
    for (const float k : {0.0F, 0.15F}) {
      int above = 0;
      for (const float a : samples[0])
        for (const float b : samples[1])
          for (const float c : samples[2])
            above += exceeds_device(mixed_demand(a + b + c, a * a + b * b + c * c, k)) ? 1 : 0;
      const NeedDistribution sum =
          sum_of(sum_of(need_of(samples[0], k), need_of(samples[1], k)), need_of(samples[2], k));
      EXPECT_NEAR(sum.above, above / (24.0 * 24 * 24), 0.02);
      EXPECT_NEAR(std::accumulate(sum.parts.begin(), sum.parts.end(), sum.above), 1, 1e-4);
    }
  }
}

TEST(NeedDistribution, AWholeDeviceFitsAloneAndBesideIdleWorkloadsOnly) {
  const std::vector<float> whole = {1};
  const std::vector<float> idle = {0, 0};
  const std::vector<float> seldom = {0, 0, 0, 0.1F};
  const NeedDistribution full = need_of(whole, 0.15F);
  EXPECT_EQ(full.above, 0);
  EXPECT_FLOAT_EQ(above_together(tail_of(full), need_of(idle, 0.15F)), 0);
  EXPECT_FLOAT_EQ(above_together(tail_of(full), need_of(seldom, 0.15F)), 0.25F);
  EXPECT_FLOAT_EQ(above_together(tail_of({}), full), 0) << "an empty device";
}

}  // namespace
}  // namespace regatta::mixing
