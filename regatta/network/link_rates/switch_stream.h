// link_rates/switch_stream.h: a stream of switch counters and neighbors (docs/formats/
// switch_counters.md) as it comes, for diagnosis: what the ports of the cluster count, hear and
// say of themselves, and each problem of the stream once. Holds a bounded part of it. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/diag/observation.h"
#include "regatta/network/link_rates/switch_counters.h"

namespace regatta::link_rates {

// In the order of the lines.
struct SwitchStreamNews {
  std::vector<diag::PortReading> readings;
  std::vector<diag::HeardPort> heard;
  std::vector<diag::CarrierEvent> carriers;  // changes; a cable is down where either end is
};

class SwitchStream {
 public:
  // `file`: its name in messages. `graph` must outlive this.
  SwitchStream(const topo::Graph& graph, std::string file);

  // The next line, which came at `now` by the clock of the windows. Times in lines do not count:
  // they may have another origin.
  void add(std::string_view line, Seconds now);
  SwitchStreamNews consume_news() { return std::exchange(news_, {}); }
  // Sentences about lines that were left out, each kind of problem and each unknown name once, and
  // no more than 32 in all.
  std::vector<std::string> consume_problems() { return std::exchange(problems_, {}); }

  std::uint64_t lines() const { return lines_; }  // without headings and comments
  std::uint64_t left_out() const { return left_out_; }

 private:
  void leave_out(const std::string& kind, const Error& why);
  Status add(const SwitchPortCounters& counters, Seconds now);
  Status add(const SwitchNeighbor& neighbor);
  void set_up(std::uint32_t port, bool is_up);

  PortNames names_;
  std::string file_;
  int number_ = 0;
  std::uint64_t lines_ = 0;
  std::uint64_t left_out_ = 0;
  std::vector<bool> is_down_;  // per port
  SwitchStreamNews news_;
  std::vector<std::string> problems_;
  std::set<std::string> told_;  // kinds of problems
};

}  // namespace regatta::link_rates
