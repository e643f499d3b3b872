#include "regatta/runtime/comm/internal/compress/kind_tuner.h"

#include <vector>

#include <gtest/gtest.h>

namespace regatta::comm::compress {
namespace {

constexpr std::size_t kBytes = 4 << 20;

// Time of a call by kind.
struct Network {
  double none;
  double bf16;
  double int8;

  double time(Kind kind) const {
    if (kind == Kind::kNone) return none;
    return kind == Kind::kBf16 ? bf16 : int8;
  }
};

// The calls until the trials are over and settled; gives the choice.
Kind run_trials(KindTuner& tuner, const Network& network, std::size_t bytes = kBytes) {
  for (int i = 0; i < 3 * KindTuner::kTrials; ++i) {
    const KindTuner::Turn turn = tuner.next(bytes);
    EXPECT_TRUE(turn.is_trial) << i;
    // The first round is slow everywhere.
    tuner.record(bytes, turn.kind, Seconds{network.time(turn.kind) + (i < 3 ? 1 : 0)});
  }
  EXPECT_TRUE(tuner.next(bytes).must_settle);
  tuner.settle(bytes, tuner.times_of(bytes));
  return tuner.choice(bytes);
}

KindTuner tuner() {
  return KindTuner({Kind::kBf16, Kind::kInt8, Kind::kBf16});
}

TEST(KindTuner, ChoosesWhatIsFastest) {
  KindTuner slow_network = tuner();
  EXPECT_EQ(run_trials(slow_network, {0.8, 0.4, 0.2}), Kind::kInt8);
  KindTuner slow_processor = tuner();
  EXPECT_EQ(run_trials(slow_processor, {0.8, 0.4, 0.6}), Kind::kBf16);
  KindTuner memory = tuner();
  EXPECT_EQ(run_trials(memory, {0.01, 0.03, 0.03}), Kind::kNone);
}

TEST(KindTuner, KeepsNoneForALittleGain) {
  KindTuner same = tuner();
  EXPECT_EQ(run_trials(same, {1.0, 0.95, 0.95}), Kind::kNone);
}

TEST(KindTuner, TriesAgainAndNeedsMoreThanALittleToChange) {
  KindTuner one = tuner();
  EXPECT_EQ(run_trials(one, {0.8, 0.4, 0.2}), Kind::kInt8);
  for (int i = 0; i < KindTuner::kSettledCalls; ++i) {
    const KindTuner::Turn turn = one.next(kBytes);
    ASSERT_EQ(turn.kind, Kind::kInt8);
    ASSERT_FALSE(turn.is_trial);
  }
  EXPECT_EQ(run_trials(one, {0.8, 0.19, 0.2}), Kind::kInt8);
  for (int i = 0; i < KindTuner::kSettledCalls; ++i)
    one.next(kBytes);
  EXPECT_EQ(run_trials(one, {0.05, 0.1, 0.2}), Kind::kNone);
}

TEST(KindTuner, ChoosesForEachSizeOfItsOwn) {
  KindTuner one = tuner();
  EXPECT_EQ(run_trials(one, {0.8, 0.4, 0.2}), Kind::kInt8);
  EXPECT_EQ(run_trials(one, {0.001, 0.002, 0.002}, 1024), Kind::kNone);
  EXPECT_EQ(one.choice(kBytes), Kind::kInt8);
  EXPECT_EQ(one.choice(1), Kind::kNone);
}

// The slowest rank decides, so all choose the same.
TEST(KindTuner, FollowsTheTimesThatAllAgreedOn) {
  KindTuner mine = tuner();
  for (int i = 0; i < 3 * KindTuner::kTrials; ++i)
    mine.record(kBytes, mine.next(kBytes).kind, Seconds{1});
  EXPECT_EQ(mine.times_of(kBytes), (std::vector<double>{1, 1, 1}));
  mine.next(kBytes);
  mine.settle(kBytes, {3, 1, 2});
  EXPECT_EQ(mine.choice(kBytes), Kind::kBf16);
}

}  // namespace
}  // namespace regatta::comm::compress
