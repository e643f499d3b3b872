#include "regatta/gpu/device/device.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include <dlfcn.h>
#include <fmt/core.h>
#include <malloc.h>
#include <strings.h>
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
  void (*set_threads)(int) = nullptr;
  if (os::find_symbol(RTLD_DEFAULT, setter, set_threads)) set_threads(1);
}

VectorInstructions vector_instructions() {
#if defined(__x86_64__)
  return {.avx2_fma = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"),
          .avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512vl")};
#else
  return {};
#endif
}

// Whether the environment has changed.
bool choose_blas_kernels() {
  const char* const variable = "OPENBLAS_CORETYPE";
  using GetName = const char* (*)();
  GetName get_name = nullptr;
  if (std::getenv(variable) != nullptr ||
      !os::find_symbol(RTLD_DEFAULT, "openblas_get_corename", get_name))
    return false;
  VectorInstructions processor = vector_instructions();
  // Before 0.3 the library has no kernels for AVX-512, and takes its oldest for a name that it does
  // not know.
  GetName get_config = nullptr;
  const bool has_config = os::find_symbol(RTLD_DEFAULT, "openblas_get_config", get_config);
  if (!has_config || std::string_view(get_config()).starts_with("OpenBLAS 0.2"))
    processor.avx512 = false;
  const std::string core = openblas_core_type(get_name(), processor);
  if (core.empty()) return false;
  ::setenv(variable, core.c_str(), 1);
  return true;
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

std::string openblas_core_type(std::string_view chosen, VectorInstructions processor) {
  // All that use AVX2 at least.
  static constexpr std::array<std::string_view, 5> kGood = {"Haswell", "Zen", "SkylakeX",
                                                            "Cooperlake", "Sapphirerapids"};
  const auto is_chosen = [&](std::string_view good) {
    return good.size() == chosen.size() &&
           ::strncasecmp(good.data(), chosen.data(), good.size()) == 0;
  };
  if (chosen.empty() || std::ranges::any_of(kGood, is_chosen)) return "";
  if (processor.avx512) return "SKYLAKEX";
  return processor.avx2_fma ? "HASWELL" : "";
}

bool prepare_math_environment() {
  const bool openblas = pin_variable("OPENBLAS_NUM_THREADS");
  const bool openmp = pin_variable("OMP_NUM_THREADS");
  return choose_blas_kernels() || openblas || openmp;
}

void prepare_process() {
  prepare_math_environment();
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
