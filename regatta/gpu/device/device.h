// device/device.h: the one place that knows what kind of device a rank computes on. Today that is
// the CPU: one thread held to a share of a core; a CUDA device takes the same functions.
#pragma once

#include <string>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/cluster.h"

namespace regatta::device {

struct ComputeDeviceOptions {
  topo::DeviceKind kind = topo::DeviceKind::kCpu;
  int index = 0;               // of its server
  double cpu_share = 0;        // CPU: of a core, the pace of the compute thread; 0 = as it can
  std::string compute_cgroup;  // CPU: the folder that enforces the share; or empty
};

struct ComputeDevice {
  ComputeDeviceOptions options;
  std::string description;  // "cpu 1: one thread, 15.0 % of a core, enforced by /sys/fs/..."
};

// Once per process: OPENBLAS_NUM_THREADS and OMP_NUM_THREADS become 1 in the environment, and
// OPENBLAS_CORETYPE, unless it is set, what openblas_core_type() says. True when one of them had
// another value: the caller may then start its own executable again, so that the libraries, which
// read them when they are loaded, start no helper threads and choose better kernels.
bool prepare_math_environment();

// The instructions that kernels of a library need.
struct VectorInstructions {
  bool avx2_fma = false;
  bool avx512 = false;  // F, CD, DQ, BW and VL
};
// An OpenBLAS that is older than its processor does not know it and takes kernels of 2004, which
// multiply matrices at a fifth of the speed of those that the processor runs. The value of
// OPENBLAS_CORETYPE that gives better ones than `chosen`, the name that the library has; "": none.
// Source: OpenBLAS, driver/others/dynamic.c.
std::string openblas_core_type(std::string_view chosen, VectorInstructions processor);

// Once per process: one compute thread in the libraries of mathematics that are loaded (OpenBLAS,
// OpenMP), and large blocks of memory are kept instead of going back to the kernel after each use
// (a fresh page costs a fault and a memset, some 0.25 us per 4 KiB).
void prepare_process();

// Fails with kUnsupported for a kind that this build cannot drive.
Result<ComputeDevice> open_device(const ComputeDeviceOptions& options);

// Makes the calling thread the one that computes for `device`: only it keeps the device's pace and
// joins its cgroup, so communication threads are not held to the device's share. Fails when the
// cgroup cannot be joined.
Status bind_compute_thread(const ComputeDevice& device);

// A CPU device that is held to a share of a core is as fast as the share in the long run, but its
// cgroup lets it run at full speed until the quota of the period is used up and then stops it for
// the rest: short computations come out too fast, and ranks that wait for each other at every layer
// stop one after the other. So the compute thread keeps the pace itself: work that took `c` of
// processor time lasts c / share. That holds a device also where no cgroup can be made. On other
// threads, and where nothing limits the device, these three do nothing. A device of its own (CUDA)
// would synchronize its stream in begin_wait().
//
// After each operator: sleeps when the work so far is some way ahead of the device's speed.
void end_operator();
// Before the compute thread waits for something else than its device, or takes the time: sleeps
// until the work so far is done.
void begin_wait();
// After such a wait: what is computed from now on starts now.
void end_wait();

// Returns when all work given to the device is done: begin_wait().
void synchronize(const ComputeDevice& device);

// Memory of the device: the machine's, for the CPU. kUnavailable when it cannot be read.
struct DeviceMemory {
  Bytes total;
  Bytes available;
  Bytes used_by_process;  // resident set, now
};
Result<DeviceMemory> device_memory(const ComputeDevice& device);

}  // namespace regatta::device
