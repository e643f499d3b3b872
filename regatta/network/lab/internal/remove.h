// lab/internal/remove.h: takes away what a lab left on the machine.
#pragma once

#include "regatta/base/core/result.h"
#include "regatta/network/lab/internal/state.h"

namespace regatta::lab {

// Ends every process inside and removes the cgroups and the folder, all but the holder, which may
// be the caller. The caller holds the lock of lock_labs().
Status remove_contents(const LabState& state);

// The same, and ends the holder, if any.
Status remove_lab(const LabState& state);

// Removes every lab whose holder has died, with a warning for what cannot be removed. The caller
// holds the lock.
void reap_dead_labs();

}  // namespace regatta::lab
