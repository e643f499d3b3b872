#include "regatta/probe/collector.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <poll.h>
#include <unistd.h>

#include "regatta/os/clock.h"
#include "regatta/os/errno_text.h"
#include "regatta/os/system_clock.h"

namespace regatta::probe {
namespace {

constexpr diag::Window kSettles = 10;  // windows after the last server began
constexpr std::size_t kAgain = 128;    // windows that may be told again
constexpr std::size_t kLongestLine = std::size_t{16} << 20;

}  // namespace

Collector::Collector(const topo::Graph& graph, const Matrix& matrix, Seconds period)
    : graph_(graph), matrix_(matrix), locator_(graph, matrix.ways, diag::options_for(period)) {
  for (const topo::Node& node : graph.nodes)
    count_ += node.kind == topo::NodeKind::kServer ? 1 : 0;
  pairs_.resize(count_ * count_);
  counted_.resize(matrix.probes.size());
}

void Collector::add(os::UniqueFd from_prober) {
  const NodeId server{static_cast<int>(servers_.size())};
  servers_.push_back(
      {.part = part_of(graph_, matrix_, server), .fd = std::move(from_prober), .rest = {}});
}

void Collector::count(const diag::Report& report) {
  for (const diag::SentCount& one : report.sent) {
    std::vector<Counted>& windows = counted_[one.probe];
    if (windows.empty()) windows.resize(kAgain);
    Counted& known = windows[static_cast<std::size_t>(report.window) % kAgain];
    if (known.window > report.window) continue;
    if (known.window < report.window) known = {.window = report.window};
    const Probe& probe = matrix_.probes[one.probe];
    PairSum& sum = pairs_[graph_.links[probe.from.index()].a.index() * count_ +
                          graph_.links[probe.to.index()].a.index()];
    sum.sent += static_cast<std::uint64_t>(one.sent - known.sent);
    sum.lost += static_cast<std::uint64_t>(one.sent - one.answered);
    sum.lost -= static_cast<std::uint64_t>(known.sent - known.answered);
    known.sent = one.sent;
    known.answered = one.answered;
  }
}

Status Collector::take(Server& server, std::string_view text) {
  REGATTA_TRY(line, parse_line(text, server.part, periods_));
  if (const auto* const report = std::get_if<diag::Report>(&line)) {
    server.has_begun = true;
    if (counts_from_ < 0 && not_begun().empty()) counts_from_ = report->window + kSettles;
    if (counts_from_ < 0 || report->window < counts_from_) return {};
    count(*report);
    locator_.add(*report);
    return {};
  }
  if (counts_from_ < 0) return {};
  for (const Latency& one : std::get<std::vector<Latency>>(line)) {
    const Probe& probe = matrix_.probes[one.probe];
    PairSum& sum = pairs_[graph_.links[probe.from.index()].a.index() * count_ +
                          graph_.links[probe.to.index()].a.index()];
    sum.least_us = sum.answers == 0 ? one.least_us : std::min(sum.least_us, one.least_us);
    sum.most_us = std::max(sum.most_us, one.most_us);
    sum.total_us += one.mean_us * one.count;
    sum.answers += one.count;
  }
  return {};
}

Status Collector::read(Server& server) {
  std::array<char, 65536> block{};
  const ssize_t got = ::read(server.fd.get(), block.data(), block.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return {};
  if (got <= 0) {
    server.has_ended = true;
    return {};
  }
  server.rest.append(block.data(), static_cast<std::size_t>(got));
  std::size_t start = 0;
  for (std::size_t end = 0; (end = server.rest.find('\n', start)) != std::string::npos;
       start = end + 1)
    REGATTA_TRY_DO(take(server, std::string_view(server.rest).substr(start, end - start)));
  server.rest.erase(0, start);
  if (server.rest.size() > kLongestLine)
    return Error{Code::kInvalidInput, "a prober's line has no end"};
  return {};
}

Result<diag::News> Collector::gather(Seconds limit) {
  const Seconds until = os::monotonic_now() + limit;
  for (;;) {
    std::vector<pollfd> waits;
    std::vector<Server*> whose;
    for (Server& server : servers_) {
      if (server.has_ended) continue;
      waits.push_back({.fd = server.fd.get(), .events = POLLIN, .revents = 0});
      whose.push_back(&server);
    }
    const Seconds left = until - os::monotonic_now();
    if (left.value <= 0) break;
    const int ready = ::poll(waits.data(), waits.size(), static_cast<int>(left.value * 1e3) + 1);
    if (ready < 0 && errno != EINTR) return os::errno_error("waiting for probers");
    for (std::size_t i = 0; ready > 0 && i < waits.size(); ++i)
      if (waits[i].revents != 0) REGATTA_TRY_DO(read(*whose[i]));
    if (ready < 0) break;  // a signal: the caller looks what it is
  }
  return locator_.look(os::system_now());
}

std::vector<NodeId> Collector::not_begun() const {
  std::vector<NodeId> nodes;
  for (const Server& server : servers_)
    if (!server.has_begun) nodes.push_back(server.part.server);
  return nodes;
}

std::vector<NodeId> Collector::ended() const {
  std::vector<NodeId> nodes;
  for (const Server& server : servers_)
    if (server.has_ended) nodes.push_back(server.part.server);
  return nodes;
}

}  // namespace regatta::probe
