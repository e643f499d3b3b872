#include "regatta/platform/sched/wait_explanation.h"

#include <gmock/gmock.h>

#include "regatta/platform/sched/scheduling_policy.h"

namespace regatta::sched {
namespace {

JobRequest job(const std::string& name, int devices, double run_time) {
  JobRequest request;
  request.name = name;
  request.roles = {{.name = "r", .devices = devices}};
  request.run_time.median = Seconds{run_time};
  return request;
}

class WaitExplanationTest : public testing::Test {
 protected:
  WaitExplanationTest() {
    snapshot_.now = Seconds{1000};
    ClusterNode node;
    node.name = "n0";
    node.devices = 4;
    node.device_memory_mib = 1024;
    snapshot_.nodes = {node};
    snapshot_.running = {{.request = job("holder", 4, 600),
                          .replicas = {{.role = 0, .node = 0, .devices = 15}},
                          .started = Seconds{900},
                          .checkpointed = Seconds{900},
                          .completed = {}}};
    snapshot_.running[0].request.is_preemptible = false;
  }
  WaitExplanation explain(const std::string& name) {
    const auto decision = decide(snapshot_, queue_, policy_);
    EXPECT_TRUE(decision) << decision.error().message;
    apply_decision(*decision, snapshot_, queue_);
    auto explanation = explain_wait(snapshot_, queue_, policy_, *decision, name);
    EXPECT_TRUE(explanation) << explanation.error().message;
    EXPECT_TRUE(predict_wait(snapshot_, queue_, policy_, *explanation));
    return *explanation;
  }

  SchedulingPolicy policy_ = *find_scheduling_policy("regatta");
  ClusterSnapshot snapshot_;
  JobQueue queue_;
};

TEST_F(WaitExplanationTest, CountsTimesFromTheSnapshotsOwn) {
  queue_.jobs.push_back({.request = job("waiting", 2, 60), .completed = {}});
  const WaitExplanation explanation = explain("waiting");
  ASSERT_EQ(explanation.blocking.jobs.size(), 1U);
  EXPECT_EQ(explanation.blocking.jobs[0].job, "holder");
  EXPECT_TRUE(has_predicted_start(explanation));
  EXPECT_NEAR(explanation.prediction->start.value, 1500, 1);
  EXPECT_THAT(start_sentence(explanation), testing::StartsWith("starts in about 8.33 min"));
}

TEST_F(WaitExplanationTest, SaysWhoseEndIsNotKnown) {
  snapshot_.running[0].request.run_time = {};
  queue_.jobs.push_back({.request = job("waiting", 2, 60), .completed = {}});
  const WaitExplanation explanation = explain("waiting");
  EXPECT_FALSE(has_predicted_start(explanation));
  EXPECT_EQ(start_sentence(explanation),
            "no start is predicted: when job holder ends is not known");
}

TEST_F(WaitExplanationTest, HasNothingToExplainWhereTheJobStartsOrIsNotThere) {
  snapshot_.running.clear();
  queue_.jobs.push_back({.request = job("free", 2, 60), .completed = {}});
  EXPECT_TRUE(explain("free").start);
  const auto none = explain_wait(snapshot_, queue_, policy_, {}, "other");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::kNotFound);
}

}  // namespace
}  // namespace regatta::sched
