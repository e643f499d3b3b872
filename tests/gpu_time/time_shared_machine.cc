#include "tests/gpu_time/time_shared_machine.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <new>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace regatta::gpu_time {
namespace {

constexpr unsigned kOtherUser = 65534;  // nobody

}  // namespace

Time clock_now() {
  return Time(static_cast<Time::rep>(os::monotonic_ns()));
}

void sleep_until(Time end) {
  os::sleep_for(Seconds{std::chrono::duration<double>(end - clock_now()).count()});
}

static Time overlap(const Interval& one, Time begin, Time end) {
  return std::max(Time{}, std::min(one.end, end) - std::max(one.start, begin));
}

double share(const std::vector<Interval>& log, pid_t pid, Time begin, Time end) {
  Time sum{};
  for (const Interval& one : log)
    if (one.pid == static_cast<std::uint32_t>(pid)) sum += overlap(one, begin, end);
  return static_cast<double>(sum.count()) / static_cast<double>((end - begin).count());
}

double busy_share(const std::vector<Interval>& log, Time begin, Time end) {
  Time sum{};
  for (const Interval& one : log)
    sum += overlap(one, begin, end);
  return static_cast<double>(sum.count()) / static_cast<double>((end - begin).count());
}

Time longest_wait(const std::vector<Interval>& log, pid_t pid, Time begin, Time end) {
  Time last = begin;
  Time longest{};
  for (const Interval& one : log) {
    if (one.pid != static_cast<std::uint32_t>(pid) || one.end < begin) continue;
    longest = std::max(longest, std::min(one.start, end) - last);
    last = std::max(last, one.end);
  }
  return std::max(longest, end - last);
}

double worst_miss(const std::vector<Interval>& log, pid_t pid, double part, Time begin, Time end) {
  double most = 0;
  constexpr Time kWindow = std::chrono::seconds(1);
  for (Time from = begin; from + kWindow <= end; from += std::chrono::milliseconds(50))
    most = std::max(most, std::abs(share(log, pid, from, from + kWindow) - part));
  return most;
}

namespace {

// Other users than the test's reach the sockets.
os::TempFolder readable_folder() {
  os::TempFolder folder = os::TempFolder::create("gpu-time").value();
  if (::chmod(folder.path().c_str(), 0755) != 0) std::abort();
  return folder;
}

bool can_another_user_read(const std::string& path) {
  return sharing::wait_status(sharing::start_process([&] {
           return ::setgid(kOtherUser) == 0 && ::setuid(kOtherUser) == 0 &&
                          ::access(path.c_str(), R_OK | X_OK) == 0
                      ? 0
                      : 1;
         })) == 0;
}

pid_t start_device(const std::string& socket, const MachineOptions& options) {
  const auto pid = os::spawn({REGATTA_STANDIN_DEVICE, "--socket", socket, "--processors",
                              std::to_string(options.processors), "--memory", options.memory},
                             {});
  for (int i = 0; i < 5000 && ::access(socket.c_str(), F_OK) != 0; ++i)
    ::usleep(1000);
  return pid.value();
}

// The daemon, which is a child of this process, finds the device as programs do.
sharing::DaemonOptions daemon_options(const MachineOptions& options, const std::string& socket) {
  sharing::DaemonOptions daemon = options.daemon;
  daemon.nvml = options.has_nvml ? REGATTA_DRIVER "/libnvidia-ml.so.1" : "";
  if (options.has_nvml) ::setenv("REGATTA_STANDIN", socket.c_str(), 1);
  return daemon;
}

}  // namespace

TimeSharedMachine::TimeSharedMachine(const MachineOptions& options)
    : regatta_(REGATTA_BINARY),
      folder_(readable_folder()),
      device_pid_(start_device(folder_.path() + "/device", options)),
      daemon_(options.daemon.gpus, daemon_options(options, folder_.path() + "/device")) {
  const std::string socket = folder_.path() + "/device";
  if (!link_->connect(socket)) std::abort();
  const std::string daemon_folder = daemon_.socket().substr(0, daemon_.socket().rfind('/'));
  if (::chmod(socket.c_str(), 0666) != 0 || ::chmod(daemon_folder.c_str(), 0755) != 0) std::abort();
}

TimeSharedMachine::~TimeSharedMachine() {
  stop_all();
  for (const pid_t other : others_)
    static_cast<void>(os::terminate(other).has_value());
  static_cast<void>(os::terminate(device_pid_).has_value());
}

