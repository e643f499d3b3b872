#include <algorithm>
#include <numeric>
#include <queue>

#include "regatta/base/core/result.h"
#include "regatta/network/fabric/flow_simulation.h"

namespace regatta::fabric {
namespace {

// All rates that are not fixed yet rise together: a flow of weight w has w times the level.
class Filling {
 public:
  explicit Filling(const MaxMinProblem& max_min_problem)
      : max_min_problem_(max_min_problem), rates_(max_min_problem.flows(), -1.0) {
    const auto has_none_or = [](const std::vector<double>& values, std::size_t count) {
      return values.empty() || values.size() == count;
    };
    REGATTA_CHECK(max_min_problem.links.size() == max_min_problem.first.back() &&
                  has_none_or(max_min_problem.amounts, max_min_problem.links.size()) &&
                  has_none_or(max_min_problem.weights, max_min_problem.flows()) &&
                  has_none_or(max_min_problem.limits, max_min_problem.flows()));
    add_flows_of_links();
    sort_limits();
  }

  std::vector<double> fill() {
    for (std::uint32_t link = 0; link < links_.size(); ++link)
      if (links_[link].waiting > 0 && links_[link].left != kNoLimit)
        full_.push({full_at(link), link});
    while (!full_.empty()) {
      const auto [level, link] = full_.top();
      full_.pop();
      if (links_[link].waiting == 0) continue;
      fix_limited(level);
      if (links_[link].waiting == 0) continue;
      if (links_[link].rise < links_[link].summed / 2) sum_rise(link);
      const double now = full_at(link);
      const bool others_first = (!full_.empty() && now > full_.top().level) || has_limit_at(now);
      if (now > level && others_first) {
        full_.push({now, link});
        continue;
      }
      fix_link(link, std::max(now, level));
    }
    fix_limited(kNoLimit);
    for (double& rate : rates_)
      if (rate < 0) rate = kNoLimit;
    return std::move(rates_);
  }

 private:
  struct Link {
    double left = 0;            // of its capacity, beside the flows that are fixed
    double rise = 0;            // what the others take of it for each unit of the level
    double summed = 0;          // what `rise` was when it was summed up
    std::uint32_t waiting = 0;  // flows that are not fixed
  };
  struct Full {
    double level;
    std::uint32_t link;
    bool operator<(const Full& other) const {  // the lowest comes first
      return level != other.level ? level > other.level : link > other.link;
    }
  };

  double weight(std::uint32_t flow) const {
    return max_min_problem_.weights.empty() ? 1 : max_min_problem_.weights[flow];
  }
  double amount(std::uint32_t crossing) const {
    return max_min_problem_.amounts.empty() ? 1 : max_min_problem_.amounts[crossing];
  }
  // The level at which the link is full, if nothing else is fixed before.
  double full_at(std::uint32_t link) const {
    return std::max(0.0, links_[link].left) / links_[link].rise;
  }

  void add_flows_of_links() {
    links_.resize(max_min_problem_.capacity.size());
    for (std::size_t link = 0; link < links_.size(); ++link)
      links_[link].left = max_min_problem_.capacity[link];
    for (const std::uint32_t link : max_min_problem_.links)
      ++links_[link].waiting;
    first_flow_.resize(links_.size() + 1, 0);
    for (std::size_t link = 0; link < links_.size(); ++link)
      first_flow_[link + 1] = first_flow_[link] + links_[link].waiting;
    flows_.resize(max_min_problem_.links.size());
    std::vector<std::uint32_t> next(first_flow_.begin(), first_flow_.end() - 1);
    for (std::uint32_t flow = 0; flow < max_min_problem_.flows(); ++flow) {
      for (std::uint32_t at = max_min_problem_.first[flow]; at < max_min_problem_.first[flow + 1];
           ++at) {
        const std::uint32_t link = max_min_problem_.links[at];
        flows_[next[link]++] = flow;
        links_[link].rise += amount(at) * weight(flow);
      }
    }
    for (Link& link : links_)
      link.summed = link.rise;
  }

  // Anew, for what is left of a difference is less and less exact.
  void sum_rise(std::uint32_t link) {
    if (max_min_problem_.weights.empty() && max_min_problem_.amounts.empty())
      return;  // whole numbers are exact
    double sum = 0;
    for (std::uint32_t i = first_flow_[link]; i < first_flow_[link + 1]; ++i) {
      const std::uint32_t flow = flows_[i];
      if (rates_[flow] >= 0) continue;
      std::uint32_t at = max_min_problem_.first[flow];
      while (max_min_problem_.links[at] != link)
        ++at;
      sum += amount(at) * weight(flow);
    }
    links_[link].rise = links_[link].summed = sum;
  }

  double limit_level(std::uint32_t flow) const {
    return max_min_problem_.limits[flow] / weight(flow);
  }

  void sort_limits() {
    if (max_min_problem_.limits.empty()) return;
    limited_.resize(max_min_problem_.flows());
    std::iota(limited_.begin(), limited_.end(), 0U);
    std::erase_if(limited_, [this](std::uint32_t flow) { return limit_level(flow) == kNoLimit; });
    std::ranges::sort(limited_, [this](std::uint32_t a, std::uint32_t b) {
      return limit_level(a) != limit_level(b) ? limit_level(a) < limit_level(b) : a < b;
    });
  }

  bool has_limit_at(double level) const {
    return next_limited_ < limited_.size() && limit_level(limited_[next_limited_]) <= level;
  }

  void fix_limited(double level) {
    for (; has_limit_at(level); ++next_limited_) {
      const std::uint32_t flow = limited_[next_limited_];
      if (rates_[flow] < 0) fix(flow, max_min_problem_.limits[flow]);
    }
  }

  void fix_link(std::uint32_t link, double level) {
    for (std::uint32_t at = first_flow_[link]; at < first_flow_[link + 1]; ++at)
      if (rates_[flows_[at]] < 0) fix(flows_[at], level * weight(flows_[at]));
  }

  void fix(std::uint32_t flow, double rate) {
    rates_[flow] = rate;
    for (std::uint32_t at = max_min_problem_.first[flow]; at < max_min_problem_.first[flow + 1];
         ++at) {
      Link& link = links_[max_min_problem_.links[at]];
      --link.waiting;
      link.left -= amount(at) * rate;
      link.rise -= amount(at) * weight(flow);
    }
  }

  const MaxMinProblem& max_min_problem_;
  std::vector<double> rates_;  // below 0: not fixed
  std::vector<Link> links_;
  // Flow numbers by link.
  std::vector<std::uint32_t> first_flow_;
  std::vector<std::uint32_t> flows_;
  std::vector<std::uint32_t> limited_;  // by the level at which they are
  std::size_t next_limited_ = 0;
  std::priority_queue<Full> full_;  // levels may be too low: links are looked at anew
};

}  // namespace

std::vector<double> max_min_rates(const MaxMinProblem& max_min_problem) {
  return Filling(max_min_problem).fill();
}

}  // namespace regatta::fabric
