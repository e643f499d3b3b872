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
    controller_.remove_old(durable_, moment_);
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
  EXPECT_TRUE(controller_.tables().nodes.at(0).is_silent);
  EXPECT_EQ(health_of(controller_.tables().nodes.at(0)), sched::NodeHealth::kCordoned);
  decide();  // it may still return with its job
  EXPECT_EQ(job(id).phase, JobPhase::kRunning);
  EXPECT_TRUE(controller_.orders_for(b, durable_).empty());
  pass(30, {b});
  EXPECT_EQ(job(id).attempt->number, 1);
  pass(3, {b});
  EXPECT_EQ(health_of(controller_.tables().nodes.at(0)), sched::NodeHealth::kFailed);
  decide();
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
  const Status last = controller_.set_user({.name = "ada"});
  ASSERT_FALSE(last);
  EXPECT_THAT(last.error().message, HasSubstr("the last admin"));
  EXPECT_FALSE(controller_.set_user(
      {.name = "ada", .role = identity::AccessRole::kAdmin, .is_disabled = true}));
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

TEST(JobOfHandle, IsItsNumberAndNoneOfANegativeOne) {
  EXPECT_EQ(job_of_handle("bert-17"), 17);
  EXPECT_EQ(job_of_handle("bert-2-17"), 17);
  EXPECT_EQ(job_of_handle("17"), 17);
  EXPECT_EQ(job_of_handle("-1"), 0);
  EXPECT_EQ(job_of_handle("bert"), 0);
}

TEST_F(ClusterControllerTest, RefusesNamesThatNoCommandCouldSay) {
  const std::string rest = R"(,"command":["x"],"roles":[{"devices":1}]})";
  for (const char* name : {"a b", "a/b", "a[1]", "$(a)"})
    EXPECT_THAT(error_of(fmt::format(R"({{"name":"{}"{})", name, rest)), HasSubstr("name: "))
        << name;
  EXPECT_EQ(error_of(R"({"name":"bert-2.1_x")" + rest), "");
  EXPECT_THAT(error_of(spec(R"(,"queue":"nowhere")")), HasSubstr("job: queue 'nowhere'"));
}

TEST_F(ClusterControllerTest, RemovesJobsThatWereOverLongAgo) {
  controller_ = ClusterController({.ended_kept = Seconds{100}, .once_kept = Seconds{50}}, {});
  const int node = join("a");
  const JobId first = submit("", "key");
  decide();
  report(node, controller_.orders_for(node, durable_).at(0).key, true);
  const JobId second = submit(R"(,"after":[1],"hold":true)");
  const JobId third = submit();
  ASSERT_TRUE(controller_.cancel(third, moment_));
  pass(60, {node});
  EXPECT_EQ(submit("", "key"), 4);  // the key of an earlier day is a new one
  pass(60, {node});
  EXPECT_EQ(controller_.tables().find_job(first), nullptr);
  EXPECT_EQ(controller_.tables().find_job(third), nullptr);
  EXPECT_FALSE(stored_.at(job_key(first)).value);
  EXPECT_THAT(error_of(spec(R"(,"after":[1])")), HasSubstr("is removed"));
  EXPECT_THAT(error_of(spec(R"(,"after":[99])")), HasSubstr("there is no job 99"));
  // A job that waited for one that succeeded starts all the same.
  ASSERT_TRUE(controller_.set_held(second, false));
  decide();
  EXPECT_EQ(job(second).phase, JobPhase::kStarting);
}

TEST_F(ClusterControllerTest, KeepsTheLastNumberAndNotMoreEndedJobsThanItMay) {
  controller_ = ClusterController({.ended_most = 1}, {});
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(controller_.cancel(submit(), moment_));
  pass(1, {});
  EXPECT_EQ(controller_.tables().jobs.size(), 1U);
  EXPECT_EQ(restarted().tables().last_job, 3);
}

TEST_F(ClusterControllerTest, PlacesAJobOfAQueueWithAShortLeaseAgainWithinSeconds) {
  ASSERT_TRUE(controller_.set_quotas(
      R"({"queues":[{"name":"quick","lease":"3s"},{"name":"kept","lease":"never"}]})"));
  const int a = join("a", 8);
  const JobId quick = submit(R"(,"queue":"quick")");
  const JobId kept = submit(R"(,"queue":"kept")");
  decide();
  const int b = join("b", 8);
  pass(1, {a, b});
  for (const ReplicaOrder& order : controller_.orders_for(a, durable_))
    EXPECT_EQ(order.lease, order.key.job == quick ? Seconds{3} : sched::kLeaseNever);
  report(a, {quick, 1, 0}, false);
  report(a, {kept, 1, 0}, false);
  pass(3, {b});
  decide();
  EXPECT_EQ(job(quick).attempt->number, 1);  // 3 s are over, but not a quarter more
  pass(1, {b});
  decide();
  EXPECT_EQ(job(quick).attempt->number, 2);
  EXPECT_EQ(controller_.orders_for(b, durable_).size(), 1U);
  pass(1000, {b});
  EXPECT_EQ(job(kept).phase, JobPhase::kRunning);
}

