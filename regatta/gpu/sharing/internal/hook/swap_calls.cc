// Calls that use memory which may be away: sets, copies within the device, and what is asked about
// addresses. Copies between host and device: copies.cc.
#include "regatta/gpu/sharing/internal/hook/exports.h"
#include "regatta/gpu/sharing/internal/hook/swap.h"

namespace regatta::sharing::hook {

namespace {

// `call` writes to `to`.
template <typename Call>
CUresult while_here(CUdeviceptr to, Call&& call) {
  const Here here;
  here.writes(to);
  return call();
}

}  // namespace

CUresult copy_within(Driver<Entry::cuMemcpyDtoD_v2> real, CUdeviceptr to, CUdeviceptr from,
                     std::size_t bytes) {
  return while_here(to, [&] { return real(to, from, bytes); });
}
CUresult copy_within(Driver<Entry::cuMemcpyDtoDAsync_v2> real, CUdeviceptr to, CUdeviceptr from,
                     std::size_t bytes, CUstream stream) {
  return while_here(to, [&] { return real(to, from, bytes, stream); });
}
CUresult set(Driver<Entry::cuMemsetD8_v2> real, CUdeviceptr to, unsigned char value,
             std::size_t count) {
  return while_here(to, [&] { return real(to, value, count); });
}
CUresult set(Driver<Entry::cuMemsetD8Async> real, CUdeviceptr to, unsigned char value,
             std::size_t count, CUstream stream) {
  return while_here(to, [&] { return real(to, value, count, stream); });
}
CUresult set(Driver<Entry::cuMemsetD16_v2> real, CUdeviceptr to, unsigned short value,
             std::size_t count) {
  return while_here(to, [&] { return real(to, value, count); });
}
CUresult set(Driver<Entry::cuMemsetD16Async> real, CUdeviceptr to, unsigned short value,
             std::size_t count, CUstream stream) {
  return while_here(to, [&] { return real(to, value, count, stream); });
}
CUresult set(Driver<Entry::cuMemsetD32_v2> real, CUdeviceptr to, unsigned value,
             std::size_t count) {
  return while_here(to, [&] { return real(to, value, count); });
}
CUresult set(Driver<Entry::cuMemsetD32Async> real, CUdeviceptr to, unsigned value,
             std::size_t count, CUstream stream) {
  return while_here(to, [&] { return real(to, value, count, stream); });
}

CUresult set_rows(Driver<Entry::cuMemsetD2D8_v2> real, CUdeviceptr to, std::size_t pitch,
                  unsigned char value, std::size_t width, std::size_t height) {
  return while_here(to, [&] { return real(to, pitch, value, width, height); });
}
CUresult set_rows(Driver<Entry::cuMemsetD2D8Async> real, CUdeviceptr to, std::size_t pitch,
                  unsigned char value, std::size_t width, std::size_t height, CUstream stream) {
  return while_here(to, [&] { return real(to, pitch, value, width, height, stream); });
}
CUresult set_rows(Driver<Entry::cuMemsetD2D16_v2> real, CUdeviceptr to, std::size_t pitch,
                  unsigned short value, std::size_t width, std::size_t height) {
  return while_here(to, [&] { return real(to, pitch, value, width, height); });
}
CUresult set_rows(Driver<Entry::cuMemsetD2D16Async> real, CUdeviceptr to, std::size_t pitch,
                  unsigned short value, std::size_t width, std::size_t height, CUstream stream) {
  return while_here(to, [&] { return real(to, pitch, value, width, height, stream); });
}
CUresult set_rows(Driver<Entry::cuMemsetD2D32_v2> real, CUdeviceptr to, std::size_t pitch,
                  unsigned value, std::size_t width, std::size_t height) {
  return while_here(to, [&] { return real(to, pitch, value, width, height); });
}
CUresult set_rows(Driver<Entry::cuMemsetD2D32Async> real, CUdeviceptr to, std::size_t pitch,
                  unsigned value, std::size_t width, std::size_t height, CUstream stream) {
  return while_here(to, [&] { return real(to, pitch, value, width, height, stream); });
}

// Between addresses that may be on any devices: each list of them is there at once.
CUresult copy_peer(Driver<Entry::cuMemcpyPeer> real, CUdeviceptr to, CUcontext to_context,
                   CUdeviceptr from, CUcontext from_context, std::size_t bytes) {
  const HereAt here({&to, 1}, {&from, 1});
  return real(to, to_context, from, from_context, bytes);
}
CUresult copy_peer(Driver<Entry::cuMemcpyPeerAsync> real, CUdeviceptr to, CUcontext to_context,
                   CUdeviceptr from, CUcontext from_context, std::size_t bytes, CUstream stream) {
  const HereAt here({&to, 1}, {&from, 1});
  return real(to, to_context, from, from_context, bytes, stream);
}

CUresult copy_array(Driver<Entry::cuMemcpyDtoA_v2> real, CUarray to, std::size_t offset,
                    CUdeviceptr from, std::size_t bytes) {
  const HereAt here({}, {&from, 1});
  return real(to, offset, from, bytes);
}
CUresult copy_array(Driver<Entry::cuMemcpyAtoD_v2> real, CUdeviceptr to, CUarray from,
                    std::size_t offset, std::size_t bytes) {
  const HereAt here({&to, 1}, {});
  return real(to, from, offset, bytes);
}

// The addresses stand in what is pointed to, so all is there.
CUresult copy_anywhere(Driver<Entry::cuMemcpy3DPeer> real, const void* shape) {
  const HereAt here;
  return real(shape);
}
CUresult copy_anywhere(Driver<Entry::cuMemcpy3DPeerAsync> real, const void* shape,
                       CUstream stream) {
  const HereAt here;
  return real(shape, stream);
}
CUresult copy_anywhere(Driver<Entry::cuMemcpy3DBatchAsync> real, std::size_t count, void* shapes,
                       std::size_t* failed, unsigned long long flags, CUstream stream) {
  const HereAt here;
  return real(count, shapes, failed, flags, stream);
}
CUresult copy_anywhere(Driver<Entry::cuMemcpy3DBatchAsync_v2> real, std::size_t count, void* shapes,
                       unsigned long long flags, CUstream stream) {
  const HereAt here;
  return real(count, shapes, flags, stream);
}

CUresult show_range(Driver<Entry::cuMemGetAddressRange_v2> real, CUdeviceptr* base,
                    std::size_t* bytes, CUdeviceptr address) {
  const auto found = find_movable(address);
  if (!found || address - found->range.address >= found->range.bytes)
    return real(base, bytes, address);
  if (base != nullptr) *base = found->range.address;
  if (bytes != nullptr) *bytes = found->range.bytes;
  return CUDA_SUCCESS;
}

// As of memory that the driver allocated, whether it is on the device or not.
CUresult show_attribute(Driver<Entry::cuPointerGetAttribute> real, void* data, int attribute,
                        CUdeviceptr address) {
  const auto found = find_movable(address);
  if (!found || data == nullptr) return real(data, attribute, address);
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<unsigned*>(data) = CU_MEMORYTYPE_DEVICE;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *static_cast<int*>(data) = found->device;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      *static_cast<CUcontext*>(data) = static_cast<CUcontext>(found->range.home);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      *static_cast<CUdeviceptr*>(data) = address;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      *static_cast<CUdeviceptr*>(data) = found->range.address;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      *static_cast<std::size_t*>(data) = found->range.bytes;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      *static_cast<int*>(data) = 0;
      return CUDA_SUCCESS;
    default: {
      const Here here;
      return real(data, attribute, address);
    }
  }
}

// Nothing but counted, as all calls are.
CUresult pass_on(Driver<Entry::cuStreamQuery> real, CUstream stream) {
  return real(stream);
}
CUresult pass_on(Driver<Entry::cuStreamWaitEvent> real, CUstream stream, CUevent event,
                 unsigned flags) {
  return real(stream, event, flags);
}
CUresult pass_on(Driver<Entry::cuStreamCreate> real, CUstream* stream, unsigned flags) {
  return real(stream, flags);
}
CUresult pass_on(Driver<Entry::cuStreamCreateWithPriority> real, CUstream* stream, unsigned flags,
                 int priority) {
  return real(stream, flags, priority);
}
CUresult pass_on(Driver<Entry::cuEventCreate> real, CUevent* event, unsigned flags) {
  return real(event, flags);
}
CUresult pass_on(Driver<Entry::cuEventQuery> real, CUevent event) {
  return real(event);
}
CUresult pass_on(Driver<Entry::cuEventRecord> real, CUevent event, CUstream stream) {
  return real(event, stream);
}

}  // namespace regatta::sharing::hook
