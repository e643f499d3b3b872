#include "regatta/runtime/comm/internal/engine/world_ending.h"

#include "regatta/base/os/clock.h"
#include "regatta/runtime/comm/internal/transport/abort_message.h"

namespace regatta::comm {
namespace {

// How long the callers of a failed world wait at most for the peers to have its abort message.
constexpr Seconds kAnnounceTime{0.2};

}  // namespace

void WorldEnding::fail(const Error& error) {
  if (failure_) return;
  failure_ = Failure{.error = error, .announce_until = os::monotonic_now() + kAnnounceTime};
  for (const auto& link : setup_.links.all())
    link->abandon();
  setup_.links.post_to_peers(PacketKind::kAbort, encode_abort(error));
}

void WorldEnding::fail_with_shared_error() {
  if (setup_.shm == nullptr || failure_) return;
  if (const auto error = setup_.shm->error()) fail(*error);
}

// Every peer that is not lost has all that was sent to it.
bool WorldEnding::is_flushed() const {
  for (int peer = 0; peer < setup_.peers.size(); ++peer) {
    const bool is_gone = setup_.membership.is_lost(peer) && !setup_.peers.said_goodbye(peer);
    if (!is_gone && !setup_.links.link(peer).is_flushed()) return false;
  }
  return true;
}

void WorldEnding::announce(Seconds now) {
  if (is_announcing() && (is_flushed() || now >= failure_->announce_until)) end_operations(now);
}

void WorldEnding::end_operations(Seconds now) {
  failure_->is_announced = true;
  const Error& error = failure_->error;
  // A caller that gets the error may free its communicator, and the file shows those that exist.
  setup_.publisher.publish_failure(error, now);
  setup_.inbox.fail(error, now);
  setup_.executor.fail_all(error, now);
  if (setup_.shm != nullptr) setup_.shm->fail(error);
}

bool WorldEnding::close(Seconds now) {
  if (!close_.has_begun() || is_announcing()) return false;
  switch (close_.next(now, setup_.executor.is_idle(), is_flushed())) {
    case CloseSequence::Action::kWait:
      return false;
    case CloseSequence::Action::kEndOperations:
      fail_with_shared_error();
      if (!setup_.executor.is_idle())
        fail({Code::kConflict, setup_.name + ": the communicator was closed with operations under "
                                             "way: wait for their handles first"});
      return false;
    case CloseSequence::Action::kSayGoodbye:
      setup_.links.post_to_peers(PacketKind::kGoodbye);
      return false;
    case CloseSequence::Action::kShutDown:
      for (const auto& link : setup_.links.all())
        link->shut_down();
      return true;
  }
  return true;
}

}  // namespace regatta::comm
