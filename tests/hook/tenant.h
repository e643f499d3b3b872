// tests/hook/tenant.h: a device, and programs that run on it as a tenant, with the hook.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "regatta/base/os/clock.h"
#include "regatta/gpu/sharing/internal/daemon/test_daemon.h"
#include "tests/hook/run.h"
#include "tests/standin/device_connection.h"

namespace regatta::hook_test {

constexpr std::uint64_t kMiB = 1ULL << 20;

// A stand-in device of this process; ends with it.
class DeviceProcess {
 public:
  explicit DeviceProcess(const std::vector<std::string>& options)
      : socket_(folder_.path() + "/device") {
    std::vector<std::string> words = {REGATTA_STANDIN_DEVICE, "--socket", socket_};
    words.insert(words.end(), options.begin(), options.end());
    pid_ = os::spawn(words, {}).value();
    for (int i = 0; i < 5000 && ::access(socket_.c_str(), F_OK) != 0; ++i)
      ::usleep(1000);
    if (!link_->connect(socket_)) ADD_FAILURE() << "no device";
  }
  DeviceProcess(const DeviceProcess&) = delete;
  DeviceProcess& operator=(const DeviceProcess&) = delete;
  ~DeviceProcess() { static_cast<void>(os::terminate(pid_).has_value()); }

  const std::string& socket() const { return socket_; }
  // Memory of each process on the device, by its own count.
  std::map<pid_t, std::uint64_t> bytes_of_processes() const {
    std::vector<standin::Packet> lines;
    link_->call({.message = standin::PacketType::kUsage}, &lines);
    std::map<pid_t, std::uint64_t> bytes;
    for (const standin::Packet& line : lines)
      bytes[static_cast<pid_t>(line.width)] += line.bytes;
    return bytes;
  }
  // The sum of all.
  std::uint64_t used_bytes() const {
    std::uint64_t bytes = 0;
    for (const auto& [pid, held] : bytes_of_processes())
      bytes += held;
    return bytes;
  }

  // The most that they ever had.
  std::uint64_t most_used_bytes() const {
    return link_->call({.message = standin::PacketType::kMemory}).sequence;
  }

 private:
  os::TempFolder folder_ = os::TempFolder::create("device").value();
  std::string socket_;
  pid_t pid_ = -1;
  standin::DeviceConnection* link_ = new standin::DeviceConnection;  // its threads live on
};

inline std::vector<std::string> environment_on(const DeviceProcess& device, HookMode how) {
  std::vector<std::string> environment = environment_for(how);
  environment.push_back("REGATTA_STANDIN=" + device.socket());
  return environment;
}

// Once they agree, within `timeout`: the daemon and the device hear of a death at their own times.
inline testing::AssertionResult accounting_matches(const DeviceProcess& device,
                                                   const sharing::TestDaemon& daemon,
                                                   Seconds timeout) {
  long long counted = -1;
  long long real = -2;
  for (const Seconds end = os::monotonic_now() + timeout; os::monotonic_now() < end;) {
    counted = daemon.memory("used_bytes");
    real = static_cast<long long>(device.used_bytes());
    if (counted == real) return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << "counted: " << counted << ", the device's: " << real;
}

// The first process of a tenant; it says lines and hears them.
class TenantProgram {
 public:
  TenantProgram(const sharing::TestDaemon& daemon, const std::string& name, std::uint64_t quota,
                const std::vector<std::string>& words,
                const std::vector<std::string>& environment) {
    auto input = os::make_pipe();
    auto output = os::make_pipe();
    pid_ = daemon.start_tenant(name, Bytes{static_cast<long long>(quota)}, [&](int page) {
      ::fcntl(page, F_SETFD, 0);
      ::dup2(input->read_end.get(), STDIN_FILENO);
      ::dup2(output->write_end.get(), STDOUT_FILENO);
      return become(words, environment);
    });
    input_ = std::move(input->write_end);
    output_ = std::move(output->read_end);
  }
  TenantProgram(const TenantProgram&) = delete;
  TenantProgram& operator=(const TenantProgram&) = delete;
  ~TenantProgram() {
    if (pid_ > 0) kill();
  }

  static int become(const std::vector<std::string>& words,
                    const std::vector<std::string>& environment) {
    std::vector<char*> arguments;
    for (const std::string& word : words)
      arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    for (const std::string& one : environment)
      ::putenv(const_cast<char*>(one.c_str()));
    ::execv(arguments.front(), arguments.data());
    return 98;
  }

  pid_t pid() const { return pid_; }
  std::string read_line() {  // "" when it has ended
    std::string line;
    for (char letter = 0; ::read(output_.get(), &letter, 1) == 1 && letter != '\n';)
      line += letter;
    return line;
  }
  void go_on() { [[maybe_unused]] const auto sent = ::write(input_.get(), "\n", 1); }
  void kill() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  int finish() {
    input_.reset();
    const int status = sharing::wait_status(pid_);
    pid_ = -1;
    return status;
  }

 private:
  os::UniqueFd input_;
  os::UniqueFd output_;
  pid_t pid_ = -1;
};

// Calls `look(line)` at each step of the program; returns their number. Other output goes to
// `said`, or is a failure.
template <typename Look>
int follow_steps(TenantProgram& program, const Look& look, std::string* said = nullptr) {
  int steps = 0;
  for (std::string line = program.read_line(); !line.empty(); line = program.read_line()) {
    if (line.starts_with("step ")) {
      ++steps;
      look(line);
      program.go_on();
    } else if (said != nullptr) {
      *said += line + "\n";
    } else {
      ADD_FAILURE() << line;
    }
  }
  return steps;
}

}  // namespace regatta::hook_test
