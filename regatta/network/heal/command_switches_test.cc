#include "regatta/network/heal/command_switches.h"

#include <algorithm>
#include <sstream>

#include <gmock/gmock.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/file.h"
#include "regatta/network/heal/healer.h"
#include "regatta/network/heal/test_fabric.h"

namespace regatta::heal {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAre;

class CommandSwitchesOf : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = os::TempFolder::create("commands");
    ASSERT_TRUE(folder);
    folder_.emplace(std::move(*folder));
    log_ = folder_->path() + "/log";
  }

  // The lines that the commands wrote since the last call; they ran at the same time.
  std::vector<std::string> recorded() {
    const auto text = os::read_file(log_);
    EXPECT_TRUE(os::write_file(log_, ""));
    std::istringstream in(text ? *text : "");
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);)
      lines.push_back(line);
    return lines;
  }

  TestFabricPaths fabric_ = TestFabricPaths::two_tiers(3, 2);
  std::optional<os::TempFolder> folder_;
  std::string log_;
};

TEST_F(CommandSwitchesOf, RunACommandForEachHopThatGoesAndComes) {
  const SwitchCommands commands{"echo out {switch} {link} {neighbor} {towards} >> " + log_,
                                "echo back {switch} {link} {neighbor} {towards} >> " + log_};
  ASSERT_TRUE(check(commands));
  CommandSwitches switches(fabric_.graph, fabric_.paths, commands);
  Healer healer(fabric_.graph, fabric_.paths, switches,
                {{Seconds{5}, Seconds{60}, Seconds{1}}, false});
  ASSERT_TRUE(healer.start(Seconds{0}));
  healer.report(fabric_.broken_link("spine0", "leaf2"), "probes", Seconds{1});
  ASSERT_TRUE(healer.step(Seconds{1}));
  EXPECT_THAT(recorded(), UnorderedElementsAre("out leaf0 leaf0-spine0 spine0 leaf2",
                                               "out leaf1 leaf1-spine0 spine0 leaf2"));
  ASSERT_TRUE(healer.step(Seconds{6}));
  EXPECT_THAT(recorded(), UnorderedElementsAre("back leaf0 leaf0-spine0 spine0 leaf2",
                                               "back leaf1 leaf1-spine0 spine0 leaf2"));
}

TEST_F(CommandSwitchesOf, TellWhichCommandFailed) {
  CommandSwitches switches(fabric_.graph, fabric_.paths,
                           {"false {switch} {link}", "true {switch} {link}"});
  const std::vector<Fault> faults = {fabric_.broken_link("leaf0", "spine1")};
  const std::vector<Status> made =
      switches.apply(Tables(fabric_.paths).changes(decide(fabric_.paths, faults)));
  ASSERT_FALSE(made.empty() || made.front());
  EXPECT_EQ(made.front().error().message, "command 'false leaf0 leaf0-spine1': exit status 1");
}

// leaf1 alone has not done it.
TEST_F(CommandSwitchesOf, TellWhatBecameOfEachChange) {
  CommandSwitches switches(fabric_.graph, fabric_.paths,
                           {"test {switch} != leaf1 # {link}", "true {switch} {link}"});
  const std::vector<Fault> faults = {fabric_.broken_link("spine0", "leaf2")};
  const std::vector<RouteChange> changes =
      Tables(fabric_.paths).changes(decide(fabric_.paths, faults));
  const std::vector<Status> made = switches.apply(changes);
  ASSERT_EQ(made.size(), changes.size());
  for (std::size_t i = 0; i < made.size(); ++i)
    EXPECT_EQ(made[i].has_value(), changes[i].node != fabric_.node("leaf1"));
}

TEST_F(CommandSwitchesOf, RunNoMoreThan64CommandsAtATime) {
  const std::string command =
      "echo + >> " + log_ + "; sleep 0.5; echo - >> " + log_ + " # {switch} {link}";
  CommandSwitches switches(fabric_.graph, fabric_.paths, {command, command});
  const std::vector<RouteChange> changes(
      70,
      {fabric_.node("leaf0"), fabric_.node("leaf1"), {}, {fabric_.link("leaf0", "spine1")}, {}});
  ASSERT_TRUE(first_failure(switches.apply(changes)));
  int run = 0;
  int most = 0;
  int all = 0;
  for (const std::string& line : recorded()) {
    run += line == "+" ? 1 : -1;
    most = std::max(most, run);
    all += line == "+" ? 1 : 0;
  }
  EXPECT_EQ(all, 70);
  EXPECT_LE(most, 64);
}

TEST_F(CommandSwitchesOf, EndACommandThatTakesTooLongWithAllThatItStarted) {
  const std::string command = "(sleep 0.6; echo late >> " + log_ + "); true {switch} {link}";
  CommandSwitches switches(fabric_.graph, fabric_.paths, {command, command}, Seconds{0.1});
  const std::vector<RouteChange> changes = {
      {fabric_.node("leaf0"), fabric_.node("leaf1"), {}, {fabric_.link("leaf0", "spine1")}, {}}};
  const Status status = first_failure(switches.apply(changes));
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("still running"));
  os::sleep_for(Seconds{1});
  EXPECT_THAT(recorded(), testing::IsEmpty());
}

TEST_F(CommandSwitchesOf, RefuseACommandThatCannotTellWhereToAct) {
  const Status nowhere = check({"vtysh -c x", "true {switch} {link}"});
  ASSERT_FALSE(nowhere);
  EXPECT_THAT(nowhere.error().message, HasSubstr("{switch} is missing"));
  const Status unknown = check({"true {switch} {link} {port}", "true {switch} {link}"});
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message, HasSubstr("{port} is not known; choose {switch}"));
}

}  // namespace
}  // namespace regatta::heal
