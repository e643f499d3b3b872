#include "regatta/network/probe/internal/report_text.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include <fmt/core.h>
#include <fmt/format.h>

#include "regatta/base/core/text.h"

namespace regatta::probe {
namespace {

// The numbers of "1:2:3"; none when something else stands there.
template <typename T>
std::optional<std::vector<T>> numbers(std::string_view text, std::size_t count) {
  std::vector<T> all;
  for (const std::string& part : split(text, ':')) {
    const auto value = parse_number<T>(part);
    if (!value) return std::nullopt;
    all.push_back(*value);
  }
  if (all.size() != count) return std::nullopt;
  return all;
}

// In us; below 0 where a clock was set meanwhile. Neither infinite nor no number.
bool is_possible_time(double value) {
  return value > -1e12 && value < 1e12;
}

std::optional<std::size_t> place_of(const std::vector<std::uint32_t>& probes, double probe) {
  const auto at = std::ranges::lower_bound(probes, static_cast<std::uint32_t>(probe));
  if (at == probes.end() || *at != static_cast<std::uint32_t>(probe)) return std::nullopt;
  return static_cast<std::size_t>(at - probes.begin());
}

bool read_exceptions(const std::vector<std::string>& words, const ServerPart& part,
                     diag::ProbeReport& report) {
  for (std::size_t i = 6; i + 1 < words.size(); i += 2) {
    const bool sent = words[i] == "s";
    if (!sent && words[i] != "a") return false;
    const auto values = numbers<std::uint32_t>(words[i + 1], sent ? 3 : 2);
    if (!values || (*values)[1] > 0xfffe) return false;
    const auto at = place_of(sent ? part.sends : part.answers, (*values)[0]);
    if (!at) return false;
    const auto count = static_cast<std::uint16_t>((*values)[1]);
    if (!sent) {
      report.arrived[*at].arrived = count;
      continue;
    }
    if ((*values)[2] > count) return false;
    report.sent[*at].sent = count;
    report.sent[*at].answered = static_cast<std::uint16_t>((*values)[2]);
  }
  return words.size() % 2 == 0;
}

}  // namespace

ServerPart part_of(const topo::Graph& graph, const Matrix& matrix, NodeId server) {
  ServerPart part{.server = server};
  for (std::uint32_t probe = 0; probe < matrix.probes.size(); ++probe) {
    if (graph.links[matrix.probes[probe].from.index()].a == server) part.sends.push_back(probe);
    if (graph.links[matrix.probes[probe].to.index()].a == server) part.answers.push_back(probe);
  }
  return part;
}

std::set<std::uint32_t> own_addresses(const Matrix& matrix, const ServerPart& part) {
  std::set<std::uint32_t> addresses;
  for (const std::uint32_t number : part.sends)
    addresses.insert(matrix.probes[number].flow.from);
  for (const std::uint32_t number : part.answers)
    addresses.insert(matrix.probes[number].flow.to);
  return addresses;
}

std::string report_line(const diag::ProbeReport& report, int periods) {
  const diag::HostState& host = report.host;
  std::string line = fmt::format("w {} {:.0f} {} {} {}", report.window, host.worst_gap.value * 1e6,
                                 host.control_sent, host.control_lost, host.overflows);
  for (const diag::SentCount& one : report.sent)
    if (one.sent != periods || one.answered != periods)
      fmt::format_to(std::back_inserter(line), " s {}:{}:{}", one.probe, one.sent, one.answered);
  for (const diag::ArrivedCount& one : report.arrived)
    if (one.arrived != periods)
      fmt::format_to(std::back_inserter(line), " a {}:{}", one.probe, one.arrived);
  return line + "\n";
}

std::string latency_line(const std::vector<Latency>& latencies) {
  std::string line = "l";
  for (const Latency& one : latencies)
    fmt::format_to(std::back_inserter(line), " {}:{}:{:.1f}:{:.1f}:{:.1f}", one.probe, one.count,
                   one.least_us, one.mean_us, one.most_us);
  return line + "\n";
}

Result<std::variant<diag::ProbeReport, std::vector<Latency>>> parse_line(std::string_view line,
                                                                         const ServerPart& part,
                                                                         int periods) {
  using Line = std::variant<diag::ProbeReport, std::vector<Latency>>;
  const Error wrong{Code::kInvalidInput, "not a prober's line: " + printable(line, 60)};
  const std::vector<std::string> words = split(trim(line), ' ');
  if (words[0] == "l") {
    std::vector<Latency> latencies;
    for (std::size_t i = 1; i < words.size(); ++i) {
      const auto values = numbers<double>(words[i], 5);
      if (!values ||
          !((*values)[0] >= 0 && (*values)[0] < 4e9 && (*values)[1] >= 0 && (*values)[1] < 4e9) ||
          !std::ranges::all_of(*values, is_possible_time) || !place_of(part.sends, (*values)[0]))
        return wrong;
      latencies.push_back({static_cast<std::uint32_t>((*values)[0]),
                           static_cast<std::uint32_t>((*values)[1]), (*values)[2], (*values)[3],
                           (*values)[4]});
    }
    return Line(std::move(latencies));
  }
  if (words[0] != "w" || words.size() < 6) return wrong;
  std::vector<std::int64_t> head;
  for (std::size_t i = 1; i < 6; ++i) {
    const auto value = numbers<std::int64_t>(words[i], 1);
    if (!value || (*value)[0] < 0 || (i > 1 && (*value)[0] > 1'000'000'000'000)) return wrong;
    head.push_back((*value)[0]);
  }
  diag::ProbeReport report{.server = part.server, .window = head[0]};
  report.host = {.worst_gap = Seconds{static_cast<double>(head[1]) * 1e-6},
                 .control_sent = static_cast<std::uint32_t>(head[2]),
                 .control_lost = static_cast<std::uint32_t>(head[3]),
                 .overflows = static_cast<std::uint32_t>(head[4])};
  const auto all = static_cast<std::uint16_t>(periods);
  for (const std::uint32_t probe : part.sends)
    report.sent.push_back({probe, all, all});
  for (const std::uint32_t probe : part.answers)
    report.arrived.push_back({probe, all});
  if (!read_exceptions(words, part, report)) return wrong;
  return Line(std::move(report));
}

}  // namespace regatta::probe
