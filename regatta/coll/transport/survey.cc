#include "regatta/coll/transport/survey.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <sys/random.h>

namespace regatta::coll {
namespace {

// Routers of a cluster answer within a millisecond.
constexpr Seconds kSilence{0.05};
constexpr int kSilentMax = 2;
constexpr Seconds kSurveyTime{0.3};
constexpr int kHopsMax = 8;
// So many ports are traced for each that is needed: that none of 24 takes one of two uplinks has a
// probability of 1e-7, of 32 one of four 4e-4.
constexpr std::size_t kCandidatesPerPort = 8;
constexpr std::size_t kCandidatesMin = 24;

TcpAddress random_source(const std::string& address) {
  // Where kernels take ports for outgoing connections by default.
  constexpr unsigned kFirst = 32768;
  constexpr unsigned kCount = 60999 - kFirst + 1;
  std::uint32_t bits = 0;
  [[maybe_unused]] const ssize_t got = getrandom(&bits, sizeof bits, 0);
  return {address, static_cast<std::uint16_t>(kFirst + bits % kCount)};
}

}  // namespace

PortTrace::PortTrace(TcpAddress from, TcpAddress to, int first_hop, int last_hop)
    : from_(std::move(from)),
      to_(std::move(to)),
      hop_(first_hop),
      last_hop_(last_hop),
      traced_{from_.port, {}} {}

PortTrace::State PortTrace::next_hop(std::string router) {
  fd_.reset();
  silent_ = router.empty() ? silent_ + 1 : 0;
  traced_.routers.push_back(std::move(router));
  if (silent_ == kSilentMax) return State::kUnknown;
  return ++hop_ > last_hop_ ? State::kKnown : State::kGoesOn;
}

PortTrace::State PortTrace::serve(Seconds now) {
  State state = State::kGoesOn;
  while (state == State::kGoesOn) {
    if (!fd_) {
      auto fd = dial_tcp(from_, to_, hop_);
      if (!fd) return State::kUnknown;
      fd_ = std::move(*fd);
      asked_at_ = now;
    }
    pollfd ready{fd_.get(), POLLOUT, 0};
    if (poll(&ready, 1, 0) == 0) {
      if (now - asked_at_ < kSilence) return State::kGoesOn;
      state = next_hop("");
    } else if (auto router = expired_at(fd_.get())) {
      state = next_hop(std::move(*router));
    } else if (connect_error(fd_.get()) == 0) {
      lift_hop_limit(fd_.get());
      state = State::kReached;
    } else {
      state = State::kUnknown;
    }
  }
  return state;
}

Survey::Survey(int peer, TcpAddress from, TcpAddress to, std::size_t count)
    : peer_(peer),
      from_(std::move(from)),
      to_(std::move(to)),
      count_(count),
      lead_(random_source(from_.address), to_, 1, kHopsMax) {}

bool Survey::serve(Seconds now) {
  if (deadline_ == Seconds{0}) deadline_ = now + kSurveyTime;
  if (now >= deadline_) return true;
  return is_lead_done_ ? serve_candidates(now) : serve_lead(now);
}

bool Survey::serve_lead(Seconds now) {
  const PortTrace::State state = lead_.serve(now);
  if (state == PortTrace::State::kGoesOn) return false;
  if (state != PortTrace::State::kReached) return true;
  is_lead_done_ = true;
  lead_fd_ = lead_.take_fd();
  TracedPort known = lead_.traced();
  // All ports reach the nearest router; where it is the only one there is nothing to choose.
  const auto hops = static_cast<int>(known.routers.size());
  if (hops < 2 || count_ < 2) return true;
  known.routers.erase(known.routers.begin());
  known_.push_back(std::move(known));
  const std::size_t candidates = std::max(kCandidatesPerPort * count_, kCandidatesMin);
  for (std::size_t i = 0; i < candidates; ++i)
    candidates_.emplace_back(random_source(from_.address), to_, 2, hops);
  return serve_candidates(now);
}

bool Survey::serve_candidates(Seconds now) {
  std::erase_if(candidates_, [&](PortTrace& candidate) {
    const PortTrace::State state = candidate.serve(now);
    if (state == PortTrace::State::kKnown) known_.push_back(candidate.traced());
    return state != PortTrace::State::kGoesOn;
  });
  return candidates_.empty();
}

void Survey::add_poll_fds(std::vector<pollfd>& fds) const {
  if (lead_.poll_fd() >= 0) fds.push_back({lead_.poll_fd(), POLLOUT, 0});
  for (const PortTrace& candidate : candidates_)
    if (candidate.poll_fd() >= 0) fds.push_back({candidate.poll_fd(), POLLOUT, 0});
}

std::vector<Survey::Start> Survey::take() {
  std::vector<Start> starts;
  if (lead_fd_) starts.push_back({lead_.traced().port, std::move(lead_fd_)});
  for (const std::size_t i : spread_ports(known_, 1, count_ - starts.size()))
    starts.push_back({known_[i].port, {}});
  starts.resize(count_);
  return starts;
}

}  // namespace regatta::coll
