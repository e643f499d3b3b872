// node_agent/internal/precedence.h: lets agents and supervisors run in time on a server whose jobs
// keep all cores busy or use up its memory: a heartbeat or the end of a lease must not wait for
// them. The supervisor links this: no dependency but the C library.
#pragma once

namespace regatta::node_agent {

// The calling thread runs before those of ordinary processes; processes and threads that it makes
// do not. Real time where the system allows it, else a better nice value, else nothing changes.
void run_before_others();

// No page of this process, now or later, is written out or read in again. For small processes; does
// nothing where the system does not allow it.
void lock_memory();

}  // namespace regatta::node_agent
