// Copies between host and device: each waits until the tenant's part of the link allows it. Long
// ones are cut, so that none is far ahead of its part.
#include <algorithm>

#include "regatta/gpu/sharing/internal/client/token_bucket.h"
#include "regatta/gpu/sharing/internal/hook/exports.h"
#include "regatta/gpu/sharing/internal/hook/memory.h"
#include "regatta/gpu/sharing/internal/hook/swap.h"

namespace regatta::sharing::hook {
namespace {

constexpr std::uint64_t kLeastPiece = 1 << 20;  // shorter ones cost more than they even out

// Calls `copy(first, count)` for pieces of `units` of `unit_bytes` each, when they may begin.
template <typename Copy>
CUresult paced(regatta_engine engine, std::size_t unit_bytes, std::size_t units,
               Copy&& copy_there) {
  // Memory may go to the host between two pieces, but not in one.
  const auto copy = [&](std::size_t first, std::size_t count) {
    const ResidencyGuard here;
    return copy_there(first, count, here);
  };
  const auto place = current_device_context();
  if (!place || unit_bytes == 0 || units == 0) return copy(0, units);
  std::size_t done = 0;
  while (done < units) {
    const std::uint64_t rate = engine_rate(place->device, engine);
    const std::size_t most =
        std::max<std::size_t>(1, rate_limited_piece(rate, kLeastPiece) / unit_bytes);
    const std::size_t piece = rate == 0 ? units - done : std::min(units - done, most);
    acquire_engine(place->device, engine, piece * unit_bytes);
    if (const CUresult result = copy(done, piece); result != CUDA_SUCCESS) return result;
    done += piece;
  }
  return CUDA_SUCCESS;
}

template <typename Copy>
CUresult paced(regatta_engine engine, std::size_t bytes, Copy&& copy) {
  return paced(engine, 1, bytes, copy);
}

bool is_on_device(CUdeviceptr address) {
  if (find_swappable(address)) return true;
  unsigned type = 0;
  auto* const ask = driver<DriverEntry::cuPointerGetAttribute>();
  return ask != nullptr && ask(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) == CUDA_SUCCESS &&
         type == CU_MEMORYTYPE_DEVICE;
}

// Below, `stream` is that of a call that has one.
template <typename Real, typename... Stream>
CUresult paced_to_device(Real real, CUdeviceptr to, const void* from, std::size_t bytes,
                         Stream... stream) {
  return paced(REGATTA_COPY_TO_DEVICE, bytes,
               [&](std::size_t done, std::size_t piece, const ResidencyGuard& here) {
                 here.writes(to);
                 return real(to + done, static_cast<const char*>(from) + done, piece, stream...);
               });
}

template <typename Real, typename... Stream>
CUresult paced_from_device(Real real, void* to, CUdeviceptr from, std::size_t bytes,
                           Stream... stream) {
  return paced(REGATTA_COPY_FROM_DEVICE, bytes,
               [&](std::size_t done, std::size_t piece, const ResidencyGuard&) {
                 return real(static_cast<char*>(to) + done, from + done, piece, stream...);
               });
}

template <typename Real, typename... Stream>
CUresult paced_to_array(Real real, CUarray to, std::size_t offset, const void* from,
                        std::size_t bytes, Stream... stream) {
  return paced(REGATTA_COPY_TO_DEVICE, bytes,
               [&](std::size_t done, std::size_t piece, const ResidencyGuard&) {
                 return real(to, offset + done, static_cast<const char*>(from) + done, piece,
                             stream...);
               });
}

template <typename Real, typename... Stream>
CUresult paced_from_array(Real real, void* to, CUarray from, std::size_t offset, std::size_t bytes,
                          Stream... stream) {
  return paced(REGATTA_COPY_FROM_DEVICE, bytes,
               [&](std::size_t done, std::size_t piece, const ResidencyGuard&) {
                 return real(static_cast<char*>(to) + done, from, offset + done, piece, stream...);
               });
}

// A copy whose addresses say themselves where they are.
template <typename Real, typename... Stream>
CUresult paced_between(Real real, CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                       Stream... stream) {
  const auto copy = [&](std::size_t done, std::size_t piece, const ResidencyGuard& here) {
    here.writes(to);
    return real(to + done, from + done, piece, stream...);
  };
  const bool is_to_device = is_on_device(to);
  if (is_to_device == is_on_device(from)) return copy(0, bytes, ResidencyGuard());
  return paced(is_to_device ? REGATTA_COPY_TO_DEVICE : REGATTA_COPY_FROM_DEVICE, bytes, copy);
}

bool is_on_device(unsigned type, CUdeviceptr address) {
  if (type == CU_MEMORYTYPE_UNIFIED) return is_on_device(address);
  return type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_ARRAY;
}

// Which way a copy of rows goes; none: not between host and device.
template <typename Shape>
std::optional<regatta_engine> direction_of(const Shape& shape) {
  const bool is_to_device = is_on_device(shape.dstMemoryType, shape.dstDevice);
  if (is_to_device == is_on_device(shape.srcMemoryType, shape.srcDevice)) return std::nullopt;
  return is_to_device ? REGATTA_COPY_TO_DEVICE : REGATTA_COPY_FROM_DEVICE;
}

// Where it writes stands in what `shape` points to, so all counts as written.
template <typename Shape, typename Copy>
CUresult copy_whole(const Shape* shape, const Copy& copy) {
  const ResidencyGuard here;
  here.launches();
  return copy(shape);
}

// A shape is cut into rows, or into planes where it has several.
struct Units {
  std::size_t bytes = 0;  // of each
  std::size_t count = 0;
};

Units units_of(const CUDA_MEMCPY2D& shape) {
  return {shape.WidthInBytes, shape.Height};
}
Units units_of(const CUDA_MEMCPY3D& shape) {
  if (shape.Depth == 1) return {shape.WidthInBytes, shape.Height};
  return {shape.WidthInBytes * shape.Height, shape.Depth};
}

template <typename Shape>
Shape rows_of(Shape shape, std::size_t first, std::size_t count) {
  shape.srcY += first;
  shape.dstY += first;
  shape.Height = count;
  return shape;
}
CUDA_MEMCPY2D part_of(const CUDA_MEMCPY2D& shape, std::size_t first, std::size_t count) {
  return rows_of(shape, first, count);
}
CUDA_MEMCPY3D part_of(const CUDA_MEMCPY3D& shape, std::size_t first, std::size_t count) {
  if (shape.Depth == 1) return rows_of(shape, first, count);
  CUDA_MEMCPY3D planes = shape;
  planes.srcZ += first;
  planes.dstZ += first;
  planes.Depth = count;
  return planes;
}

template <typename Shape, typename Copy>
CUresult paced_shape(const Shape* shape, const Copy& copy) {
  const auto direction = shape == nullptr ? std::nullopt : direction_of(*shape);
  if (!direction) return copy_whole(shape, copy);
  const Units units = units_of(*shape);
  return paced(*direction, units.bytes, units.count,
               [&](std::size_t first, std::size_t count, const ResidencyGuard& here) {
                 const Shape part = part_of(*shape, first, count);
                 here.launches();
                 return copy(&part);
               });
}

// A batch is one call: it waits until all of it may begin.
void pace_batch(const CUdeviceptr* to, const CUdeviceptr* from, const std::size_t* bytes,
                std::size_t count) {
  const auto place = current_device_context();
  if (!place || to == nullptr || from == nullptr || bytes == nullptr) return;
  std::size_t there = 0;
  std::size_t back = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_to_device = is_on_device(to[i]);
    if (is_to_device != is_on_device(from[i])) (is_to_device ? there : back) += bytes[i];
  }
  if (there != 0) acquire_engine(place->device, REGATTA_COPY_TO_DEVICE, there);
  if (back != 0) acquire_engine(place->device, REGATTA_COPY_FROM_DEVICE, back);
}

}  // namespace

