#include "regatta/platform/history/change_events.h"

#include <gmock/gmock.h>

#include "regatta/base/core/ids.h"
#include "regatta/platform/history/test_past.h"

namespace regatta::history {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ChangeReaderTest : public testing::Test {
 protected:
  // The reasons of the events of all changes since the last call.
  std::vector<std::string> reasons() {
    std::vector<std::string> told;
    for (const store::Change& change : past_.take_changes()) {
      const auto story = reader_.read(change, past_.moment().unix_ms, false);
      EXPECT_TRUE(story) << story.error().message;
      for (const PastEvent& event : story->events) {
        told.push_back(event.object + " " + event.reason);
        last_ = event;
      }
      if (story->ended) ended_.push_back(*story->ended);
    }
    return told;
  }

  TestPast past_;
  ChangeReader reader_{0};
  PastEvent last_;
  std::vector<PastAttempt> ended_;
};

TEST_F(ChangeReaderTest, TellsAJobFromItsSubmissionToItsEnd) {
  past_.join("n0");
  past_.submit();
  EXPECT_THAT(reasons(), ElementsAre("n0 connected", "train-1 submitted"));
  past_.decide();
  EXPECT_THAT(reasons(), ElementsAre("train-1 starting"));
  past_.report(1, false, 0);
  EXPECT_THAT(reasons(), ElementsAre("train-1 running"));
  past_.report(1, true, 3);
  EXPECT_THAT(reasons(), ElementsAre("train-1 failed"));
  EXPECT_THAT(last_.text, HasSubstr("ended with status 3"));
  EXPECT_EQ(last_.time_ms, past_.moment().unix_ms);
  ASSERT_EQ(ended_.size(), 1U);
  EXPECT_EQ(ended_[0].number, 1);
  EXPECT_EQ(ended_[0].stop, control::StopCause::kFailed);
  ASSERT_EQ(ended_[0].replicas.size(), 1U);
  EXPECT_EQ(ended_[0].replicas[0].node, "n0");
  EXPECT_EQ(ended_[0].replicas[0].replica.exit_status, 3);
  EXPECT_EQ(ended_[0].ended_ms - ended_[0].started_ms, 2000);
}

TEST_F(ChangeReaderTest, TellsEachAttemptOnce) {
  past_.join("n0");
  past_.submit(R"(,"restart":{"rule":"on_failure","pause":"0s"})");
  for (int attempt = 1; attempt <= 2; ++attempt) {
    past_.decide();
    past_.report(1, true, 1);
  }
  reasons();
  ASSERT_EQ(ended_.size(), 2U);
  EXPECT_EQ(ended_[1].number, 2);
}

TEST_F(ChangeReaderTest, TellsOfHoldsNodesAndQuotas) {
  past_.join("n0");
  past_.submit();
  reasons();
  ASSERT_TRUE(past_.controller().set_held(1, true));
  EXPECT_THAT(reasons(), ElementsAre("train-1 held"));
  ASSERT_TRUE(past_.controller().set_intent("n0", control::NodeIntent::kDraining));
  past_.controller().disconnect(0);
  EXPECT_THAT(reasons(), ElementsAre("n0 disconnected", "n0 draining"));
  ASSERT_TRUE(past_.controller().set_quotas(R"({"queues":[{"name":"default"}]})"));
  EXPECT_THAT(reasons(), ElementsAre(" set"));
}

TEST_F(ChangeReaderTest, DoesNotRepeatWhatItWasTold) {
  past_.join("n0");
  past_.submit();
  ASSERT_TRUE(past_.controller().set_held(1, true));
  past_.take_changes();
  ChangeReader later(1);
  later.learn({.job = 1, .node = "", .phase = 0, .is_held = true});
  ASSERT_TRUE(past_.controller().set_priority(1, 5));
  for (const store::Change& change : past_.take_changes())
    EXPECT_TRUE(later.read(change, 0, false)->events.empty());
}

TEST_F(ChangeReaderTest, TakesTheTimesOfOldRecords) {
  past_.submit();
  const std::int64_t submitted = past_.moment().unix_ms;
  ASSERT_TRUE(past_.controller().cancel(1, past_.moment()));
  const auto story = reader_.read(past_.take_changes().back(), submitted + 1'000'000, true);
  ASSERT_TRUE(story);
  ASSERT_EQ(story->events.size(), 2U);
  EXPECT_EQ(story->events[0].time_ms, submitted);
  EXPECT_EQ(story->events[1].reason, "cancelled");
  EXPECT_EQ(story->events[1].time_ms, submitted);
}

TEST_F(ChangeReaderTest, RefusesWhatIsNoRecord) {
  const auto story = reader_.read({"job/000000000001", 1, "\xff\xff"}, 0, false);
  ASSERT_FALSE(story);
  EXPECT_THAT(story.error().message, HasSubstr("job/000000000001"));
}

}  // namespace
}  // namespace regatta::history
