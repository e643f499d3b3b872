// comm/internal/engine/stopped_processes.h: which ranks of this server have a process that is
// stopped, by SIGSTOP or a debugger, read from /proc.
#pragma once

#include <utility>
#include <vector>

#include <sys/types.h>

#include "regatta/base/core/units.h"

namespace regatta::comm {

class StoppedProcesses {
 public:
  // pids: by world rank; 0: of another server, or not known.
  explicit StoppedProcesses(std::vector<pid_t> pids)
      : pids_(std::move(pids)), is_stopped_(pids_.size()) {}

  // Reads the states again when they are older than kStallDiagnosisTick.
  void refresh(Seconds now);
  // As of the last refresh(), by world rank.
  const std::vector<bool>& by_rank() const { return is_stopped_; }
  // The lowest rank that is stopped, or -1.
  int first() const;

 private:
  std::vector<pid_t> pids_;
  std::vector<bool> is_stopped_;
  Seconds refreshed_at_;
};

}  // namespace regatta::comm