std::size_t TimeSharedMachine::start(std::vector<std::string> words, const Work& work) {
  const std::string path = folder_.path() + "/board-" + std::to_string(programs_.size());
  const os::UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (::ftruncate(file.get(), sizeof(ProgramControl)) != 0) std::abort();
  void* const memory =
      ::mmap(nullptr, sizeof(ProgramControl), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) std::abort();
  words.insert(
      words.end(),
      {REGATTA_PROGRAM, path, "kernel_ns=" + std::to_string(work.kernel.count()),
       "graph=" + std::to_string(work.graph_kernels), "blocks=" + std::to_string(work.blocks),
       "pause_us=" + std::to_string(work.pause.count() / 1000),
       "threads=" + std::to_string(work.threads)});
  const auto pid = os::spawn(words, {.environment = environment()});
  programs_.push_back({pid.value(), path, new (memory) ProgramControl, work.threads});
  return programs_.size() - 1;
}

std::vector<std::string> TimeSharedMachine::environment() const {
  return {std::string("LD_LIBRARY_PATH=") + REGATTA_DRIVER,
          "REGATTA_STANDIN=" + folder_.path() + "/device"};
}

std::vector<std::string> TimeSharedMachine::run_words(const Tenant& tenant) const {
  std::vector<std::string> words = {regatta_,
                                    "gpu",
                                    "run",
                                    "--socket",
                                    daemon_.socket(),
                                    "--name",
                                    tenant.name,
                                    "--memory",
                                    tenant.memory,
                                    "--compute",
                                    tenant.compute,
                                    "--weight",
                                    std::to_string(tenant.weight),
                                    "--priority",
                                    tenant.is_high ? "high" : "normal"};
  if (tenant.is_overcommitted) words.emplace_back("--overcommit");
  words.emplace_back("--");
  static const bool is_another_user = ::geteuid() == 0 && can_another_user_read(REGATTA_PROGRAM);
  if (tenant.is_unprivileged && is_another_user) {
    const std::string user = std::to_string(kOtherUser);
    words.insert(words.end(),
                 {"setpriv", "--reuid", user, "--regid", user, "--clear-groups", "--"});
  }
  return words;
}

std::size_t TimeSharedMachine::run(const Tenant& tenant, const Work& work) {
  return start(run_words(tenant), work);
}

pid_t TimeSharedMachine::run_program(const Tenant& tenant, const std::vector<std::string>& words,
                                     int output) {
  std::vector<std::string> all = run_words(tenant);
  all.insert(all.end(), words.begin(), words.end());
  others_.push_back(os::spawn(all, {.environment = environment(), .stdout_fd = output}).value());
  return others_.back();
}

std::size_t TimeSharedMachine::run_outside(const Work& work) {
  return start({}, work);
}

void TimeSharedMachine::wait_until_ready() {
  const Time limit = clock_now() + std::chrono::seconds(20);
  for (const Program& program : programs_)
    while (program.control->ready < program.threads && clock_now() < limit)
      ::usleep(1000);
  os::sleep_for(Seconds{0.3});
}

int TimeSharedMachine::stop_all() {
  int failed = 0;
  for (const Program& program : programs_)
    program.control->stop = true;
  for (const Program& program : programs_) {
    const int status = sharing::wait_status(program.pid);
    if (failed == 0) failed = status;
    ::munmap(program.control, sizeof(ProgramControl));
  }
  programs_.clear();
  return failed;
}

std::uint64_t TimeSharedMachine::used_bytes() const {
  std::vector<standin::Packet> lines;
  link_->call({.message = standin::PacketType::kUsage}, &lines);
  std::uint64_t bytes = 0;
  for (const standin::Packet& line : lines)
    bytes += line.bytes;
  return bytes;
}

std::uint64_t TimeSharedMachine::most_used_bytes() const {
  return link_->call({.message = standin::PacketType::kMemory}).sequence;
}

std::vector<Interval> TimeSharedMachine::log() const {
  std::vector<standin::Packet> lines;
  link_->call({.message = standin::PacketType::kLog}, &lines);
  std::vector<Interval> log;
  log.reserve(lines.size());
  for (const standin::Packet& line : lines)
    log.push_back({line.width, line.context, Time(line.time_ns), Time(line.end_time_ns)});
  return log;
}

void TimeSharedMachine::set_policy(const std::string& policy) {
  if (!daemon_.query({{"request", "policy"}, {"policy", policy}})) std::abort();
}

void TimeSharedMachine::set_weight(const std::string& name, int weight) {
  if (!daemon_.query({{"request", "set"}, {"name", name}, {"weight", weight}})) std::abort();
}

std::vector<double> TimeSharedMachine::latencies(std::size_t number, Time how_long) {
  ProgramControl& control = *programs_[number].control;
  control.latency_count = 0;
  sleep_until(clock_now() + how_long);
  const std::size_t count =
      std::min<std::size_t>(control.latency_count, ProgramControl::kMostLatencies);
  std::vector<double> sorted;
  for (std::size_t i = 0; i < count; ++i)
    sorted.push_back(1e-9 * static_cast<double>(control.latency_ns[i]));
  std::ranges::sort(sorted);
  return sorted;
}

}  // namespace regatta::gpu_time
