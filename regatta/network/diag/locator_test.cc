#include "regatta/network/diag/locator.h"

#include <functional>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/model/topo/addresses.h"
#include "regatta/model/topo/graph_names.h"
#include "regatta/network/diag/test_round_trips.h"
#include "regatta/network/fabric/test_fabric.h"

namespace regatta::diag {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// Six servers on three leaves, two spines; a probe each between all of them over each spine, three
// a window.
class LocatorTest : public testing::Test {
 protected:
  struct Packet {
    Window window;
    std::size_t from;
    std::size_t to;
    std::span<const std::uint32_t> there;
    std::span<const std::uint32_t> back;
  };
  enum class Fate { kAnswered, kLostThere, kLostBack };

  LocatorTest() { locator_.emplace(fabric_.graph, paths_); }

  std::uint32_t link(const std::string& name, bool forward) const {
    return fabric::number_of({topo::find_link(fabric_.graph, name).value(), forward});
  }
  static bool has(std::span<const std::uint32_t> path, std::uint32_t one) {
    return std::ranges::find(path, one) != path.end();
  }

  ProbeReport report(std::size_t server, const std::function<Fate(const Packet&)>& fate) const {
    ProbeReport one{.server = NodeId{static_cast<int>(server)}, .window = window_};
    for (std::uint32_t probe = 0; probe < ends_.size(); ++probe) {
      const auto [from, to] = ends_[probe];
      const Fate its =
          fate({window_, from, to, paths_.links(2 * probe), paths_.links(2 * probe + 1)});
      const auto count = [](bool good) { return static_cast<std::uint16_t>(good ? 3 : 0); };
      if (from == server) one.sent.push_back({probe, 3, count(its == Fate::kAnswered)});
      if (to == server) one.arrived.push_back({probe, count(its != Fate::kLostThere)});
    }
    return one;
  }

  // Retransmits of the connections over each path, each of 50 segments.
  using SentAgain = std::function<std::uint32_t(std::span<const std::uint32_t>)>;
  void add_connections(const SentAgain& sent_again) {
    for (std::uint32_t path = 0; path < paths_.size(); path += 2) {
      const auto links = paths_.links(path);
      locator_->add(PassiveCount{.window = window_,
                                 .links = {links.begin(), links.end()},
                                 .sent = 50,
                                 .lost = sent_again(links)});
    }
  }

  // One window: what is told at its end. `silent`: who does not report.
  std::vector<std::string> window(
      const std::function<Fate(const Packet&)>& fate,
      const std::function<void(ProbeReport&)>& change = [](ProbeReport&) {},
      std::size_t silent = 99) {
    for (std::size_t server = 0; server < 6; ++server) {
      if (server == silent) continue;
      ProbeReport one = report(server, fate);
      change(one);
      locator_->add(one);
    }
    ++window_;
    changes_ = locator_->locate(0.03 * (static_cast<double>(window_) + 1) * Seconds{1.0001});
    std::vector<std::string> told;
    for (const FaultVerdict& verdict : changes_.begun)
      told.push_back(to_string(fabric_.graph, verdict.culprit));
    return told;
  }

  static Fate healthy(const Packet&) { return Fate::kAnswered; }
  std::function<Fate(const Packet&)> black_hole(std::uint32_t one) const {
    return [=](const Packet& packet) {
      if (has(packet.there, one)) return Fate::kLostThere;
      return has(packet.back, one) ? Fate::kLostBack : Fate::kAnswered;
    };
  }
  void warm_up() {
    for (int i = 0; i < 40; ++i)
      EXPECT_THAT(window(healthy), IsEmpty());
  }

