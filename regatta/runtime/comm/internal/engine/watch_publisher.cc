#include "regatta/runtime/comm/internal/engine/watch_publisher.h"

#include <algorithm>
#include <cstdint>

#include "regatta/base/os/log.h"

namespace regatta::comm {
namespace {

// The steps of a schedule move more than the bytes of the call, so the share that has moved counts.
// A call whose parts vary has no size of its own: there the bytes of its messages count.
std::uint64_t moved_bytes(const Operation& operation) {
  double all = 0;
  double moved = 0;
  for (const MessageTransfer& transfer : operation.transfers) {
    if (transfer.peer < 0) continue;
    all += static_cast<double>(transfer.bytes());
    moved += static_cast<double>(std::max(transfer.received, transfer.out.written));
  }
  if (operation.bytes == 0) return static_cast<std::uint64_t>(moved);
  return all > 0 ? static_cast<std::uint64_t>(moved / all * static_cast<double>(operation.bytes))
                 : 0;
}

void publish_oldest(const CommunicatorState& group) {
  if (group.log == nullptr || group.active.empty()) return;
  const Operation& oldest = *group.active.front();
  const LoggedCall call = oldest.logged();
  if (call.lane == Lane::kTransfer) group.log->begin(call);
  group.log->progress(call.lane, oldest.progressed_at);
  group.log->move(call.lane, moved_bytes(oldest));
}

}  // namespace

void WatchPublisher::publish(Seconds now) {
  if (!setup_.watch) return;
  setup_.watch->tick(now);
  for (const auto& group : setup_.executor.groups())
    publish_oldest(*group);
  for (int rank = 0; rank < setup_.peers.size(); ++rank) {
    WatchPeer& shown = setup_.watch->peer(rank);
    shown.sent_bytes.store(static_cast<std::uint64_t>(setup_.traffic.total(rank)),
                           std::memory_order_relaxed);
    shown.has_departed.store(setup_.peers.has_departed(rank) ? 1 : 0, std::memory_order_relaxed);
  }
}

void WatchPublisher::publish_failure(const Error& error, Seconds now) {
  if (!setup_.watch) return;
  publish(now);
  setup_.watch->show_error(error.message);
  if (setup_.flight_dir.empty()) return;
  const Status written = write_flight_file(setup_.flight_dir, read_view(setup_.watch->map()));
  if (!written)
    os::log_warning("coll: " + setup_.name +
                    ": its flight file could not be written: " + written.error().message);
}

}  // namespace regatta::comm
