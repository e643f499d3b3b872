#include "regatta/runtime/comm/internal/device/device_memory.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace regatta::comm {
namespace {

CUdeviceptr address(const void* data) {
  return reinterpret_cast<CUdeviceptr>(data);
}

// The device's context for as long as it lives; the thread's own one comes back.
class InContext {
 public:
  InContext(const device::CudaDriver& driver, CUcontext context) : driver_(driver) {
    is_pushed_ = driver_.context_push(context) == CUDA_SUCCESS;
  }
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;
  ~InContext() {
    CUcontext popped = nullptr;
    if (is_pushed_) driver_.context_pop(&popped);
  }

 private:
  const device::CudaDriver& driver_;
  bool is_pushed_ = false;
};

}  // namespace

std::optional<int> device_of(const device::CudaDriver& driver, const void* data) {
  unsigned kind = 0;
  int device = 0;
  // The driver refuses a pointer that it does not know: memory of the host.
  if (data == nullptr ||
      driver.pointer_get_attribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address(data)) !=
          CUDA_SUCCESS ||
      kind != CU_MEMORYTYPE_DEVICE ||
      driver.pointer_get_attribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address(data)) !=
          CUDA_SUCCESS)
    return std::nullopt;
  return device;
}

Result<std::unique_ptr<DeviceStream>> DeviceStream::open(const device::CudaDriver& driver,
                                                         int device) {
  std::unique_ptr<DeviceStream> stream(new DeviceStream(driver, device));
  REGATTA_TRY_DO(stream->start());
  return stream;
}

Status DeviceStream::start() {
  REGATTA_TRY_DO(check(driver_.primary_context_retain(&context_, device_), "use"));
  const InContext in(driver_, context_);
  return check(driver_.stream_create(&stream_, CU_STREAM_DEFAULT), "make a stream of");
}

DeviceStream::~DeviceStream() {
  if (context_ == nullptr) return;
  if (stream_ != nullptr) {
    const InContext in(driver_, context_);
    driver_.stream_synchronize(stream_);
    driver_.stream_destroy(stream_);
  }
  driver_.primary_context_release(device_);
}

Status DeviceStream::check(CUresult result, const char* what) const {
  return device::check(driver_, result, std::string(what) + " device " + std::to_string(device_));
}

Result<std::shared_ptr<std::byte>> DeviceStream::make_stage(std::size_t bytes) {
  const InContext in(driver_, context_);
  void* memory = nullptr;
  REGATTA_TRY_DO(check(driver_.alloc_host(&memory, bytes), "lock pages for"));
  return std::shared_ptr<std::byte>(static_cast<std::byte*>(memory), [this](std::byte* data) {
    const InContext back(driver_, context_);
    driver_.free_host(data);
  });
}

Result<DeviceStream::Event> DeviceStream::mark() {
  CUevent event = nullptr;
  REGATTA_TRY_DO(check(driver_.event_create(&event, CU_EVENT_DISABLE_TIMING), "make an event of"));
  Event mark(event, [this](CUevent ended) {
    const InContext back(driver_, context_);
    driver_.event_destroy(ended);
  });
  REGATTA_TRY_DO(check(driver_.event_record(event, stream_), "mark a point of"));
  return mark;
}

Result<DeviceStream::Event> DeviceStream::to_host(void* host, const void* device,
                                                  std::size_t bytes) {
  const InContext in(driver_, context_);
  REGATTA_TRY_DO(check(driver_.copy_to_host(host, address(device), bytes, stream_), "copy from"));
  return mark();
}

Result<DeviceStream::Event> DeviceStream::to_device(void* device, const void* host,
                                                    std::size_t bytes) {
  const InContext in(driver_, context_);
  REGATTA_TRY_DO(check(driver_.copy_to_device(address(device), host, bytes, stream_), "copy to"));
  return mark();
}

Status DeviceStream::wait(const Event& mark) {
  if (mark == nullptr) return {};
  const InContext in(driver_, context_);
  return check(driver_.event_synchronize(mark.get()), "wait for");
}

Result<DeviceStream::IpcAddress> DeviceStream::export_memory(const void* data) {
  const InContext in(driver_, context_);
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  REGATTA_TRY_DO(check(driver_.get_address_range(&base, &bytes, address(data)), "find memory of"));
  IpcAddress shown{};
  REGATTA_TRY_DO(check(driver_.ipc_get_handle(&shown.handle, base), "share memory of"));
  shown.offset = address(data) - base;
  return shown;
}

Status DeviceStream::copy_from_peer(void* to, const IpcAddress& from, std::size_t bytes) {
  const InContext in(driver_, context_);
  CUdeviceptr opened = 0;
  REGATTA_TRY_DO(
      check(driver_.ipc_open_handle(&opened, from.handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
            "open memory of another process on"));
  Status copied = check(driver_.copy(address(to), opened + from.offset, bytes, stream_), "copy to");
  if (copied) copied = check(driver_.stream_synchronize(stream_), "wait for");
  driver_.ipc_close_handle(opened);
  return copied;
}

}  // namespace regatta::comm
