#include "regatta/app/cli/internal/run_progress.h"

#include <utility>

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "regatta/base/core/units.h"
#include "regatta/base/os/clock.h"

namespace regatta::cli {
namespace {

constexpr Seconds kPlainEvery{2.0};
constexpr double kNewShare = 0.3;  // weight of the newest step in the moving mean
constexpr const char* kClearLine = "\r\x1b[K";

// Cuts a line to the width of the terminal: a line that wraps could not be cleared.
std::string fitted(std::string line, std::FILE* out) {
  winsize size = {};
  if (::ioctl(::fileno(out), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return line;
  if (line.size() >= size.ws_col) line.resize(size.ws_col - 1U);
  return line;
}

}  // namespace

RunProgress::RunProgress(std::FILE* out, std::string title, int steps)
    : out_(out),
      state_{.title = std::move(title), .steps = steps, .mean_step = {}},
      is_terminal_(::isatty(::fileno(out)) == 1),
      last_printed_(os::monotonic_now()) {}

RunProgress::~RunProgress() {
  if (!is_terminal_) return;
  std::fputs(kClearLine, out_);
  std::fflush(out_);
}

void RunProgress::on_resumed(int steps, const std::string& folder) {
  fmt::print(out_, "{}{}", is_terminal_ ? kClearLine : "",
             report::resumed_text(state_.title, steps, folder));
  std::fflush(out_);
}

void RunProgress::on_step(const report::StepRecord& step, long long tokens) {
  const Seconds mean = state_.mean_step;
  state_.mean_step = mean.value <= 0 ? step.time : mean * (1 - kNewShare) + step.time * kNewShare;
  state_.tokens = tokens;
  const std::string line = report::progress_text(state_, step);
  if (is_terminal_) {
    std::fputs((kClearLine + fitted(line, out_)).c_str(), out_);
    std::fflush(out_);
    return;
  }
  const Seconds now = os::monotonic_now();
  if (now - last_printed_ < kPlainEvery && step.step + 1 != state_.steps) return;
  last_printed_ = now;
  fmt::print(out_, "{}\n", line);
  std::fflush(out_);
}

}  // namespace regatta::cli
