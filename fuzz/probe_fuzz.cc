// fuzz/probe_fuzz.cc: any bytes as labelled faults, as the reports of a prober, and as the
// connection of a peer that claims to be one.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/text.h"
#include "regatta/network/diag/locator.h"
#include "regatta/network/probe/collector.h"
#include "regatta/network/probe/evidence.h"
#include "regatta/network/probe/evidence_collector.h"
#include "regatta/network/probe/handshake.h"
#include "regatta/network/probe/internal/report_text.h"
#include "regatta/network/probe/internal/simulation/scenario.h"
#include "regatta/network/probe/matrix.h"
#include "regatta/network/probe/test_clusters.h"

namespace {

using regatta::probe::Fabric;
using regatta::probe::Matrix;

void as_faults(const Fabric& fabric, std::string_view text) {
  const auto all = regatta::probe::parse_scenarios(text, "fuzz.txt");
  if (!all) {
    REGATTA_CHECK(all.error().message.starts_with("fuzz.txt:"));
    return;
  }
  for (const auto& scenario : *all)
    for (const std::string& fault : scenario.faults) {
      const auto parsed = regatta::probe::parse_fault(fabric.graph, fault);
      if (!parsed) continue;
      const std::string again = regatta::probe::fault_text(fabric.graph, *parsed);
      const auto twice = regatta::probe::parse_fault(fabric.graph, again);
      REGATTA_CHECK(twice.has_value() && twice->culprit == parsed->culprit);
    }
}

void as_reports(const Fabric& fabric, const Matrix& matrix, std::string_view text) {
  const auto part = part_of(fabric.graph, matrix, regatta::NodeId{1});
  regatta::diag::Locator locator(fabric.graph, matrix.paths);
  for (const std::string& line : regatta::split(text, '\n')) {
    const auto parsed = regatta::probe::parse_line(line, part, 3);
    if (!parsed) continue;
    const auto* const report = std::get_if<regatta::diag::ProbeReport>(&*parsed);
    if (report == nullptr) continue;
    locator.add(*report);
    const auto after = static_cast<double>(report->window + 3);
    static_cast<void>(locator.locate(regatta::Seconds{0.03 * after}));
  }
}

// Handshake, then lines, in pieces whose size the first byte chooses; the clock is that of the
// windows.
void as_connection(const Fabric& fabric, const Matrix& matrix, std::string_view bytes) {
  using regatta::NodeId;
  using regatta::Seconds;
  regatta::probe::Collector collector(fabric.graph, matrix, Seconds{0.01});
  const Seconds now{3e6};
  collector.begin(Seconds{2e6});
  const regatta::probe::ExpectedReporters expected{
      .servers = {"s0", "s1"}, .period = {0.01}, .plan = 0, .token = {}};
  regatta::LineSplitter lines(regatta::probe::kHandshakeBytesMax);
  bool is_in = false;
  const auto accept = [&](std::string_view line) {
    if (lines.is_too_long(line)) return false;
    if (is_in) return collector.accept(NodeId{1}, line, now).has_value();
    is_in = true;  // whatever the handshake claims
    const auto handshake = regatta::probe::parse_handshake(line);
    if (handshake) static_cast<void>(check(*handshake, expected, now).has_value());
    lines.set_line_max(collector.longest_line(NodeId{1}));
    return true;
  };
  const std::size_t size = bytes.empty() ? 1 : 1 + static_cast<unsigned char>(bytes.front()) % 64;
  bool is_open = true;
  for (; is_open && !bytes.empty(); bytes.remove_prefix(std::min(size, bytes.size()))) {
    lines.append(bytes.substr(0, size));
    while (is_open) {
      const auto line = lines.next();
      if (!line) break;
      is_open = accept(*line);
    }
  }
  static_cast<void>(collector.locate(now));
}

// Requests to probers and their replies: parsing and printing give the same bytes.
void as_evidence(const Fabric& fabric, const Matrix& matrix, std::string_view text) {
  using regatta::Seconds;
  regatta::probe::EvidenceCollector evidence_collector(fabric.graph, fabric.routes, fabric.seeds,
                                                       matrix);
  regatta::diag::Locator locator(fabric.graph, matrix.paths);
  Seconds now{100};
  for (const std::string& line : regatta::split(text, '\n')) {
    now = now + Seconds{0.1};
    static_cast<void>(regatta::probe::parse_order(line).has_value());
    const auto evidence = regatta::probe::parse_evidence(line);
    if (!evidence) continue;
    const std::string again = regatta::probe::evidence_line(*evidence);
    REGATTA_CHECK(regatta::probe::parse_evidence(again.substr(0, again.size() - 1)).has_value());
    std::visit(
        [&](const auto& one) {
          using Kind = std::decay_t<decltype(one)>;
          if constexpr (std::is_same_v<Kind, regatta::probe::InterfaceAddresses>)
            locator.add(regatta::diag::ServerAddresses{.server = regatta::NodeId{1},
                                                       .interfaces = one.interfaces});
          else if constexpr (std::is_same_v<Kind, regatta::probe::NicCarrier>)
            static_cast<void>(evidence_collector.accept(regatta::NodeId{1}, one).has_value());
          else
            static_cast<void>(evidence_collector.accept(regatta::NodeId{1}, one, now).has_value());
        },
        *evidence);
    static_cast<void>(
        evidence_collector.due_requests(std::vector<std::uint32_t>{0, 3}, {}, {}, now));
    static_cast<void>(locator.locate(now));
  }
}

void as_plan(std::string_view text) {
  const auto plan = regatta::probe::parse_plan(text);
  if (!plan) return;
  for (const auto* probes : {&plan->part.sends, &plan->part.answers})
    for (const std::uint32_t probe : *probes)
      REGATTA_CHECK(probe < plan->matrix.probes.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Fabric fabric({.servers = 4, .servers_per_leaf = 2, .spines = 2});
  static const Matrix matrix =
      regatta::probe::plan_matrix(fabric.graph, fabric.routes, fabric.seeds);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  as_faults(fabric, text);
  as_reports(fabric, matrix, text);
  as_connection(fabric, matrix, text);
  as_evidence(fabric, matrix, text);
  as_plan(text);
  return 0;
}
