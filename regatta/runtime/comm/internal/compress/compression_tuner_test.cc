#include "regatta/runtime/comm/internal/compress/compression_tuner.h"

#include <vector>

#include <gtest/gtest.h>

namespace regatta::comm::compress {
namespace {

constexpr std::size_t kBytes = 4 << 20;

// Time of a call by kind.
struct NetworkParameters {
  double none;
  double bf16;
  double int8;

  double time(CompressionKind kind) const {
    if (kind == CompressionKind::kNone) return none;
    return kind == CompressionKind::kBf16 ? bf16 : int8;
  }
};

// The calls until the trials are over and settled; gives the choice.
CompressionKind run_trials(CompressionTuner& tuner, const NetworkParameters& network,
                           std::size_t bytes = kBytes) {
  for (int i = 0; i < 3 * CompressionTuner::kTrials; ++i) {
    const CompressionTuner::Turn turn = tuner.next(bytes);
    EXPECT_TRUE(turn.is_trial) << i;
    // The first round is slow everywhere.
    tuner.record(bytes, turn.kind, Seconds{network.time(turn.kind) + (i < 3 ? 1 : 0)});
  }
  EXPECT_TRUE(tuner.next(bytes).must_settle);
  tuner.settle(bytes, tuner.times_of(bytes));
  return tuner.choice(bytes);
}

CompressionTuner tuner() {
  return CompressionTuner({CompressionKind::kBf16, CompressionKind::kInt8, CompressionKind::kBf16});
}

TEST(CompressionTuner, ChoosesWhatIsFastest) {
  CompressionTuner slow_network = tuner();
  EXPECT_EQ(run_trials(slow_network, {0.8, 0.4, 0.2}), CompressionKind::kInt8);
  CompressionTuner slow_processor = tuner();
  EXPECT_EQ(run_trials(slow_processor, {0.8, 0.4, 0.6}), CompressionKind::kBf16);
  CompressionTuner memory = tuner();
  EXPECT_EQ(run_trials(memory, {0.01, 0.03, 0.03}), CompressionKind::kNone);
}

TEST(CompressionTuner, KeepsNoneForALittleGain) {
  CompressionTuner same = tuner();
  EXPECT_EQ(run_trials(same, {1.0, 0.95, 0.95}), CompressionKind::kNone);
}

TEST(CompressionTuner, TriesAgainAndNeedsMoreThanALittleToChange) {
  CompressionTuner one = tuner();
  EXPECT_EQ(run_trials(one, {0.8, 0.4, 0.2}), CompressionKind::kInt8);
  for (int i = 0; i < CompressionTuner::kSettledCalls; ++i) {
    const CompressionTuner::Turn turn = one.next(kBytes);
    ASSERT_EQ(turn.kind, CompressionKind::kInt8);
    ASSERT_FALSE(turn.is_trial);
  }
  EXPECT_EQ(run_trials(one, {0.8, 0.19, 0.2}), CompressionKind::kInt8);
  for (int i = 0; i < CompressionTuner::kSettledCalls; ++i)
    one.next(kBytes);
  EXPECT_EQ(run_trials(one, {0.05, 0.1, 0.2}), CompressionKind::kNone);
}

TEST(CompressionTuner, ChoosesForEachSizeOfItsOwn) {
  CompressionTuner one = tuner();
  EXPECT_EQ(run_trials(one, {0.8, 0.4, 0.2}), CompressionKind::kInt8);
  EXPECT_EQ(run_trials(one, {0.001, 0.002, 0.002}, 1024), CompressionKind::kNone);
  EXPECT_EQ(one.choice(kBytes), CompressionKind::kInt8);
  EXPECT_EQ(one.choice(1), CompressionKind::kNone);
}

// The slowest rank decides, so all choose the same.
TEST(CompressionTuner, FollowsTheTimesThatAllAgreedOn) {
  CompressionTuner mine = tuner();
  for (int i = 0; i < 3 * CompressionTuner::kTrials; ++i)
    mine.record(kBytes, mine.next(kBytes).kind, Seconds{1});
  EXPECT_EQ(mine.times_of(kBytes), (std::vector<double>{1, 1, 1}));
  mine.next(kBytes);
  mine.settle(kBytes, {3, 1, 2});
  EXPECT_EQ(mine.choice(kBytes), CompressionKind::kBf16);
}

}  // namespace
}  // namespace regatta::comm::compress
