#include "regatta/network/heal/internal/linux_switches.h"

#include <algorithm>
#include <filesystem>
#include <random>

#include <gmock/gmock.h>
#include <linux/fib_rules.h>

#include "regatta/base/os/clock.h"
#include "regatta/network/heal/healer.h"
#include "regatta/network/heal/test_lab.h"

namespace regatta::heal {
namespace {

using testing::SizeIs;

class LinuxSwitchesOfALab : public HealerLabTest {
 protected:
  // Between random servers of different leaves: the flows, and where they go.
  void make_flows(int count) {
    std::mt19937 random(11);
    const int servers = static_cast<int>(lab_.servers.size());
    while (static_cast<int>(flows_.size()) < count) {
      const int from = static_cast<int>(random()) & 0xffff;
      const int to = static_cast<int>(random()) & 0xffff;
      if (leaf_of(from % servers) == leaf_of(to % servers)) continue;
      const auto port = [&] { return static_cast<std::uint16_t>(1 + random() % 65535); };
      flows_.push_back({.from = address(from % servers),
                        .to = address(to % servers),
                        .from_port = port(),
                        .to_port = port(),
                        .protocol = static_cast<std::uint8_t>(random() % 2 == 0 ? 6 : 17)});
      ends_.emplace_back(leaf_of(from % servers), leaf_of(to % servers));
    }
  }

  // By which link each flow leaves every switch on its path, as the kernels say; how many of these
  // are as predicted.
  std::vector<std::vector<std::uint32_t>> walk(const Tables& tables) {
    std::vector<std::vector<std::uint32_t>> paths(flows_.size());
    std::vector<NodeId> at;
    for (const auto& [from, to] : ends_)
      at.push_back(from);
    for (int hop = 0; hop < 4; ++hop) {
      std::map<NodeId, std::vector<std::size_t>> here;
      for (std::size_t i = 0; i < flows_.size(); ++i)
        if (at[i] != ends_[i].second) here[at[i]].push_back(i);
      for (const auto& [node, which] : here) {
        std::vector<fabric::FiveTuple> asked;
        for (const std::size_t i : which)
          asked.push_back(flows_[i]);
        const auto links = taken(node, asked);
        EXPECT_EQ(links.size(), asked.size());
        for (std::size_t k = 0; k < which.size(); ++k) {
          paths[which[k]].push_back(links[k]);
          ++asked_;
          right_ += links[k] == predicted(tables, node, asked[k], ends_[which[k]].second) ? 1 : 0;
          at[which[k]] = paths_->end_of[links[k]];
        }
      }
    }
    return paths;
  }

