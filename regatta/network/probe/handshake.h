// probe/handshake.h: how a prober begins to report: it says who it is and what it probes, and the
// collector lets it in or says why not. The format: docs/formats/probe.md. Pure.
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

inline constexpr std::uint16_t kReportPort = 27899;      // where collectors listen if not told
inline constexpr std::size_t kHandshakeBytesMax = 1024;  // bytes of a hello and of its answer
inline constexpr Seconds kClockMost{
    1};  // by which a prober's clock may differ from the collector's
inline constexpr const char* kTokenName = "REGATTA_PROBE_TOKEN";  // in the environment

// "head-1" or "[::1]" with kReportPort behind it; what names a port is left as it is.
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
// kInvalidInput for what is no handshake of this version.
Result<Handshake> parse_handshake(std::string_view line);

// The same for all who probe the same network by the same plan.
std::uint64_t plan_number(const topo::Graph& graph, const Matrix& matrix);

// What the collector knows.
struct ExpectedReporters {
  std::vector<std::string> servers;  // by NodeId
  Seconds period;
  std::uint64_t plan = 0;
  std::string token;  // "": only who has none may report
};

// Whose prober it is, or the sentence that it is told.
Result<NodeId> check(const Handshake& handshake, const ExpectedReporters& expected, Seconds now);

// "ok", or "no " and the sentence.
std::string answer_line(const Status& answer);
// An Error is also what the collector said: kConflict.
Status parse_answer(std::string_view line);

// From the environment; "" when there is none. kInvalidInput for one that no line can carry.
Result<std::string> token_of_environment();

// The part that one server has in a plan of probes, as text: for probers that
// have no cluster file, because whoever starts them knows the network already.
//
//   regatta-probe-plan 1 NODE PLAN SERVER
//   s PROBE FROM FROM_PORT TO TO_PORT     sends it
//   a PROBE FROM FROM_PORT TO TO_PORT     answers it

struct ServerPlan {
  std::string server;
  std::uint64_t number = 0;  // plan_number() of the whole
  ServerPart part;
  Matrix matrix;  // the flows of what the server sends and answers; nothing else is known
};

std::string plan_text(const topo::Graph& graph, const Matrix& matrix, const ServerPart& part,
                      std::uint64_t number);

// kInvalidInput names the line.
Result<ServerPlan> parse_plan(std::string_view text);

}  // namespace regatta::probe
