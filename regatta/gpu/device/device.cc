#include "regatta/gpu/device/device.h"

#include <cstdlib>
#include <string_view>

#include <dlfcn.h>
#include <fmt/core.h>
#include <malloc.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "regatta/base/core/text.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/process.h"

namespace regatta::device {
namespace {

// How far operators may run ahead of their device before the thread sleeps: a sleep costs some 5 us
// of the device's own time.
constexpr Seconds kAheadAtMost{1e-3};
constexpr Seconds kShortestSleep{20e-6};

// The speed of the calling thread's device.
struct Pacer {
  double share = 0;  // of a core; 0: not paced
  Seconds busy;      // processor time that `due` accounts for
  Seconds due;       // when the work so far ends on a device of this speed
};
thread_local Pacer pacer;

// Sleeps until the work so far is done when that is more than `ahead` away.
void keep_pace(Seconds ahead) {
  if (pacer.share <= 0) return;
  const Seconds busy = os::thread_cpu_time();
  pacer.due += (busy - pacer.busy) / pacer.share;
  pacer.busy = busy;
  const Seconds left = pacer.due - os::monotonic_now();
  if (left > ahead) os::sleep_for(left);
}

bool pin_variable(const char* name) {
  const char* value = std::getenv(name);
  if (value != nullptr && std::string_view(value) == "1") return false;
  ::setenv(name, "1", 1);
  return true;
}

// These libraries are reached by name: gpu links neither, and works with whichever is loaded.
void call_if_loaded(const char* setter) {
  using SetThreads = void (*)(int);
  void* found = ::dlsym(RTLD_DEFAULT, setter);
  if (found != nullptr) reinterpret_cast<SetThreads>(found)(1);
}

// A line "Name:   123 kB" of /proc/meminfo.
Result<Bytes> memory_line(const std::string& text, std::string_view name) {
  for (const std::string& line : split(text, '\n')) {
    if (!line.starts_with(name)) continue;
    return Bytes{std::atoll(line.c_str() + name.size()) * 1024};
  }
  return Error{Code::kUnavailable, fmt::format("/proc/meminfo has no line \"{}\"", name)};
}

}  // namespace

bool pin_math_threads_in_environment() {
  const bool openblas = pin_variable("OPENBLAS_NUM_THREADS");
  const bool openmp = pin_variable("OMP_NUM_THREADS");
  return openblas || openmp;
}

void prepare_process() {
  pin_math_threads_in_environment();
  call_if_loaded("openblas_set_num_threads");
  call_if_loaded("omp_set_num_threads");
  ::mallopt(M_MMAP_THRESHOLD, 1 << 30);
  ::mallopt(M_TRIM_THRESHOLD, 0x7fffffff);
  ::mallopt(M_TOP_PAD, 64 << 20);
}

Result<ComputeDevice> open_device(const ComputeDeviceOptions& options) {
  if (options.kind != topo::DeviceKind::kCpu) {
    return Error{
        Code::kUnsupported,
        fmt::format("device {}: this build drives no GPU; use device type cpu", options.index)};
  }
  if (options.index < 0) {
    return Error{Code::kInvalidInput,
                 fmt::format("device {}: the index is negative", options.index)};
  }
  if (options.cpu_share < 0 || options.cpu_share > 1) {
    return Error{Code::kInvalidInput,
                 fmt::format("device {}: its share of a core, {}, is not between 0 and 1",
                             options.index, options.cpu_share)};
  }
  std::string held = "not held to a share";
  if (options.cpu_share > 0) held = fmt::format("{:.1f} % of a core", 100 * options.cpu_share);
  if (!options.compute_cgroup.empty()) held += ", enforced by " + options.compute_cgroup;
  return ComputeDevice{options, fmt::format("cpu {}: one thread, {}", options.index, held)};
}

Status bind_compute_thread(const ComputeDevice& device) {
  pacer = {};
  if (!device.options.compute_cgroup.empty())
    REGATTA_TRY_DO(os::join_cgroup(device.options.compute_cgroup));
  if (device.options.cpu_share <= 0) return {};
  pacer.share = device.options.cpu_share;
  // Sleeps end when they are told to, not up to 50 us later.
  ::prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0);
  end_wait();
  return {};
}

void end_operator() {
  keep_pace(kAheadAtMost);
}

void begin_wait() {
  keep_pace(kShortestSleep);
}

void end_wait() {
  if (pacer.share <= 0) return;
  pacer.busy = os::thread_cpu_time();
  pacer.due = os::monotonic_now();
}

void synchronize(const ComputeDevice& /*device*/) {
  begin_wait();
}

Result<DeviceMemory> device_memory(const ComputeDevice& /*device*/) {
  REGATTA_TRY(meminfo, os::read_file("/proc/meminfo"));
  REGATTA_TRY(total, memory_line(meminfo, "MemTotal:"));
  REGATTA_TRY(available, memory_line(meminfo, "MemAvailable:"));
  REGATTA_TRY(statm, os::read_file("/proc/self/statm"));
  const auto fields = split(trim(statm), ' ');
  if (fields.size() < 2) return Error{Code::kUnavailable, "/proc/self/statm has too few fields"};
  const long long resident = std::atoll(fields[1].c_str()) * ::sysconf(_SC_PAGESIZE);
  return DeviceMemory{total, available, Bytes{resident}};
}

}  // namespace regatta::device
