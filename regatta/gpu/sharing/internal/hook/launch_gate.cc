#include "regatta/gpu/sharing/internal/hook/launch_gate.h"

#include <cstdio>
#include <new>

#include <sys/mman.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/mutex.h"
#include "regatta/gpu/sharing/internal/client/cuda_stream_events.h"
#include "regatta/gpu/sharing/internal/hook/exports.h"
#include "regatta/gpu/sharing/internal/hook/report.h"
#include "regatta/gpu/sharing/internal/hook/tenant.h"

namespace regatta::sharing::hook {

std::atomic<LaunchGates*> gates = nullptr;

namespace {

static_assert(sizeof(LaunchGates) <= REGATTA_PAGE_SIZE);

const CudaEventCalls& calls() {
  static const CudaEventCalls only{
      .context_get = driver<DriverEntry::cuCtxGetCurrent>(),
      .context_push = driver<DriverEntry::cuCtxPushCurrent_v2>(),
      .context_pop = driver<DriverEntry::cuCtxPopCurrent_v2>(),
      .event_create = driver<DriverEntry::cuEventCreate>(),
      .event_destroy = driver<DriverEntry::cuEventDestroy_v2>(),
      .event_record = driver<DriverEntry::cuEventRecord>(),
      .event_wait = driver<DriverEntry::cuEventSynchronize>(),
      .event_query = driver<DriverEntry::cuEventQuery>(),
      .event_elapsed = driver<DriverEntry::cuEventElapsedTime>(),
      .is_capturing = driver<DriverEntry::cuStreamIsCapturing>(),
      .may_exchange_capture_mode = driver<DriverEntry::cuThreadExchangeStreamCaptureMode>()};
  return only;
}

CudaStreamEvents& stream_events() {
  static auto* const only = new CudaStreamEvents(calls());
  return *only;
}

bool has_one_device() {
  auto* const count_devices = driver<DriverEntry::cuDeviceGetCount>();
  int count = 0;
  return count_devices != nullptr && count_devices(&count) == CUDA_SUCCESS && count == 1;
}

// Where the tenant has no memory it has no turns either: who waited for one would wait for ever.
CUresult refuse(int device) {
  static std::atomic<bool> is_said = false;
  char text[160];
  std::snprintf(
      text, sizeof text,
      "GPU %d: the tenant has no memory there, so nothing is launched on it; give it some "
      "with regatta gpu set --memory",
      device);
  if (!is_said.exchange(true)) report(text);
  return CUDA_ERROR_NOT_PERMITTED;
}

LaunchGate* make_gate(LaunchGates& all, Client& client, int device) {
  static Mutex mutex;  // lets one thread create it
  const MutexLock lock(mutex);
  if (!calls().is_complete()) {
    static std::atomic<bool> is_said = false;
    if (!is_said.exchange(true)) report("the driver is too old; launches are not held back");
    return nullptr;
  }
  std::atomic<LaunchGate*>& place = at(all.of_device, device);
  if (LaunchGate* const known = place.load()) return known;
  // For the life of the process: its thread may be at work when the process ends.
  auto* const made = new LaunchGate(client, device, stream_events());
  place.store(made, std::memory_order_release);
  if (has_one_device()) all.only.store(made, std::memory_order_release);
  return made;
}

// Calls `use` with each gate that there is.
template <typename F>
void for_each_gate(F&& use) {
  LaunchGates* const all = gates.load(std::memory_order_acquire);
  if (all == nullptr) return;
  for (const std::atomic<LaunchGate*>& place : all->of_device) {
    if (LaunchGate* const gate = place.load(std::memory_order_acquire)) use(*gate);
  }
}

// A capture ends by success, and by being found broken; other errors leave it as it was.
void note_end(CUresult result) {
  if (result == CUDA_SUCCESS || result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED ||
      result == CUDA_ERROR_STREAM_CAPTURE_UNJOINED)
    stream_events().capture_ends();
}

template <typename Call>
CUresult begin(Call&& call) {
  // Before: another thread may launch into the stream as soon as it is captured.
  stream_events().capture_begins();
  const CUresult result = call();
  if (result != CUDA_SUCCESS) stream_events().capture_ends();
  return result;
}

}  // namespace

bool open_gates() {
  void* const page = ::mmap(nullptr, REGATTA_PAGE_SIZE, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return false;
  if (::madvise(page, REGATTA_PAGE_SIZE, MADV_WIPEONFORK) != 0) {
    ::munmap(page, REGATTA_PAGE_SIZE);
    return false;
  }
  gates.store(new (page) LaunchGates, std::memory_order_release);
  return true;
}

LaunchGate* find_gate(LaunchGates& all, CUresult& refusal) {
  Client* const client = tenant_client();
  auto* const get_device = driver<DriverEntry::cuCtxGetDevice>();
  CUdevice device = -1;
  // In a child of fork(), and without a context, the driver refuses in its own words.
  if (client == nullptr || !client->is_joined_process() || get_device == nullptr ||
      get_device(&device) != CUDA_SUCCESS)
    return nullptr;
  if (device < 0 || device >= REGATTA_DEVICES_MAX ||
      __atomic_load_n(&client->pages().tenant().quota[device], __ATOMIC_RELAXED) == 0) {
    refusal = refuse(device);
    return nullptr;
  }
  LaunchGate* const known = at(all.of_device, device).load(std::memory_order_acquire);
  return known != nullptr ? known : make_gate(all, *client, device);
}

void forget_launches(std::uint64_t key) {
  for_each_gate([key](LaunchGate& gate) { gate.forget(key); });
}

void leave_context(CUcontext context) {
  bool is_any = false;
  for_each_gate([&](LaunchGate&) { is_any = true; });
  if (is_any) stream_events().leave(context);
}

CUresult begin_capture(DriverFunction<DriverEntry::cuStreamBeginCapture> real, CUstream stream) {
  return begin([&] { return real(stream); });
}

CUresult begin_capture(DriverFunction<DriverEntry::cuStreamBeginCapture_v2> real, CUstream stream,
                       int mode) {
  return begin([&] { return real(stream, mode); });
}

CUresult begin_capture(DriverFunction<DriverEntry::cuStreamBeginCaptureToGraph> real,
                       CUstream stream, CUgraph graph, const CUgraphNode* after,
                       const CUgraphEdgeData* edges, std::size_t count, int mode) {
  return begin([&] { return real(stream, graph, after, edges, count, mode); });
}

CUresult end_capture(DriverFunction<DriverEntry::cuStreamEndCapture> real, CUstream stream,
                     CUgraph* graph) {
  const CUresult result = real(stream, graph);
  note_end(result);
  return result;
}

}  // namespace regatta::sharing::hook

extern "C" std::uint64_t regatta_gpu_launches() {
  std::uint64_t sum = 0;
  regatta::sharing::hook::for_each_gate(
      [&](const regatta::sharing::LaunchGate& gate) { sum += gate.launches(); });
  return sum;
}
