// comm/internal/device/device_memory.h: memory of CUDA devices for collectives: distinguishes it
// from host memory, copies it to and from page-locked stages, and exports it to other processes of
// the server.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "regatta/base/core/result.h"
#include "regatta/gpu/device/cuda_driver.h"

namespace regatta::comm {

// The device of this memory; nothing for memory of the host, which includes managed memory.
std::optional<int> device_of(const device::CudaDriver& driver, const void* data);

// Copies of one device, one after the other on a stream of its own. The stream waits for earlier
// work of the default stream; work of other streams must have ended before. All calls from one
// thread at a time.
class DeviceStream {
 public:
  // `driver` outlives it. Uses the primary context of the device, as the CUDA runtime does.
  static Result<std::unique_ptr<DeviceStream>> open(const device::CudaDriver& driver, int device);
  DeviceStream(const DeviceStream&) = delete;
  DeviceStream& operator=(const DeviceStream&) = delete;
  ~DeviceStream();

  // Page-locked memory of the host; it must not outlive this object.
  Result<std::shared_ptr<std::byte>> make_stage(std::size_t bytes);

  // A point in the queue.
  using Event = std::shared_ptr<CUevent_st>;
  Result<Event> to_host(void* host, const void* device, std::size_t bytes);
  Result<Event> to_device(void* device, const void* host, std::size_t bytes);
  // Sleeps or spins, as the driver does, until all copies before the mark have ended; null: returns
  // at once.
  Status wait(const Event& mark);

  // For another process: the handle of the allocation that holds `data`, and the offset in it.
  struct IpcAddress {
    CUipcMemHandle handle;
    std::size_t offset;
  };
  Result<IpcAddress> export_memory(const void* data);
  // Copies `bytes` of another process's memory to `to`, memory of this device; waits for the end.
  Status copy_from_peer(void* to, const IpcAddress& from, std::size_t bytes);

 private:
  DeviceStream(const device::CudaDriver& driver, int device) : driver_(driver), device_(device) {}

  Status start();
  Result<Event> mark();
  Status check(CUresult result, const char* what) const;

  const device::CudaDriver& driver_;
  int device_;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
};

}  // namespace regatta::comm
