#include "regatta/cli/heal_reports.h"

#include <cerrno>
#include <utility>

#include <sys/socket.h>

#include "regatta/heal/verdicts.h"
#include "regatta/os/unix_socket.h"

namespace regatta::cli {
namespace {

constexpr Seconds kAgain{1};

}  // namespace

Result<HealReports> HealReports::open(const std::string& path, const topo::Graph& graph) {
  auto fd = os::dial_unix(path);
  if (!fd)
    return Error{Code::kInvalidInput,
                 fd.error().message + ": no healer listens there; start regatta heal first"};
  return HealReports(std::move(*fd), graph);
}

Status HealReports::tell(const diag::News& news, Seconds now) {
  read_and_forget();
  for (const diag::Verdict& verdict : news.over)
    std::erase_if(lasting_,
                  [&](const diag::Verdict& one) { return one.culprit == verdict.culprit; });
  std::string lines;
  for (const diag::Verdict& verdict : news.begun) {
    const std::string told = heal::report_lines(*graph_, verdict);
    if (told.empty()) continue;
    lines += told;
    lasting_.push_back(verdict);
  }
  if (now - told_ >= kAgain) {
    lines.clear();
    for (const diag::Verdict& verdict : lasting_)
      lines += heal::report_lines(*graph_, verdict);
    told_ = now;
  }
  return lines.empty() ? Status{} : send(lines);
}

Status HealReports::send(const std::string& lines) {
  std::size_t sent = 0;
  while (sent < lines.size()) {
    const ssize_t some = ::send(fd_.get(), lines.data() + sent, lines.size() - sent, MSG_NOSIGNAL);
    if (some < 0 && errno == EINTR) continue;
    if (some <= 0) return Error{Code::kUnavailable, "the healer has ended; start it again"};
    sent += static_cast<std::size_t>(some);
  }
  return {};
}

// It drops subscribers that do not read.
void HealReports::read_and_forget() {
  char buffer[4096];
  while (::recv(fd_.get(), buffer, sizeof buffer, MSG_DONTWAIT) > 0) {
  }
}

}  // namespace regatta::cli
