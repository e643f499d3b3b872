// bench/node_agent/main.cc: memory and processor time of an idle agent, and how soon a job runs.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/bench_program.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/file.h"
#include "regatta/platform/node_agent/internal/run_folder.h"
#include "regatta/platform/node_agent/internal/test_controller.h"
#include "regatta/platform/node_agent/internal/test_web_controller.h"

namespace regatta::node_agent {
namespace {

constexpr const char* kUsage =
    "usage: regatta-node-agent-bench [--seconds S] [--starts N]\n"
    "The agent is idle over TLS for S seconds (20), then starts N jobs (200) one after the other.\n"
    "Prints a JSON line for each.\n";

// KiB of a line such as "VmRSS:  1234 kB" of /proc/PID/status.
Result<long> memory_kib(pid_t pid, const std::string& name) {
  REGATTA_TRY(text, os::read_file(fmt::format("/proc/{}/status", pid)));
  const std::size_t at = text.find(name + ":");
  if (at == std::string::npos) return Error{Code::kNotFound, name + ": no such line"};
  return std::strtol(text.c_str() + at + name.size() + 1, nullptr, 10);
}

// The time on a core of all threads: the first number of /proc/PID/task/TID/schedstat, in ns.
// Source: Linux, scheduler/sched-stats.rst.
Result<Seconds> processor_time(pid_t pid) {
  double sum_ns = 0;
  std::error_code error;
  for (const auto& task :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid), error)) {
    REGATTA_TRY(text, os::read_file(task.path().string() + "/schedstat"));
    sum_ns += std::strtod(text.c_str(), nullptr);
  }
  if (error) return Error{Code::kUnavailable, "the agent has ended"};
  return Seconds{sum_ns / 1e9};
}

Status measure_idle(int seconds) {
  REGATTA_TRY(folder, os::TempFolder::create("regatta-agent"));
  TestWebController controller;
  AgentProcess agent(folder.path(), "bench-" + std::to_string(::getpid()));
  agent.start_with(controller.url(), {"--token", controller.token()});
  for (int i = 0; i < 1000 && controller.heartbeats() < 2; ++i)
    os::sleep_for(Seconds{0.01});
  REGATTA_TRY(before, processor_time(agent.pid()));
  const int heartbeats = controller.heartbeats();
  os::sleep_for(Seconds{static_cast<double>(seconds)});
  REGATTA_TRY(after, processor_time(agent.pid()));
  REGATTA_TRY(resident, memory_kib(agent.pid(), "VmRSS"));
  REGATTA_TRY(own, memory_kib(agent.pid(), "RssAnon"));
  constexpr const char* kLine =
      "{{\"idle_s\":{},\"heartbeats\":{},\"resident_mib\":{:.1f},\"anonymous_mib\":{:.1f},"
      "\"core_percent\":{:.3f}}}\n";
  fmt::print(kLine, seconds, controller.heartbeats() - heartbeats,
             static_cast<double>(resident) / 1024, static_cast<double>(own) / 1024,
             100 * (after - before).value / seconds);
  return {};
}

// Waits for a letter in the pipe while the controller works.
bool wait_for_letter(TestController& controller, int pipe) {
  return controller.work_until(
      [pipe] {
        char letter = 0;
        return ::read(pipe, &letter, 1) == 1;
      },
      Seconds{10});
}

double quantile(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
}

Status measure_starts(int starts) {
  REGATTA_TRY(folder, os::TempFolder::create("regatta-agent"));
  TestController controller({.socket = folder.path() + "/controller"});
  AgentProcess agent(folder.path(), "bench-" + std::to_string(::getpid()));
  agent.start();
  const std::string path = folder.path() + "/pipe";
  if (::mkfifo(path.c_str(), 0600) != 0) return os::errno_error(path);
  const os::UniqueFd pipe(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  std::vector<double> times_ms;
  long supervisor_kib = 0;
  for (int i = 0; i <= starts; ++i) {
    const Seconds begin = os::monotonic_now();
    const control::JobId job = controller.submit("printf x > " + path + "; sleep 0.02");
    if (!wait_for_letter(controller, pipe.get()))
      return Error{Code::kTimeout, "a job did not start"};
    const double time_ms = 1000 * (os::monotonic_now() - begin).value;
    if (i > 0) times_ms.push_back(time_ms);  // the first waits for the agent
    const auto holder = RunLock::holder(fmt::format("{}/state/runs/{}.1.0", folder.path(), job));
    if (holder && *holder)
      supervisor_kib = std::max(supervisor_kib, memory_kib(**holder, "VmRSS").value_or(0L));
    controller.work_until([&] { return controller.is_over(job); }, Seconds{10});
  }
  std::sort(times_ms.begin(), times_ms.end());
  REGATTA_TRY(resident, memory_kib(agent.pid(), "VmRSS"));
  constexpr const char* kLine =
      "{{\"starts\":{},\"latency_ms_p50\":{:.2f},\"latency_ms_p99\":{:.2f},\"supervisor_kib\":{},"
      "\"resident_mib_after\":{:.1f}}}\n";
  fmt::print(kLine, starts, quantile(times_ms, 0.5), quantile(times_ms, 0.99), supervisor_kib,
             static_cast<double>(resident) / 1024);
  return {};
}

Status run(bench_program::Arguments arguments) {
  REGATTA_TRY(seconds, bench_program::take_number(arguments, "--seconds", 20, {1, 3600}));
  REGATTA_TRY(starts, bench_program::take_number(arguments, "--starts", 200, {1, 100000}));
  REGATTA_TRY_DO(bench_program::check_rest(arguments, 0));
  REGATTA_TRY_DO(measure_idle(seconds));
  return measure_starts(starts);
}

}  // namespace
}  // namespace regatta::node_agent

int main(int count, char** values) {
  return regatta::bench_program::run_program(count, values, regatta::node_agent::kUsage, 0,
                                             regatta::node_agent::run);
}