TEST_F(ClusterControllerTest, WaitsLongerForNodesThatItHasNotHeardSinceItsStart) {
  ASSERT_TRUE(controller_.set_quotas(R"({"queues":[{"name":"quick","lease":"3s"}]})"));
  const int a = join("a", 4);
  const JobId id = submit(R"(,"queue":"quick")");
  decide();
  report(a, {id, 1, 0}, false);
  // The one before may have let it keep its replicas, and a connection alone ends that not yet.
  controller_ = restarted();
  join("a", 4);
  pass(37, {});
  EXPECT_EQ(job(id).phase, JobPhase::kRunning);
  pass(1, {});
  EXPECT_EQ(job(id).phase, JobPhase::kPending);
}

TEST_F(ClusterControllerTest, GivesAnAgentOfBeforeTheLeaseThatItKnows) {
  ASSERT_TRUE(controller_.set_quotas(R"({"queues":[{"name":"quick","lease":"3s"}]})"));
  const int a = join("a", 4);
  const JobId id = submit(R"(,"queue":"quick")");
  decide();
  EXPECT_EQ(job(id).attempt->lease, Seconds{3});
  const auto node = controller_.join({.facts = controller_.tables().nodes.at(0).facts,
                                      .address = "a",
                                      .journal_id = "j",
                                      .has_replica_leases = false},
                                     moment_);
  ASSERT_EQ(*node, a);
  save();
  EXPECT_EQ(job(id).attempt->lease, Seconds{30});
}

TEST_F(ClusterControllerTest, DoesNotTakeItsOwnStandstillForSilence) {
  const int a = join("a", 4);
  const JobId id = submit();
  decide();
  pass(1, {a});
  moment_.now += Seconds{600};  // it was stopped, and its messages wait
  controller_.tick(moment_);
  EXPECT_FALSE(controller_.tables().nodes.at(0).is_silent);
  EXPECT_EQ(job(id).phase, JobPhase::kStarting);
}

TEST_F(ClusterControllerTest, GrowsAnElasticJobIntoFreeDevicesAndShrinksItForOthers) {
  join("a", 4);
  const JobId other = submit(R"(,"roles":[{"devices":3}])");
  decide();
  report(0, {other, 1, 0}, false);
  const JobId elastic = submit(
      R"(,"roles":[{"replicas":1,"replicas_max":4,"devices":1}],"checkpoint":{"interval":"10s","restart":"20s"})");
  decide();
  ASSERT_EQ(job(elastic).attempt->replicas.size(), 1U);
  report(0, {elastic, 1, 0}, false);
  report(0, {other, 1, 0}, true);
  decide();
  ASSERT_EQ(job(elastic).attempt->stop, StopCause::kMoved) << job(elastic).reason;
  report(0, {elastic, 1, 0}, true, 143);
  ASSERT_EQ(job(elastic).attempt->replicas.size(), 4U) << "it does not know when it ends";
  EXPECT_EQ(controller_.orders_for(0, durable_).front().world_size, 4);
  for (int replica = 0; replica < 4; ++replica)
    report(0, {elastic, 2, replica}, false);
  moment_.now += Seconds{3600};
  const JobId urgent = submit(R"(,"priority":10,"roles":[{"devices":2}])");
  decide();
  ASSERT_NE(job(elastic).attempt->stop, StopCause::kNone) << job(urgent).reason;
  for (int replica = 0; replica < 4; ++replica)
    report(0, {elastic, 2, replica}, true, 143);
  decide();  // where an eviction costs as little, it starts anew
  ASSERT_NE(job(elastic).attempt, nullptr) << job(elastic).reason;
  EXPECT_EQ(job(elastic).attempt->replicas.size(), 2U);
  EXPECT_EQ(job(urgent).phase, JobPhase::kStarting);
  EXPECT_EQ(job(elastic).failures, 0);
}

