#include "regatta/runtime/comm/internal/transport/path_discovery.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace regatta::comm {
namespace {

// Routers of a cluster answer within a millisecond.
constexpr Seconds kSilence{0.05};
constexpr int kSilentMax = 2;
constexpr Seconds kPathDiscoveryTime{0.3};
constexpr int kHopsMax = 8;
// So many ports are traced for each that is needed: that none of 24 takes one of two uplinks has a
// probability of 1e-7, of 32 one of four 4e-4.
constexpr std::size_t kCandidatesPerPort = 8;
constexpr std::size_t kCandidatesMin = 24;
constexpr std::size_t kCandidatesMax = 64;

// Whether the same routers did not reply: a lost reply is no property of the path.
bool has_same_silence(const TracedPort& a, const TracedPort& b) {
  return std::equal(a.routers.begin(), a.routers.end(), b.routers.begin(), b.routers.end(),
                    [](const auto& x, const auto& y) { return x.empty() == y.empty(); });
}

}  // namespace

PortTrace::PortTrace(std::string from, TcpAddress to, int first_hop, int last_hop)
    : from_{std::move(from), 0}, to_(std::move(to)), hop_(first_hop), last_hop_(last_hop) {}

PortTrace::State PortTrace::next_hop(std::string router) {
  fd_.reset();
  silent_ = router.empty() ? silent_ + 1 : 0;
  traced_.routers.push_back(std::move(router));
  if (silent_ == kSilentMax) return State::kUnknown;
  return ++hop_ > last_hop_ ? State::kKnown : State::kInProgress;
}

PortTrace::State PortTrace::serve(Seconds now) {
  State state = State::kInProgress;
  while (state == State::kInProgress) {
    if (!fd_) {
      auto fd = connect_tcp(from_, to_, hop_);
      if (!fd) return State::kUnknown;
      fd_ = std::move(*fd);
      probed_at_ = now;
      traced_.port = from_.port = local_port(fd_.get());
    }
    pollfd ready{fd_.get(), POLLOUT, 0};
    if (poll(&ready, 1, 0) == 0) {
      if (now - probed_at_ < kSilence) return State::kInProgress;
      state = next_hop("");
      continue;
    }
    AttemptEnd end = end_of_attempt(fd_.get());
    if (end.is_connected) {
      lift_hop_limit(fd_.get());
      return State::kReached;
    }
    if (end.router.empty()) return State::kUnknown;
    state = next_hop(std::move(end.router));
  }
  return state;
}

PathDiscovery::PathDiscovery(int peer, std::string from, TcpAddress to, std::size_t count)
    : peer_(peer),
      from_(std::move(from)),
      to_(std::move(to)),
      count_(count),
      first_trace_(from_, to_, 1, kHopsMax) {}

bool PathDiscovery::serve(Seconds now) {
  if (deadline_ == Seconds{0}) deadline_ = now + kPathDiscoveryTime;
  if (now >= deadline_) return true;
  return is_first_trace_done_ ? serve_candidate_traces(now) : serve_first_trace(now);
}

bool PathDiscovery::serve_first_trace(Seconds now) {
  const PortTrace::State state = first_trace_.serve(now);
  if (state == PortTrace::State::kInProgress) return false;
  if (state != PortTrace::State::kReached) return true;
  is_first_trace_done_ = true;
  first_trace_fd_ = first_trace_.take_fd();
  TracedPort known = first_trace_.traced();
  // A host has one path to its nearest router; where that is the only one there is no choice.
  const auto hops = static_cast<int>(known.routers.size());
  if (hops < 2 || count_ < 2) return true;
  known.routers.erase(known.routers.begin());
  known_.push_back(std::move(known));
  const std::size_t candidates =
      std::clamp(kCandidatesPerPort * count_, kCandidatesMin, kCandidatesMax);
  for (std::size_t i = 0; i < candidates; ++i)
    candidates_.emplace_back(from_, to_, 2, hops);
  return serve_candidate_traces(now);
}

bool PathDiscovery::serve_candidate_traces(Seconds now) {
  std::erase_if(candidates_, [&](PortTrace& candidate) {
    const PortTrace::State state = candidate.serve(now);
    if (state == PortTrace::State::kKnown && has_same_silence(candidate.traced(), known_.front()))
      known_.push_back(candidate.traced());
    return state != PortTrace::State::kInProgress;
  });
  return candidates_.empty();
}

void PathDiscovery::add_poll_fds(std::vector<pollfd>& fds) const {
  if (first_trace_.poll_fd() >= 0) fds.push_back({first_trace_.poll_fd(), POLLOUT, 0});
  for (const PortTrace& candidate : candidates_)
    if (candidate.poll_fd() >= 0) fds.push_back({candidate.poll_fd(), POLLOUT, 0});
}

int PathDiscovery::paths() const {
  std::set<std::vector<std::string>> paths;
  for (const TracedPort& known : known_)
    paths.insert(known.routers);
  return std::max(1, static_cast<int>(paths.size()));
}

std::vector<PathDiscovery::Start> PathDiscovery::take() {
  std::vector<Start> starts;
  if (first_trace_fd_) starts.push_back({first_trace_.traced().port, std::move(first_trace_fd_)});
  for (const std::size_t i : spread_ports(known_, 1, count_ - starts.size()))
    starts.push_back({known_[i].port, {}});
  starts.resize(count_);
  return starts;
}

}  // namespace regatta::comm