  std::vector<fabric::FiveTuple> flows_;
  std::vector<std::pair<NodeId, NodeId>> ends_;
  long asked_ = 0;
  long right_ = 0;
};

TEST_F(LinuxSwitchesOfALab, FindTheRoutesThatTheLabInstalled) {
  bring_up(lab_text("find", 8, 3, 6));
  if (IsSkipped()) return;
  const auto installed = switches_->installed();
  ASSERT_TRUE(installed) << installed.error().message;
  EXPECT_FALSE(installed->empty());
  for (const Installed& one : *installed)
    EXPECT_EQ(one.parts, even_parts(paths_->routes.next_hops(one.node, one.leaf)));
  const auto carriers = switches_->carriers();
  ASSERT_TRUE(carriers);
  EXPECT_THAT(*carriers, SizeIs(0));
}

// Three tiers, four faults one after the other: at every switch each of 10,000 flows goes where the
// model says, and none moves whose path was healthy.
TEST_F(LinuxSwitchesOfALab, MoveNoHealthyFlowAndSendEachAsPredicted) {
  bring_up(lab_text("moves", 8, 3, 6));
  if (IsSkipped()) return;
  if (!std::filesystem::exists("/proc/sys/net/ipv4/fib_multipath_hash_seed"))
    GTEST_SKIP() << "this kernel has no hash seed per namespace";
  make_flows(10'000);
  Tables tables(*paths_);
  auto before = walk(tables);
  const std::vector<Fault> all = {{Place::kSwitch, 0, node("spine1"), Harm::kBlackHole},
                                  {Place::kLink, link("leaf2", "spine3"), {}, Harm::kBlackHole},
                                  {Place::kLink, link("spine4", "leaf3"), {}, Harm::kLoss},
                                  {Place::kSwitch, 0, node("super0"), Harm::kBlackHole}};
  std::vector<Fault> faults;
  for (const Fault& fault : all) {
    faults.push_back(fault);
    const auto changes = tables.changes(decide(*paths_, faults));
    ASSERT_FALSE(changes.empty());
    const Status applied = first_failure(switches_->apply(changes));
    ASSERT_TRUE(applied) << applied.error().message;
    tables.apply(changes);
    const auto after = walk(tables);
    int moved = 0;
    int were_broken = 0;
    for (std::size_t i = 0; i < flows_.size(); ++i) {
      const bool was_broken = std::ranges::any_of(before[i], [&](std::uint32_t link) {
        return fault.place == Place::kSwitch ? paths_->end_of[link] == fault.node
                                             : link == fault.link;
      });
      were_broken += was_broken ? 1 : 0;
      if (!was_broken && after[i] != before[i]) ++moved;
    }
    EXPECT_EQ(moved, 0) << to_string(graph_, fault);
    EXPECT_GT(were_broken, 50) << to_string(graph_, fault);
    before = after;
  }
  const auto back = tables.changes({});
  ASSERT_TRUE(first_failure(switches_->apply(back)));
  tables.apply(back);
  for (const Installed& one : installed())
    EXPECT_EQ(one.parts, even_parts(paths_->routes.next_hops(one.node, one.leaf)));
  walk(tables);
  EXPECT_EQ(right_, asked_);
  std::printf("%ld of %ld choices as predicted\n", right_, asked_);
}

// Else an answer that never came would be taken for an empty one.
TEST_F(LinuxSwitchesOfALab, FailWhenAKernelRefusesToTell) {
  bring_up(lab_text("refuses", 4, 2, 0));
  if (IsSkipped()) return;
  const auto space = lab::open_network(lab_, "leaf0");
  ASSERT_TRUE(space);
  const auto socket = RouteSocket::open(*space, 0);
  ASSERT_TRUE(socket);
  EXPECT_TRUE(socket->dump(RTM_GETLINK, [](const nlmsghdr&) {}));
  constexpr unsigned short kNoSuchThing = RTM_MAX + 3;  // of those that ask, as 2 modulo 4 says
  EXPECT_FALSE(socket->dump(kNoSuchThing, [](const nlmsghdr&) {}));
}

TEST_F(LinuxSwitchesOfALab, TellCarriersThatGoAndCome) {
  bring_up(lab_text("carrier", 4, 2, 0));
  if (IsSkipped()) return;
  ASSERT_TRUE(switches_->carriers());
  for (const bool up : {false, true}) {
    set_up("spine1", "leaf0", up);
    std::vector<NodeId> told;
    const Seconds end = os::monotonic_now() + Seconds{5};
    while (told.size() < 2 && os::monotonic_now() < end) {
      const auto changes = switches_->carriers();
      ASSERT_TRUE(changes);
      for (const CarrierChange& change : *changes) {
        EXPECT_EQ(change.up, up);
        EXPECT_EQ(graph_.links[change.link.index()].name, "leaf0-spine1");
        told.push_back(change.node);
      }
      os::sleep_for(Seconds{0.001});
    }
    EXPECT_THAT(told, testing::UnorderedElementsAre(node("leaf0"), node("spine1"))) << up;
  }
}

// Else a prober could not tell when a broken path is well again, nor which path its packets take.
TEST_F(LinuxSwitchesOfALab, KeepProbesOnThePathsThatWereMeant) {
  bring_up(lab_text("probes", 4, 3, 0));
  if (IsSkipped()) return;
  if (!std::filesystem::exists("/proc/sys/net/ipv4/fib_multipath_hash_seed"))
    GTEST_SKIP() << "this kernel has no hash seed per namespace";
  make_flows(300);
  flows_.erase(std::remove_if(flows_.begin(), flows_.end(),
                              [&](const auto& flow) { return flow.from != address(0); }),
               flows_.end());
  ASSERT_GT(flows_.size(), 30U);
  ASSERT_TRUE(switches_->keep_probe_paths());
  const auto meant = taken(node("leaf0"), flows_);
  const std::vector<Fault> faults = {{Place::kSwitch, 0, node("spine1"), Harm::kBlackHole}};
  ASSERT_TRUE(first_failure(switches_->apply(Tables(*paths_).changes(decide(*paths_, faults)))));
  EXPECT_NE(taken(node("leaf0"), flows_), meant);
  EXPECT_EQ(taken(node("leaf0"), flows_, topo::kProbeTos), meant);
  // Also after the interface of one was off, and for a second healer.
  ASSERT_TRUE(switches_->carriers());
  set_up("leaf0", "spine2", false);
  set_up("spine0", "leaf1", false);
  set_up("leaf0", "spine2", true);
  set_up("spine0", "leaf1", true);
  const Seconds end = os::monotonic_now() + Seconds{5};
  for (std::size_t told = 0; told < 4 && os::monotonic_now() < end;) {
    const auto changes = switches_->carriers();
    ASSERT_TRUE(changes);
    for (const CarrierChange& change : *changes)
      told += change.up ? 1 : 0;
    os::sleep_for(Seconds{0.001});
  }
  EXPECT_EQ(taken(node("leaf0"), flows_, topo::kProbeTos), meant);
  EXPECT_EQ(taken(node("spine0"), flows_, topo::kProbeTos),
            std::vector<std::uint32_t>(flows_.size(), link("spine0", "leaf1")));
  EXPECT_TRUE(switches_->keep_probe_paths());
}

// The rules for packets of a type of service that a switch has.
int probe_rules(const lab::LabInfo& lab, const std::string& name) {
  const auto space = lab::open_network(lab, name);
  const auto socket = RouteSocket::open(*space, 0);
  EXPECT_TRUE(socket);
  int rules = 0;
  EXPECT_TRUE(socket->dump(RTM_GETRULE, [&](const nlmsghdr& message) {
    const auto* head = static_cast<const fib_rule_hdr*>(NLMSG_DATA(&message));
    rules += head->tos == topo::kProbeTos ? 1 : 0;
  }));
  return rules;
}

TEST_F(LinuxSwitchesOfALab, LeaveNoRuleBehindHoweverOftenTheyKeptProbePaths) {
  bring_up(lab_text("rules", 4, 2, 0));
  if (IsSkipped()) return;
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(switches_->keep_probe_paths());
  EXPECT_EQ(probe_rules(lab_, "leaf0"), 1);
  const auto removed = switches_->remove_probe_paths();
  ASSERT_TRUE(removed) << removed.error().message;
  for (const char* const name : {"leaf0", "leaf1", "spine0", "spine1"})
    EXPECT_EQ(probe_rules(lab_, name), 0) << name;
  EXPECT_TRUE(switches_->remove_probe_paths());
  ASSERT_TRUE(switches_->keep_probe_paths());
  EXPECT_EQ(probe_rules(lab_, "spine1"), 1);
}

// Routes of one switch, changed as `ip route` does.
void change_routes(const lab::LabInfo& lab, const std::string& name,
                   const std::vector<std::string>& arguments) {
  const auto space = lab::open_network(lab, name);
  ASSERT_TRUE(space);
  std::vector<std::string> argv = {"ip", "route"};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  const auto pid = os::spawn(argv, {.namespaces = {space->get()}});
  ASSERT_TRUE(pid) << pid.error().message;
  const auto end = os::wait_for(*pid, Seconds{5});
  ASSERT_TRUE(end && end->is_success());
}

TEST_F(LinuxSwitchesOfALab, GetBackRoutesThatAnotherProgramRemovesOrReplaces) {
  bring_up(lab_text("foreign", 4, 2, 0));
  if (IsSkipped()) return;
  Healer healer(graph_, *paths_, *switches_, {{Seconds{60}, Seconds{60}, Seconds{10}}, false});
  ASSERT_TRUE(healer.start(os::monotonic_now()));
  // A held fault: the program puts its hop back.
  healer.report({Place::kLink, link("leaf0", "spine1"), {}, Harm::kBlackHole}, "test",
                os::monotonic_now());
  ASSERT_TRUE(healer.step(os::monotonic_now()));
  const auto held = installed();
  const std::string to = topo::address_text(address(2));  // below leaf1
  const LinkId by{static_cast<int>(link("leaf0", "spine1") / 2)};
  const std::string gateway =
      topo::address_text(topo::address_of(by, graph_.links[by.index()].a == node("leaf0")));
  const std::vector<std::vector<std::string>> foreign_changes = {
      {"del", to}, {"replace", "blackhole", to}, {"replace", to, "via", gateway}};
  for (const auto& change : foreign_changes) {
    change_routes(lab_, "leaf0", change);
    std::vector<Event> repairs;
    const Seconds begin = os::monotonic_now();
    while (repairs.empty() && os::monotonic_now() < begin + Seconds{5}) {
      auto events = healer.step(os::monotonic_now());
      ASSERT_TRUE(events);
      for (Event& event : *events) {
        EXPECT_EQ(event.kind, EventKind::kRepaired) << event.message;
        repairs.push_back(std::move(event));
      }
      os::sleep_for(Seconds{0.001});
    }
    ASSERT_THAT(repairs, SizeIs(1)) << change[0];
    EXPECT_THAT(repairs[0].message, testing::HasSubstr("leaf0 to leaf1")) << change[0];
    EXPECT_LT((os::monotonic_now() - begin).value, 1.0) << change[0];
    const auto now = installed();
    for (std::size_t i = 0; i < held.size(); ++i)
      EXPECT_EQ(now[i].parts, held[i].parts) << change[0];
  }
  // Its own changes are no news.
  for (int i = 0; i < 200; ++i) {
    EXPECT_THAT(*healer.step(os::monotonic_now()), SizeIs(0));
    os::sleep_for(Seconds{0.005});
  }
}

// As a healer finds them after a reboot of a switch, or of itself.
TEST_F(LinuxSwitchesOfALab, GetBackWhatAKernelForgot) {
  bring_up(lab_text("forgot", 4, 2, 0));
  if (IsSkipped()) return;
  Healer healer(graph_, *paths_, *switches_, {{Seconds{0.2}, Seconds{1}, Seconds{10}}, false});
  ASSERT_TRUE(healer.start(os::monotonic_now()));
  set_up("spine1", "leaf0", false);
  const auto wait_for = [&](EventKind kind) {
    const Seconds end = os::monotonic_now() + Seconds{5};
    while (os::monotonic_now() < end) {
      const auto events = healer.step(os::monotonic_now());
      if (!events) return false;
      for (const Event& event : *events) {
        EXPECT_NE(event.kind, EventKind::kFailed) << event.message;
        if (event.kind == kind) return true;
      }
      os::sleep_for(Seconds{0.001});
    }
    return false;
  };
  ASSERT_TRUE(wait_for(EventKind::kWithdrawn));
  std::size_t lost = 0;
  for (const Installed& one : installed())
    lost += one.parts.empty() ? 1 : 0;
  EXPECT_EQ(lost, 1U);  // the spine's only path to that leaf
  set_up("spine1", "leaf0", true);
  ASSERT_TRUE(wait_for(EventKind::kReturned));
  for (const Installed& one : installed())
    EXPECT_EQ(one.parts, even_parts(paths_->routes.next_hops(one.node, one.leaf)));
}

}  // namespace
}  // namespace regatta::heal
