#include "regatta/platform/node_agent/internal/precedence.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>

namespace regatta::node_agent {
namespace {

constexpr int kNice = -10;

}  // namespace

void run_before_others() {
  // The least of the real-time priorities: nothing else of the system is held up.
  sched_param parameters{};
  parameters.sched_priority = ::sched_get_priority_min(SCHED_RR);
  if (::sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &parameters) == 0) return;
  parameters.sched_priority = 0;
  if (::sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &parameters) != 0) return;
  // In Linux the nice value belongs to a thread; 0 is the calling one.
  ::setpriority(PRIO_PROCESS, 0, kNice);
}

void lock_memory() {
  ::mlockall(MCL_CURRENT | MCL_FUTURE);
}

}  // namespace regatta::node_agent
