// Copies of planes and boxes, also of arrays.
#include <bit>

#include "tests/standin/api.h"
#include "tests/standin/array.h"
#include "tests/standin/copy.h"

using namespace regatta::standin;

namespace regatta::standin {
namespace {

// One end of a copy as its description has it.
struct End {
  std::size_t x = 0;
  std::size_t y = 0;
  std::size_t z = 0;
  unsigned type = 0;
  CUdeviceptr host = 0;
  CUdeviceptr device = 0;
  CUarray array = nullptr;
  std::size_t pitch = 0;
  std::size_t height = 0;
};

CUresult side_of(const End& end, const CUDA_MEMCPY3D& box, Side* side) {
  switch (end.type) {
    case CU_MEMORYTYPE_HOST:
      *side = {Place::kHost, end.host, end.pitch, end.pitch * end.height};
      break;
    case CU_MEMORYTYPE_DEVICE:
    case CU_MEMORYTYPE_UNIFIED:
      *side = {end.type == CU_MEMORYTYPE_DEVICE ? Place::kDevice : Place::kAny, end.device,
               end.pitch, end.pitch * end.height};
      break;
    case CU_MEMORYTYPE_ARRAY: {
      if (!is_array(end.array)) return CUDA_ERROR_INVALID_HANDLE;
      const std::size_t rows = end.array->shape.Height;
      *side = {Place::kDevice, end.array->address, end.array->pitch,
               end.array->pitch * (rows == 0 ? 1 : rows)};
      if (end.y + box.Height > (rows == 0 ? 1 : rows)) return CUDA_ERROR_INVALID_VALUE;
      break;
    }
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  // Rows must not run into each other.
  if ((box.Height > 1 || box.Depth > 1 || side->place == Place::kDevice) && side->pitch != 0 &&
      side->pitch < end.x + box.WidthInBytes)
    return CUDA_ERROR_INVALID_VALUE;
  if (box.Height > 1 && side->pitch == 0) return CUDA_ERROR_INVALID_VALUE;
  side->address += end.x + end.y * side->pitch + end.z * side->slice;
  return CUDA_SUCCESS;
}

CUresult make_copy(const CUDA_MEMCPY3D* box, Copy* copy) {
  if (box == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  CUcontext context = nullptr;
  const CUresult result = current_context(&context);
  return result == CUDA_SUCCESS ? copy_box(*box, copy) : result;
}

CUresult run_now(const CUDA_MEMCPY3D* box) {
  Copy copy;
  const CUresult result = make_copy(box, &copy);
  return result == CUDA_SUCCESS ? copy_now(copy) : result;
}

CUresult run(const CUDA_MEMCPY3D* box, CUstream stream) {
  Copy copy;
  const CUresult result = make_copy(box, &copy);
  return result == CUDA_SUCCESS ? enqueue_copy(copy, stream) : result;
}

// Addresses are unique in a process: the contexts of device memory only have to be some.
CUresult box_of_peers(const CUDA_MEMCPY3D_PEER* peers, CUDA_MEMCPY3D* box) {
  if (peers == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  const auto is_right = [](unsigned type, CUcontext context) {
    return type != CU_MEMORYTYPE_DEVICE || process().contexts.contains(context);
  };
  if (!is_right(peers->srcMemoryType, peers->srcContext) ||
      !is_right(peers->dstMemoryType, peers->dstContext))
    return CUDA_ERROR_INVALID_CONTEXT;
  *box = std::bit_cast<CUDA_MEMCPY3D>(*peers);
  return CUDA_SUCCESS;
}

CUdeviceptr address_of(const void* memory) {
  return reinterpret_cast<CUdeviceptr>(memory);
}

// A row between an array, whose offset is in bytes of its first row, and other memory.
CUDA_MEMCPY3D row_to_array(CUarray array, std::size_t offset, std::size_t bytes) {
  CUDA_MEMCPY3D box{};
  box.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  box.dstArray = array;
  box.dstXInBytes = offset;
  box.WidthInBytes = bytes;
  box.Height = 1;
  box.Depth = 1;
  return box;
}
CUDA_MEMCPY3D row_of_array(CUarray array, std::size_t offset, std::size_t bytes) {
  CUDA_MEMCPY3D box{};
  box.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  box.srcArray = array;
  box.srcXInBytes = offset;
  box.WidthInBytes = bytes;
  box.Height = 1;
  box.Depth = 1;
  return box;
}

CUDA_MEMCPY3D host_to_array(CUarray array, std::size_t offset, const void* from,
                            std::size_t bytes) {
  CUDA_MEMCPY3D box = row_to_array(array, offset, bytes);
  box.srcMemoryType = CU_MEMORYTYPE_HOST;
  box.srcHost = from;
  return box;
}
CUDA_MEMCPY3D array_to_host(void* to, CUarray array, std::size_t offset, std::size_t bytes) {
  CUDA_MEMCPY3D box = row_of_array(array, offset, bytes);
  box.dstMemoryType = CU_MEMORYTYPE_HOST;
  box.dstHost = to;
  return box;
}

}  // namespace

CUresult copy_box(const CUDA_MEMCPY3D& box, Copy* copy) {
  const End from{
      box.srcXInBytes, box.srcY,     box.srcZ,     box.srcMemoryType, address_of(box.srcHost),
      box.srcDevice,   box.srcArray, box.srcPitch, box.srcHeight};
  const End to{
      box.dstXInBytes, box.dstY,     box.dstZ,     box.dstMemoryType, address_of(box.dstHost),
      box.dstDevice,   box.dstArray, box.dstPitch, box.dstHeight};
  *copy = {.width = box.WidthInBytes, .height = box.Height, .depth = box.Depth};
  if (const CUresult result = side_of(from, box, &copy->from); result != CUDA_SUCCESS)
    return result;
  return side_of(to, box, &copy->to);
}

CUDA_MEMCPY3D box_of(const CUDA_MEMCPY2D& plane) {
  CUDA_MEMCPY3D box{};
  box.srcXInBytes = plane.srcXInBytes;
  box.srcY = plane.srcY;
  box.srcMemoryType = plane.srcMemoryType;
  box.srcHost = plane.srcHost;
  box.srcDevice = plane.srcDevice;
  box.srcArray = plane.srcArray;
  box.srcPitch = plane.srcPitch;
  box.dstXInBytes = plane.dstXInBytes;
  box.dstY = plane.dstY;
  box.dstMemoryType = plane.dstMemoryType;
  box.dstHost = plane.dstHost;
  box.dstDevice = plane.dstDevice;
  box.dstArray = plane.dstArray;
  box.dstPitch = plane.dstPitch;
  box.WidthInBytes = plane.WidthInBytes;
  box.Height = plane.Height;
  box.Depth = 1;
  return box;
}

}  // namespace regatta::standin

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
extern "C" {

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* plane) {
  if (plane == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_MEMCPY3D box = box_of(*plane);
  return run_now(&box);
}
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* plane) {
  return cuMemcpy2D_v2(plane);
}
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* plane, CUstream stream) {
  if (plane == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_MEMCPY3D box = box_of(*plane);
  return run(&box, stream);
}
CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* box) {
  return run_now(box);
}
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* box, CUstream stream) {
  return run(box, stream);
}

CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* peers) {
  CUDA_MEMCPY3D box;
  const CUresult result = box_of_peers(peers, &box);
  return result == CUDA_SUCCESS ? run_now(&box) : result;
}
CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* peers, CUstream stream) {
  CUDA_MEMCPY3D box;
  const CUresult result = box_of_peers(peers, &box);
  return result == CUDA_SUCCESS ? run(&box, stream) : result;
}

