#include <cstddef>
#include <iterator>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/network/probe/handshake.h"

namespace regatta::probe {
namespace {

constexpr std::string_view kPlanName = "regatta-probe-plan";
constexpr std::uint32_t kProbesMost = 1U << 23U;

bool read_head(const std::vector<std::string>& words, ServerPlan& plan) {
  if (words.size() != 5 || words[0] != kPlanName || words[1] != "1" || words[4].empty())
    return false;
  const auto node = parse_number<int>(words[2]);
  const auto its_number = parse_number<std::uint64_t>(words[3], 16);
  if (!node || *node < 0 || !its_number) return false;
  plan.part.server = NodeId{*node};
  plan.number = *its_number;
  plan.server = words[4];
  return true;
}

// Numbers ascend.
bool may_follow(const std::vector<std::uint32_t>& before, std::uint32_t probe) {
  return before.empty() || before.back() < probe;
}

bool read_probe(const std::vector<std::string>& words, ServerPlan& plan) {
  const bool sends = words[0] == "s";
  if (words.size() != 6 || (!sends && words[0] != "a")) return false;
  const auto probe = parse_number<std::uint32_t>(words[1]);
  auto& all = sends ? plan.part.sends : plan.part.answers;
  if (!probe || *probe >= kProbesMost || !may_follow(all, *probe)) return false;
  all.push_back(*probe);
  const auto from = parse_number<std::uint32_t>(words[2]);
  const auto from_port = parse_number<std::uint16_t>(words[3]);
  const auto to = parse_number<std::uint32_t>(words[4]);
  const auto to_port = parse_number<std::uint16_t>(words[5]);
  if (!from || !from_port || !to || !to_port) return false;
  auto& probes = plan.matrix.probes;
  if (probes.size() <= *probe) probes.resize(std::size_t{*probe} + 1);
  probes[*probe].flow = {
      .from = *from, .to = *to, .from_port = *from_port, .to_port = *to_port, .protocol = 17};
  return true;
}

}  // namespace

std::string plan_text(const topo::Graph& graph, const Matrix& matrix, const ServerPart& part,
                      std::uint64_t number) {
  std::string text = fmt::format("{} 1 {} {:016x} {}\n", kPlanName, part.server.value, number,
                                 graph.nodes[part.server.index()].name);
  const auto add = [&](char kind, const std::vector<std::uint32_t>& probes) {
    for (const std::uint32_t probe : probes) {
      const fabric::FiveTuple& flow = matrix.probes[probe].flow;
      fmt::format_to(std::back_inserter(text), "{} {} {} {} {} {}\n", kind, probe, flow.from,
                     flow.from_port, flow.to, flow.to_port);
    }
  };
  add('s', part.sends);
  add('a', part.answers);
  return text;
}

Result<ServerPlan> parse_plan(std::string_view text) {
  ServerPlan plan;
  std::size_t line = 0;
  while (!text.empty() || line == 0) {
    const std::size_t end = text.find('\n');
    const std::vector<std::string> words = split(text.substr(0, end), ' ');
    const bool is_good = line == 0 ? read_head(words, plan) : read_probe(words, plan);
    ++line;
    if (!is_good || end == std::string_view::npos)
      return Error{Code::kInvalidInput,
                   fmt::format("plan of probes: line {} is none of a plan of this version", line)};
    text.remove_prefix(end + 1);
  }
  return plan;
}

}  // namespace regatta::probe
