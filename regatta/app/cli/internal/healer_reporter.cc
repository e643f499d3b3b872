#include "regatta/app/cli/internal/healer_reporter.h"

#include <cerrno>
#include <utility>

#include <sys/socket.h>

#include "regatta/app/report/network_report.h"
#include "regatta/base/os/socket.h"
#include "regatta/network/heal/verdicts.h"

namespace regatta::cli {
namespace {

constexpr Seconds kAgain{1};
constexpr Seconds kLossesAgain{0.03};

}  // namespace

Result<HealerReporter> HealerReporter::open(const std::string& path, const topo::Graph& graph) {
  auto fd = os::connect_unix(path);
  const bool can_wait =
      fd || fd.error().code == Code::kNotFound || fd.error().code == Code::kUnavailable;
  if (!can_wait) return Error{Code::kInvalidInput, fd.error().message + "; correct --heal-socket"};
  return HealerReporter(path, fd ? std::move(*fd) : os::UniqueFd(), graph);
}

std::string HealerReporter::report(const diag::FaultChanges& news,
                                   std::span<const diag::LinkLoss> losses, Seconds now) {
  for (const diag::FaultVerdict& verdict : news.over)
    std::erase_if(lasting_,
                  [&](const diag::FaultVerdict& one) { return one.culprit == verdict.culprit; });
  std::string lines;
  for (const diag::FaultVerdict& verdict : news.begun) {
    const std::string own = heal::report_lines(*graph_, verdict);
    if (own.empty()) continue;
    lines += own;
    lasting_.push_back(verdict);
  }
  const bool is_due = now - reported_ >= kAgain;
  if (is_due) reported_ = now;
  if (!fd_) {
    auto fd = is_due ? os::connect_unix(path_) : Result<os::UniqueFd>(Error{});
    if (!fd) return {};
    fd_ = std::move(*fd);
    losses_until_ = now + kAgain;
    if (!send(all_lasting())) return {};
    return std::exchange(was_connected_, true) ? report::healer_back_text(path_)
                                               : report::healer_found_text(path_);
  }
  discard_input();
  if (send((is_due ? all_lasting() : lines) + due_losses(losses, now))) return {};
  return report::healer_lost_text(path_);
}

std::string HealerReporter::all_lasting() const {
  std::string lines;
  for (const diag::FaultVerdict& verdict : lasting_)
    lines += heal::report_lines(*graph_, verdict);
  return lines;
}

// A second longer than there are any: what is held has to be seen without losses for a while.
std::string HealerReporter::due_losses(std::span<const diag::LinkLoss> losses, Seconds now) {
  if (!losses.empty() || !lasting_.empty()) losses_until_ = now + kAgain;
  if (now - losses_reported_ < kLossesAgain || now > losses_until_) return "";
  losses_reported_ = now;
  return heal::losses_line(*graph_, losses);
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
