// Blocking sets agree with decide(): without its jobs the job starts, and with one of them left it
// does not.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "regatta/platform/packing/random_sequence.h"
#include "regatta/platform/sched/decide.h"
#include "regatta/platform/sched/start_prediction.h"
#include "regatta/platform/sched/test_states.h"

namespace regatta::sched {
namespace {

struct State {
  ClusterSnapshot snapshot;
  JobQueue queue;
  SchedulingPolicy policy = *find_scheduling_policy("backfill");

  BlockingSet blocking() const {
    const auto set = blocking_set(snapshot, queue, policy, queue.jobs[0].request.name);
    EXPECT_TRUE(set) << set.error().message;
    return set ? *set : BlockingSet{};
  }
  // Whether the first pending job starts.
  bool starts() const {
    const auto decision = decide(snapshot, queue, policy);
    EXPECT_TRUE(decision) << decision.error().message;
    const SchedulingAction* const action = find_action(*decision, queue.jobs[0].request.name);
    return action != nullptr && action->kind == ActionKind::kStart;
  }
  State without(const std::vector<std::string>& names) const {
    State rest = *this;
    std::erase_if(rest.snapshot.running, [&](const RunningJob& job) {
      return std::count(names.begin(), names.end(), job.request.name) > 0;
    });
    return rest;
  }
};

std::vector<std::string> names_of(const BlockingSet& set) {
  std::vector<std::string> names;
  for (const BlockingLimit& limit : set.limits)
    for (const BlockingJob& job : limit.jobs)
      names.push_back(job.job);
  for (const BlockingJob& job : set.jobs)
    names.push_back(job.job);
  return names;
}

JobRequest share_of(const std::string& name, int milli) {
  JobRequest job = gang(name, 1, 1);
  job.roles[0].device_milli = milli;
  job.roles[0].device_memory_mib = 1024;
  return job;
}

TEST(BlockingSet, HalvesOfTwoDevicesAreNoWholeOne) {
  State state{.snapshot = cluster_of(1), .queue = {}};
  state.snapshot.nodes[0].devices = 2;
  for (const int device : {0, 1}) {
    RunningJob half = running(share_of("half-" + std::to_string(device), 500), {});
    half.replicas = {{.role = 0, .node = 0, .devices = 1U << device}};
    state.snapshot.running.push_back(half);
  }
  state.snapshot.running[1].request.run_time.median = {7200};
  state.queue.jobs = {pending(gang("whole", 1, 1))};
  EXPECT_EQ(state.blocking().sentence,
            "waits for 1 of 1 device on one server; held by job half-0 for about 6 s");
}

TEST(BlockingSet, LeavesSparesFree) {
  State state{.snapshot = cluster_of(6), .queue = {}};
  state.snapshot.running = {running(gang("large", 4, 8), {0, 1, 2, 3}),
                            running(gang("small", 1, 8), {4})};
  state.snapshot.running[0].request.run_time.median = {90000};
  state.queue.jobs = {pending(gang("waits", 1, 8))};
  EXPECT_EQ(state.blocking().sentence, "waits for its turn; its 8 devices on one server are free");
  state.policy.spares = {.nodes = 1, .share = 0, .gang_devices = 32};
  EXPECT_EQ(names_of(state.blocking()), std::vector<std::string>{"small"});
  state.policy.spares.nodes = 2;
  EXPECT_EQ(names_of(state.blocking()), std::vector<std::string>{"large"})
      << "the node of job small would be kept free too";
}

TEST(BlockingSet, OfSeveralDeviceTypesHasTheOneWithTheFewestJobs) {
  State state{.snapshot = cluster_of(2), .queue = {}};
  state.snapshot.nodes[1].device_type = "a100";
  state.queue.quotas = *QuotaTree::create(
      {{.name = "a", .parent = "", .device_types = {{.type = "h100", .limit = 4000}}}});
  RunningJob holder = running(gang("holder", 1, 8), {1});
  holder.request.queue = "a";
  state.snapshot.running = {holder};
  JobRequest job = gang("waits", 1, 8);
  job.queue = "a";
  state.queue.jobs = {pending(job)};
  EXPECT_EQ(state.blocking().sentence,
            "waits for 8 of 8 devices of type a100 on one server; held by job holder for about 6 "
            "s");
}

TEST(BlockingSet, SaysThatNodesAreAwayWhereTheOthersDoNotSuffice) {
  State state{.snapshot = cluster_of(2), .queue = {}};
  state.snapshot.nodes[1].health = NodeHealth::kFailed;
  state.queue.jobs = {pending(gang("waits", 2, 8))};
  EXPECT_EQ(state.blocking().sentence,
            "waits for node n1, which is not ready or has failed devices: without it the cluster "
            "does not hold its 16 devices; would start now with 8 devices");
  EXPECT_FALSE(state.blocking().never_fits);
}

TEST(BlockingSet, ADegradedGangHasNoKnownEnd) {
  State state{.snapshot = cluster_of(2), .queue = {}};
  state.snapshot.running = {running(gang("degraded", 2, 8), {0, 1})};
  state.snapshot.nodes[1].failed_devices = 1;
  state.queue.jobs = {pending(gang("waits", 1, 8))};
  EXPECT_EQ(state.blocking().sentence,
            "waits for 8 of 8 devices on one server; held by job degraded, which keeps its places "
            "until what it lost returns");
  const auto start = predict_starts(state.snapshot, state.queue, state.policy, {}, {});
  ASSERT_TRUE(start);
  EXPECT_FALSE(std::isfinite(start->front().start.value));
}

TEST(BlockingSet, SaysThatAQueueIsOwedWhatTheJobTakes) {
  State state{.snapshot = cluster_of(1), .queue = {}};
  QuotaQueue owed{.name = "owed", .parent = ""};
  owed.guaranteed[Resource::kCompute] = 4000;
  state.queue.quotas = *QuotaTree::create({owed, {.name = "other", .parent = ""}});
  RunningJob holder = running(gang("holder", 1, 8), {0});
  holder.request.queue = "other";
  state.snapshot.running = {holder};
  JobRequest job = gang("waits", 1, 4);
  job.queue = "owed";
  state.queue.jobs = {pending(job)};
  EXPECT_FALSE(state.blocking().is_owed) << "policy backfill takes nothing back";
  state.policy = *find_scheduling_policy("regatta");
  EXPECT_TRUE(state.blocking().is_owed);
  state.queue.jobs[0].request.roles[0].devices = 5;
  EXPECT_FALSE(state.blocking().is_owed);
}

TEST(BlockingSet, ASmallerSizeThatOthersHoldUpDoesNotStartNow) {
  State state{.snapshot = cluster_of(2), .queue = {}};
  state.snapshot.running = {running(gang("holder", 1, 8), {0})};
  state.queue.jobs = {pending(gang("waits", 2, 8)), pending(gang("first", 2, 8))};
  EXPECT_EQ(state.blocking().startable_devices, 8);
  state.queue.jobs[1].request.priority = 1;
  state.policy.backfill = BackfillRule::kNone;
  EXPECT_EQ(state.blocking().startable_devices, 0);
}

// A cluster of 4 nodes of 4 devices, of two types, with shares and whole devices in use, limits by
// queue, user and type, and perhaps spares.
State random_state(packing::RandomSequence& random) {
  const auto below = [&](std::uint64_t count) { return static_cast<int>(random.below(count)); };
  State state{.snapshot = cluster_of(4, 2), .queue = {}};
  QuotaQueue a{.name = "a", .parent = ""};
  if (below(3) == 0) a.limit[0] = 1000 * (4 + below(5));
  if (below(3) == 0) a.user_limit[0] = 1000 * (3 + below(4));
  if (below(2) == 0) a.device_types = {{.type = "h100", .limit = 1000 * (2 + below(5))}};
  state.queue.quotas = *QuotaTree::create({a, {.name = "b", .parent = ""}});
  if (below(2) == 0) state.policy.spares = {.nodes = 1 + below(2), .share = 0, .gang_devices = 4};
  const auto place = [&](JobRequest job, int node, std::uint32_t devices) {
    job.queue = below(2) == 0 ? "a" : "b";
    job.user = below(2) == 0 ? "u" : "v";
    job.run_time.median = {4000.0 + below(9000)};
    RunningJob made = running(job, {});
    made.replicas = {{.role = 0, .node = node, .devices = devices}};
    state.snapshot.running.push_back(made);
  };
  for (int node = 0; node < 4; ++node) {
    ClusterNode& each = state.snapshot.nodes[static_cast<std::size_t>(node)];
    each.devices = 4;
    if (node >= 3) each.device_type = "a100";
    if (below(12) == 0) each.health = NodeHealth::kCordoned;
    const auto name = [&] { return "r" + std::to_string(state.snapshot.running.size()); };
    const int use = below(4);
    if (use == 0) place(gang(name(), 1, 4), node, 0xf);
    for (int device = 0; device < 4 && use > 1; ++device) {
      const int share = below(3);
      if (share == 1) place(share_of(name(), 500), node, 1U << device);
      if (share == 2) place(gang(name(), 1, 1), node, 1U << device);
    }
  }
  JobRequest job = gang("j", 1 + below(2), 1 + below(4));
  job.queue = below(2) == 0 ? "a" : "b";
  job.user = below(2) == 0 ? "u" : "v";
  if (below(2) == 0) job.device_types = {"h100"};
  state.queue.jobs = {pending(job)};
  return state;
}

TEST(BlockingSet, AgreesWithDecisionsOnRandomStates) {
  int blocked = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(seed);
    packing::RandomSequence random(seed);
    const State state = random_state(random);
    const BlockingSet set = state.blocking();
    const std::vector<std::string> names = names_of(set);
    if (set.never_fits || !set.nodes.empty()) {
      std::vector<std::string> all;
      for (const RunningJob& job : state.snapshot.running)
        all.push_back(job.request.name);
      EXPECT_FALSE(state.without(all).starts()) << set.sentence;
      continue;
    }
    EXPECT_EQ(state.starts(), names.empty()) << set.sentence;
    EXPECT_TRUE(state.without(names).starts()) << set.sentence;
    blocked += names.empty() ? 0 : 1;
    for (const std::string& kept : names) {
      std::vector<std::string> fewer = names;
      std::erase(fewer, kept);
      EXPECT_FALSE(state.without(fewer).starts()) << kept << " is needless: " << set.sentence;
    }
  }
  EXPECT_GT(blocked, 100);
}

}  // namespace
}  // namespace regatta::sched