CUresult copy_to_device(DriverFunction<DriverEntry::cuMemcpyHtoD_v2> real, CUdeviceptr to,
                        const void* from, std::size_t bytes) {
  return paced_to_device(real, to, from, bytes);
}

CUresult copy_to_device(DriverFunction<DriverEntry::cuMemcpyHtoDAsync_v2> real, CUdeviceptr to,
                        const void* from, std::size_t bytes, CUstream stream) {
  if (is_capturing(stream)) return real(to, from, bytes, stream);
  return paced_to_device(real, to, from, bytes, stream);
}

CUresult copy_from_device(DriverFunction<DriverEntry::cuMemcpyDtoH_v2> real, void* to,
                          CUdeviceptr from, std::size_t bytes) {
  return paced_from_device(real, to, from, bytes);
}

CUresult copy_from_device(DriverFunction<DriverEntry::cuMemcpyDtoHAsync_v2> real, void* to,
                          CUdeviceptr from, std::size_t bytes, CUstream stream) {
  if (is_capturing(stream)) return real(to, from, bytes, stream);
  return paced_from_device(real, to, from, bytes, stream);
}

CUresult copy_between(DriverFunction<DriverEntry::cuMemcpy> real, CUdeviceptr to, CUdeviceptr from,
                      std::size_t bytes) {
  return paced_between(real, to, from, bytes);
}

