#include "regatta/app/cli/internal/stop_signal.h"

#include <csignal>

#include <unistd.h>

namespace regatta::cli {
namespace {

std::atomic<bool> g_stop = false;
static_assert(std::atomic<bool>::is_always_lock_free, "set from a signal handler");

constexpr int kStopSignals[] = {SIGINT, SIGTERM, SIGHUP};

// The path that the handler removes; the flag is set once it is whole.
char g_removed[4096];
std::atomic<bool> g_removes = false;

void remove_and_end(int signal) {
  if (g_removes) ::unlink(g_removed);
  ::raise(signal);  // by its default, once this returns
}

}  // namespace

const std::atomic<bool>& watch_stop_signals() {
  struct sigaction action = {};
  action.sa_handler = [](int) { g_stop = true; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : kStopSignals)
    ::sigaction(signal, &action, nullptr);
  return g_stop;
}

RemoveFileOnSignal::RemoveFileOnSignal(const std::string& path) {
  if (path.empty() || path.size() >= sizeof g_removed) return;
  g_removed[path.copy(g_removed, path.size())] = '\0';
  g_removes = true;
  for (const int signal : kStopSignals) {
    struct sigaction before = {};
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler == SIG_IGN) continue;  // as nohup has it
    struct sigaction action = {};
    action.sa_handler = remove_and_end;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    ::sigaction(signal, &action, nullptr);
  }
}

RemoveFileOnSignal::~RemoveFileOnSignal() {
  g_removes = false;
}

}  // namespace regatta::cli
