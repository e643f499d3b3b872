// The progress thread's part in surviving the loss of a rank.
#include <string>

#include "regatta/runtime/comm/internal/engine/world.h"

namespace regatta::comm {

bool World::serve_membership() {
  is_stop_requested_ |= membership_.take_stop();
  if (is_stop_requested_ && !failed_)
    fail({Code::kUnavailable, name(rank_) + ": called shrink(); call it on all ranks"});
  if (is_stop_requested_ && !announced_) {
    is_stop_requested_ = false;
    membership_.note_stopped();
  }
  const std::vector<std::string> statements = membership_.take_statements();
  for (const std::string& statement : statements)
    for (int rank = 0; rank < size(); ++rank)
      if (rank != rank_)
        links_[static_cast<std::size_t>(rank)]->post_control({.kind = PacketKind::kStatement},
                                                             statement);
  return !statements.empty();
}

void World::stop() {
  membership_.stop();
  if (shm_ != nullptr) shm_->settle();
}

}  // namespace regatta::comm
