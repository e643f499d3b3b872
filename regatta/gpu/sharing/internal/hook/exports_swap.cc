// Calls that use memory which may be away: sets, copies within the device, and what is asked about
// addresses. Copies between host and device: exports_copies.cc.
#include "regatta/gpu/sharing/internal/hook/exports.h"
#include "regatta/gpu/sharing/internal/hook/swap.h"

namespace regatta::sharing::hook {

namespace {

// `call` writes to `to`.
template <typename Call>
CUresult while_here(CUdeviceptr to, Call&& call) {
  const ResidencyGuard here;
  here.writes(to);
  return call();
}

}  // namespace

CUresult copy_within(DriverFunction<DriverEntry::cuMemcpyDtoD_v2> real, CUdeviceptr to,
                     CUdeviceptr from, std::size_t bytes) {
  return while_here(to, [&] { return real(to, from, bytes); });
}
CUresult copy_within(DriverFunction<DriverEntry::cuMemcpyDtoDAsync_v2> real, CUdeviceptr to,
                     CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return while_here(to, [&] { return real(to, from, bytes, stream); });
}
CUresult set(DriverFunction<DriverEntry::cuMemsetD8_v2> real, CUdeviceptr to, unsigned char value,
             std::size_t count) {
  return while_here(to, [&] { return real(to, value, count); });
}
CUresult set(DriverFunction<DriverEntry::cuMemsetD8Async> real, CUdeviceptr to, unsigned char value,
             std::size_t count, CUstream stream) {
  return while_here(to, [&] { return real(to, value, count, stream); });
}
CUresult set(DriverFunction<DriverEntry::cuMemsetD16_v2> real, CUdeviceptr to, unsigned short value,
             std::size_t count) {
  return while_here(to, [&] { return real(to, value, count); });
}
CUresult set(DriverFunction<DriverEntry::cuMemsetD16Async> real, CUdeviceptr to,
             unsigned short value, std::size_t count, CUstream stream) {
  return while_here(to, [&] { return real(to, value, count, stream); });
}
CUresult set(DriverFunction<DriverEntry::cuMemsetD32_v2> real, CUdeviceptr to, unsigned value,
             std::size_t count) {
  return while_here(to, [&] { return real(to, value, count); });
}
CUresult set(DriverFunction<DriverEntry::cuMemsetD32Async> real, CUdeviceptr to, unsigned value,
             std::size_t count, CUstream stream) {
  return while_here(to, [&] { return real(to, value, count, stream); });
}

CUresult set_rows(DriverFunction<DriverEntry::cuMemsetD2D8_v2> real, CUdeviceptr to,
                  std::size_t pitch, unsigned char value, std::size_t width, std::size_t height) {
  return while_here(to, [&] { return real(to, pitch, value, width, height); });
}
CUresult set_rows(DriverFunction<DriverEntry::cuMemsetD2D8Async> real, CUdeviceptr to,
                  std::size_t pitch, unsigned char value, std::size_t width, std::size_t height,
                  CUstream stream) {
  return while_here(to, [&] { return real(to, pitch, value, width, height, stream); });
}
CUresult set_rows(DriverFunction<DriverEntry::cuMemsetD2D16_v2> real, CUdeviceptr to,
                  std::size_t pitch, unsigned short value, std::size_t width, std::size_t height) {
  return while_here(to, [&] { return real(to, pitch, value, width, height); });
}
CUresult set_rows(DriverFunction<DriverEntry::cuMemsetD2D16Async> real, CUdeviceptr to,
                  std::size_t pitch, unsigned short value, std::size_t width, std::size_t height,
                  CUstream stream) {
  return while_here(to, [&] { return real(to, pitch, value, width, height, stream); });
}
CUresult set_rows(DriverFunction<DriverEntry::cuMemsetD2D32_v2> real, CUdeviceptr to,
                  std::size_t pitch, unsigned value, std::size_t width, std::size_t height) {
  return while_here(to, [&] { return real(to, pitch, value, width, height); });
}
CUresult set_rows(DriverFunction<DriverEntry::cuMemsetD2D32Async> real, CUdeviceptr to,
                  std::size_t pitch, unsigned value, std::size_t width, std::size_t height,
                  CUstream stream) {
  return while_here(to, [&] { return real(to, pitch, value, width, height, stream); });
}

// Between addresses that may be on any devices: each list of them is there at once.
CUresult copy_peer(DriverFunction<DriverEntry::cuMemcpyPeer> real, CUdeviceptr to,
                   CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                   std::size_t bytes) {
  const AddressResidencyGuard here({&to, 1}, {&from, 1});
  return real(to, to_context, from, from_context, bytes);
}
CUresult copy_peer(DriverFunction<DriverEntry::cuMemcpyPeerAsync> real, CUdeviceptr to,
                   CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                   std::size_t bytes, CUstream stream) {
  const AddressResidencyGuard here({&to, 1}, {&from, 1});
  return real(to, to_context, from, from_context, bytes, stream);
}

CUresult copy_array(DriverFunction<DriverEntry::cuMemcpyDtoA_v2> real, CUarray to,
                    std::size_t offset, CUdeviceptr from, std::size_t bytes) {
  const AddressResidencyGuard here({}, {&from, 1});
  return real(to, offset, from, bytes);
}
CUresult copy_array(DriverFunction<DriverEntry::cuMemcpyAtoD_v2> real, CUdeviceptr to, CUarray from,
                    std::size_t offset, std::size_t bytes) {
  const AddressResidencyGuard here({&to, 1}, {});
  return real(to, from, offset, bytes);
}

// The addresses stand in what is pointed to, so all is there.
CUresult copy_anywhere(DriverFunction<DriverEntry::cuMemcpy3DPeer> real, const void* shape) {
  const AddressResidencyGuard here;
  return real(shape);
}
CUresult copy_anywhere(DriverFunction<DriverEntry::cuMemcpy3DPeerAsync> real, const void* shape,
                       CUstream stream) {
  const AddressResidencyGuard here;
  return real(shape, stream);
}
CUresult copy_anywhere(DriverFunction<DriverEntry::cuMemcpy3DBatchAsync> real, std::size_t count,
                       void* shapes, std::size_t* failed, unsigned long long flags,
                       CUstream stream) {
  const AddressResidencyGuard here;
  return real(count, shapes, failed, flags, stream);
}
CUresult copy_anywhere(DriverFunction<DriverEntry::cuMemcpy3DBatchAsync_v2> real, std::size_t count,
                       void* shapes, unsigned long long flags, CUstream stream) {
  const AddressResidencyGuard here;
  return real(count, shapes, flags, stream);
}

CUresult show_range(DriverFunction<DriverEntry::cuMemGetAddressRange_v2> real, CUdeviceptr* base,
                    std::size_t* bytes, CUdeviceptr address) {
  const auto found = find_swappable(address);
  if (!found || address - found->range.address >= found->range.bytes)
    return real(base, bytes, address);
  if (base != nullptr) *base = found->range.address;
  if (bytes != nullptr) *bytes = found->range.bytes;
  return CUDA_SUCCESS;
}

// As of memory that the driver allocated, whether it is on the device or not.
CUresult show_attribute(DriverFunction<DriverEntry::cuPointerGetAttribute> real, void* data,
                        int attribute, CUdeviceptr address) {
  const auto found = find_swappable(address);
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
      const ResidencyGuard here;
      return real(data, attribute, address);
    }
  }
}

// Nothing but counted, as all calls are.
CUresult pass_on(DriverFunction<DriverEntry::cuStreamQuery> real, CUstream stream) {
  return real(stream);
}
CUresult pass_on(DriverFunction<DriverEntry::cuStreamWaitEvent> real, CUstream stream,
                 CUevent event, unsigned flags) {
  return real(stream, event, flags);
}
CUresult pass_on(DriverFunction<DriverEntry::cuStreamCreate> real, CUstream* stream,
                 unsigned flags) {
  return real(stream, flags);
}
CUresult pass_on(DriverFunction<DriverEntry::cuStreamCreateWithPriority> real, CUstream* stream,
                 unsigned flags, int priority) {
  return real(stream, flags, priority);
}
CUresult pass_on(DriverFunction<DriverEntry::cuEventCreate> real, CUevent* event, unsigned flags) {
  return real(event, flags);
}
CUresult pass_on(DriverFunction<DriverEntry::cuEventQuery> real, CUevent event) {
  return real(event);
}
CUresult pass_on(DriverFunction<DriverEntry::cuEventRecord> real, CUevent event, CUstream stream) {
  return real(event, stream);
}

}  // namespace regatta::sharing::hook
