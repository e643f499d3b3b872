#include "regatta/platform/node_agent/agent_core.h"

#include <gmock/gmock.h>

namespace regatta::node_agent {
namespace {

using control::OrderKind;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr Seconds kLease{30};
constexpr ReplicaKey kKey{.job = 7, .attempt = 1, .replica = 0};

ReplicaOrder order(OrderKind kind, ReplicaKey key = kKey, control::Revision fence = 5) {
  return {.kind = kind, .key = key, .fence = fence};
}

TEST(AgentCore, WritesItsJournalBeforeItStartsAndStartsOnce) {
  AgentCore agent(kLease, {}, Seconds{0});
  agent.obey(order(OrderKind::kStart), Seconds{1});
  agent.obey(order(OrderKind::kStart), Seconds{1});
  const AgentActions actions = agent.take_actions();
  EXPECT_THAT(actions.journal, SizeIs(1));
  EXPECT_THAT(actions.starts, SizeIs(1));
  EXPECT_EQ(actions.journal[0].phase, EntryPhase::kStarted);
  // After its own restart it knows.
  AgentCore again(kLease, actions.journal, Seconds{1});
  EXPECT_THAT(again.started(), ElementsAre(kKey));
  again.obey(order(OrderKind::kStart), Seconds{2});
  EXPECT_THAT(again.take_actions().starts, IsEmpty());
}

TEST(AgentCore, NeverStartsWhatWasStoppedBefore) {
  AgentCore agent(kLease, {}, Seconds{0});
  agent.obey(order(OrderKind::kStop), Seconds{1});
  agent.obey(order(OrderKind::kStart), Seconds{1});
  const AgentActions actions = agent.take_actions();
  EXPECT_THAT(actions.starts, IsEmpty());
  ASSERT_THAT(actions.reports, SizeIs(2));
  EXPECT_TRUE(actions.reports[1].is_over);
}

TEST(AgentCore, RefusesAnEarlierAttempt) {
  AgentCore agent(kLease, {}, Seconds{0});
  agent.obey(order(OrderKind::kStart, {7, 2, 0}, 9), Seconds{1});
  agent.obey(order(OrderKind::kStart, {7, 1, 0}, 5), Seconds{1});
  EXPECT_THAT(agent.take_actions().starts, SizeIs(1));
}

TEST(AgentCore, EndsEachReplicaByItsOwnLease) {
  constexpr ReplicaKey kOther{.job = 8, .attempt = 1, .replica = 0};
  AgentCore agent(kLease, {}, Seconds{0});
  ReplicaOrder quick = order(OrderKind::kStart);
  quick.lease = Seconds{3};
  agent.obey(quick, Seconds{1});
  agent.obey(order(OrderKind::kStart, kOther), Seconds{1});
  const AgentActions started = agent.take_actions();
  ASSERT_THAT(started.starts, SizeIs(2));
  EXPECT_EQ(started.starts[0].lease, Seconds{3});
  EXPECT_EQ(started.starts[1].lease, kLease);
  EXPECT_EQ(agent.first_end(), Seconds{3});
  // The journal keeps it for the next agent.
  AgentCore again(kLease, started.journal, Seconds{0});
  again.answered(Seconds{2});
  again.tick(Seconds{4.9});
  EXPECT_THAT(again.take_actions().kills, IsEmpty());
  again.tick(Seconds{5.1});
  EXPECT_THAT(again.take_actions().kills, ElementsAre(kKey));
  EXPECT_EQ(again.first_end(), Seconds{32});  // what is being ended is not waited for
  quick.key = {9, 1, 0};
  again.obey(quick, Seconds{6});
  EXPECT_THAT(again.take_actions().starts, IsEmpty());
}

TEST(AgentCore, KeepsReplicasWhileAControllerIsReplaced) {
  AgentCore agent(kLease, {}, Seconds{0});
  ReplicaOrder quick = order(OrderKind::kStart);
  quick.lease = Seconds{3};
  agent.obey(quick, Seconds{1});
  agent.take_actions();
  agent.keep_until(Seconds{30});
  agent.tick(Seconds{29});
  EXPECT_THAT(agent.take_actions().kills, IsEmpty());
  agent.answered(Seconds{29});
  agent.welcomed(kLease);  // by the next one: the usual lease counts again
  agent.tick(Seconds{31});
  EXPECT_THAT(agent.take_actions().kills, IsEmpty());
  agent.tick(Seconds{33});
  EXPECT_THAT(agent.take_actions().kills, ElementsAre(kKey));
}

TEST(AgentCore, RepeatsAnEndUntilItIsToldToForget) {
  AgentCore agent(kLease, {}, Seconds{0});
  agent.obey(order(OrderKind::kStart), Seconds{1});
  agent.ended(kKey, 3, 0, false, Seconds{2.5});
  agent.take_actions();
  agent.tick(Seconds{2});
  AgentActions actions = agent.take_actions();
  ASSERT_THAT(actions.reports, SizeIs(1));
  EXPECT_EQ(actions.reports[0].exit_status, 3);
  EXPECT_EQ(actions.reports[0].running_for, Seconds{2.5});
  agent.obey(order(OrderKind::kForget), Seconds{3});
  agent.tick(Seconds{4});
  actions = agent.take_actions();
  EXPECT_THAT(actions.reports, IsEmpty());
  EXPECT_THAT(agent.complete_report(), IsEmpty());
}

TEST(AgentCore, EndsItsReplicasWhenItHasHeardNothingForItsLease) {
  AgentCore agent(kLease, {}, Seconds{0});
  agent.obey(order(OrderKind::kStart), Seconds{1});
  agent.answered(Seconds{10});
  agent.tick(Seconds{40});
  EXPECT_THAT(agent.take_actions().kills, IsEmpty());
  agent.tick(Seconds{40.5});
  EXPECT_THAT(agent.take_actions().kills, ElementsAre(kKey));
  agent.ended(kKey, 0, 9, false);
  EXPECT_TRUE(agent.complete_report().at(0).is_node_fault);
  agent.obey(order(OrderKind::kStart, {8, 1, 0}, 20), Seconds{41});
  EXPECT_THAT(agent.take_actions().starts, IsEmpty());
}

TEST(AgentCore, DoesNotProlongTheLeaseByItsOwnRestart) {
  AgentCore agent(kLease, {{.key = kKey, .fence = 5}}, Seconds{10});
  agent.tick(Seconds{40.5});
  EXPECT_THAT(agent.take_actions().kills, ElementsAre(kKey));
}

TEST(AgentCore, CompactsItsJournalToWhatCounts) {
  const std::vector<JournalEntry> journal = {
      {.key = kKey, .fence = 5},
      {.key = {8, 1, 0}, .fence = 6},
      {.key = kKey, .fence = 5, .phase = EntryPhase::kOver},
      {.key = kKey, .fence = 5, .phase = EntryPhase::kForgotten}};
  EXPECT_THAT(compacted(journal), ElementsAre(journal[1]));
}

}  // namespace
}  // namespace regatta::node_agent