TEST_F(ClusterControllerTest, RunsAnArraySoManyAtATimeAndEndsAllOfItByItsHandle) {
  join("a");
  const JobId first = submit(R"(,"roles":[{"devices":1}],"array":"3-8%2")");
  const ClusterTables& tables = controller_.tables();
  EXPECT_EQ(tables.jobs.size(), 6U);
  EXPECT_EQ(handle_of(tables.jobs.at(first + 1)), fmt::format("train-{}[4]", first));
  EXPECT_EQ(find_handle(tables, fmt::format("train-{}[8]", first))->id, first + 5);
  EXPECT_EQ(find_handle(tables, fmt::format("train-{}[9]", first)), nullptr);
  EXPECT_EQ(tables.jobs.at(first + 1).spec, "") << "the spec is kept once";
  decide();
  EXPECT_EQ(tables.live.size(), 2U);
  const std::vector<ReplicaOrder> orders = controller_.orders_for(0, durable_);
  ASSERT_EQ(orders.size(), 2U);
  EXPECT_THAT(orders[1].environment, testing::Contains(testing::Pair("REGATTA_ARRAY_INDEX", "4")));
  report(0, {first, 1, 0}, true);
  decide();
  EXPECT_EQ(tables.jobs.at(first).phase, JobPhase::kSucceeded);
  EXPECT_EQ(tables.live.size(), 2U);
  EXPECT_EQ(jobs_of_handle(tables, fmt::format("train-{}", first)).size(), 6U);
  EXPECT_EQ(jobs_of_handle(tables, fmt::format("train-{}[3]", first)).size(), 1U);
  EXPECT_THAT(error_of(spec(R"(,"array":"9-3")")), HasSubstr("array"));
}

TEST_F(ClusterControllerTest, KeepsGangsWithinARecord) {
  EXPECT_THAT(error_of(spec(R"(,"roles":[{"replicas":20000,"cpus":0.01}])")),
              testing::HasSubstr("20000 replicas are more than the 13"));
  const JobId id = submit(R"(,"roles":[{"replicas":12000,"cpus":0.01}])");
  const int node = join("n0");
  const int long_node = join(std::string(200, 'n'));
  EXPECT_FALSE(controller_.start(id, std::vector<Replica>(12000, {.node = long_node}), moment_));
  EXPECT_TRUE(controller_.start(id, std::vector<Replica>(12000, {.node = node}), moment_));
  save();
  for (const auto& [key, change] : stored_)
    EXPECT_LE(change.value->size(), store::kValueMost) << key;
}

TEST_F(ClusterControllerTest, StartsOnAStoreWithRecordsOfANewerOne) {
  ClusterTables tables;
  EXPECT_TRUE(load_record({"forecast/17", 41, "any bytes"}, moment_.now, tables));
  EXPECT_TRUE(finish_loading(41, tables));
  EXPECT_EQ(tables.last_revision, 41);
  EXPECT_FALSE(load_record({"job/000000000017", 42, "\xff"}, moment_.now, tables));
}

TEST_F(ClusterControllerTest, RefusesTextsThatARecordHasNoRoomFor) {
  // Within the bound of the format, and beyond half of a record.
  std::string variables;
  for (int i = 0; i < 6; ++i)
    variables += fmt::format(R"({}"A{}":"{}")", i > 0 ? "," : "", i, std::string(100'000, 'x'));
  const std::string big = R"(,"environment":{)" + variables + "}";
  EXPECT_THAT(error_of(spec(big)), testing::HasSubstr("more than 524288; make it smaller"));
  const Status quotas =
      controller_.set_quotas(std::string(600'000, ' ') + R"({"queues":[{"name":"default"}]})");
  ASSERT_FALSE(quotas);
  EXPECT_THAT(quotas.error().message, testing::HasSubstr("more than 524288"));
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

TEST_F(ClusterControllerTest, StartsNothingOnDevicesThatTheAgentFindsBroken) {
  const int first = join("n1");
  controller_.set_failed_devices(first, 0x3f);
  const JobId job = submit();
  decide();
  EXPECT_EQ(controller_.tables().find_job(job)->phase, JobPhase::kPending);
  controller_.set_failed_devices(first, 0x0f);
  decide();
  ASSERT_NE(controller_.tables().find_job(job)->attempt, nullptr);
  EXPECT_EQ(controller_.tables().find_job(job)->attempt->replicas.front().devices, 0xf0U);
}

TEST_F(ClusterControllerTest, KeepsWhatWasObservedOverARestart) {
  controller_.set_observed("observed/a", "1");
  controller_.set_observed("observed/b", "2");
  save();
  controller_.set_observed("observed/b", std::nullopt);
  controller_.set_observed("observed/never", std::nullopt);
  save();
  const ClusterController again = restarted();
  ASSERT_EQ(again.tables().observed.size(), 1U);
  EXPECT_EQ(again.tables().observed.at("observed/a").value, "1");
  EXPECT_FALSE(stored_.contains("observed/never"));
}

}  // namespace
}  // namespace regatta::control
