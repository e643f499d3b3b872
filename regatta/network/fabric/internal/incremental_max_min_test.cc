#include "regatta/network/fabric/internal/incremental_max_min.h"

#include <map>
#include <random>

#include <gmock/gmock.h>

#include "regatta/network/fabric/test_max_min_problem.h"

namespace regatta::fabric {
namespace {

// Flows that come, go, move and lose capacity at random beside the same ones computed anew each
// time.
class Crowd {
 public:
  Crowd(std::uint64_t seed, bool has_amounts) : random_(seed) {
    const MaxMinProblem drawn =
        random_max_min_problem(random_, {.has_amounts = has_amounts, .most_flows = 120});
    for (const double capacity : drawn.capacity)
      links_.add({capacity}, {1e-6});
    for (std::size_t flow = 0; flow < drawn.flows(); ++flow) {
      const auto begin = drawn.links.begin() + drawn.first[flow];
      const auto end = drawn.links.begin() + drawn.first[flow + 1];
      const std::vector<std::uint32_t> over(begin, end);
      if (!has_amounts) {
        paths_.add(over);
        continue;
      }
      const auto amounts = drawn.amounts.begin() + drawn.first[flow];
      paths_.add(over, std::vector<double>(amounts, amounts + (end - begin)), {1e-6});
    }
    rates_.emplace(links_, paths_);
  }

  void step() {
    const int kind = number(0, 9);
    if (flows_.empty() || kind < 5) {
      for (int i = number(1, 6); i > 0; --i)
        come();
    } else if (kind < 8) {
      const auto one = some();
      rates_->remove(one->first);
      flows_.erase(one);
    } else if (kind == 8) {
      const auto one = some();
      one->second = static_cast<std::uint32_t>(number(0, static_cast<int>(paths_.size()) - 1));
      rates_->move(one->first, one->second);
      told_[one->first] = 0;
    } else {
      const auto link = static_cast<std::uint32_t>(number(0, last_link()));
      links_.capacity[link] = number(0, 3) == 0 ? 0 : 1e9 * number(1, 50);
      rates_->set_capacity(link, links_.capacity[link]);
    }
    for (const std::uint32_t flow : rates_->settle())
      told_[flow] = rates_->rate(flow);
  }

  void expect_fair() {
    MaxMinProblem all;
    all.capacity = links_.capacity;
    for (const auto& [flow, path] : flows_) {
      all.add_flow(paths_.links(path));
      for (std::uint32_t hop = 0; hop < paths_.links(path).size(); ++hop)
        all.amounts.push_back(paths_.amount(path, hop));
    }
    const std::vector<double> rates = max_min_rates(all);
    std::size_t i = 0;
    for (const auto& [flow, path] : flows_) {
      const double want = rates[i++];
      ASSERT_NEAR(rates_->rate(flow), want, 1e-7 * want + 1e-3) << "flow " << flow;
      ASSERT_EQ(told_[flow], rates_->rate(flow)) << "settle() told of every change";
    }
  }

 private:
  int number(int least, int most) { return std::uniform_int_distribution(least, most)(random_); }
  int last_link() const { return static_cast<int>(links_.capacity.size()) - 1; }
  void come() {
    const auto path = static_cast<std::uint32_t>(number(0, static_cast<int>(paths_.size()) - 1));
    const std::uint32_t flow = rates_->add(path);
    flows_[flow] = path;
    told_[flow] = 0;
  }
  std::map<std::uint32_t, std::uint32_t>::iterator some() {
    return std::next(flows_.begin(), number(0, static_cast<int>(flows_.size()) - 1));
  }

  std::mt19937_64 random_;
  Links links_;
  Paths paths_;
  std::optional<IncrementalMaxMin> rates_;
  std::map<std::uint32_t, std::uint32_t> flows_;  // and their paths
  std::map<std::uint32_t, double> told_;
};

TEST(IncrementalMaxMin, AreThoseOfAllFlowsComputedAnewAfterEveryChange) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Crowd crowd(seed, false);
    for (int step = 0; step < 60; ++step) {
      crowd.step();
      crowd.expect_fair();
      if (HasFatalFailure()) FAIL() << "seed " << seed << " step " << step;
    }
  }
}

TEST(IncrementalMaxMin, AreSoToo_WhereFlowsTakeMoreOrLessOfALinkThanTheirRate) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Crowd crowd(seed, true);
    for (int step = 0; step < 60; ++step) {
      crowd.step();
      crowd.expect_fair();
      if (HasFatalFailure()) FAIL() << "seed " << seed << " step " << step;
    }
  }
}

TEST(IncrementalMaxMin, TellOnlyOfThoseThatAChangeReaches) {
  Links links;
  for (int i = 0; i < 4; ++i)
    links.add({100}, {0});
  Paths paths;
  const std::uint32_t left = paths.add(std::vector<std::uint32_t>{0, 1});
  const std::uint32_t right = paths.add(std::vector<std::uint32_t>{2, 3});
  IncrementalMaxMin rates(links, paths);
  const std::uint32_t first = rates.add(left);
  const std::uint32_t other = rates.add(right);
  EXPECT_THAT(rates.settle(), testing::ElementsAre(first, other));
  const std::uint32_t second = rates.add(left);
  EXPECT_THAT(rates.settle(), testing::UnorderedElementsAre(first, second));
  EXPECT_DOUBLE_EQ(rates.rate(first), 50);
  EXPECT_DOUBLE_EQ(rates.rate(other), 100);
  rates.remove(first);
  EXPECT_THAT(rates.settle(), testing::ElementsAre(second));
  EXPECT_DOUBLE_EQ(rates.rate(second), 100);
}

}  // namespace
}  // namespace regatta::fabric
