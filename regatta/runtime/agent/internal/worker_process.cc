#include "regatta/runtime/agent/internal/worker_process.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include "regatta/base/os/process.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/runtime/agent/agent.pb.h"

namespace regatta::agent {
namespace {

Result<std::string> find_program(const std::string& program) {
  if (program.find('/') != std::string::npos) return program;
  REGATTA_TRY(folder, os::executable_folder());
  std::string path = folder + "/" + program;
  if (::access(path.c_str(), X_OK) != 0) {
    return Error{Code::kNotFound,
                 fmt::format("{} is not beside the agent in {}; build it there", program, folder)};
  }
  return path;
}

Status make_nonblocking(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) {
    return os::errno_error("cannot make a worker's pipe non-blocking");
  }
  return {};
}

std::vector<std::string> read_lines(os::UniqueFd& fd, LineSplitter& lines, bool at_end) {
  std::array<char, 65536> chunk{};
  // Bounded, so that one worker that writes without end does not starve the others.
  constexpr int kMaxReads = 16;
  for (int reads = 0; fd && (at_end || reads < kMaxReads); ++reads) {
    const ssize_t got = ::read(fd.get(), chunk.data(), chunk.size());
    if (got > 0) {
      lines.append(std::string_view(chunk.data(), static_cast<std::size_t>(got)));
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    if (got == 0 || errno != EAGAIN) fd.reset();
    break;
  }
  std::vector<std::string> result;
  while (auto line = lines.next()) {
    result.push_back(*std::move(line));
  }
  // The unfinished last line of a process that died.
  std::string rest = at_end ? lines.take_rest() : "";
  if (!rest.empty()) result.push_back(std::move(rest));
  return result;
}

}  // namespace

Result<WorkerProcess> WorkerProcess::start(const proto::Launch& launch) {
  REGATTA_TRY(program, find_program(launch.program()));
  REGATTA_TRY(input, os::make_pipe());
  REGATTA_TRY(output, os::make_pipe());
  REGATTA_TRY(log, os::make_pipe());
  std::vector<std::string> argv{program};
  argv.insert(argv.end(), launch.arguments().begin(), launch.arguments().end());
  os::SpawnOptions options;
  options.environment.assign(launch.environment().begin(), launch.environment().end());
  options.stdin_fd = input.read_end.get();
  options.stdout_fd = output.write_end.get();
  options.stderr_fd = log.write_end.get();
  options.own_group = true;
  REGATTA_TRY_DO(make_nonblocking(input.write_end.get()));
  REGATTA_TRY_DO(make_nonblocking(output.read_end.get()));
  REGATTA_TRY_DO(make_nonblocking(log.read_end.get()));
  REGATTA_TRY(pid, os::spawn(argv, options));
  WorkerProcess worker;
  worker.run_ = launch.run();
  worker.rank_ = launch.rank();
  worker.pid_ = pid;
  worker.input_ = std::move(input.write_end);
  worker.output_ = std::move(output.read_end);
  worker.log_ = std::move(log.read_end);
  worker.send(launch.first_line());
  return worker;
}

void WorkerProcess::send(const std::string& line) {
  queued_ += line;
  queued_ += '\n';
  flush();
}

void WorkerProcess::flush() {
  std::size_t sent = 0;
  while (input_ && sent < queued_.size()) {
    const ssize_t written = ::write(input_.get(), queued_.data() + sent, queued_.size() - sent);
    if (written >= 0) {
      sent += static_cast<std::size_t>(written);
    } else if (errno != EINTR) {
      // A closed pipe means the end of the worker, which next_change() reports.
      if (errno != EAGAIN) input_.reset();
      break;
    }
  }
  queued_.erase(0, sent);
}

std::vector<std::string> WorkerProcess::read_output(bool at_end) {
  return read_lines(output_, output_lines_, at_end);
}

std::vector<std::string> WorkerProcess::read_log(bool at_end) {
  return read_lines(log_, log_lines_, at_end);
}

std::optional<WorkerStateChange> WorkerProcess::next_change() {
  if (pid_ < 0) return std::nullopt;
  int status = 0;
  const pid_t got = ::waitpid(pid_, &status, WNOHANG | WUNTRACED | WCONTINUED);
  if (got == 0 || (got < 0 && errno == EINTR)) return std::nullopt;
  using Kind = WorkerStateChange::Kind;
  if (got > 0 && WIFSTOPPED(status)) return WorkerStateChange{Kind::kPaused, WSTOPSIG(status)};
  if (got > 0 && WIFCONTINUED(status)) return WorkerStateChange{Kind::kContinued, SIGCONT};
  ::kill(-pid_, SIGKILL);  // what the worker itself may have started
  pid_ = -1;
  if (got > 0 && WIFSIGNALED(status)) return WorkerStateChange{Kind::kKilled, WTERMSIG(status)};
  return WorkerStateChange{Kind::kExited, got > 0 ? WEXITSTATUS(status) : 0};
}

void WorkerProcess::send_signal(int signal) const {
  if (pid_ > 0) ::kill(-pid_, signal);
}

}  // namespace regatta::agent
