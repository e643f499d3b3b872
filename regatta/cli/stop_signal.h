// cli/stop_signal.h: Ctrl-C for commands that have to end what they started.
#pragma once

#include <atomic>

namespace regatta::cli {

// From now on SIGINT, SIGTERM and SIGHUP set the flag that is returned. A second one ends this
// process at once; agents, workers and the lab die with it.
const std::atomic<bool>& watch_stop_signals();

}  // namespace regatta::cli
