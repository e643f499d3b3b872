#include "regatta/platform/control/cluster_controller.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "regatta/base/core/ids.h"
#include "regatta/platform/control/scheduling_view.h"
#include "regatta/platform/sched/scheduling_policy.h"

namespace regatta::control {
namespace {

using testing::HasSubstr;

// A controller, what its store holds, and a clock.
class ClusterControllerTest : public testing::Test {
 protected:
  static std::string spec(const std::string& more = "") {
    const bool has_roles = more.find("roles") != std::string::npos;
    return R"({"name":"train","command":["work"])" +
           (has_roles ? more : R"(,"roles":[{"devices":4}])" + more) + "}";
  }
  JobId submit(const std::string& more = "", const std::string& key = "") {
    const std::string text = spec(more);
    const Submission submission{text, "ada"};
    const auto ids = controller_.submit({&submission, 1}, key, text, moment_);
    EXPECT_TRUE(ids) << ids.error().message;
    save();
    return ids ? ids->front() : 0;
  }
  std::string error_of(const std::string& text, const std::string& key = "") {
    const Submission submission{text, "ada"};
    const auto ids = controller_.submit({&submission, 1}, key, text, moment_);
    return ids ? "" : ids.error().message;
  }
  int join(const std::string& name, int devices = 8) {
    sched::ClusterNode facts;
    facts.name = name;
    facts.device_type = "cpu";
    facts.devices = devices;
    facts.device_memory_mib = 1024;
    const auto node =
        controller_.join({.facts = facts, .address = name, .journal_id = "j"}, moment_);
    EXPECT_TRUE(node) << node.error().message;
    save();
    return *node;
  }
  // All changes become durable.
  void save() {
    for (const store::Change& change : controller_.take_effects().changes) {
      EXPECT_GT(change.revision, durable_);
      durable_ = change.revision;
      stored_[change.key] = change;
    }
  }
  void decide() {
    const SchedulingView view = scheduling_view(controller_.tables(), moment_.now, 100);
    const auto decision =
        sched::decide(view.snapshot, view.queue, *sched::find_scheduling_policy("regatta"));
    ASSERT_TRUE(decision) << decision.error().message;
    carry_out(*decision, controller_, moment_);
    save();
  }
  std::vector<ReplicaOrder> report(int node, const ReplicaKey& key, bool is_over, int status = 0,
                                   bool is_complete = false) {
    const Attempt* attempt = job(key.job).attempt.get();
    const ReplicaReport said{.key = key,
                             .fence = attempt != nullptr ? attempt->fence : 0,
                             .is_over = is_over,
                             .exit_status = status};
    auto answers = controller_.report(node, {&said, 1}, is_complete, durable_, moment_);
    save();
    return answers;
  }
  void pass(double seconds, const std::vector<int>& heard) {
    for (double step = 0; step < seconds; step += 1) {
      moment_.now += Seconds{1};
      for (const int node : heard)
        controller_.hear(node, moment_);
      controller_.tick(moment_);
    }
    save();
  }
  const ManagedJob& job(JobId id) { return controller_.tables().jobs.at(id); }
  // A controller that has started again from the store.
  ClusterController restarted() {
    ClusterTables tables;
    for (const auto& [key, change] : stored_) {
      if (!change.value) continue;
      EXPECT_TRUE(load_record({key, change.revision, *change.value}, moment_.now, tables));
    }
    EXPECT_TRUE(finish_loading(durable_, tables));
    return {{}, std::move(tables)};
  }

