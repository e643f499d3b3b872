#include "regatta/app/cli/internal/healer_reporter.h"

#include <cerrno>
#include <utility>
#include <vector>

#include <sys/socket.h>

#include "regatta/app/report/network_report.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/socket.h"
#include "regatta/network/heal/healer.h"
#include "regatta/network/heal/verdicts.h"

namespace regatta::cli {
namespace {

constexpr Seconds kAgain{1};

std::string lines_of(const topo::Graph& graph, const std::vector<diag::FaultVerdict>& verdicts) {
  std::string lines;
  for (const diag::FaultVerdict& verdict : verdicts)
    lines += heal::report_lines(graph, verdict);
  return lines;
}

}  // namespace

Result<HealerReporter> HealerReporter::open(const std::string& path, const topo::Graph& graph) {
  auto fd = os::connect_unix(path);
  const bool can_wait =
      fd || fd.error().code == Code::kNotFound || fd.error().code == Code::kUnavailable;
  if (!can_wait) return Error{Code::kInvalidInput, fd.error().message + "; correct --heal-socket"};
  return HealerReporter(path, fd ? std::move(*fd) : os::UniqueFd(), graph);
}

std::string HealerReporter::report(const diag::FaultChanges& news,
                                   const probe::Collector& collector, Seconds now) {
  const bool is_due = now - reported_ >= kAgain;
  if (is_due) reported_ = now;
  if (!fd_) return is_due ? reconnect(collector, now) : std::string();
  discard_input();
  std::string lines = lines_of(*graph_, news.begun);
  if (is_due) lines = lines_of(*graph_, collector.lasting());
  if (send(lines + due_losses(collector, now))) return {};
  // One that is started again at once listens already; another one may end soon after each start.
  const std::string back = now - connected_ >= kAgain ? reconnect(collector, now) : std::string();
  return back.empty() ? report::healer_lost_text(path_) : back;
}

// Returns the line to print when it listens.
std::string HealerReporter::reconnect(const probe::Collector& collector, Seconds now) {
  auto fd = os::connect_unix(path_);
  if (!fd) return {};
  fd_ = std::move(*fd);
  connected_ = now;
  losses_until_ = now + kAgain;
  if (!send(lines_of(*graph_, collector.lasting()))) return {};
  return std::exchange(was_connected_, true) ? report::healer_back_text(path_)
                                             : report::healer_found_text(path_);
}

// A second longer than there are any: what is held has to be seen without losses for a while.
std::string HealerReporter::due_losses(const probe::Collector& collector, Seconds now) {
  if (now - losses_reported_ < heal::kLossesEvery) return "";
  const std::vector<diag::LinkLoss> losses = collector.link_losses(os::system_now());
  if (!losses.empty() || !collector.standing().empty()) losses_until_ = now + kAgain;
  if (now > losses_until_) return "";
  losses_reported_ = now;
  return heal::losses_line(*graph_, losses, collector.loss_span());
}

// False: the healer is gone, or does not read.
bool HealerReporter::send(const std::string& lines) {
  if (lines.empty() || !fd_) return static_cast<bool>(fd_);
  const ssize_t count = ::send(fd_.get(), lines.data(), lines.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  // Half a line is as bad as none.
  if (count != static_cast<ssize_t>(lines.size())) fd_.reset();
  return static_cast<bool>(fd_);
}

// It drops subscribers that do not read; when it ends there is nothing more to read.
void HealerReporter::discard_input() {
  char buffer[4096];
  for (;;) {
    const ssize_t count = ::recv(fd_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (count > 0 || (count < 0 && errno == EINTR)) continue;
    if (count == 0 || errno != EAGAIN) fd_.reset();
    return;
  }
}

}  // namespace regatta::cli
