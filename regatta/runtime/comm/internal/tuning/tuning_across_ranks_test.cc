// Ranks that measure for themselves, and still carry out every call alike.
#include <cstddef>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "regatta/runtime/comm/test_ranks.h"
#include "regatta/runtime/comm/test_world.h"
#include "regatta/runtime/comm/tuner.h"

namespace regatta::comm {
namespace {

// The current choices, without the times.
std::string settings_of(const Communicator& world) {
  std::string text;
  for (const TuningChoice& choice : tuning_choices(world))
    text += to_string(choice.kind) + " " + std::to_string(choice.bytes_from) + " " +
            describe(choice.tried[choice.chosen].setting) + "\n";
  return text;
}

class TuningAcrossRanks : public testing::TestWithParam<TestLayout> {};
INSTANTIATE_TEST_SUITE_P(Layouts, TuningAcrossRanks,
                         testing::Values(TestLayout::kShm, TestLayout::kTcp, TestLayout::kMixed));

// Sizes and operations change, and ranks are late in turns: a rank with another choice would wait
// for messages that no rank sends.
TEST_P(TuningAcrossRanks, IsTheSameWhileTheySearch) {
  constexpr int kRanks = 4;
  std::mutex mutex;
  std::vector<std::string> chosen;
  run_all(
      GetParam(), kRanks,
      [&](Communicator& world) {
        std::mt19937 random(7);  // the same calls on all ranks
        std::mt19937 own(static_cast<unsigned>(world.rank().value));
        std::vector<float> in(1 << 16, 1.0F);
        std::vector<float> out(in.size() * kRanks);
        for (int i = 0; i < 150; ++i) {
          const std::size_t count = std::size_t{1} << random() % 17;
          if (own() % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(own() % 500));
          if (random() % 3 == 0) {
            ASSERT_TRUE(world.all_gather(in.data(), out.data(), count, DataType::kF32).wait());
            ASSERT_EQ(out[count * kRanks - 1], 1.0F);
          } else {
            ASSERT_TRUE(
                world.all_reduce(in.data(), out.data(), count, DataType::kF32, ReduceOp::kSum)
                    .wait());
            ASSERT_EQ(out[count - 1], static_cast<float>(kRanks));
          }
        }
        const std::lock_guard lock(mutex);
        chosen.push_back(settings_of(world));
      },
      [](int, CommunicatorOptions&) {});
  ASSERT_EQ(chosen.size(), static_cast<std::size_t>(kRanks));
  for (const std::string& one : chosen)
    EXPECT_EQ(one, chosen.front());
}

TEST(ForcedSetting, HoldsForEveryCallThatCanBeCarriedOutSo) {
  run_all(
      TestLayout::kTcp, 3,
      [&](Communicator& world) {
        std::vector<float> in(1 << 16, 1.0F);
        std::vector<float> out(in.size());
        for (int i = 0; i < 20; ++i)
          ASSERT_TRUE(
              world.all_reduce(in.data(), out.data(), in.size(), DataType::kF32, ReduceOp::kSum)
                  .wait());
        EXPECT_EQ(out.back(), 3.0F);
        for (const TuningChoice& choice : tuning_choices(world)) {
          if (choice.kind != CallKind::kAllReduce) continue;
          EXPECT_EQ(choice.reason, ChoiceReason::kForced);
          EXPECT_EQ(choice.tried[choice.chosen].setting.algorithm, Algorithm::kDoubleTree);
          EXPECT_EQ(choice.tried[choice.chosen].setting.chunk_bytes, 8192U);
        }
      },
      [](int, CommunicatorOptions& options) {
        options.forced = {.algorithm = Algorithm::kDoubleTree, .chunk_bytes = 8192};
      });
}

TEST(Tuning, ThatIsNoTuningFileEndsTheConnect) {
  const auto errors = run_ranks(
      TestLayout::kShm, 2, [](Communicator&) {},
      [](int, CommunicatorOptions& options) { options.tuning = "{}"; });
  ASSERT_TRUE(errors[0]);
  EXPECT_EQ(errors[0]->code, Code::kInvalidInput);
}

}  // namespace
}  // namespace regatta::comm
