// tests/gpu_time/time_shared_machine.h: a stand-in device with a daemon, unchanged programs that
// `regatta gpu run` starts on it as tenants, and what the device's own log says of who had it.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "regatta/gpu/sharing/internal/daemon/test_daemon.h"
#include "tests/gpu_time/program_control.h"
#include "tests/standin/device.h"
#include "tests/standin/device_connection.h"

namespace regatta::gpu_time {

using standin::Interval;
using standin::Time;

struct Work {
  Time kernel = std::chrono::microseconds(200);
  int graph_kernels = 0;  // so many in a graph that is launched; 0: without a graph
  unsigned blocks = 1024;
  Time pause{};  // between one and the next, after having waited for it
  int threads = 1;
};

struct Tenant {
  std::string name;
  std::string compute = "10";  // percent
  int weight = 1;
  bool is_high = false;
  std::string memory = "64MiB";
  bool is_overcommitted = false;
  // As another user than the daemon's, where the test is root and that user may read the build.
  bool is_unprivileged = false;
};

struct MachineOptions {
  unsigned processors = 132;
  std::string memory = "8GiB";  // of the device
  sharing::DaemonOptions daemon;
  bool has_nvml = false;  // with which the daemon compares its books
};

Time clock_now();
void sleep_until(Time end);

// The part of [begin, end) that the device worked for the process.
double share(const std::vector<Interval>& log, pid_t pid, Time begin, Time end);
// The same of all processes together, which the device serves one after the other.
double busy_share(const std::vector<Interval>& log, Time begin, Time end);
// The longest time within [begin, end) that the device did not work for the process.
Time longest_wait(const std::vector<Interval>& log, pid_t pid, Time begin, Time end);
// The largest miss of `part` over windows of a second within [begin, end).
double worst_miss(const std::vector<Interval>& log, pid_t pid, double part, Time begin, Time end);

class TimeSharedMachine {
 public:
  explicit TimeSharedMachine(const MachineOptions& options = {});
  TimeSharedMachine(const TimeSharedMachine&) = delete;
  TimeSharedMachine& operator=(const TimeSharedMachine&) = delete;
  ~TimeSharedMachine();

  // Starts a program of a tenant; its number.
  std::size_t run(const Tenant& tenant, const Work& work);
  // One that nobody limits: without the hook.
  std::size_t run_outside(const Work& work);
  // Starts another program, the first word of `words`, as a tenant's; its output is `output`'s, or
  // this process's. It gets SIGTERM when its machine ends.
  pid_t run_program(const Tenant& tenant, const std::vector<std::string>& words, int output = -1);
  // The program that starts tenants, in place of the one that was built.
  void set_regatta(const std::string& path) { regatta_ = path; }
  std::string device() const { return folder_.path() + "/device"; }
  // Until all have begun to launch, and some more.
  void wait_until_ready();
  // Ends them; the first exit status that is not 0.
  int stop_all();

  pid_t pid(std::size_t number) const { return programs_[number].pid; }
  const sharing::TestDaemon& daemon() const { return daemon_; }
  std::vector<Interval> log() const;
  // Memory of all processes on the device, by its own count: now, and the most that it ever was.
  std::uint64_t used_bytes() const;
  std::uint64_t most_used_bytes() const;
  void set_policy(const std::string& policy);
  void set_weight(const std::string& name, int weight);
  // The measurements of the program from now on for this long; sorted, in s.
  std::vector<double> latencies(std::size_t number, Time how_long);

 private:
  struct Program {
    pid_t pid = -1;
    std::string control_path;
    ProgramControl* control = nullptr;
    int threads = 1;
  };
  std::size_t start(std::vector<std::string> words, const Work& work);
  std::vector<std::string> run_words(const Tenant& tenant) const;
  std::vector<std::string> environment() const;

  std::string regatta_;
  os::TempFolder folder_;
  pid_t device_pid_;
  standin::DeviceConnection* link_ = new standin::DeviceConnection;  // its threads live on
  sharing::TestDaemon daemon_;
  std::vector<Program> programs_;
  std::vector<pid_t> others_;  // of run_program()
};

}  // namespace regatta::gpu_time
