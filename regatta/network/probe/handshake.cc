#include "regatta/network/probe/handshake.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>

#include <fmt/core.h>

#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/network/fabric/traffic.h"

namespace regatta::probe {
namespace {

constexpr std::string_view kName = "regatta-prober";
constexpr int kVersion = 3;
constexpr std::string_view kNoToken = "-";

bool is_word(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f; });
}

// In the same time whatever they are, so that nobody finds the token letter by letter.
bool are_same(std::string_view one, std::string_view other) {
  unsigned difference = one.size() == other.size() ? 0 : 1;
  for (std::size_t i = 0; i < one.size(); ++i)
    difference |= static_cast<unsigned char>(one[i]) ^
                  static_cast<unsigned char>(other.empty() ? 0 : other[i % other.size()]);
  return difference == 0;
}

}  // namespace

std::string handshake_line(const Handshake& handshake) {
  return fmt::format("{} {} {} {:.0f} {:016x} {:.0f} {}", kName, kVersion, handshake.server,
                     handshake.period.value * 1e6, handshake.plan, handshake.clock.value * 1e6,
                     handshake.token.empty() ? kNoToken : handshake.token);
}

Result<Handshake> parse_handshake(std::string_view line) {
  const Error wrong{Code::kInvalidInput,
                    "this is no handshake of a prober: " + printable(line, 60)};
  if (line.size() > kHandshakeBytesMax) return wrong;
  const std::vector<std::string> words = split(line, ' ');
  if (words.size() < 2 || words[0] != kName) return wrong;
  if (words[1] != std::to_string(kVersion))
    return Error{Code::kInvalidInput,
                 fmt::format("this prober speaks version {}, the collector {}; install the same "
                             "version of Regatta on both",
                             printable(words[1], 10), kVersion)};
  if (words.size() != 7 || !is_word(words[2]) || !is_word(words[6])) return wrong;
  const auto period = parse_number<std::uint64_t>(words[3]);
  const auto plan = parse_number<std::uint64_t>(words[4], 16);
  const auto clock = parse_number<std::uint64_t>(words[5]);
  if (!period || !plan || !clock) return wrong;
  return Handshake{.server = words[2],
                   .period = Seconds{static_cast<double>(*period) * 1e-6},
                   .plan = *plan,
                   .clock = Seconds{static_cast<double>(*clock) * 1e-6},
                   .token = words[6] == kNoToken ? "" : words[6]};
}

std::uint64_t plan_number(const topo::Graph& graph, const Matrix& matrix) {
  std::vector<std::uint64_t> words;
  for (const topo::Node& node : graph.nodes) {
    for (const char c : node.name)
      words.push_back(static_cast<unsigned char>(c));
    words.push_back(std::numeric_limits<std::uint64_t>::max());  // the end of a name
  }
  for (const Probe& probe : matrix.probes) {
    const fabric::FiveTuple& flow = probe.flow;
    words.push_back(std::uint64_t{static_cast<std::uint32_t>(probe.from.value)} << 32 |
                    static_cast<std::uint32_t>(probe.to.value));
    words.push_back(std::uint64_t{flow.from} << 32 | flow.to);
    words.push_back(std::uint64_t{flow.from_port} << 32 | std::uint64_t{flow.to_port} << 16 |
                    flow.protocol);
  }
  return fabric::siphash(words, 0x7265676174746120, 0x70726f6265722031);
}

std::string with_report_port(const std::string& place) {
  const bool has_port =
      place.starts_with('[') ? !place.ends_with(']') : place.find(':') != std::string::npos;
  return has_port || place.empty() ? place : fmt::format("{}:{}", place, kReportPort);
}

Result<NodeId> check(const Handshake& handshake, const ExpectedReporters& expected, Seconds now) {
  if (!are_same(handshake.token, expected.token))
    return Error{
        Code::kInvalidInput,
        expected.token.empty()
            ? fmt::format("it has a token, and the collector has none; unset {} here or "
                          "set it at the collector",
                          kTokenName)
            : fmt::format("its token is another one; set {} to the collector's", kTokenName)};
  const auto at = std::ranges::find(expected.servers, handshake.server);
  if (at == expected.servers.end())
    return Error{Code::kInvalidInput,
                 fmt::format("server {} is not in the collector's cluster; give both the same "
                             "cluster file",
                             printable(handshake.server, 60))};
  if (handshake.plan != expected.plan)
    return Error{Code::kInvalidInput,
                 fmt::format("server {} probes by another plan; give its prober and the collector "
                             "the same cluster file and the same version of Regatta",
                             handshake.server)};
  if (std::abs((handshake.period - expected.period).value) > 0.5e-6)
    return Error{Code::kInvalidInput,
                 fmt::format("server {} probes each {}, the others each {}; give all the same "
                             "--period",
                             handshake.server, format_seconds(handshake.period),
                             format_seconds(expected.period))};
  const Seconds ahead = handshake.clock - now;
  if (std::abs(ahead.value) > kClockMost.value)
    return Error{Code::kInvalidInput,
                 fmt::format("the clock of server {} is {:.1f} s {} the collector's; keep the "
                             "clocks together by NTP or PTP",
                             handshake.server, std::abs(ahead.value),
                             ahead.value > 0 ? "ahead of" : "behind")};
  return NodeId{static_cast<int>(at - expected.servers.begin())};
}

std::string answer_line(const Status& answer) {
  return answer ? "ok" : "no " + answer.error().message;
}

Status parse_answer(std::string_view line) {
  if (line == "ok") return {};
  if (line.starts_with("no "))
    return Error{Code::kConflict, printable(line.substr(3), kHandshakeBytesMax)};
  return Error{Code::kUnavailable, "what answers there is no collector of probes"};
}

Result<std::string> token_of_environment() {
  const char* const token = std::getenv(kTokenName);
  if (token == nullptr || *token == '\0') return std::string();
  if (is_word(token) && token != kNoToken && std::string_view(token).size() <= 256)
    return std::string(token);
  return Error{Code::kInvalidInput,
               fmt::format("{}: must be up to 256 visible letters without spaces", kTokenName)};
}

}  // namespace regatta::probe
