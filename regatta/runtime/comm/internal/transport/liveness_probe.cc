#include "regatta/runtime/comm/internal/transport/liveness_probe.h"

#include <cerrno>
#include <utility>

#include "regatta/runtime/comm/internal/transport/socket.h"

namespace regatta::comm {
namespace {

constexpr Seconds kLivenessProbeTime{0.2};
// A listener whose queue is full refuses too, for a moment.
constexpr int kRefusalsMax = 4;

}  // namespace

LivenessProbe::LivenessProbe(int peer, PeerEndpoint to, std::string from, bool is_local)
    : peer_(peer), to_(std::move(to)), from_(std::move(from)), is_local_(is_local) {}

bool LivenessProbe::finds_peer_gone(Seconds now) {
  if (!probe_at_) probe_at_ = now + kLivenessProbeTime;
  if (now < *probe_at_) return false;
  probe_at_ = now + kLivenessProbeTime;
  if (fd_ || refusals_ > 0) refusals_ = is_refused() ? refusals_ + 1 : 0;
  if (refusals_ >= kRefusalsMax) return true;
  auto fd = connect_tcp({.address = from_}, {to_.address, to_.port});
  fd_ = fd ? std::move(*fd) : os::UniqueFd();
  if (!fd_ && errno == ECONNREFUSED && refusals_ == 0) refusals_ = 1;
  return false;
}

// The outcome of the last attempt; one without a descriptor was refused at once.
bool LivenessProbe::is_refused() {
  if (fd_ && connect_error(fd_.get()) != ECONNREFUSED) return false;
  if (!is_local_ || to_.unix_name.empty()) return true;
  return !connect_unix(to_.unix_name).has_value();
}

}  // namespace regatta::comm
