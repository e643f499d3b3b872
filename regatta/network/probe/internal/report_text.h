// probe/internal/report_text.h: the report of a prober: a line for each window with its deviations,
// and now and then a line of latencies.
//
//   w WINDOW GAP_us CONTROL_SENT CONTROL_LOST OVERFLOWS [s PROBE:SENT:ANSWERED]...
//     [a PROBE:ARRIVED]...
//   v large|user CYCLE [s PROBE:SENT:ANSWERED]... [a PROBE:ARRIVED]...
//   l PROBE:COUNT:LEAST_us:MEAN_us:MOST_us...
//
// Probes that are not named were sent, answered or arrived as often as a window has periods; of a
// variant once in a cycle.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/diag/observation.h"
#include "regatta/network/probe/matrix.h"

namespace regatta::probe {

// Part of one server in the probes of a matrix.
struct ServerPart {
  NodeId server;
  std::vector<std::uint32_t> sends;    // probes, ascending
  std::vector<std::uint32_t> answers;  // the same
};

ServerPart part_of(const topo::Graph& graph, const Matrix& matrix, NodeId server);

// Where its probes and answers leave from.
std::set<std::uint32_t> own_addresses(const Matrix& matrix, const ServerPart& part);

// Round trips of one probe since the line before, without the time in the other server.
struct Latency {
  std::uint32_t probe = 0;
  std::uint32_t count = 0;
  double least_us = 0;
  double mean_us = 0;
  double most_us = 0;
};

std::string report_line(const diag::ProbeReport& report, int periods);
std::string variant_line(const diag::VariantReport& report);
std::string latency_line(const std::vector<Latency>& latencies);

// kInvalidInput for what is no such line, or names probes that are not the server's.
using ProberLine = std::variant<diag::ProbeReport, diag::VariantReport, std::vector<Latency>>;
Result<ProberLine> parse_line(std::string_view line, const ServerPart& part, int periods);

}  // namespace regatta::probe
