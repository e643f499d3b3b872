#include "regatta/network/heal/healer_state.h"

#include <array>
#include <csignal>
#include <cstdint>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "regatta/base/os/process.h"
#include "regatta/network/heal/test_fabric.h"

namespace regatta::heal {
namespace {

TEST(HealerState, IsReadAsItWasWritten) {
  const auto fabric = TestFabricPaths::two_tiers(2, 2);
  const NodeId leaf = fabric.node("leaf1");
  HealerState state;
  state.damper.held.push_back(
      {.fault = {Place::kLink, fabric.link("leaf0", "spine1"), {}, Harm::kLoss},
       .why = "loss 5 %, \"both ways\"",
       .since = Seconds{61987.337123},
       .last_bad = Seconds{7},
       .lasts = true,
       .clean = Seconds{5},
       .is_relapse = true,
       .is_probed = true,
       .was_lossy = true});
  state.damper.held.push_back(
      {.fault = {Place::kHop, 3, leaf, Harm::kBlackHole}, .clean = Seconds{0.3}});
  state.damper.records.push_back(
      {{Place::kSwitch, 0, leaf, Harm::kBlackHole}, 4, Seconds{12.5}, true});
  state.missing.push_back({Place::kHop, 2, leaf, Harm::kBlackHole});
  const auto read = parse_state(fabric.graph, state_text(state));
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->damper.held.size(), 2U);
  EXPECT_EQ(read->damper.held[0].fault, state.damper.held[0].fault);
  EXPECT_EQ(read->damper.held[0].why, state.damper.held[0].why);
  EXPECT_EQ(read->damper.held[0].since, state.damper.held[0].since);
  EXPECT_EQ(read->damper.held[0].clean, Seconds{5});
  EXPECT_TRUE(read->damper.held[0].is_probed);
  EXPECT_TRUE(read->damper.held[0].was_lossy);
  EXPECT_TRUE(read->damper.held[0].is_relapse);
  EXPECT_EQ(read->damper.held[1].fault, state.damper.held[1].fault);
  ASSERT_EQ(read->damper.records.size(), 1U);
  EXPECT_EQ(read->damper.records[0].fault, state.damper.records[0].fault);
  EXPECT_EQ(read->damper.records[0].relapses, 4);
  EXPECT_EQ(read->damper.records[0].released, Seconds{12.5});
  EXPECT_TRUE(read->damper.records[0].is_interrupted);
  EXPECT_EQ(read->missing, state.missing);
}

TEST(HealerState, OfAnotherFabricOrWithoutSenseIsRefused) {
  const auto fabric = TestFabricPaths::two_tiers(2, 2);
  EXPECT_TRUE(parse_state(fabric.graph, ""));
  const auto text = [](int place, long link, int node) {
    return fmt::format(
        R"({{"held":[{{"place":{},"link":{},"node":{},"harm":0,"why":"","since":1,"clean":5,)"
        R"("lossy":false,"probed":true,"relapse":false}}],"relapses":[],"missing":[]}})",
        place, link, node);
  };
  EXPECT_TRUE(parse_state(fabric.graph, text(0, 0, -1)));
  EXPECT_FALSE(parse_state(fabric.graph, text(3, 0, 0)));
  EXPECT_FALSE(parse_state(fabric.graph, text(0, 100000, 0)));
  EXPECT_FALSE(parse_state(fabric.graph, text(0, -1, 0)));
  EXPECT_FALSE(parse_state(fabric.graph, text(1, 0, 100000)));
  EXPECT_FALSE(parse_state(fabric.graph, text(1, 0, -1)));
  EXPECT_FALSE(parse_state(fabric.graph, "{}"));
  EXPECT_FALSE(parse_state(fabric.graph, "nothing"));
}

TEST(SharedText, HoldsTheLastWholeText) {
  const auto text = SharedText::create();
  ASSERT_TRUE(text);
  auto other = SharedText(os::UniqueFd(::dup(text->fd())));
  EXPECT_EQ(other.read().value(), "");
  for (const std::size_t size : {10U, 3U, 70000U, 1U, 0U, 5U, 20000U, 20000U, 4U}) {
    const std::string written(size, static_cast<char>('a' + size % 26));
    ASSERT_TRUE(other.write(written));
    EXPECT_EQ(text->read().value(), written);
  }
}

TEST(StateWriter, WritesWhatHasChangedAndTriesAgainAfterAFailure) {
  const auto fabric = TestFabricPaths::two_tiers(2, 2);
  auto text = SharedText::create();
  ASSERT_TRUE(text);
  StateWriter writer(*text);
  HealerState state;
  ASSERT_TRUE(writer.update(state));
  EXPECT_EQ(text->read().value(), state_text(state));
  ASSERT_TRUE(text->write("as it is"));
  ASSERT_TRUE(writer.update(state));
  EXPECT_EQ(text->read().value(), "as it is") << "nothing has changed";
  state.damper.held.push_back({.fault = fabric.broken_link("leaf0", "spine1"), .why = "probes"});
  ASSERT_TRUE(writer.update(state));
  EXPECT_EQ(text->read().value(), state_text(state));
  state.damper.held[0].was_lossy = true;
  ASSERT_TRUE(writer.update(state));
  EXPECT_EQ(text->read().value(), state_text(state));

  SharedText closed{os::UniqueFd()};
  StateWriter failing(closed);
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(failing.update(state).error().message, "state of the healer: bad file descriptor");
}

TEST(Heartbeat, IsReadByAnotherOwnerAndBeginsAnew) {
  auto watching = Heartbeat::create();
  ASSERT_TRUE(watching);
  EXPECT_EQ(watching->beats(), 0U);
  for (int process = 0; process < 2; ++process) {
    Heartbeat beating{os::UniqueFd(::dup(watching->fd()))};
    for (std::uint64_t i = 1; i < 4; ++i) {
      ASSERT_TRUE(beating.beat());
      EXPECT_EQ(watching->beats(), i);
    }
    ASSERT_TRUE(watching->reset());
    EXPECT_EQ(watching->beats(), 0U);
  }
}

TEST(SharedText, ThatIsCutOffIsSaidToBeAndIsWrittenAgain) {
  auto text = SharedText::create();
  ASSERT_TRUE(text);
  ASSERT_EQ(::write(text->fd(), "abc", 3), 3);
  EXPECT_EQ(text->read().error().message, "state of the healer: is cut off");
  ASSERT_TRUE(text->write("whole"));
  EXPECT_EQ(text->read().value(), "whole");
  const std::array<std::uint64_t, 2> beyond = {16, std::uint64_t{1} << 60};
  ASSERT_EQ(::pwrite(text->fd(), beyond.data(), sizeof beyond, 0), ssize_t{sizeof beyond});
  EXPECT_EQ(text->read().error().message, "state of the healer: is cut off");
  ASSERT_TRUE(text->write("again"));
  EXPECT_EQ(text->read().value(), "again");
}

// A kill at any moment leaves one of the two texts.
TEST(SharedText, IsWholeAfterItsWriterWasKilled) {
  auto text = SharedText::create();
  ASSERT_TRUE(text);
  for (int kill = 0; kill < 40; ++kill) {
    const pid_t writer = ::fork();
    if (writer == 0)
      for (char letter = 'a';; letter = letter == 'z' ? 'a' : static_cast<char>(letter + 1))
        static_cast<void>(
            text->write(std::string(30000 + 100 * (letter - 'a'), letter)).has_value());
    ::usleep(static_cast<useconds_t>(2000 + 137 * kill));
    ::kill(writer, SIGKILL);
    ASSERT_TRUE(os::wait_for(writer));
    const auto left = text->read();
    ASSERT_TRUE(left);
    if (left->empty()) continue;
    ASSERT_EQ(left->size(), 30000U + 100U * static_cast<std::size_t>(left->front() - 'a'));
    ASSERT_EQ(left->find_first_not_of(left->front()), std::string::npos);
  }
}

}  // namespace
}  // namespace regatta::heal
