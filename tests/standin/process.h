// tests/standin/process.h: what the stand-in driver knows of the process it is loaded in: devices,
// contexts, streams, memory. One lock guards all of it; nobody waits for the device under it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "regatta/gpu/device/abi/cuda_sharing.h"
#include "tests/standin/arena.h"
#include "tests/standin/device_connection.h"

namespace regatta::standin {

struct DeviceState {
  int ordinal = 0;
  std::uint64_t id = 0;  // the same in all processes
  DeviceConnection link;
  std::uint64_t bytes = 0;
  unsigned processors = 0;
  Arena arena;
  CUcontext primary = nullptr;
  unsigned primary_references = 0;
  unsigned primary_flags = 0;
  CUmemoryPool default_pool = nullptr;
  CUmemoryPool pool = nullptr;  // that cuMemAllocAsync takes from
};

struct KernelNode;  // graph.h

// Something that a stream or a node of a graph does.
struct Work {
  OpKind kind = OpKind::kMark;
  Time duration{};
  unsigned width = 1;
  Engine engine = Engine::kWithin;
  std::uint64_t bytes = 0;
  std::function<void()> action;  // of a copy or call
  std::uint64_t mark = 0;        // the event that it records
  Dependency after{};            // stream 0: after nothing but its stream
  // Its type as a node of a graph.
  int node_type = CU_GRAPH_NODE_TYPE_EMPTY;
  CUresult fails = CUDA_SUCCESS;  // what its end does to the context
  std::shared_ptr<const KernelNode> kernel{};
};

enum class RegionKind : std::uint8_t {
  kDevice,
  kManaged,
  kHost,
  kRegistered,  // the program's own
  kPool,
  kReserved,
  kMapped,
  kGraph,
  kOpened,  // another process's
  kArray,   // at an address that no call names
};

// The advice given for managed memory.
struct Managed {
  bool is_read_mostly = false;
  int preferred = CU_DEVICE_INVALID;
  int prefetched = CU_DEVICE_INVALID;
  std::vector<int> accessed_by;
};

struct Opened;  // share.h

struct Region {
  RegionKind kind = RegionKind::kDevice;
  std::uint64_t id = 0;
  std::uint64_t bytes = 0;
  CUcontext context = nullptr;
  DeviceState* device = nullptr;
  std::uint64_t offset = 0;  // in the device's arena
  std::uint64_t charged = 0;
  CUmemoryPool pool = nullptr;
  CUmemGenericAllocationHandle handle = 0;
  bool is_accessible = true;
  std::uint64_t share = 0;  // other processes may know it by
  std::shared_ptr<const Opened> opened{};
  int opens = 0;
  unsigned flags = 0;
  int handle_types = 0;  // that it can be exported as
  bool syncs = false;
  Managed managed{};
};

struct Process {
  std::mutex mutex;
  bool is_started = false;
  bool is_forked = false;  // a child: the driver cannot be used
  std::vector<std::unique_ptr<DeviceState>> devices;
  std::set<CUcontext> contexts;
  std::set<CUstream> streams;
  std::set<CUevent> events;
  // Every context and stream there was: a stale handle is then known, never somebody else's.
  std::vector<CUcontext> all_contexts;
  std::vector<CUstream> all_streams;
  std::map<CUdeviceptr, Region> regions;
  std::map<CUdeviceptr, std::uint64_t> reserved;  // address ranges for mappings
  std::uint64_t last_id = 0;
  int captures = 0;  // under way
};

Process& process();
// The thread's stack of contexts; the last one is current.
std::vector<CUcontext>& context_stack();
// The current context, or why there is none; under the lock.
CUresult current_context(CUcontext* context);
// The stream that a handle means to this thread: 0 the default one, 1 legacy, 2 the thread's own.
CUresult find_stream(CUstream handle, CUstream* stream);
// Whether handle 0 is the thread's own stream; set by the entry points with _ptsz or _ptds.
bool& per_thread_default();
// How the thread's calls go with captures: a CU_STREAM_CAPTURE_MODE.
int& thread_capture_mode();
// An error where a capture is under way that the call might spoil, and the thread has not said that
// it knows better: the capture is spoilt. Under the lock.
CUresult check_no_capture();
// The same for work of the default stream while a stream that it would wait for is captured.
CUresult check_legacy(const CUstream_st& stream);

// Gives work to the stream, or to the graph that it is captured into.
CUresult enqueue(CUstream handle, Work work);
// Under the lock, to a stream that is not captured; the stream's count of operations.
std::uint64_t submit(CUstream_st& stream, Work work);
// Without the lock.
CUresult wait_stream(CUstream_st& stream, std::uint64_t sequence);
CUresult wait_context(CUcontext context);
// Priorities that the device has: from 0, the least, to -5.
int clamp_priority(int priority);
CUstream make_stream(CUcontext context, StreamKind kind, unsigned flags, int priority);
CUresult make_context(DeviceState& device, unsigned flags, CUcontext* context);
void destroy_context(CUcontext context);  // idle; under the lock

// Device memory of a context; under the lock.
CUresult allocate_device(CUcontext context, std::uint64_t bytes, CUdeviceptr* address);
// Frees what nobody uses of the pools of a context's device beyond their thresholds; under the
// lock.
void trim_pools(DeviceState& device);
void free_region(std::map<CUdeviceptr, Region>::iterator region);
// The region that an address lies in, but for arrays, or end.
std::map<CUdeviceptr, Region>::iterator region_of(CUdeviceptr address);
// The region that holds all these bytes, or end; mapped ranges may be made of several.
bool is_device_range(CUdeviceptr address, std::uint64_t bytes);
// Moves bytes between any two addresses of this process.
void copy_bytes(CUdeviceptr to, CUdeviceptr from, std::uint64_t bytes);
// Calls `each` with the parts of the host's memory behind a range; false when a part has none.
bool for_each_part(CUdeviceptr address, std::uint64_t bytes,
                   const std::function<void(std::byte*, std::uint64_t)>& each);

}  // namespace regatta::standin

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
struct CUctx_st {
  regatta::standin::DeviceState* device = nullptr;
  std::uint64_t id = 0;
  unsigned flags = 0;
  bool is_primary = false;
  bool is_of_first_version = false;  // made by the cuCtxCreate of before CUDA 3.2
  CUstream legacy = nullptr;
  CUresult error = CUDA_SUCCESS;      // of a kernel that failed: all that follows fails with it
  std::map<int, std::size_t> limits;  // that were set
  int cache_config = 0;
  std::set<CUcontext> peers;  // whose memory it may use
};
struct CUstream_st {
  CUcontext context = nullptr;
  std::uint64_t id = 0;
  regatta::standin::StreamKind kind = regatta::standin::StreamKind::kBlocking;
  unsigned flags = 0;
  int priority = 0;
  std::uint64_t submitted = 0;
  std::uint64_t known_done = 0;  // at least
  CUgraph capture = nullptr;
  bool is_origin = false;
  std::vector<CUgraphNode> frontier;   // what the next captured node comes after
  std::vector<CUgraphEdgeData> edges;  // as many, for those who ask
};
struct CUevent_st {
  CUcontext context = nullptr;
  unsigned flags = 0;
  std::uint64_t mark = 0;
  CUstream stream = nullptr;  // that it was last recorded in
  std::uint64_t stream_id = 0;
  std::uint64_t sequence = 0;
  CUgraph capture = nullptr;
  std::vector<CUgraphNode> captured;
};
// NOLINTEND(readability-identifier-naming)