  ClusterController controller_{{}, {}};
  Moment moment_{.now = Seconds{100}, .unix_ms = 1'700'000'000'000};
  Revision durable_ = 0;
  std::map<std::string, store::Change> stored_;
};

TEST_F(ClusterControllerTest, RunsAJobFromItsSubmissionToItsEnd) {
  const int node = join("a");
  const JobId id = submit();
  EXPECT_EQ(job(id).phase, JobPhase::kPending);
  decide();
  EXPECT_EQ(job(id).phase, JobPhase::kStarting);
  const std::vector<ReplicaOrder> orders = controller_.orders_for(node, durable_);
  ASSERT_EQ(orders.size(), 1U);
  EXPECT_EQ(orders[0].kind, OrderKind::kStart);
  EXPECT_EQ(orders[0].fence, job(id).attempt->fence);
  EXPECT_EQ(orders[0].world_size, 1);
  report(node, orders[0].key, false);
  EXPECT_EQ(job(id).phase, JobPhase::kRunning);
  EXPECT_TRUE(controller_.orders_for(node, durable_).empty());
  report(node, orders[0].key, true);
  EXPECT_EQ(job(id).phase, JobPhase::kSucceeded);
  EXPECT_EQ(job(id).attempt, nullptr);
}

TEST_F(ClusterControllerTest, SendsNoJobToANodeWhoseConnectionEnded) {
  const int node = join("a");
  controller_.disconnect(node);
  const JobId id = submit();
  decide();
  EXPECT_EQ(job(id).phase, JobPhase::kPending);
  join("a");
  decide();
  EXPECT_EQ(job(id).phase, JobPhase::kStarting);
}

TEST_F(ClusterControllerTest, SaysWhyAJobWaitsAndWritesItOnce) {
  join("a", 4);
  const JobId large = submit(R"(,"roles":[{"devices":8}])");
  const JobId first = submit();
  const JobId second = submit();
  decide();
  EXPECT_THAT(job(large).reason, HasSubstr("no nodes here hold it"));
  EXPECT_EQ(job(first).phase, JobPhase::kStarting);
  EXPECT_EQ(job(second).reason, "there is no room for it now");
  const Revision before = durable_;
  decide();
  EXPECT_EQ(durable_, before);
}

TEST_F(ClusterControllerTest, OrdersNothingThatIsNotDurable) {
  const int node = join("a");
  submit();
  const Revision before = durable_;
  decide();
  EXPECT_TRUE(controller_.orders_for(node, before).empty());
  EXPECT_EQ(controller_.orders_for(node, durable_).size(), 1U);
}

TEST_F(ClusterControllerTest, AnswersARepeatedSubmissionWithTheFirstJob) {
  const JobId id = submit("", "key");
  EXPECT_EQ(submit("", "key"), id);
  EXPECT_EQ(controller_.tables().jobs.size(), 1U);
  EXPECT_THAT(error_of(spec(R"(,"priority":3)"), "key"), HasSubstr("another body"));
  ClusterController again = restarted();
  const std::string text = spec();
  const Submission submission{text, "ada"};
  EXPECT_EQ(again.submit({&submission, 1}, "key", text, moment_)->front(), id);
}

TEST_F(ClusterControllerTest, TakesAllJobsOfABatchOrNone) {
  const std::string good = spec();
  const std::string bad = spec(R"(,"queue":"nowhere")");
  const std::vector<Submission> batch = {{good, "ada"}, {bad, "ada"}};
  const auto ids = controller_.submit(batch, "", "", moment_);
  ASSERT_FALSE(ids);
  EXPECT_TRUE(controller_.tables().jobs.empty());
  EXPECT_TRUE(controller_.take_effects().changes.empty());
  EXPECT_EQ(submit(), 1);
}

TEST_F(ClusterControllerTest, NamesTheKeyAndTheRemedyOfABadJob) {
  EXPECT_THAT(error_of("[]"), HasSubstr("a map of keys"));
  EXPECT_THAT(error_of(spec(R"(,"pirority":1)")), HasSubstr("did you mean 'priority'"));
  EXPECT_THAT(error_of(spec(R"(,"after":[9])")), HasSubstr("there is no job 9"));
  EXPECT_THAT(error_of(spec(R"(,"user":"bob")")), HasSubstr("not who submits"));
  EXPECT_THAT(error_of(spec(R"(,"environment":{"A-B":"1"})")), HasSubstr("letters, digits and _"));
  EXPECT_THAT(error_of(R"({"name":"x","roles":[{}]})"), HasSubstr("command"));
}

TEST_F(ClusterControllerTest, RestartsAFailedJobAfterAPauseAndOnlySoOften) {
  const int node = join("a");
  const JobId id = submit(R"(,"restart":{"rule":"on_failure","failures":1,"pause":"5s"})");
  decide();
  report(node, {id, 1, 0}, false);
  report(node, {id, 1, 0}, true, 3);
  EXPECT_EQ(job(id).phase, JobPhase::kPending);
  EXPECT_THAT(job(id).reason, HasSubstr("ended with status 3; restart 1 of 1 after 5 s"));
  decide();
  EXPECT_EQ(job(id).phase, JobPhase::kPending);
  pass(6, {node});
  decide();
  report(node, {id, 2, 0}, true, 3);
  EXPECT_EQ(job(id).phase, JobPhase::kFailed);
  EXPECT_EQ(job(id).exit_status, 3);
}

TEST_F(ClusterControllerTest, StopsTheWholeGangWhenOneReplicaFails) {
  const int a = join("a", 4);
  const int b = join("b", 4);
  const JobId pair = submit(R"(,"roles":[{"replicas":2,"devices":4}])");
  decide();
  const Replica first = job(pair).attempt->replicas.at(0);
  report(first.node, {pair, 1, 0}, true, 1);
  EXPECT_EQ(job(pair).phase, JobPhase::kStopping);
  const int other = first.node == a ? b : a;
  const std::vector<ReplicaOrder> orders = controller_.orders_for(other, durable_);
  ASSERT_EQ(orders.size(), 1U);
  EXPECT_EQ(orders[0].kind, OrderKind::kStop);
  report(other, orders[0].key, true, 143);
  EXPECT_EQ(job(pair).phase, JobPhase::kFailed);
  EXPECT_EQ(job(pair).exit_status, 1);
}

TEST_F(ClusterControllerTest, WaitsForTheFenceBeforeItStartsALostJobAgain) {
  const int a = join("a", 4);
  const JobId id = submit();
  decide();
  report(a, {id, 1, 0}, false);
  const int b = join("b", 4);
  pass(6, {b});
  EXPECT_EQ(health_of(controller_.tables().nodes.at(0)), sched::NodeHealth::kFailed);
  decide();  // it is to move, and must not run twice
  EXPECT_EQ(job(id).attempt->number, 1);
  EXPECT_TRUE(controller_.orders_for(b, durable_).empty());
  pass(30, {b});
  EXPECT_EQ(job(id).attempt->number, 1);
  pass(3, {b});
  ASSERT_NE(job(id).attempt, nullptr);
  EXPECT_EQ(job(id).attempt->number, 2);
  EXPECT_EQ(controller_.orders_for(b, durable_).size(), 1U);
  // The old agent returns: it must end what it runs.
  controller_.hear(a, moment_);
  const ReplicaReport old{.key = {id, 1, 0}, .fence = 1};
  const auto answers = controller_.report(a, {&old, 1}, true, durable_, moment_);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].kind, OrderKind::kStop);
}

