#include "regatta/app/cli/internal/stop_signal.h"

#include <unistd.h>

namespace regatta::cli {
namespace {

std::atomic<bool> g_stop = false;
static_assert(std::atomic<bool>::is_always_lock_free, "set from a signal handler");

// The path that the handler removes; g_removes is set once it is complete.
char g_removed[4096];
std::atomic<bool> g_removes = false;

void remove_and_end(int signal) {
  if (g_removes) ::unlink(g_removed);
  ::raise(signal);  // by its default, once this returns
}

void set_handler(int signal, void (*handler)(int), unsigned flags) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = static_cast<int>(flags);
  ::sigaction(signal, &action, nullptr);
}

void request_stop(int signal) {
  g_stop = true;
  set_handler(signal, remove_and_end, SA_RESETHAND);
}

}  // namespace

const std::atomic<bool>& watch_stop_signals(std::initializer_list<int> signals) {
  for (const int signal : signals)
    set_handler(signal, request_stop, 0);
  return g_stop;
}

RemoveFileOnSignal::RemoveFileOnSignal(const std::string& path) {
  if (path.empty() || path.size() >= sizeof g_removed) return;
  g_removed[path.copy(g_removed, path.size())] = '\0';
  g_removes = true;
  for (const int signal : kStopSignals) {
    struct sigaction before = {};
    ::sigaction(signal, nullptr, &before);
    // nohup ignores the signal; request_stop() removes the file at the second one.
    if (before.sa_handler == SIG_IGN || before.sa_handler == request_stop) continue;
    set_handler(signal, remove_and_end, SA_RESETHAND);
  }
}

RemoveFileOnSignal::~RemoveFileOnSignal() {
  g_removes = false;
}

}  // namespace regatta::cli
