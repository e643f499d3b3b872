#include "regatta/app/cli/internal/gpu_top.h"

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <optional>
#include <string>

#include <fmt/core.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/gpu_limits.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/query_daemon.h"
#include "regatta/app/cli/internal/stop_signal.h"
#include "regatta/app/report/gpu_report.h"
#include "regatta/base/os/clock.h"
#include "regatta/gpu/sharing/control.h"
#include "regatta/gpu/sharing/messages.h"

namespace regatta::cli {
namespace {

struct TopOptions {
  std::string socket = sharing::kDefaultSocket;
  double interval_s = 1;
  int count = 0;  // 0: until the end
  bool json = false;
};

// A terminal with a screen of its own, whose keys are read at once and not shown. The destructor
// restores it.
class Terminal {
 public:
  Terminal() {
    has_keys_ = ::isatty(STDIN_FILENO) == 1 && ::tcgetattr(STDIN_FILENO, &before_) == 0;
    if (has_keys_) {
      termios now = before_;
      now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
      has_keys_ = ::tcsetattr(STDIN_FILENO, TCSANOW, &now) == 0;
    }
    write("\x1b[?1049h\x1b[?25l");
  }
  ~Terminal() {
    write("\x1b[?25h\x1b[?1049l");
    if (has_keys_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // In place of the picture before, line by line, so that nothing flickers.
  void show(const std::string& picture) {
    std::string text = "\x1b[H";
    for (const char letter : picture)
      text += letter == '\n' ? std::string("\x1b[K\r\n") : std::string(1, letter);
    // The last line ends without a new one, or the screen would move.
    if (text.ends_with("\r\n")) text.resize(text.size() - 2);
    write((text + "\x1b[J").c_str());
  }

  // Whether q was pressed, or nothing can be any more.
  bool wait(Seconds time, const std::atomic<bool>& stop) const {
    const Seconds end = os::monotonic_now() + time;
    for (double left = time.value; left > 0 && !stop; left = (end - os::monotonic_now()).value) {
      pollfd keys{has_keys_ ? STDIN_FILENO : -1, POLLIN, 0};
      if (::poll(&keys, 1, static_cast<int>(left * 1000) + 1) <= 0) continue;
      char key = 'q';
      if (::read(STDIN_FILENO, &key, 1) <= 0 || key == 'q' || key == 'Q') return true;
    }
    return stop;
  }

 private:
  static void write(const char* text) {
    std::fputs(text, stdout);
    std::fflush(stdout);
  }

  termios before_{};
  bool has_keys_ = false;
};

bool is_utf8() {
  for (const char* const name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* const value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string text = value;
    return text.find("UTF-8") != std::string::npos || text.find("utf8") != std::string::npos;
  }
  return false;
}

report::Screen screen_of_now(bool is_terminal) {
  report::Screen screen{.columns = 100, .is_utf8 = is_utf8()};
  winsize size{};
  if (is_terminal && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    screen.columns = size.ws_col;
    screen.rows = size.ws_row;
  }
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  char text[16] = {};
  if (::localtime_r(&now, &local) != nullptr) std::strftime(text, sizeof text, "%H:%M:%S", &local);
  screen.title = text;
  if (is_terminal) screen.title += "  q: end";
  return screen;
}

int run_top(const TopOptions& options) {
  const std::atomic<bool>& stop = watch_stop_signals();
  const bool is_terminal = !options.json && options.count != 1 && ::isatty(STDOUT_FILENO) == 1;
  report::GpuTopHistory history;
  std::optional<report::GpuTop> last;
  std::unique_ptr<Terminal> terminal;
  for (int shown = 0; !stop; ++shown) {
    const auto answer = query_daemon(options.socket, {{"request", "ps"}});
    const auto now = answer ? report::read_gpu_top(*answer) : answer.error();
    // One that was there may be started again.
    if (!now && (!is_terminal || !last)) return report_error(now.error());
    if (now) {
      last = *now;
      history.add(*now);
    }
    report::Screen screen = screen_of_now(is_terminal);
    if (!now) screen.title += "  no daemon answers; this is the last that was seen";
    if (is_terminal && !terminal) terminal = std::make_unique<Terminal>();
    if (terminal) {
      terminal->show(report::gpu_top_screen(*last, history, screen));
    } else {
      std::fputs(options.json ? (answer->raw().dump() + "\n").c_str()
                              : report::gpu_top_screen(*last, history, screen).c_str(),
                 stdout);
      // The reader has gone.
      if (std::fflush(stdout) != 0) return 0;
    }
    if (shown + 1 == options.count) break;
    const Seconds pause{options.interval_s};
    if (terminal) {
      if (terminal->wait(pause, stop)) break;
    } else {
      os::sleep_for(pause);
    }
  }
  return 0;
}

}  // namespace

void add_gpu_top(CLI::App& gpu, int& exit_status) {
  const auto options = std::make_shared<TopOptions>();
  CLI::App* top = add_command(gpu, "top", "Show the tenants' use of the GPUs live",
                              "regatta gpu top --interval 0.5",
                              [=, &exit_status] { exit_status = run_top(*options); });
  top->add_option("--interval", options->interval_s, "Seconds between two updates")
      ->type_name("SECONDS")
      ->capture_default_str()
      ->check(number_up_to(3600));
  top->add_option("--count", options->count, "End after N updates; at q or Ctrl-C when left out")
      ->type_name("N")
      ->check(whole_number(1, 1'000'000'000));
  top->add_flag("--json", options->json, "Print a line of JSON per update, as gpu ps does");
  add_socket_option(*top, options->socket);
}

}  // namespace regatta::cli