TEST_F(ClusterControllerTest, StartsAGangOnDevicesOnlyWhenTheVictimIsGone) {
  const int a = join("a", 4);
  const JobId low = submit();
  decide();
  report(a, {low, 1, 0}, false);
  pass(3600, {a});  // jobs that have just started are protected
  const JobId high = submit(R"(,"priority":5)");
  decide();
  EXPECT_EQ(job(low).phase, JobPhase::kStopping);
  EXPECT_EQ(job(high).phase, JobPhase::kStarting);
  std::vector<ReplicaOrder> orders = controller_.orders_for(a, durable_);
  ASSERT_EQ(orders.size(), 1U);
  EXPECT_EQ(orders[0].kind, OrderKind::kStop);
  report(a, {low, 1, 0}, true, 143);
  orders = controller_.orders_for(a, durable_);
  ASSERT_EQ(orders.size(), 1U);
  EXPECT_EQ(orders[0].kind, OrderKind::kStart);
  EXPECT_EQ(orders[0].key.job, high);
  EXPECT_EQ(job(low).phase, JobPhase::kPending);
  EXPECT_EQ(job(low).evictions, 1);
}

TEST_F(ClusterControllerTest, ForgetsTheEndOfAReplicaOnlyWhenItIsDurable) {
  const int node = join("a");
  const JobId id = submit();
  decide();
  const Revision fence = job(id).attempt->fence;
  const ReplicaReport over{.key = {id, 1, 0}, .fence = fence, .is_over = true};
  EXPECT_TRUE(controller_.report(node, {&over, 1}, false, durable_, moment_).empty());
  EXPECT_TRUE(controller_.report(node, {&over, 1}, false, durable_, moment_).empty());
  save();
  const auto answers = controller_.report(node, {&over, 1}, false, durable_, moment_);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].kind, OrderKind::kForget);
}

TEST_F(ClusterControllerTest, EndsJobsThatWaitForAJobThatFails) {
  const int node = join("a");
  const JobId first = submit();
  const JobId second = submit(fmt::format(R"(,"after":[{}])", first));
  const JobId third = submit(fmt::format(R"(,"after":[{}])", second));
  decide();
  EXPECT_EQ(job(second).phase, JobPhase::kPending);
  report(node, {first, 1, 0}, true, 1);
  EXPECT_EQ(job(second).phase, JobPhase::kCancelled);
  EXPECT_EQ(job(third).phase, JobPhase::kCancelled);
  EXPECT_THAT(job(third).reason, HasSubstr("which it waits for"));
}

TEST_F(ClusterControllerTest, HoldsReleasesAndCancels) {
  join("a");
  const JobId id = submit(R"(,"hold":true)");
  decide();
  EXPECT_EQ(job(id).phase, JobPhase::kPending);
  EXPECT_TRUE(controller_.set_held(id, false));
  decide();
  EXPECT_EQ(job(id).phase, JobPhase::kStarting);
  EXPECT_TRUE(controller_.cancel(id, moment_));
  EXPECT_EQ(job(id).phase, JobPhase::kStopping);
  EXPECT_TRUE(controller_.cancel(id, moment_));
  report(0, {id, 1, 0}, true, 143);
  EXPECT_EQ(job(id).phase, JobPhase::kCancelled);
  EXPECT_FALSE(controller_.set_held(id, true));
  EXPECT_EQ(controller_.cancel(99, moment_).error().code, Code::kNotFound);
}

