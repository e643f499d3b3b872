#include "regatta/runtime/comm/internal/engine/stopped_processes.h"

#include <algorithm>
#include <cstddef>

#include "regatta/base/os/process.h"
#include "regatta/runtime/comm/internal/engine/stall_diagnosis.h"

namespace regatta::comm {

void StoppedProcesses::refresh(Seconds now) {
  if (now - refreshed_at_ < kStallDiagnosisTick) return;
  refreshed_at_ = now;
  for (std::size_t rank = 0; rank < pids_.size(); ++rank) {
    if (pids_[rank] <= 0) continue;
    const auto process = os::read_process(pids_[rank]);
    is_stopped_[rank] = process && (process->state == 'T' || process->state == 't');
  }
}

int StoppedProcesses::first() const {
  const auto found = std::find(is_stopped_.begin(), is_stopped_.end(), true);
  return found == is_stopped_.end() ? -1 : static_cast<int>(found - is_stopped_.begin());
}

}  // namespace regatta::comm