  fabric::TestFabric fabric_{6, 2, {1e9}};
  const TestRoundTrips trips_{fabric_};
  const fabric::Paths& paths_ = trips_.paths;
  const std::vector<std::pair<std::size_t, std::size_t>>& ends_ = trips_.ends;
  std::optional<Locator> locator_;
  Window window_ = 100;
  FaultChanges changes_;
};

TEST_F(LocatorTest, ABlackHoleWithinTwoWindows) {
  warm_up();
  const auto fate = black_hole(link("leaf1-spine0", true));
  EXPECT_THAT(window(fate), IsEmpty());
  ASSERT_THAT(window(fate), ElementsAre("link leaf1-spine0 from leaf1 to spine0"));
  EXPECT_NEAR(changes_.begun[0].since.value, 140 * 0.03, 0.001);
  for (int i = 0; i < 100; ++i)
    EXPECT_THAT(window(fate), IsEmpty()) << "told once";
  EXPECT_EQ(locator_->active_faults().size(), 1U);
}

TEST_F(LocatorTest, SwappedCablesInsteadOfTheirSwitchOnceTheirPortsHaveBeenHeard) {
  warm_up();
  const auto fate = [&](const Packet& packet) {
    const auto there = black_hole(link("leaf0-spine0", false))(packet);
    return there == Fate::kAnswered ? black_hole(link("leaf1-spine0", false))(packet) : there;
  };
  while (changes_.begun.empty() && window_ < 200)
    window(fate);
  ASSERT_FALSE(changes_.begun.empty());
  const auto one = link("leaf0-spine0", true);  // its number is that of end a, too
  const auto other = link("leaf1-spine0", true);
  for (const auto& [port, heard] : {std::pair(one, other + 1), std::pair(other, one + 1),
                                    std::pair(one + 1, other), std::pair(other + 1, one)})
    locator_->add(HeardPort{port, heard});
  changes_ =
      locator_->reconsider(changes_, 0.03 * (static_cast<double>(window_) + 1) * Seconds{1.0001});
  ASSERT_THAT(changes_.begun, SizeIs(1));
  EXPECT_EQ(to_string(fabric_.graph, changes_.begun[0].culprit),
            "cables leaf0-spine0 and leaf1-spine0");
  EXPECT_EQ(changes_.begun[0].symptom, Symptom::kSwapped);
  EXPECT_GT(changes_.begun[0].since.value, 0);
  for (int i = 0; i < 100; ++i)
    EXPECT_THAT(window(fate), IsEmpty());
  EXPECT_EQ(locator_->active_faults().size(), 1U);
}

TEST_F(LocatorTest, AnAddressOfTwoServersInsteadOfTheSwitchBetweenThem) {
  warm_up();
  const auto fate = [](const Packet& packet) {
    const auto [low, high] = std::minmax(packet.from, packet.to);
    return low == 0 && high == 4 ? Fate::kLostThere : Fate::kAnswered;
  };
  locator_->add(ServerAddresses{
      .server = NodeId{4},
      .interfaces = {{topo::address_of(fabric_.nics[4]), topo::address_of(fabric_.nics[0])}}});
  EXPECT_THAT(window(fate), ElementsAre("address 10.64.0.0 of s0.nic0 and s4.nic0"));
  for (int i = 0; i < 100; ++i)
    EXPECT_THAT(window(fate), IsEmpty());
  locator_->add(
      ServerAddresses{.server = NodeId{4}, .interfaces = {{topo::address_of(fabric_.nics[4])}}});
  for (int i = 0; i < 100; ++i)
    EXPECT_THAT(window(healthy), IsEmpty());
  EXPECT_THAT(locator_->active_faults(), IsEmpty());
}

TEST_F(LocatorTest, TheEndOfAFault) {
  warm_up();
  for (int i = 0; i < 10; ++i)
    window(black_hole(link("leaf1-spine0", true)));
  std::vector<std::string> over;
  for (int i = 0; i < 120; ++i) {
    window(healthy);
    for (const FaultVerdict& verdict : changes_.over)
      over.push_back(to_string(fabric_.graph, verdict.culprit));
  }
  EXPECT_THAT(over, ElementsAre("link leaf1-spine0 from leaf1 to spine0"));
  EXPECT_THAT(locator_->active_faults(), IsEmpty());
}

TEST_F(LocatorTest, HostNoiseInsteadOfAFaultWhereAServerLosesPacketsToItself) {
  warm_up();
  const auto fate = [](const Packet& packet) {
    return packet.to == 3 ? Fate::kLostThere : Fate::kAnswered;
  };
  std::vector<std::string> told;
  for (int i = 0; i < 60; ++i)
    for (const std::string& one : window(fate, [](ProbeReport& report) {
           report.host.control_sent = 6;
           report.host.control_lost = report.server.value == 3 ? 2 : 0;
         }))
      told.push_back(one);
  EXPECT_THAT(told, ElementsAre("host noise on s3"));
  EXPECT_FALSE(is_fault(locator_->active_faults()[0]));
}

TEST_F(LocatorTest, NobodyWhileAServerStandsStillAndAnswersLate) {
  warm_up();
  std::vector<ProbeReport> late;
  for (int i = 0; i < 20; ++i)  // 0.6 s
    EXPECT_THAT(window(
                    [](const Packet& packet) {
                      return packet.to == 3 ? Fate::kLostThere : Fate::kAnswered;
                    },
                    [](ProbeReport&) {}, 3),
                IsEmpty());
  for (Window back = 20; back > 0; --back) {
    window_ -= back;
    for (std::size_t server = 0; server < 6; ++server) {
      ProbeReport one = report(server, healthy);
      if (server == 3) one.host.worst_gap = Seconds{0.6};
      late.push_back(one);
    }
    window_ += back;
  }
  for (const ProbeReport& one : late)
    locator_->add(one);
  for (int i = 0; i < 80; ++i)
    EXPECT_THAT(window(healthy), IsEmpty());
}

TEST_F(LocatorTest, AServerThatIsSilentForLongerThanABusyOne) {
  warm_up();
  const auto fate = [](const Packet& packet) {
    return packet.to == 3 ? Fate::kLostThere : Fate::kAnswered;
  };
  int windows = 0;
  std::vector<std::string> told;
  while (told.empty() && windows < 100) {
    told = window(
        fate, [](ProbeReport&) {}, 3);
    ++windows;
  }
  EXPECT_THAT(told, ElementsAre("server s3"));
  EXPECT_EQ(changes_.begun[0].symptom, Symptom::kSilent);
  EXPECT_LT(windows * 0.03, 1.95);
}

TEST_F(LocatorTest, ThatASilentServerWasBusyInsteadOfDeadOnceItReportsAgain) {
  warm_up();
  const auto fate = [](const Packet& packet) {
    return packet.to == 3 ? Fate::kLostThere : Fate::kAnswered;
  };
  for (int i = 0; i < 90; ++i)
    window(
        fate, [](ProbeReport&) {}, 3);
  ASSERT_THAT(locator_->active_faults(), testing::SizeIs(1));
  ASSERT_EQ(locator_->active_faults()[0].symptom, Symptom::kSilent);
  const auto late = [](ProbeReport& report) {
    if (report.server.value == 3) report.host.worst_gap = Seconds{2.7};
  };
  std::vector<std::string> told = window(fate, late);
  for (int i = 0; i < 10 && told.empty(); ++i)
    told = window(healthy);
  ASSERT_THAT(told, ElementsAre("host noise on s3"));
  ASSERT_THAT(changes_.over, testing::SizeIs(1)) << "both at once";
  EXPECT_EQ(changes_.over[0].culprit, server_culprit(NodeId{3}));
  EXPECT_EQ(to_string(fabric_.graph, changes_.begun[0]).find("paths"), std::string::npos);
}

TEST_F(LocatorTest, NobodyWhereAServerAnswersButItsReportsDoNotCome) {
  warm_up();
  for (int i = 0; i < 100; ++i)
    EXPECT_THAT(window(
                    healthy, [](ProbeReport&) {}, 3),
                IsEmpty());
}

TEST_F(LocatorTest, ALinkWithoutCarrierAtOnce) {
  warm_up();
  const std::uint32_t one = link("leaf1-spine0", true);
  locator_->add(CarrierEvent{.link = LinkId{static_cast<int>(one / 2)}, .up = false});
  EXPECT_THAT(window(black_hole(one)), ElementsAre("link leaf1-spine0, both ways"));
  EXPECT_EQ(changes_.begun[0].symptom, Symptom::kNoCarrier);
  for (int i = 0; i < 40; ++i)
    EXPECT_THAT(window(black_hole(one)), IsEmpty()) << "nobody else for what it loses";
}

TEST_F(LocatorTest, NobodyForWhatIsLostUntilRoutesAreBack) {
  warm_up();
  const std::uint32_t one = link("leaf1-spine0", true);
  const LinkId cable{static_cast<int>(one / 2)};
  locator_->add(CarrierEvent{.link = cable, .up = false});
  for (int i = 0; i < 30; ++i)
    window(black_hole(one));
  locator_->add(CarrierEvent{.link = cable, .up = true});
  for (int i = 0; i < 20; ++i)
    EXPECT_THAT(window(black_hole(one)), IsEmpty()) << i;
  for (int i = 0; i < 100; ++i)
    EXPECT_THAT(window(healthy), IsEmpty()) << i;
  std::vector<std::string> told;
  for (int i = 0; i < 30; ++i)
    for (const std::string& text : window(black_hole(one)))
      told.push_back(text);
  EXPECT_THAT(told, ElementsAre("link leaf1-spine0 from leaf1 to spine0"));
}

TEST_F(LocatorTest, AndTellsOnceThatALossHasBecomeABlackHole) {
  warm_up();
  const std::uint32_t one = link("leaf1-spine0", true);
  const auto loss = [&](const Packet& packet) {
    const bool is_its_turn =
        (7 * static_cast<std::size_t>(packet.window) + 5 * packet.from + packet.to) % 12 == 0;
    return has(packet.there, one) && is_its_turn ? Fate::kLostThere : Fate::kAnswered;
  };
  std::vector<std::string> told;
  std::vector<Symptom> changed;
  for (int i = 0; i < 200; ++i) {
    for (const std::string& text : i < 100 ? window(loss) : window(black_hole(one)))
      told.push_back(text);
    for (const FaultVerdict& verdict : changes_.changed)
      changed.push_back(verdict.symptom);
  }
  EXPECT_THAT(told, ElementsAre("link leaf1-spine0 from leaf1 to spine0"));
  EXPECT_THAT(changed, ElementsAre(Symptom::kBlackHole));
}

// A leaf that loses all packets of every second of its paths.
class LocatorConfirmationTest : public LocatorTest {
 protected:
  LocatorConfirmationTest() {
    locator_.emplace(fabric_.graph, paths_, LocatorOptions{.confirmation_delay{1}});
  }

