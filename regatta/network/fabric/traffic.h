// fabric/traffic.h: what is to be sent over a network: flows over paths, and which of them wait for
// which.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "regatta/base/core/check.h"
#include "regatta/base/core/units.h"

namespace regatta::fabric {

// One direction of each cable, by number.
struct Links {
  std::vector<double> capacity;  // bytes per second, > 0
  std::vector<double> latency;   // seconds, >= 0

  // `rate` > 0, `delay` >= 0. Its number; the first one is 0.
  std::uint32_t add(BytesPerSecond rate, Seconds delay) {
    REGATTA_CHECK(rate.value > 0 && delay.value >= 0);
    capacity.push_back(rate.value);
    latency.push_back(delay.value);
    return static_cast<std::uint32_t>(capacity.size() - 1);
  }
};

// Paths through the network, each with its links in order, each at most once; many flows may share
// one. Without links: inside a server, at no cost.
class Paths {
 public:
  std::uint32_t add(std::span<const std::uint32_t> links);
  // A path over many links at once: of each byte, `amounts` cross them (> 0; 0.5: every other one;
  // 8: for eight that move alike), and arrive `latency` after they have been sent.
  std::uint32_t add(std::span<const std::uint32_t> links, std::span<const double> amounts,
                    Seconds latency);
  std::span<const std::uint32_t> links(std::uint32_t path) const {
    return std::span(links_).subspan(first_[path], first_[path + 1] - first_[path]);
  }
  std::size_t size() const { return first_.size() - 1; }

  // Whether some path has other amounts than 1.
  bool has_amounts() const { return !amounts_.empty(); }
  double amount(std::uint32_t path, std::uint32_t hop) const {
    return amounts_.empty() ? 1 : amounts_[first_[path] + hop];
  }
  // From one end to the other, in seconds.
  double latency(std::uint32_t path, const Links& of) const;

 private:
  std::vector<std::uint32_t> first_ = {0};
  std::vector<std::uint32_t> links_;
  std::vector<double> amounts_;              // beside links_; empty: all 1
  std::map<std::uint32_t, double> latency_;  // of paths with amounts
};

// What another flow waits for: that all of a flow has left the sender, or that it has arrived, the
// latency of its path later.
enum class After : std::uint8_t { kSent, kArrived };

class FlowGraph {
 public:
  // Sends `bytes` >= 0 over a path, `delay` >= 0 after all that it waits for. Its number; the first
  // one is 0, and there are fewer than 2^31.
  std::uint32_t add(std::uint32_t path, Bytes bytes, Seconds delay = Seconds{});
  // `flow` waits for `before`. A cycle of flows that wait for each other never starts.
  void depend(std::uint32_t flow, std::uint32_t before, After after = After::kArrived);
  void reserve(std::size_t flows, std::size_t waits);

  struct Flow {
    double bytes = 0;
    double delay = 0;  // seconds
    std::uint32_t path = 0;
    std::uint32_t pending_dependencies = 0;  // how many
  };
  struct Dependency {
    std::uint32_t before;
    std::uint32_t flow_and_after;  // 2 flow + After
  };
  const std::vector<Flow>& flows() const { return flows_; }
  const std::vector<Dependency>& dependencies() const { return dependencies_; }

 private:
  std::vector<Flow> flows_;
  std::vector<Dependency> dependencies_;
};

}  // namespace regatta::fabric