CUresult cuMemcpyHtoA_v2(CUarray to, std::size_t offset, const void* from, std::size_t bytes) {
  const CUDA_MEMCPY3D box = host_to_array(to, offset, from, bytes);
  return run_now(&box);
}
CUresult cuMemcpyAtoH_v2(void* to, CUarray from, std::size_t offset, std::size_t bytes) {
  const CUDA_MEMCPY3D box = array_to_host(to, from, offset, bytes);
  return run_now(&box);
}
CUresult cuMemcpyHtoAAsync_v2(CUarray to, std::size_t offset, const void* from, std::size_t bytes,
                              CUstream stream) {
  const CUDA_MEMCPY3D box = host_to_array(to, offset, from, bytes);
  return run(&box, stream);
}
CUresult cuMemcpyAtoHAsync_v2(void* to, CUarray from, std::size_t offset, std::size_t bytes,
                              CUstream stream) {
  const CUDA_MEMCPY3D box = array_to_host(to, from, offset, bytes);
  return run(&box, stream);
}
CUresult cuMemcpyDtoA_v2(CUarray to, std::size_t offset, CUdeviceptr from, std::size_t bytes) {
  CUDA_MEMCPY3D box = row_to_array(to, offset, bytes);
  box.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  box.srcDevice = from;
  return run_now(&box);
}
CUresult cuMemcpyAtoD_v2(CUdeviceptr to, CUarray from, std::size_t offset, std::size_t bytes) {
  CUDA_MEMCPY3D box = row_of_array(from, offset, bytes);
  box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  box.dstDevice = to;
  return run_now(&box);
}
CUresult cuMemcpyAtoA_v2(CUarray to, std::size_t to_offset, CUarray from, std::size_t from_offset,
                         std::size_t bytes) {
  CUDA_MEMCPY3D box = row_to_array(to, to_offset, bytes);
  box.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  box.srcArray = from;
  box.srcXInBytes = from_offset;
  return run_now(&box);
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