  std::function<Fate(const Packet&)> some_flows() const {
    return [this](const Packet& packet) {
      const bool over_0 = has(packet.there, link("leaf0-spine0", true));
      const bool over_1 = has(packet.there, link("leaf0-spine1", true));
      const bool is_hit = (packet.from + packet.to + (over_1 ? 1 : 0)) % 2 == 0;
      return (over_0 || over_1) && is_hit ? Fate::kLostThere : Fate::kAnswered;
    };
  }
};

TEST_F(LocatorConfirmationTest, ForASecondAndThenTells) {
  warm_up();
  int windows = 0;
  std::vector<std::string> told;
  for (; told.empty() && windows < 100; ++windows) {
    told = window(some_flows());
    if (windows == 10) {
      EXPECT_THAT(locator_->unconfirmed(), SizeIs(1));
    }
  }
  EXPECT_THAT(told, ElementsAre("switch leaf0"));
  EXPECT_EQ(changes_.begun[0].symptom, Symptom::kSomeFlows);
  EXPECT_GE(windows, 33);
  EXPECT_LE(windows, 45) << "the first are not enough to suspect it";
}

TEST_F(LocatorConfirmationTest, AndTellsNobodyWhenThesePathsLeadElsewhere) {
  warm_up();
  for (int i = 0; i < 10; ++i)
    EXPECT_THAT(window(some_flows()), IsEmpty());
  std::vector<bool> unknown(paths_.size());
  for (std::uint32_t path = 0; path < paths_.size(); ++path)
    unknown[path] = has(paths_.links(path), link("leaf0-spine0", true)) ||
                    has(paths_.links(path), link("leaf0-spine1", true));
  locator_->leave_out(unknown);
  for (int i = 0; i < 100; ++i)
    EXPECT_THAT(window(some_flows()), IsEmpty());
  EXPECT_THAT(locator_->unconfirmed(), IsEmpty());
}

TEST_F(LocatorConfirmationTest, ButNotWhoLosesAll) {
  warm_up();
  const auto fate = black_hole(link("leaf1-spine0", true));
  EXPECT_THAT(window(fate), IsEmpty());
  EXPECT_THAT(window(fate), ElementsAre("link leaf1-spine0 from leaf1 to spine0"));
}

// Only the probes from leaf 0 to leaf 2 over spine 1 lose one in four: two links may be to blame.
class LocatorPassiveCountTest : public LocatorTest {
 protected:
  std::vector<std::string> told_with(const SentAgain& sent_again) {
    std::vector<std::string> told;
    for (int i = 0; i < 60; ++i) {
      add_connections(sent_again);
      const auto fate = [&](const Packet& packet) {
        const bool is_it =
            has(packet.there, link("leaf0-spine1", true)) &&
            has(packet.there, link("leaf2-spine1", false)) &&
            (2 * packet.from + packet.to) % 4 == static_cast<std::size_t>(window_ % 4);
        return is_it ? Fate::kLostThere : Fate::kAnswered;
      };
      for (const std::string& text : window(fate))
        told.push_back(text);
    }
    return told;
  }
};

TEST_F(LocatorPassiveCountTest, AndIsNotSureByProbesAlone) {
  EXPECT_THAT(told_with([](auto) { return 0U; }), IsEmpty());
}

TEST_F(LocatorPassiveCountTest, ByWhatConnectionsSendAgain) {
  const std::uint32_t bad = link("leaf2-spine1", false);
  EXPECT_THAT(told_with([&](auto links) { return has(links, bad) ? 6U : 0U; }),
              ElementsAre("link leaf2-spine1 from spine1 to leaf2"));
}

TEST_F(LocatorTest, BlamesNobodyForWhatConnectionsAloneSendAgain) {
  const std::uint32_t bad = link("leaf2-spine1", false);
  std::vector<std::string> told;
  for (int i = 0; i < 60; ++i) {
    add_connections([&](auto links) { return has(links, bad) ? 10U : 0U; });
    for (const std::string& text : window(healthy))
      told.push_back(text);
  }
  EXPECT_THAT(told, IsEmpty());
}

TEST_F(LocatorTest, NothingFromReportsThatCannotBe) {
  warm_up();
  ProbeReport wild = report(0, healthy);
  wild.window = window_ + 1'000'000;
  locator_->add(wild);
  wild.window = -5;
  locator_->add(wild);
  wild = report(0, healthy);
  wild.window = window_ - 1;
  wild.sent = {{4'000'000'000U, 3, 3}, {0, 3, 9}};
  wild.arrived = {{4'000'000'000U, 3}};
  locator_->add(wild);
  for (int i = 0; i < 40; ++i)
    EXPECT_THAT(window(healthy), IsEmpty());
}

}  // namespace
}  // namespace regatta::diag
