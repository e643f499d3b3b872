// cli/internal/stop_signal.h: Ctrl-C for commands that have to end what they started.
#pragma once

#include <atomic>
#include <csignal>
#include <initializer_list>
#include <string>

namespace regatta::cli {

inline constexpr std::initializer_list<int> kStopSignals = {SIGINT, SIGTERM, SIGHUP};

// From now on the `signals` set the returned flag. A second one ends this process at once, after it
// has removed the file of RemoveFileOnSignal; agents, workers and the lab die too.
const std::atomic<bool>& watch_stop_signals(std::initializer_list<int> signals = kStopSignals);

// While it lives, the signal that ends this process removes a file first. One object at a time.
class RemoveFileOnSignal {
 public:
  // An empty path removes nothing.
  explicit RemoveFileOnSignal(const std::string& path);
  RemoveFileOnSignal(const RemoveFileOnSignal&) = delete;
  RemoveFileOnSignal& operator=(const RemoveFileOnSignal&) = delete;
  ~RemoveFileOnSignal();
};

}  // namespace regatta::cli
