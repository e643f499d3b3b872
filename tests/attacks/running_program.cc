#include "tests/attacks/running_program.h"

#include <utility>

#include <fcntl.h>
#include <poll.h>

#include "tests/attacks/attack_path.h"
#include "tests/hook/tenant.h"

namespace regatta::attacks {

std::vector<std::string> command_of(const ProgramOptions& options) {
  std::vector<std::string> words = words_of(options);
  words.insert(words.begin(), attack("random_program"));
  return words;
}

RunningProgram::RunningProgram(const sharing::TestDaemon& daemon, const std::string& tenant,
                               const std::vector<std::string>& words,
                               const std::vector<std::string>& environment) {
  auto input = os::make_pipe();
  auto output = os::make_pipe();
  pid_ = sharing::start_process([&] {
    os::UniqueFd page;
    const nlohmann::json request{{"request", "join"}, {"name", tenant}};
    auto answer = sharing::send_control_request(daemon.socket(), request.dump(), &page);
    // Another daemon may be about to start.
    for (int i = 0; i < 200 && !answer; ++i) {
      os::sleep_for(Seconds{0.02});
      answer = sharing::send_control_request(daemon.socket(), request.dump(), &page);
    }
    ::dup2(output->write_end.get(), STDOUT_FILENO);
    if (!answer) std::printf("it cannot join: %s\n", answer.error().message.c_str());
    if (!answer) return 99;
    ::fcntl(page.get(), F_SETFD, 0);
    ::dup2(input->read_end.get(), STDIN_FILENO);
    return hook_test::TenantProgram::become(words, environment);
  });
  input_ = std::move(input->write_end);
  output_ = std::move(output->read_end);
}

RunningProgram::~RunningProgram() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  static_cast<void>(os::wait_for(pid_).has_value());
}

void RunningProgram::read() {
  char letters[4096];
  const ssize_t count = ::read(output_.get(), letters, sizeof letters);
  if (count <= 0) return end();
  for (ssize_t i = 0; i < count; ++i) {
    if (letters[i] != '\n') {
      line_ += letters[i];
      continue;
    }
    const bool is_step = line_.starts_with("step ");
    if (is_step)
      state_ = State::kWaits;
    else
      wrong_ += (wrong_.empty() ? "" : "; ") + line_;
    if (is_step) step_ = line_.substr(5);
    line_.clear();
  }
}

bool RunningProgram::wait() {
  pollfd readable{output_.get(), POLLIN, 0};
  while (state_ == State::kRuns) {
    if (::poll(&readable, 1, 30'000) <= 0) return false;
    read();
  }
  return true;
}

// Its output ends with the last of the processes that it started.
void RunningProgram::end() {
  constexpr int kNoRoom = 92;  // for its context
  const int status = sharing::wait_status(std::exchange(pid_, -1));
  state_ = State::kEnded;
  const bool is_right = status == 0 || status == kNoRoom || (is_killed_ && status == 128 + SIGKILL);
  if (!is_right)
    wrong_ += (wrong_.empty() ? "" : "; ") + std::string("it ended with status ") +
              std::to_string(status);
}

void RunningProgram::go_on() {
  if (state_ != State::kWaits) return;
  state_ = State::kRuns;
  [[maybe_unused]] const auto sent = ::write(input_.get(), "\n", 1);
}

void RunningProgram::kill() {
  if (pid_ <= 0) return;
  is_killed_ = true;
  state_ = State::kRuns;  // until its output ends
  ::kill(pid_, SIGKILL);
}

void RunningProgram::signal(int number) const {
  if (pid_ > 0) ::kill(pid_, number);
}

}  // namespace regatta::attacks
