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
      title_(std::move(title)),
      steps_(steps),
      is_terminal_(::isatty(::fileno(out)) == 1),
      last_printed_(os::monotonic_now()) {}

RunProgress::~RunProgress() {
  if (!is_terminal_) return;
  std::fputs(kClearLine, out_);
  std::fflush(out_);
}

std::string RunProgress::line(const report::StepRecord& step, long long tokens) const {
  const int done = step.step + 1;
  const Seconds left = mean_step_ * static_cast<double>(steps_ - done);
  return fmt::format("{}: step {}/{}  loss {:.4f}  {:.0f} tokens/s  {} a step  {:.0f} s left",
                     title_, done, steps_, step.loss, static_cast<double>(tokens) / step.time.value,
                     format_seconds(step.time), left.value);
}

void RunProgress::on_resumed(int steps, const std::string& folder) {
  fmt::print(out_, "{}{}: resumed after step {} from the checkpoint in {}\n",
             is_terminal_ ? kClearLine : "", title_, steps, folder);
  std::fflush(out_);
}

void RunProgress::on_step(const report::StepRecord& step, long long tokens) {
  mean_step_ =
      mean_step_.value <= 0 ? step.time : mean_step_ * (1 - kNewShare) + step.time * kNewShare;
  if (is_terminal_) {
    std::fputs((kClearLine + fitted(line(step, tokens), out_)).c_str(), out_);
    std::fflush(out_);
    return;
  }
  const Seconds now = os::monotonic_now();
  if (now - last_printed_ < kPlainEvery && step.step + 1 != steps_) return;
  last_printed_ = now;
  fmt::print(out_, "{}\n", line(step, tokens));
  std::fflush(out_);
}

}  // namespace regatta::cli
