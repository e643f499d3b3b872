// What others may see of this rank: its record (internal/watch/layout.h) while it runs, a file when
// it fails.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "regatta/base/os/log.h"
#include "regatta/runtime/comm/internal/engine/world.h"
#include "regatta/runtime/comm/watch_file.h"

namespace regatta::comm {
namespace {

// The steps of a schedule move more than the call's bytes: the share that is through counts. A call
// whose parts vary has no such bytes: there it is what its messages moved.
std::uint64_t moved_bytes(const Operation& operation) {
  double all = 0;
  double through = 0;
  for (const MessageTransfer& transfer : operation.transfers) {
    if (transfer.peer < 0) continue;
    all += static_cast<double>(transfer.bytes());
    through += static_cast<double>(std::max(transfer.received, transfer.out.written));
  }
  if (operation.bytes == 0) return static_cast<std::uint64_t>(through);
  return all > 0 ? static_cast<std::uint64_t>(through / all * static_cast<double>(operation.bytes))
                 : 0;
}

}  // namespace

void World::show_progress(Seconds now) {
  watch_->tick(now);
  for (const auto& group : executor_.groups()) {
    if (group->log == nullptr || group->active.empty()) continue;
    const Operation& oldest = *group->active.front();
    const LoggedCall call = oldest.logged();
    if (call.lane == Lane::kTransfer) group->log->begin(call);
    group->log->progress(call.lane, oldest.progressed_at);
    group->log->move(call.lane, moved_bytes(oldest));
  }
  for (int rank = 0; rank < size(); ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    WatchPeer& shown = watch_->peer(rank);
    shown.sent_bytes.store(
        static_cast<std::uint64_t>(network_bytes_[index].bytes.load(std::memory_order_relaxed) +
                                   shared_bytes_[index].bytes.load(std::memory_order_relaxed)),
        std::memory_order_relaxed);
    shown.has_departed.store(peers_[index].departed ? 1 : 0, std::memory_order_relaxed);
  }
}

void World::write_flight(const Error& error) {
  show_progress(now_);
  watch_->show_error(error.message);
  if (flight_dir_.empty()) return;
  if (const Status written = write_flight_file(flight_dir_, read_view(watch_->map())); !written)
    os::log_warning("coll: " + name(rank_) +
                    ": its last operations are lost: " + written.error().message);
}

}  // namespace regatta::comm
