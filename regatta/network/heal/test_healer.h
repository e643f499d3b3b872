// heal/test_healer.h: for tests: a healer with switches that remember what they were told.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "regatta/network/heal/healer.h"
#include "regatta/network/heal/test_fabric.h"

namespace regatta::heal {

// Switches that remember what they were told.
class FakeSwitches final : public Switches {
 public:
  explicit FakeSwitches(const FabricPaths& paths) : tables(paths) {}

  Result<std::vector<Installed>> installed() override {
    if (!told) return told.error();
    return at_start;
  }
  std::vector<Status> apply(std::span<const RouteChange> changes) override {
    std::vector<Status> made;
    for (const RouteChange& change : changes) {
      const bool refuses_this = refuses && (!only || *only == change.node);
      made.push_back(refuses_this ? answer : Status());
      if (refuses_this) continue;
      applied.push_back(change);
      tables.apply(std::array{change});
    }
    tries += static_cast<int>(changes.size());
    return made;
  }
  Result<std::vector<CarrierChange>> carriers() override { return std::exchange(coming, {}); }
  int fd() const override { return -1; }
  bool reads_installed() const override { return tells; }

  bool tells = false;
  std::vector<Installed> at_start;
  std::vector<CarrierChange> coming;
  std::vector<RouteChange> applied;
  Tables tables;
  Status answer;
  Status told;  // whether they tell what is installed
  bool refuses = false;
  std::optional<NodeId> only;  // the one that refuses; else all do
  int tries = 0;               // of changes
};

// The healer of three leaves under two spines.
class HealerOf : public testing::Test {
 protected:
  std::vector<Event> step(double now) {
    auto events = healer.step(Seconds{now});
    EXPECT_TRUE(events);
    return *events;
  }
  void carrier(const std::string& at, const std::string& other, bool up) {
    switches.coming.push_back(
        {fabric.node(at), LinkId{static_cast<int>(fabric.link(at, other) / 2)}, up});
  }
  // From now on switches do nothing, and say this.
  void refuse(const std::string& why) {
    switches.answer = Error{Code::kUnavailable, why};
    switches.refuses = true;
  }
  // From now on they do as they are told, and what they did so far is forgotten.
  void obey() {
    switches.answer = {};
    switches.refuses = false;
    switches.only.reset();
    switches.applied.clear();
  }
  // leaf0 loses a path, and is told so in vain.
  void lose_in_vain(const std::string& why) {
    refuse(why);
    healer.report(fabric.broken_link("leaf0", "spine0"), "probes", Seconds{1});
    EXPECT_THAT(kinds(step(1)), testing::Contains(EventKind::kFailed));
  }
  std::vector<EventKind> kinds(const std::vector<Event>& events) {
    std::vector<EventKind> kinds;
    kinds.reserve(events.size());
    for (const Event& event : events)
      kinds.push_back(event.kind);
    return kinds;
  }

  TestFabricPaths fabric = TestFabricPaths::two_tiers(3, 2);
  FakeSwitches switches{fabric.paths};
  HealerOptions options{{Seconds{5}, Seconds{60}, Seconds{300}}, false};
  Healer healer{fabric.graph, fabric.paths, switches, options};
};

}  // namespace regatta::heal
