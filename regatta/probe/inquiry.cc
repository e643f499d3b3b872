#include "regatta/probe/inquiry.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "regatta/topo/addresses.h"

namespace regatta::probe {
namespace {

constexpr Seconds kSurveyAgain{600};
constexpr Seconds kSurveyStep{0.2};      // between two ways of each server
constexpr Seconds kSuspicionStep{0.25};  // between two questions about ways that lose
constexpr std::size_t kSuspectsAtOnce = 16;
constexpr int kTries = 4;
constexpr Seconds kFlowsStep{1};
constexpr std::size_t kOthersAsked = 8;  // servers that lose nothing, to compare with
constexpr Seconds kPauseMost{60};        // between two questions about the same
constexpr Seconds kForgotten{10};        // ways that lost nothing for so long
constexpr Seconds kRecent{10};
constexpr std::uint32_t kSegmentsMost = 50;  // that a connection weighs: its losses are no draws
constexpr double kTraceBackground = 0.02;
constexpr double kAgainBackground = 0.01;
// A router that answers less where nothing is lost says nothing by its silence.
constexpr double kAnswersLeast = 0.9;
constexpr std::uint64_t kAskedLeast = 4;

NodeId head_of(const topo::Graph& graph, std::uint32_t link) {
  const topo::Link& cable = graph.links[link / 2];
  return link % 2 == 0 ? cable.b : cable.a;
}

}  // namespace

Inquiry::Inquiry(const topo::Graph& graph, const fabric::Routes& routes,
                 std::span<const std::uint32_t> seeds, const Matrix& matrix)
    : graph_(graph),
      routes_(routes),
      seeds_(seeds),
      matrix_(matrix),
      ways_(matrix.ways.size()),
      is_lossy_(matrix.ways.size()),
      is_broken_(2 * graph.links.size()),
      to_survey_(graph.nodes.size()),
      answers_(graph.nodes.size()) {
  for (std::uint32_t way = 0; way < ways_.size(); ++way)
    traceable_ += routers_on(way) <= kHopsMost ? 1 : 0;
}

NodeId Inquiry::server_of(std::uint32_t way) const {
  return graph_.links[matrix_.ways.links(way).front() / 2].a;
}

int Inquiry::routers_on(std::uint32_t way) const {
  return static_cast<int>(matrix_.ways.links(way).size()) - 1;
}

// Of the routers on the way: the first so many, from which there is but one way back, the same.
std::size_t Inquiry::hops_back_alike(std::uint32_t way) const {
  const auto links = matrix_.ways.links(way);
  const NodeId leaf = head_of(graph_, links.front());
  std::size_t count = 1;
  for (; count + 1 < links.size(); ++count) {
    const auto back = routes_.next_hops(head_of(graph_, links[count]), leaf);
    if (back.size() != 1 || back[0] != (links[count] ^ 1U)) break;
  }
  return count;
}

void Inquiry::survey(Seconds now, std::vector<Question>& questions) {
  if (now - surveyed_at_ >= kSurveyAgain) {
    surveyed_at_ = now;
    for (std::deque<std::uint32_t>& ways : to_survey_)
      ways.clear();
    for (std::uint32_t way = 0; way < ways_.size(); ++way)
      if (routers_on(way) <= kHopsMost) to_survey_[server_of(way).index()].push_back(way);
  }
  if (now < next_survey_) return;
  next_survey_ = now + kSurveyStep;
  for (std::size_t server = 0; server < to_survey_.size(); ++server) {
    std::deque<std::uint32_t>& ways = to_survey_[server];
    if (ways.empty()) continue;
    questions.push_back({NodeId{static_cast<int>(server)},
                         TraceOrder{.way = ways.front(), .hops = routers_on(ways.front())}});
    ways.pop_front();
  }
}

void Inquiry::suspect(std::span<const std::uint32_t> lossy, Seconds now,
                      std::vector<Question>& questions) {
  if (now < next_suspicion_) return;
  std::vector<std::uint32_t> due;
  for (const std::uint32_t way : lossy)
    if (ways_[way].next <= now && routers_on(way) <= kHopsMost) due.push_back(way);
  if (due.empty()) return;
  next_suspicion_ = now + kSuspicionStep;
  // Who was asked longest ago, or never, first.
  std::ranges::stable_sort(due, {}, [&](std::uint32_t way) { return ways_[way].next; });
  if (due.size() > kSuspectsAtOnce) due.resize(kSuspectsAtOnce);
  for (const std::uint32_t way : due) {
    Way& its = ways_[way];
    // Long silence: a new suspicion. Else the same one, asked about more and more rarely.
    const bool is_new = now - its.next > kForgotten;
    its.pause = is_new ? Seconds{1} : std::min(2 * its.pause, kPauseMost);
    its.next = now + its.pause;
    questions.push_back(
        {server_of(way), TraceOrder{.way = way, .hops = routers_on(way), .tries = kTries}});
  }
}

void Inquiry::ask_for_flows(std::span<const std::uint32_t> lossy, Seconds now,
                            std::vector<Question>& questions) {
  if (now < next_flows_) return;
  // Two counts, soon one after the other, say what was sent in between.
  const bool is_new = now - next_flows_ > kForgotten;
  flows_pause_ = is_new ? kFlowsStep : std::min(1.25 * flows_pause_, Seconds{2.5});
  next_flows_ = now + flows_pause_;
  std::set<NodeId> asked;
  for (const std::uint32_t way : lossy) {
    asked.insert(server_of(way));
    asked.insert(server_of(way ^ 1U));
  }
  std::size_t others = 0;
  for (std::size_t node = 0; node < graph_.nodes.size() && others < kOthersAsked; ++node) {
    if (graph_.nodes[node].kind != topo::NodeKind::kServer) break;
    others += asked.insert(NodeId{static_cast<int>(node)}).second ? 1 : 0;
  }
  for (const NodeId server : asked)
    questions.push_back({server, FlowsOrder()});
}

std::vector<Question> Inquiry::ask(std::span<const std::uint32_t> lossy,
                                   std::span<const diag::Verdict> standing, Seconds now) {
  forget(now);
  is_lossy_.assign(is_lossy_.size(), false);
  for (const std::uint32_t way : lossy)
    is_lossy_[way] = true;
  is_broken_.assign(is_broken_.size(), false);
  for (const diag::Verdict& verdict : standing)
    for (const std::uint32_t link : links_to_avoid(graph_, verdict.culprit))
      is_broken_[link] = true;
  std::vector<Question> questions;
  if (lossy.empty()) {
    survey(now, questions);
  } else {
    suspect(lossy, now, questions);
    ask_for_flows(lossy, now, questions);
  }
  return questions;
}

void Inquiry::put_off(const Question& question) {
  const auto* const trace = std::get_if<TraceOrder>(&question.order);
  if (trace != nullptr && !ways_[trace->way].is_traced)
    to_survey_[question.server.index()].push_back(trace->way);
}

// The link by which a packet came to the router that has this address; none where no cable has.
std::optional<std::uint32_t> Inquiry::link_to(std::uint32_t router) const {
  const auto link = topo::link_of(router);
  if (!link || link->index() >= graph_.links.size()) return std::nullopt;
  return fabric::number_of({.link = *link, .forward = router == topo::address_of(*link, true)});
}

// As routers tell it, from NIC to NIC; empty where one has not answered or they do not hang
// together.
std::vector<std::uint32_t> Inquiry::measure(const Trace& trace) const {
  std::vector<std::uint32_t> links;
  for (const TraceHop& hop : trace.hops) {
    const auto link = hop.router == 0 ? std::nullopt : link_to(hop.router);
    if (!link) return {};
    if (!links.empty() && head_of(graph_, links.back()) != head_of(graph_, *link ^ 1U)) return {};
    links.push_back(*link);
  }
  const auto planned = matrix_.ways.links(trace.way);
  if (links.front() != planned.front() ||
      head_of(graph_, links.back()) != head_of(graph_, planned.back() ^ 1U))
    return {};
  links.push_back(planned.back());
  return links;
}

// False when the way leads elsewhere.
bool Inquiry::check_way(const Trace& trace) {
  Way& way = ways_[trace.way];
  const auto links = matrix_.ways.links(trace.way);
  traced_ += std::exchange(way.is_traced, true) ? 0 : 1;
  const bool was_elsewhere = std::exchange(way.is_elsewhere, false);
  for (std::size_t hop = 0; hop < trace.hops.size(); ++hop) {
    const std::uint32_t router = trace.hops[hop].router;
    const std::uint32_t planned = links[hop];
    if (router == 0) continue;
    if (router == topo::address_of(LinkId{static_cast<int>(planned / 2)}, planned % 2 == 0)) {
      // On the first link every way of the NIC is.
      way.is_confirmed = way.is_confirmed || hop > 0 || links.size() == 2;
      continue;
    }
    // An address that no cable has may be another one of the same router.
    const auto taken = link_to(router);
    if (!taken) continue;
    way.is_elsewhere = true;
    way.measured = measure(trace);
    is_hash_known_ = false;
    if (!was_elsewhere)
      fresh_elsewhere_.push_back({.way = trace.way, .planned = planned, .taken = *taken});
    break;
  }
  elsewhere_ += way.is_elsewhere ? 1 : 0;
  elsewhere_ -= was_elsewhere ? 1 : 0;
  return !way.is_elsewhere;
}

Result<std::vector<diag::PassedCount>> Inquiry::take(NodeId server, const Trace& trace,
                                                     Seconds now) {
  if (trace.way >= ways_.size() || server_of(trace.way) != server ||
      static_cast<int>(trace.hops.size()) != routers_on(trace.way))
    return Error{Code::kInvalidInput, "tells of a traceroute on a way that is not its own"};
  std::vector<diag::PassedCount> counts;
  if (!check_way(trace)) return counts;
  traces_.push_back({.at = now, .way = trace.way, .hops = trace.hops});
  const auto links = matrix_.ways.links(trace.way);
  const std::size_t alike = hops_back_alike(trace.way);
  for (std::size_t hop = 0; hop < trace.hops.size(); ++hop) {
    const TraceHop& its = trace.hops[hop];
    Answers& known = answers_[head_of(graph_, links[hop]).index()];
    if (!is_lossy_[trace.way]) {
      known.asked += its.sent;
      known.answered += its.answered;
      continue;
    }
    if (hop >= alike || its.sent == 0 || known.asked < kAskedLeast) continue;
    const double usual = static_cast<double>(known.answered) / static_cast<double>(known.asked);
    if (usual < kAnswersLeast) continue;
    diag::PassedCount count{
        .window = trace.window,
        .links = {links.begin(), links.begin() + static_cast<std::ptrdiff_t>(hop) + 1},
        .sent = its.sent,
        .lost = static_cast<std::uint32_t>(its.sent - its.answered),
        .asked = head_of(graph_, links[hop]),
        .background = std::max(kTraceBackground, 1 - usual)};
    for (std::size_t back = hop + 1; back-- > 0;)
      count.links.push_back(links[back] ^ 1U);
    counts.push_back(std::move(count));
  }
  return counts;
}

// There and back; none where an end is no NIC of this server, or of the cluster.
std::optional<std::vector<std::uint32_t>> Inquiry::round_trip(NodeId server,
                                                              const fabric::FiveTuple& flow) const {
  const auto nic = [&](std::uint32_t address) -> std::optional<LinkId> {
    const auto link = topo::link_of(address);
    if (!link || link->index() >= graph_.links.size() || graph_.links[link->index()].a_nic < 0 ||
        topo::address_of(*link) != address)
      return std::nullopt;
    return link;
  };
  const auto from = nic(flow.from);
  const auto to = nic(flow.to);
  if (!from || !to || graph_.links[from->index()].a != server) return std::nullopt;
  const fabric::FiveTuple back{flow.to, flow.from, flow.to_port, flow.from_port, flow.protocol};
  auto links = routes_.way(*from, *to, fabric::ByHash{flow, seeds_});
  const auto returns = routes_.way(*to, *from, fabric::ByHash{back, seeds_});
  if (!links || !returns) return std::nullopt;
  links->insert(links->end(), returns->begin(), returns->end());
  return links;
}

// The share that half of all connections stay below.
double Inquiry::usually_again() const {
  std::vector<double> shares;
  for (const RecentFlow& one : flows_)
    shares.push_back(static_cast<double>(one.again) / static_cast<double>(one.segments));
  if (shares.empty()) return kAgainBackground;
  const auto middle = shares.begin() + static_cast<std::ptrdiff_t>(shares.size() / 2);
  std::nth_element(shares.begin(), middle, shares.end());
  return std::max(kAgainBackground, *middle);
}

bool Inquiry::crosses_broken(std::span<const std::uint32_t> links) const {
  return std::ranges::any_of(links, [&](std::uint32_t link) { return is_broken_[link]; });
}

Result<std::vector<diag::PassedCount>> Inquiry::take(NodeId server, const FlowCounts& counts,
                                                     Seconds now) {
  if (!is_hash_known_) return std::vector<diag::PassedCount>();
  std::vector<RecentFlow> fresh;
  for (const FlowCount& one : counts.flows) {
    auto links = round_trip(server, one.flow);
    if (!links || one.segments == 0) continue;
    fresh.push_back(
        {.at = now, .links = std::move(*links), .segments = one.segments, .again = one.again});
  }
  flows_.insert(flows_.end(), fresh.begin(), fresh.end());
  const double background = usually_again();
  std::vector<diag::PassedCount> passed;
  for (RecentFlow& one : fresh) {
    // Around what is broken a healer may have led it meanwhile.
    if (crosses_broken(one.links)) continue;
    const double weight = std::min(1.0, kSegmentsMost / static_cast<double>(one.segments));
    passed.push_back({.window = counts.window,
                      .links = std::move(one.links),
                      .sent = static_cast<std::uint32_t>(std::ceil(weight * one.segments)),
                      .lost = static_cast<std::uint32_t>(std::lround(weight * one.again)),
                      .background = background});
  }
  return passed;
}

Result<diag::CarrierEvent> Inquiry::take(NodeId server, const NicCarrier& nic) const {
  const auto link = topo::link_of(nic.address);
  if (!link || link->index() >= graph_.links.size() || graph_.links[link->index()].a_nic < 0 ||
      graph_.links[link->index()].a != server || topo::address_of(*link) != nic.address)
    return Error{Code::kInvalidInput, "tells of the carrier of a NIC that is not its own"};
  return diag::CarrierEvent{.link = *link, .up = nic.up};
}

Gathered Inquiry::about(const diag::Culprit& culprit, Seconds since) const {
  std::vector<bool> is_its(is_broken_.size());
  for (const std::uint32_t link : links_to_avoid(graph_, culprit))
    is_its[link] = true;
  Gathered sum;
  for (const RecentTrace& one : traces_) {
    if (one.at < since) continue;
    const auto links = matrix_.ways.links(one.way);
    const auto first =
        std::ranges::find_if(links, [&](std::uint32_t link) { return is_its[link]; });
    if (first == links.end()) continue;
    auto last_before = static_cast<std::size_t>(first - links.begin());
    // Of a switch the link into it is well: it is the first that answers, or not.
    if (culprit.kind == diag::CulpritKind::kSwitch) ++last_before;
    for (std::size_t hop = 0; hop < one.hops.size(); ++hop) {
      if (hop + 1 == last_before) {
        sum.before_sent += one.hops[hop].sent;
        sum.before_answered += one.hops[hop].answered;
      }
      if (hop < last_before) continue;
      sum.behind_sent += one.hops[hop].sent;
      sum.behind_answered += one.hops[hop].answered;
    }
  }
  for (const RecentFlow& one : flows_) {
    if (one.at < since) continue;
    const bool is_over =
        std::ranges::any_of(one.links, [&](std::uint32_t link) { return is_its[link]; });
    (is_over ? sum.segments : sum.other_segments) += one.segments;
    (is_over ? sum.again : sum.other_again) += one.again;
  }
  return sum;
}

std::size_t Inquiry::confirmed() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      ways_, [](const Way& way) { return way.is_confirmed && !way.is_elsewhere; }));
}

std::vector<Elsewhere> Inquiry::take_elsewhere() {
  return std::exchange(fresh_elsewhere_, {});
}

std::optional<fabric::Paths> Inquiry::take_measured() {
  if (std::ranges::none_of(ways_, [](const Way& way) { return !way.measured.empty(); }))
    return std::nullopt;
  fabric::Paths paths;
  for (std::uint32_t number = 0; number < ways_.size(); ++number) {
    Way& way = ways_[number];
    if (way.measured.empty()) {
      paths.add(matrix_.ways.links(number));
      continue;
    }
    paths.add(std::exchange(way.measured, {}));
    way.is_elsewhere = false;
    way.is_confirmed = true;
    --elsewhere_;
  }
  // What they answered was held against other ways.
  traces_.clear();
  return paths;
}

void Inquiry::forget(Seconds now) {
  while (!traces_.empty() && now - traces_.front().at > kRecent)
    traces_.pop_front();
  while (!flows_.empty() && now - flows_.front().at > kRecent)
    flows_.pop_front();
}

}  // namespace regatta::probe
