#include "tests/store/program_run.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <memory>

#include <unistd.h>

#include "regatta/base/core/text.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/platform/store/sqlite_store.h"
#include "tests/store/test_transactions.h"

namespace regatta::store {
namespace {

std::string read_to_end(int fd) {
  std::string text;
  std::array<char, 4096> block{};
  for (;;) {
    const ssize_t count = ::read(fd, block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(block.data(), static_cast<std::size_t>(count));
  }
}

void read_lines(const std::string& text, ProgramRun& run) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    if (end == text.npos) return;  // half a line acknowledges nothing
    const std::string line = text.substr(at, end - at);
    const std::size_t space = line.find(' ');
    const std::int64_t number = parse_number<std::int64_t>(line.substr(space + 1)).value_or(-1);
    if (line.starts_with("loaded")) run.loaded = number;
    run.durable = std::max(run.durable, number);
    at = end + 1;
  }
}

}  // namespace

Result<ProgramRun> run_store_program(const ProgramOptions& options) {
  REGATTA_TRY(output, os::make_pipe());
  REGATTA_TRY(errors, os::make_pipe());
  os::SpawnOptions spawn{.stdout_fd = output.write_end.get(), .stderr_fd = errors.write_end.get()};
  if (!options.fault.empty()) {
    spawn.environment = {std::string("LD_PRELOAD=") + REGATTA_FAULT_SHIM,
                         "REGATTA_FAULT=" + options.fault};
  }
  std::vector<std::string> argv{options.program};
  argv.insert(argv.end(), options.arguments.begin(), options.arguments.end());
  REGATTA_TRY(pid, os::spawn(argv, spawn));
  output.write_end.reset();
  errors.write_end.reset();
  if (options.killed_after) {
    os::sleep_for(*options.killed_after);
    REGATTA_TRY_DO(os::send_signal(pid, SIGKILL));
  }
  ProgramRun run;
  read_lines(read_to_end(output.read_end.get()), run);
  run.errors = read_to_end(errors.read_end.get());
  REGATTA_TRY(end, os::wait_for(pid));
  run.end = end;
  return run;
}

Result<std::int64_t> transactions_in(const std::string& folder, std::size_t longest) {
  REGATTA_TRY(store, open_sqlite_store({.folder = folder, .reserve = Bytes{1 << 20}}));
  return count_transactions(*store, longest);
}

}  // namespace regatta::store
