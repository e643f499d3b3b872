// link_rates/rate_session.h: one measurement of the rates of all links: what the agents of the
// servers are to do when, and what their reports show. Pure: the caller carries the lines, and
// passes the time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/fabric/routes.h"
#include "regatta/network/link_rates/rate_plan.h"
#include "regatta/network/link_rates/rate_verdict.h"

namespace regatta::link_rates {

// In the handshake of an agent (probe/handshake.h) as its plan and its period: agents know no plan.
inline constexpr std::uint64_t kAgentPlan = 0x5247544c52415431;
inline constexpr Seconds kAgentPeriod{0.05};  // between two reports of a NIC's bytes
inline constexpr std::size_t kAgentReportBytesMost = 1000;

struct RateSessionOptions {
  double share = 0.05;       // of a link's time that trains may take, at most
  double idle_below = 0.05;  // of a NIC's rate: other traffic that does not count
  double slow_below = 0.8;   // of the described rate
  int trains = 3;            // over a path, while its rate is not explained
  std::size_t together = 1;  // trains at the same time
};

class RateSession {
 public:
  // A line for the agent of a server, with its end.
  struct Order {
    NodeId server;
    std::string line;
  };

  // `graph` and `routes` must outlive this. `salt` makes the numbers of the trains those of this
  // session.
  RateSession(const topo::Graph& graph, const fabric::Routes& routes, RatePlan plan,
              std::uint64_t salt, RateSessionOptions options = {});
  ~RateSession();
  RateSession(RateSession&&) noexcept;
  RateSession& operator=(RateSession&&) noexcept;

  // The agent of this server is connected, or connected anew.
  void add_agent(NodeId server, Seconds now);
  // A line of an agent, without its end. kInvalidInput for one that no agent of this version sends.
  Status accept(NodeId server, std::string_view line, Seconds now);
  // Lines that are due.
  std::vector<Order> due_orders(Seconds now);
  // Nothing is left to measure.
  bool is_done() const;

  std::size_t arrived() const;  // trains
  std::size_t paths() const;
  std::size_t finished() const;  // of these
  // The largest part of its described rate that trains took of a link, over `time`.
  double largest_share(Seconds time) const;
  // Directed links with other traffic now.
  std::vector<std::uint32_t> busy_links() const;
  // Sentences about orders that agents could not carry out, each once.
  const std::vector<std::string>& failures() const;

  std::vector<PathMeasurement> measurements() const;
  RateVerdicts verdicts() const;
  // Adds trains over paths that separate slow links from their alternatives. False: there are none.
  bool add_separators();

 private:
  void settle_explained();

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta::link_rates
