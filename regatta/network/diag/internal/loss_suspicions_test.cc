#include "regatta/network/diag/internal/loss_suspicions.h"

#include <array>
#include <functional>
#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/model/topo/addresses.h"
#include "regatta/model/topo/graph_names.h"
#include "regatta/network/fabric/test_fabric.h"

namespace regatta::diag {
namespace {

using testing::IsEmpty;

constexpr Seconds kSpan{6};
constexpr std::array<std::uint16_t, 3> kPorts = {5000, 6000, 7000};

// Below `below`.
std::uint32_t draw(std::mt19937& random, std::size_t below) {
  return static_cast<std::uint32_t>(random() % below);
}

// Eight servers on four leaves, two spines; connections between all servers on other leaves, from
// random ports to the ports 5000, 6000 and 7000, over both spines.
class LossSuspicions : public testing::Test {
 protected:
  LossSuspicions() {
    std::mt19937 random(3);
    for (std::uint32_t from = 0; from < 8; ++from)
      for (std::uint32_t to = 0; to < 8; ++to)
        for (const std::uint16_t port : kPorts)
          for (std::size_t spine = 0; spine < 2 && from / 2 != to / 2; ++spine) {
            const auto over = [&](NodeId, std::size_t) { return spine; };
            auto links = *fabric_.routes.path(fabric_.nics[from], fabric_.nics[to], over);
            const auto back = *fabric_.routes.path(fabric_.nics[to], fabric_.nics[from], over);
            const std::size_t there = links.size();
            links.insert(links.end(), back.begin(), back.end());
            const auto source = static_cast<std::uint16_t>(32768 + draw(random, 28000));
            all_.push_back({.flow = {topo::address_of(fabric_.nics[from]),
                                     topo::address_of(fabric_.nics[to]), source, port, 6},
                            .links = std::move(links),
                            .there = there,
                            .segments = 200,
                            .again = 0});
          }
  }

  std::uint32_t link(const std::string& name, bool forward) const {
    return fabric::number_of({topo::find_link(fabric_.graph, name).value(), forward});
  }
  static bool is_over(const ConnectionLoss& one, std::uint32_t link) {
    const auto there = std::span(one.links).first(one.there);
    return std::ranges::find(there, link) != there.end();
  }
  // A connection of which nothing arrives any more.
  static void stop(ConnectionLoss& one) { one.segments = one.again = 5; }
  void change(const std::function<void(ConnectionLoss&)>& each) {
    for (ConnectionLoss& one : all_)
      each(one);
  }
  std::optional<LossSuspicion> find() const { return suspect(fabric_.graph, all_, kSpan); }
  std::string place(const LossSuspicion& found) const {
    return to_string(fabric_.graph, found.culprit);
  }