CUresult copy_between(DriverFunction<DriverEntry::cuMemcpyAsync> real, CUdeviceptr to,
                      CUdeviceptr from, std::size_t bytes, CUstream stream) {
  if (is_capturing(stream)) return real(to, from, bytes, stream);
  return paced_between(real, to, from, bytes, stream);
}

CUresult copy_rows(DriverFunction<DriverEntry::cuMemcpy2D_v2> real, const CUDA_MEMCPY2D* shape) {
  return paced_shape(shape, real);
}

CUresult copy_rows(DriverFunction<DriverEntry::cuMemcpy2DAsync_v2> real, const CUDA_MEMCPY2D* shape,
                   CUstream stream) {
  const auto copy = [&](const CUDA_MEMCPY2D* rows) { return real(rows, stream); };
  return is_capturing(stream) ? copy_whole(shape, copy) : paced_shape(shape, copy);
}

CUresult copy_box(DriverFunction<DriverEntry::cuMemcpy3D_v2> real, const CUDA_MEMCPY3D* shape) {
  return paced_shape(shape, real);
}

CUresult copy_box(DriverFunction<DriverEntry::cuMemcpy3DAsync_v2> real, const CUDA_MEMCPY3D* shape,
                  CUstream stream) {
  const auto copy = [&](const CUDA_MEMCPY3D* planes) { return real(planes, stream); };
  return is_capturing(stream) ? copy_whole(shape, copy) : paced_shape(shape, copy);
}

CUresult copy_to_array(DriverFunction<DriverEntry::cuMemcpyHtoA_v2> real, CUarray to,
                       std::size_t offset, const void* from, std::size_t bytes) {
  return paced_to_array(real, to, offset, from, bytes);
}

CUresult copy_to_array(DriverFunction<DriverEntry::cuMemcpyHtoAAsync_v2> real, CUarray to,
                       std::size_t offset, const void* from, std::size_t bytes, CUstream stream) {
  if (is_capturing(stream)) return real(to, offset, from, bytes, stream);
  return paced_to_array(real, to, offset, from, bytes, stream);
}

CUresult copy_from_array(DriverFunction<DriverEntry::cuMemcpyAtoH_v2> real, void* to, CUarray from,
                         std::size_t offset, std::size_t bytes) {
  return paced_from_array(real, to, from, offset, bytes);
}

CUresult copy_from_array(DriverFunction<DriverEntry::cuMemcpyAtoHAsync_v2> real, void* to,
                         CUarray from, std::size_t offset, std::size_t bytes, CUstream stream) {
  if (is_capturing(stream)) return real(to, from, offset, bytes, stream);
  return paced_from_array(real, to, from, offset, bytes, stream);
}

CUresult copy_batch(DriverFunction<DriverEntry::cuMemcpyBatchAsync> real, CUdeviceptr* to,
                    CUdeviceptr* from, std::size_t* bytes, std::size_t count,
                    CUmemcpyAttributes* attributes, std::size_t* firsts,
                    std::size_t attribute_count, std::size_t* failed, CUstream stream) {
  if (!is_capturing(stream)) pace_batch(to, from, bytes, count);
  const AddressResidencyGuard here({to, to == nullptr ? 0 : count},
                                   {from, from == nullptr ? 0 : count});
  return real(to, from, bytes, count, attributes, firsts, attribute_count, failed, stream);
}

CUresult copy_batch(DriverFunction<DriverEntry::cuMemcpyBatchAsync_v2> real, CUdeviceptr* to,
                    CUdeviceptr* from, std::size_t* bytes, std::size_t count,
                    CUmemcpyAttributes* attributes, std::size_t* firsts,
                    std::size_t attribute_count, CUstream stream) {
  if (!is_capturing(stream)) pace_batch(to, from, bytes, count);
  const AddressResidencyGuard here({to, to == nullptr ? 0 : count},
                                   {from, from == nullptr ? 0 : count});
  return real(to, from, bytes, count, attributes, firsts, attribute_count, stream);
}

}  // namespace regatta::sharing::hook