TEST_F(ClusterControllerTest, ContinuesFromTheStoreWhereItWas) {
  const int a = join("a");
  const JobId running = submit();
  const JobId waiting = submit(R"(,"priority":-1,"roles":[{"devices":8}])");
  decide();
  report(a, {running, 1, 0}, false);
  ClusterController again = restarted();
  const ManagedJob& job_again = again.tables().jobs.at(running);
  EXPECT_EQ(job_again.phase, JobPhase::kRunning);
  EXPECT_EQ(job_again.attempt->fence, job(running).attempt->fence);
  EXPECT_EQ(again.tables().jobs.at(waiting).phase, JobPhase::kPending);
  EXPECT_EQ(again.tables().last_job, waiting);
  // Its node may still be alive: it gets no new job, and is silent only later.
  EXPECT_EQ(health_of(again.tables().nodes.at(0)), sched::NodeHealth::kCordoned);
  for (const auto& [id, loaded] : again.tables().jobs)
    EXPECT_EQ(job_change(again.tables(), loaded).value,
              job_change(controller_.tables(), job(id)).value);
}

TEST_F(ClusterControllerTest, UsesATokenOnceAndRemovesUsersWithTheirTokens) {
  ASSERT_TRUE(controller_.set_user({.name = "ada", .role = identity::AccessRole::kAdmin}));
  EXPECT_FALSE(controller_.set_user({.name = "a b"}));
  controller_.add_token({.id = "1",
                         .use = identity::TokenUse::kLogin,
                         .user = "ada",
                         .secret_hash = "h",
                         .uses_left = 1});
  controller_.add_token({.id = "2", .user = "ada", .secret_hash = "i"});
  save();
  EXPECT_EQ(controller_.use_token("h", identity::TokenUse::kLogin, moment_)->user, "ada");
  EXPECT_FALSE(controller_.use_token("h", identity::TokenUse::kLogin, moment_));
  save();
  EXPECT_FALSE(restarted().use_token("h", identity::TokenUse::kLogin, moment_));
  ASSERT_TRUE(controller_.remove_user("ada"));
  EXPECT_FALSE(controller_.remove_user("ada"));
  save();
  EXPECT_FALSE(stored_.at("token/2").value);
  EXPECT_FALSE(stored_.at("user/ada").value);
}

TEST_F(ClusterControllerTest, KeepsQueuesThatHaveJobs) {
  ASSERT_TRUE(controller_.set_quotas(R"({"queues":[{"name":"a"},{"name":"b"}]})"));
  submit(R"(,"queue":"a")");
  EXPECT_THAT(controller_.set_quotas(R"({"queues":[{"name":"b"}]})").error().message,
              HasSubstr("keep the queue"));
  EXPECT_TRUE(controller_.set_quotas(R"({"queues":[{"name":"a"}]})"));
  EXPECT_THAT(controller_.set_quotas(R"({"queues":[{"name":"a","parent":"a"}]})").error().message,
              HasSubstr("queues"));
}

TEST_F(ClusterControllerTest, OrdersThePartOfEachDeviceAlsoAfterItsRestart) {
  const int node = join("a");
  const JobId id = submit(R"(,"roles":[{"devices":2,"share":"30%","device_memory":"100MiB"}])");
  decide();
  const ReplicaSlice expected{.device_milli = 300, .device_memory_mib = 100};
  auto orders = controller_.orders_for(node, durable_);
  ASSERT_EQ(orders.size(), 1U);
  EXPECT_EQ(orders[0].slice, expected);
  ClusterController again = restarted();
  EXPECT_EQ(again.tables().jobs.at(id).attempt->replicas.at(0).slice, expected);
}

TEST_F(ClusterControllerTest, StartsNothingOnANodeThatAProberBlamesUntilItIsSilentOrTakesItBack) {
  const int node = join("a");
  controller_.set_fabric_faults({{"a", "nic a.nic0: no packets"}, {"other", "?"}}, moment_);
  const JobId id = submit();
  decide();
  EXPECT_EQ(job(id).phase, JobPhase::kPending);
  controller_.set_fabric_faults({}, moment_);
  decide();
  EXPECT_EQ(job(id).phase, JobPhase::kStarting);
  controller_.set_fabric_faults({{"a", "nic a.nic0: no packets"}}, moment_);
  const JobId next = submit();
  pass(kFabricFaultLasts.value - 1, {node});
  decide();
  EXPECT_EQ(job(next).phase, JobPhase::kPending);
  pass(2, {node});
  decide();
  EXPECT_EQ(job(next).phase, JobPhase::kStarting);
}

}  // namespace
}  // namespace regatta::control