  fabric::TestFabric fabric_{8, 2, {1e9}};
  std::vector<ConnectionLoss> all_;
};

TEST_F(LossSuspicions, NameThePortsAndTheLinkThatSwallowsThem) {
  const auto bad = link("leaf0-spine1", true);
  change([&](ConnectionLoss& one) {
    if (one.flow.to_port == 6000 && is_over(one, bad)) stop(one);
  });
  const auto found = find();
  ASSERT_TRUE(found);
  EXPECT_EQ(place(*found), "link leaf0-spine1 from leaf0 to spine1");
  EXPECT_THAT(found->alternatives, IsEmpty());
  EXPECT_EQ(found->side, PortSide::kDestination);
  EXPECT_EQ(found->first_port, 6000);
  EXPECT_EQ(found->last_port, 6000);
  EXPECT_EQ(found->connections, 12U);
  EXPECT_EQ(found->connections_hit, 12U);
  EXPECT_EQ(found->again, 60U);
  EXPECT_EQ(found->other_again, 0U);
  EXPECT_GT(found->confidence, 0.8);
  EXPECT_LE(found->confidence, 0.95);
  EXPECT_EQ(to_string(fabric_.graph, *found)
                .find("TCP connections to port 6000 over link leaf0-spine1 from leaf0 to spine1: "
                      "12 of 12 sent 60 "
                      "of 60 segments again, 276 others 0 of 55200; confidence 0.9"),
            0U)
      << to_string(fabric_.graph, *found);
}

TEST_F(LossSuspicions, NameASwitchThatSwallowsSomePortsOnAllItsLinks) {
  change([&](ConnectionLoss& one) {
    const bool is_over_spine0 = std::ranges::any_of(one.links, [&](std::uint32_t link) {
      return fabric_.graph.nodes[fabric::head_of(fabric_.graph, link).index()].name == "spine0";
    });
    if (one.flow.to_port == 7000 && is_over_spine0) one.again = 40;
  });
  const auto found = find();
  ASSERT_TRUE(found);
  EXPECT_EQ(place(*found), "switch spine0");
}

TEST_F(LossSuspicions, NameALinkThatSwallowsAllOfTcp) {
  const auto bad = link("leaf2-spine0", true);
  change([&](ConnectionLoss& one) {
    if (is_over(one, bad) || is_over(one, bad ^ 1U)) stop(one);
  });
  const auto found = find();
  ASSERT_TRUE(found);
  EXPECT_EQ(place(*found), "link leaf2-spine0, both ways");
  EXPECT_EQ(found->side, PortSide::kAny);
}

TEST_F(LossSuspicions, NobodyWhereNothingOrLittleIsSentAgain) {
  EXPECT_FALSE(find());
  std::mt19937 random(5);
  change([&](ConnectionLoss& one) { one.again = draw(random, 4); });
  EXPECT_FALSE(find());
}

TEST_F(LossSuspicions, NobodyUnderCongestionEverywhere) {
  std::mt19937 random(5);
  change([&](ConnectionLoss& one) { one.again = 5 + draw(random, 40); });
  EXPECT_FALSE(find());
}

TEST_F(LossSuspicions, NobodyWhereOneLinkIsSaturated) {
  std::mt19937 random(5);
  for (const std::uint32_t share : {5, 10, 50, 100}) {
    change([&](ConnectionLoss& one) {
      one.segments = 20000;  // 24 of them over a link fill it
      one.again = is_over(one, link("leaf0-spine1", true)) ? draw(random, share * 200) : 0;
    });
    EXPECT_FALSE(find()) << share;
  }
}

TEST_F(LossSuspicions, NobodyForFewConnections) {
  int left = 2;
  change([&](ConnectionLoss& one) {
    if (one.flow.to_port == 6000 && left-- > 0) stop(one);
  });
  EXPECT_FALSE(find());
}

TEST_F(LossSuspicions, NobodyForPortsThatLoseEverywhere) {
  change([&](ConnectionLoss& one) {
    if (one.flow.to_port == 6000) stop(one);
  });
  EXPECT_FALSE(find()) << "no link has them in common";
}

// Answers take another path than what they answer, as the hash has it.
TEST_F(LossSuspicions, NameTheDirectionWhereAnswersTakeOtherPaths) {
  std::mt19937 random(9);
  change([&](ConnectionLoss& one) {
    const auto back =
        all_[draw(random, 2) + 2 * static_cast<std::size_t>((&one - all_.data()) / 2)];
    one.links.resize(one.there);
    one.links.insert(one.links.end(), back.links.begin() + static_cast<std::ptrdiff_t>(back.there),
                     back.links.end());
  });
  change([&](ConnectionLoss& one) {
    if (one.flow.to_port == 6000 && is_over(one, link("leaf0-spine1", true))) stop(one);
  });
  const auto found = find();
  ASSERT_TRUE(found);
  EXPECT_EQ(place(*found), "link leaf0-spine1 from leaf0 to spine1");
  EXPECT_EQ(found->connections, 12U);
  // The cable as a whole explains no less where nothing of these ports comes the other way.
  std::erase_if(all_, [&](const ConnectionLoss& one) {
    return one.flow.to_port == 6000 && is_over(one, link("leaf0-spine1", false));
  });
  EXPECT_EQ(place(find().value()), "link leaf0-spine1 from leaf0 to spine1");
}

// 300 random storms of congestion: some links lose, whatever the ports.
TEST_F(LossSuspicions, NobodyInRandomCongestion) {
  std::mt19937 random(11);
  for (int storm = 0; storm < 300; ++storm) {
    std::vector<std::uint32_t> share(2 * fabric_.graph.links.size());
    for (int i = static_cast<int>(draw(random, 5)); i >= 0; --i)
      share[draw(random, share.size())] = 1 + draw(random, 25);  // percent
    change([&](ConnectionLoss& one) {
      one.segments = 20 + draw(random, 20000);
      std::uint32_t most = 1;
      for (const std::uint32_t link : one.links)
        most += share[link];
      one.again = one.segments * (draw(random, most)) / 100;
    });
    const auto found = find();
    EXPECT_FALSE(found) << storm << ": " << to_string(fabric_.graph, *found);
  }
}

}  // namespace
}  // namespace regatta::diag
