#include "regatta/network/probe/internal/report_text.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>

#include <fmt/core.h>
#include <fmt/format.h>

#include "regatta/base/core/text.h"

namespace regatta::probe {
namespace {

constexpr std::string_view kLargeName = "large";
constexpr std::string_view kUserName = "user";

std::string_view name_of(diag::PacketVariant variant) {
  return variant == diag::PacketVariant::kLarge ? kLargeName : kUserName;
}

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

// Fills a ProbeReport or VariantReport: `usual` for each probe, but for those that `words` name.
template <typename Report>
bool read_counts(std::span<const std::string> words, const ServerPart& part, std::uint16_t usual,
                 Report& report) {
  for (const std::uint32_t probe : part.sends)
    report.sent.push_back({probe, usual, usual});
  for (const std::uint32_t probe : part.answers)
    report.arrived.push_back({probe, usual});
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
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

namespace {

template <typename Report>
void append_exceptions(const Report& report, int usual, std::string& line) {
  for (const diag::SentCount& one : report.sent)
    if (one.sent != usual || one.answered != usual)
      fmt::format_to(std::back_inserter(line), " s {}:{}:{}", one.probe, one.sent, one.answered);
  for (const diag::ArrivedCount& one : report.arrived)
    if (one.arrived != usual)
      fmt::format_to(std::back_inserter(line), " a {}:{}", one.probe, one.arrived);
}

}  // namespace

std::string report_line(const diag::ProbeReport& report, int periods) {
  const diag::HostState& host = report.host;
  std::string line = fmt::format("w {} {:.0f} {} {} {}", report.window, host.worst_gap.value * 1e6,
                                 host.control_sent, host.control_lost, host.overflows);
  append_exceptions(report, periods, line);
  return line + "\n";
}

std::string variant_line(const diag::VariantReport& report) {
  std::string line = fmt::format("v {} {}", name_of(report.variant), report.cycle);
  append_exceptions(report, 1, line);
  return line + "\n";
}

std::string latency_line(const std::vector<Latency>& latencies) {
  std::string line = "l";
  for (const Latency& one : latencies)
    fmt::format_to(std::back_inserter(line), " {}:{}:{:.1f}:{:.1f}:{:.1f}", one.probe, one.count,
                   one.least_us, one.mean_us, one.most_us);
  return line + "\n";
}

namespace {

std::optional<std::vector<Latency>> parse_latencies(std::span<const std::string> words,
                                                    const ServerPart& part) {
  std::vector<Latency> latencies;
  for (const std::string& word : words) {
    const auto values = numbers<double>(word, 5);
    if (!values ||
        !((*values)[0] >= 0 && (*values)[0] < 4e9 && (*values)[1] >= 0 && (*values)[1] < 4e9) ||
        !std::ranges::all_of(*values, is_possible_time) || !place_of(part.sends, (*values)[0]))
      return std::nullopt;
    latencies.push_back({static_cast<std::uint32_t>((*values)[0]),
                         static_cast<std::uint32_t>((*values)[1]), (*values)[2], (*values)[3],
                         (*values)[4]});
  }
  return latencies;
}

std::optional<diag::VariantReport> parse_variant(std::span<const std::string> words,
                                                 const ServerPart& part) {
  if (words.size() < 2) return std::nullopt;
  diag::VariantReport report{.server = part.server};
  if (words[0] != kLargeName && words[0] != kUserName) return std::nullopt;
  report.variant =
      words[0] == kLargeName ? diag::PacketVariant::kLarge : diag::PacketVariant::kUser;
  const auto cycle = parse_number<std::int64_t>(words[1]);
  if (!cycle || *cycle < 0 || !read_counts(words.subspan(2), part, 1, report)) return std::nullopt;
  report.cycle = *cycle;
  return report;
}

std::optional<diag::ProbeReport> parse_window(std::span<const std::string> words,
                                              const ServerPart& part, int periods) {
  constexpr std::size_t kHead = 5;
  if (words.size() < kHead) return std::nullopt;
  std::vector<std::int64_t> head;
  for (std::size_t i = 0; i < kHead; ++i) {
    const auto value = parse_number<std::int64_t>(words[i]);
    if (!value || *value < 0 || (i > 0 && *value > 1'000'000'000'000)) return std::nullopt;
    head.push_back(*value);
  }
  diag::ProbeReport report{.server = part.server, .window = head[0]};
  report.host = {.worst_gap = Seconds{static_cast<double>(head[1]) * 1e-6},
                 .control_sent = static_cast<std::uint32_t>(head[2]),
                 .control_lost = static_cast<std::uint32_t>(head[3]),
                 .overflows = static_cast<std::uint32_t>(head[4])};
  if (!read_counts(words.subspan(kHead), part, static_cast<std::uint16_t>(periods), report))
    return std::nullopt;
  return report;
}

}  // namespace

Result<ProberLine> parse_line(std::string_view line, const ServerPart& part, int periods) {
  const Error wrong{Code::kInvalidInput, "not a prober's line: " + printable(line, 60)};
  const std::vector<std::string> words = split(trim(line), ' ');
  const auto rest = std::span(words).subspan(1);
  const auto answer = [&](auto parsed) -> Result<ProberLine> {
    if (!parsed) return wrong;
    return ProberLine(std::move(*parsed));
  };
  if (words[0] == "l") return answer(parse_latencies(rest, part));
  if (words[0] == "v") return answer(parse_variant(rest, part));
  if (words[0] == "w") return answer(parse_window(rest, part, periods));
  return wrong;
}

}  // namespace regatta::probe
