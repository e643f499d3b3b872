#include "regatta/network/probe/internal/router_answers.h"

#include <algorithm>
#include <utility>

namespace regatta::probe {
namespace {

using fabric::head_of;

constexpr double kTraceBackground = 0.02;
// The silence of a router that answers less where nothing is lost means nothing.
constexpr double kAnswersLeast = 0.9;
constexpr std::uint64_t kRequestedLeast = 4;

}  // namespace

// How many routers, from the first one on, have only one path back: over the same links.
std::size_t RouterAnswers::hops_back_alike(std::uint32_t path) const {
  const auto links = matrix_.paths.links(path);
  const NodeId leaf = head_of(graph_, links.front());
  std::size_t count = 1;
  for (; count + 1 < links.size(); ++count) {
    const auto back = routes_.next_hops(head_of(graph_, links[count]), leaf);
    if (back.size() != 1 || back[0] != (links[count] ^ 1U)) break;
  }
  return count;
}

std::vector<diag::PassiveCount> RouterAnswers::evaluate(const Trace& trace, bool is_lossy) {
  std::vector<diag::PassiveCount> counts;
  const auto links = matrix_.paths.links(trace.path);
  const std::size_t alike = hops_back_alike(trace.path);
  for (std::size_t hop = 0; hop < trace.hops.size(); ++hop) {
    const TraceHop& its = trace.hops[hop];
    const NodeId router = head_of(graph_, links[hop]);
    Answers& known = answers_[router.index()];
    if (!is_lossy) {
      known.requested += its.sent;
      known.answered += its.answered;
      continue;
    }
    if (hop >= alike || its.sent == 0 || known.requested < kRequestedLeast) continue;
    const double usual = static_cast<double>(known.answered) / static_cast<double>(known.requested);
    if (usual < kAnswersLeast) continue;
    diag::PassiveCount count{
        .window = trace.window,
        .links = {links.begin(), links.begin() + static_cast<std::ptrdiff_t>(hop) + 1},
        .sent = its.sent,
        .lost = static_cast<std::uint32_t>(its.sent - its.answered),
        .asked = router,
        .background = std::max(kTraceBackground, 1 - usual)};
    for (std::size_t back = hop + 1; back-- > 0;)
      count.links.push_back(links[back] ^ 1U);
    counts.push_back(std::move(count));
  }
  return counts;
}

}  // namespace regatta::probe
