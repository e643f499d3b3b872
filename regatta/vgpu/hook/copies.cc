// Copies between host and device: each waits until the tenant's part of the link allows it. Long
// ones are cut, so that none is far ahead of its part.
#include <algorithm>

#include "regatta/vgpu/client/pace.h"
#include "regatta/vgpu/hook/exports.h"
#include "regatta/vgpu/hook/memory.h"
#include "regatta/vgpu/hook/swap.h"

namespace regatta::vgpu::hook {
namespace {

constexpr std::uint64_t kLeastPiece = 1 << 20;  // shorter ones cost more than they even out

// Calls `copy(offset, bytes)` for each piece, when it may begin.
template <typename Copy>
CUresult paced(regatta_engine engine, std::size_t bytes, Copy&& copy_there) {
  // Memory may go to the host between two pieces, but not in one.
  const auto copy = [&](std::size_t offset, std::size_t piece) {
    const Here here;
    return copy_there(offset, piece, here);
  };
  const auto place = current_place();
  if (!place || bytes == 0) return copy(0, bytes);
  std::size_t done = 0;
  while (done < bytes) {
    const std::uint64_t rate = engine_rate(place->device, engine);
    const std::size_t piece =
        rate == 0 ? bytes - done : std::min(bytes - done, paced_piece(rate, kLeastPiece));
    give_to_engine(place->device, engine, piece);
    if (const CUresult result = copy(done, piece); result != CUDA_SUCCESS) return result;
    done += piece;
  }
  return CUDA_SUCCESS;
}

bool is_on_device(CUdeviceptr address) {
  if (find_movable(address)) return true;
  unsigned type = 0;
  auto* const ask = driver<Entry::cuPointerGetAttribute>();
  return ask != nullptr && ask(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) == CUDA_SUCCESS &&
         type == CU_MEMORYTYPE_DEVICE;
}

// A copy whose addresses say themselves where they are.
template <typename Copy>
CUresult paced_between(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, Copy&& copy) {
  const bool is_to_device = is_on_device(to);
  if (is_to_device == is_on_device(from)) {
    const Here here;
    return copy(0, bytes, here);
  }
  return paced(is_to_device ? REGATTA_COPY_TO_DEVICE : REGATTA_COPY_FROM_DEVICE, bytes, copy);
}

}  // namespace

CUresult copy_to_device(Driver<Entry::cuMemcpyHtoD_v2> real, CUdeviceptr to, const void* from,
                        std::size_t bytes) {
  return paced(REGATTA_COPY_TO_DEVICE, bytes,
               [&](std::size_t offset, std::size_t piece, const Here& here) {
                 here.writes(to);
                 return real(to + offset, static_cast<const char*>(from) + offset, piece);
               });
}

CUresult copy_to_device(Driver<Entry::cuMemcpyHtoDAsync_v2> real, CUdeviceptr to, const void* from,
                        std::size_t bytes, CUstream stream) {
  if (is_capturing(stream)) return real(to, from, bytes, stream);
  return paced(REGATTA_COPY_TO_DEVICE, bytes,
               [&](std::size_t offset, std::size_t piece, const Here& here) {
                 here.writes(to);
                 return real(to + offset, static_cast<const char*>(from) + offset, piece, stream);
               });
}

CUresult copy_from_device(Driver<Entry::cuMemcpyDtoH_v2> real, void* to, CUdeviceptr from,
                          std::size_t bytes) {
  return paced(REGATTA_COPY_FROM_DEVICE, bytes,
               [&](std::size_t offset, std::size_t piece, const Here&) {
                 return real(static_cast<char*>(to) + offset, from + offset, piece);
               });
}

CUresult copy_from_device(Driver<Entry::cuMemcpyDtoHAsync_v2> real, void* to, CUdeviceptr from,
                          std::size_t bytes, CUstream stream) {
  if (is_capturing(stream)) return real(to, from, bytes, stream);
  return paced(REGATTA_COPY_FROM_DEVICE, bytes,
               [&](std::size_t offset, std::size_t piece, const Here&) {
                 return real(static_cast<char*>(to) + offset, from + offset, piece, stream);
               });
}

CUresult copy_between(Driver<Entry::cuMemcpy> real, CUdeviceptr to, CUdeviceptr from,
                      std::size_t bytes) {
  return paced_between(to, from, bytes,
                       [&](std::size_t offset, std::size_t piece, const Here& here) {
                         here.writes(to);
                         return real(to + offset, from + offset, piece);
                       });
}

CUresult copy_between(Driver<Entry::cuMemcpyAsync> real, CUdeviceptr to, CUdeviceptr from,
                      std::size_t bytes, CUstream stream) {
  if (is_capturing(stream)) return real(to, from, bytes, stream);
  return paced_between(to, from, bytes,
                       [&](std::size_t offset, std::size_t piece, const Here& here) {
                         here.writes(to);
                         return real(to + offset, from + offset, piece, stream);
                       });
}

}  // namespace regatta::vgpu::hook
