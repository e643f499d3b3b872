// cli/internal/stop_signal.h: Ctrl-C for commands that have to end what they started.
#pragma once

#include <atomic>
#include <string>

namespace regatta::cli {

// From now on SIGINT, SIGTERM and SIGHUP set the flag that is returned. A second one ends this
// process at once; agents, workers and the lab die with it.
const std::atomic<bool>& watch_stop_signals();

// While it lives, the same signals remove a file before they end this process. One at a time.
class RemoveFileOnSignal {
 public:
  // An empty path removes nothing.
  explicit RemoveFileOnSignal(const std::string& path);
  RemoveFileOnSignal(const RemoveFileOnSignal&) = delete;
  RemoveFileOnSignal& operator=(const RemoveFileOnSignal&) = delete;
  ~RemoveFileOnSignal();
};

}  // namespace regatta::cli
