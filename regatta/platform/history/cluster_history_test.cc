#include "regatta/platform/history/cluster_history.h"

#include <future>

#include <gmock/gmock.h>

#include "regatta/base/os/file.h"
#include "regatta/platform/history/test_past.h"

namespace regatta::history {
namespace {

class ClusterHistoryTest : public testing::Test {
 protected:
  std::unique_ptr<ClusterHistory> open(HistoryOptions options = {.kept = Seconds{1e12}}) {
    options.path = folder_.path() + "/history.db";
    auto history = ClusterHistory::open(options);
    EXPECT_TRUE(history) << history.error().message;
    return std::move(*history);
  }
  static std::vector<PastEvent> events(ClusterHistory& history, EventFilter filter = {}) {
    std::promise<std::vector<PastEvent>> answer;
    history.find_events(std::move(filter), [&](Result<std::vector<PastEvent>> found) {
      EXPECT_TRUE(found) << found.error().message;
      answer.set_value(found ? *found : std::vector<PastEvent>());
    });
    return answer.get_future().get();
  }
  static std::vector<PastAttempt> attempts(ClusterHistory& history, control::JobId job) {
    std::promise<std::vector<PastAttempt>> answer;
    history.find_attempts(job, [&](Result<std::vector<PastAttempt>> found) {
      EXPECT_TRUE(found) << found.error().message;
      answer.set_value(found ? *found : std::vector<PastAttempt>());
    });
    return answer.get_future().get();
  }
  // A job that runs once and fails.
  void run_job() {
    past_.submit();
    past_.decide();
    past_.report(past_.controller().tables().last_job, true, 2);
  }

  os::TempFolder folder_ = os::TempFolder::create().value();
  TestPast past_;
};

TEST_F(ClusterHistoryTest, AnswersAfterWhatWasAddedBefore) {
  const auto history = open();
  past_.join("n0");
  run_job();
  history->add(past_.take_changes(), past_.moment().unix_ms, false);
  const std::vector<PastEvent> all = events(*history);
  ASSERT_EQ(all.size(), 4U);  // connected, submitted, starting, failed
  EXPECT_EQ(all[0].reason, "failed");
  EXPECT_GT(all[0].id, all[1].id);
  const auto of_node = events(*history, {.kind = "node", .object = ""});
  ASSERT_EQ(of_node.size(), 1U);
  EXPECT_EQ(of_node[0].object, "n0");
  EXPECT_EQ(events(*history, {.kind = "", .object = "train-1"}).size(), 3U);
  EXPECT_EQ(events(*history, {.kind = "", .object = "", .before_id = all[1].id}).size(), 2U);
  EXPECT_TRUE(
      events(*history, {.kind = "", .object = "", .since_ms = past_.moment().unix_ms + 1}).empty());
  const std::vector<PastAttempt> ended = attempts(*history, 1);
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].replicas[0].node, "n0");
  EXPECT_EQ(ended[0].replicas[0].replica.exit_status, 2);
  EXPECT_TRUE(attempts(*history, 7).empty());
}

TEST_F(ClusterHistoryTest, GoesOnWhereItEnded) {
  past_.join("n0");
  run_job();
  const std::vector<store::Change> changes = past_.take_changes();
  {
    const auto history = open();
    EXPECT_EQ(history->opened_at(), 0);
    history->add(changes, past_.moment().unix_ms, false);
  }
  const auto history = open();
  EXPECT_EQ(history->opened_at(), changes.back().revision);
  EXPECT_EQ(events(*history).size(), 4U);
}

TEST_F(ClusterHistoryTest, BeginsAnewWhereTheFileIsDamagedAndSaysSo) {
  ASSERT_TRUE(os::write_file(folder_.path() + "/history.db", std::string(8192, 'x')));
  const auto history = open();
  const auto told = events(*history);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].kind, "history");
  EXPECT_EQ(told[0].reason, "lost");
  EXPECT_TRUE(os::read_file(folder_.path() + "/history.db.damaged"));
}

TEST_F(ClusterHistoryTest, RemovesWhatIsOlderThanItKeeps) {
  past_.join("n0");
  run_job();
  {
    const auto history = open(HistoryOptions{});
    history->add(past_.take_changes(), past_.moment().unix_ms, false);  // years ago
    EXPECT_EQ(events(*history).size(), 4U);
  }
  const auto history = open(HistoryOptions{});
  static_cast<void>(events(*history));  // the thread removes after its first round
  EXPECT_TRUE(events(*history).empty());
  EXPECT_TRUE(attempts(*history, 1).empty());
}

TEST_F(ClusterHistoryTest, SaysHowManyChangesItLeftOut) {
  const auto history = open({.waiting_most = Bytes{1}});
  for (int i = 0; i < 3; ++i) {
    past_.submit();
    history->add(past_.take_changes(), past_.moment().unix_ms, false);
  }
  const auto told = events(*history);
  ASSERT_GE(told.size(), 2U);
  EXPECT_EQ(told.back().reason, "incomplete");
}

}  // namespace
}  // namespace regatta::history
