// probe/handshake.h: how a prober begins to report: it sends its name and its plan, and the
// collector accepts it or says why not. Format: docs/formats/probe.md. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/probe/internal/report_text.h"
#include "regatta/network/probe/matrix.h"

namespace regatta::probe {

inline constexpr std::uint16_t kReportPort = 27899;      // default port of collectors
inline constexpr std::size_t kHandshakeBytesMax = 1024;  // limit of a hello and of its answer
inline constexpr Seconds kClockMost{
    1};  // largest difference of a prober's clock from the collector's clock
inline constexpr const char* kTokenName = "REGATTA_PROBE_TOKEN";  // in the environment

// Adds kReportPort to "head-1" or "[::1]"; leaves an address with a port as it is.
std::string with_report_port(const std::string& place);

struct Handshake {
  std::string server;
  Seconds period;
  std::uint64_t plan = 0;  // plan_number()
  Seconds clock;           // os::system_now() of the prober
  std::string token;       // "": none
};

// Without the end of the line.
std::string handshake_line(const Handshake& handshake);
// kInvalidInput for a line that is no handshake of this version.
Result<Handshake> parse_handshake(std::string_view line);

// Equal for all probers of the same network and plan.
std::uint64_t plan_number(const topo::Graph& graph, const Matrix& matrix);

// Reporters that the collector accepts.
struct ExpectedReporters {
  std::vector<std::string> servers;  // by NodeId
  Seconds period;
  std::uint64_t plan = 0;
  std::string token;  // "": only probers without a token may report
};

// The server of the prober, or an error for it.
Result<NodeId> check(const Handshake& handshake, const ExpectedReporters& expected, Seconds now);

// "ok", or "no " and the sentence.
std::string answer_line(const Status& answer);
// kConflict: the refusal of the collector.
Status parse_answer(std::string_view line);

// From the environment; "" when there is none. kInvalidInput for one that a line cannot carry.
Result<std::string> token_of_environment();

// The part of one server in a plan of probes, as text: for probers without a cluster file, started
// by a program that knows the network.
//
//   regatta-probe-plan 1 NODE PLAN SERVER
//   s PROBE FROM FROM_PORT TO TO_PORT     sends it
//   a PROBE FROM FROM_PORT TO TO_PORT     answers it

struct ServerPlan {
  std::string server;
  std::uint64_t number = 0;  // plan_number() of the whole
  ServerPart part;
  Matrix matrix;  // the flows that the server sends and answers; all else is unknown
};

std::string plan_text(const topo::Graph& graph, const Matrix& matrix, const ServerPart& part,
                      std::uint64_t number);

// kInvalidInput names the line.
Result<ServerPlan> parse_plan(std::string_view text);

}  // namespace regatta::probe
