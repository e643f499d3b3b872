// Copies and sets.
#include "tests/standin/copy.h"

#include <algorithm>

#include "tests/standin/api.h"

using namespace regatta::standin;

namespace regatta::standin {
namespace {

std::uint64_t span_of(const Side& side, const Copy& copy) {
  return (copy.depth - 1) * side.slice + (copy.height - 1) * side.pitch + copy.width;
}

// The engine depends on what the address is.
CUresult settle(Side& side, const Copy& copy) {
  const auto at = region_of(side.address);
  const bool is_device = at != process().regions.end() && at->second.kind != RegionKind::kHost &&
                         at->second.kind != RegionKind::kRegistered;
  if (side.place == Place::kAny) side.place = is_device ? Place::kDevice : Place::kHost;
  return side.place == Place::kDevice && !is_device_range(side.address, span_of(side, copy))
             ? CUDA_ERROR_INVALID_VALUE
             : CUDA_SUCCESS;
}

void copy_rows(const Copy& copy) {
  for (std::uint64_t z = 0; z < copy.depth; ++z)
    for (std::uint64_t y = 0; y < copy.height; ++y)
      copy_bytes(copy.to.address + z * copy.to.slice + y * copy.to.pitch,
                 copy.from.address + z * copy.from.slice + y * copy.from.pitch, copy.width);
}

template <typename Value>
void fill_rows(CUdeviceptr to, Value value, const Copy& rows) {
  const std::lock_guard lock(process().mutex);
  for (std::uint64_t y = 0; y < rows.height; ++y)
    for_each_part(to + y * rows.to.pitch, rows.width * sizeof value,
                  [&](std::byte* part, std::uint64_t size) {
                    std::fill_n(reinterpret_cast<Value*>(part), size / sizeof value, value);
                  });
}

CUresult finish(CUresult given) {
  return given == CUDA_SUCCESS ? cuStreamSynchronize(nullptr) : given;
}

CUresult check_may_wait() {
  const std::lock_guard lock(process().mutex);
  return check_no_capture();
}

CUresult enqueue_set(CUdeviceptr to, unsigned value, unsigned value_bytes, const Copy& rows,
                     CUstream stream) {
  Work work;
  {
    const std::lock_guard lock(process().mutex);
    CUcontext context = nullptr;
    CUresult result = current_context(&context);
    if (result == CUDA_SUCCESS) result = set_work(to, value, value_bytes, rows, &work);
    if (result != CUDA_SUCCESS) return result;
  }
  return enqueue(stream, std::move(work));
}

CUresult set_now(CUdeviceptr to, unsigned value, unsigned value_bytes, const Copy& rows) {
  if (const CUresult result = check_may_wait(); result != CUDA_SUCCESS) return result;
  return finish(enqueue_set(to, value, value_bytes, rows, nullptr));
}

Copy line(CUdeviceptr to, Place to_place, CUdeviceptr from, Place from_place, std::size_t bytes) {
  return {.to = {to_place, to, 0, 0}, .from = {from_place, from, 0, 0}, .width = bytes};
}

Copy rows_of(std::size_t width, std::size_t height = 1, std::size_t pitch = 0) {
  return {.to = {.pitch = pitch}, .width = width, .height = height};
}

CUdeviceptr address_of(const void* memory) {
  return reinterpret_cast<CUdeviceptr>(memory);
}

}  // namespace

CUresult copy_work(const Copy& wanted, Work* work) {
  Copy copy = wanted;
  const bool is_empty = copy.width == 0 || copy.height == 0 || copy.depth == 0;
  if (!is_empty) {
    CUresult result = settle(copy.to, copy);
    if (result == CUDA_SUCCESS) result = settle(copy.from, copy);
    if (result != CUDA_SUCCESS) return result;
  }
  const Engine engine = copy.to.place == copy.from.place  ? Engine::kWithin
                        : copy.to.place == Place::kDevice ? Engine::kToDevice
                                                          : Engine::kToHost;
  *work = {.kind = OpKind::kCopy,
           .engine = engine,
           .bytes = copy.width * copy.height * copy.depth,
           .action = [copy] { copy_rows(copy); },
           .node_type = CU_GRAPH_NODE_TYPE_MEMCPY};
  return CUDA_SUCCESS;
}

CUresult set_work(CUdeviceptr to, unsigned value, unsigned value_bytes, const Copy& rows,
                  Work* work) {
  const std::uint64_t row = rows.width * value_bytes;
  if ((value_bytes != 1 && value_bytes != 2 && value_bytes != 4) || to % value_bytes != 0 ||
      rows.to.pitch % value_bytes != 0 || (rows.height > 1 && rows.to.pitch < row))
    return CUDA_ERROR_INVALID_VALUE;
  if (row > 0 && rows.height > 0 && !is_device_range(to, (rows.height - 1) * rows.to.pitch + row))
    return CUDA_ERROR_INVALID_VALUE;
  *work = {.kind = OpKind::kCopy,
           .engine = Engine::kWithin,
           .bytes = row * rows.height,
           .action =
               [=] {
                 if (value_bytes == 1) fill_rows(to, static_cast<std::uint8_t>(value), rows);
                 if (value_bytes == 2) fill_rows(to, static_cast<std::uint16_t>(value), rows);
                 if (value_bytes == 4) fill_rows(to, value, rows);
               },
           .node_type = CU_GRAPH_NODE_TYPE_MEMSET};
  return CUDA_SUCCESS;
}

CUresult enqueue_copy(const Copy& copy, CUstream stream) {
  Work work;
  {
    const std::lock_guard lock(process().mutex);
    CUcontext context = nullptr;
    CUresult result = current_context(&context);
    if (result == CUDA_SUCCESS) result = copy_work(copy, &work);
    if (result != CUDA_SUCCESS || work.bytes == 0) return result;
  }
  return enqueue(stream, std::move(work));
}

CUresult copy_now(const Copy& copy) {
  if (const CUresult result = check_may_wait(); result != CUDA_SUCCESS) return result;
  return finish(enqueue_copy(copy, nullptr));
}

}  // namespace regatta::standin

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
extern "C" {

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return copy_now(line(to, Place::kAny, from, Place::kAny, bytes));
}
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, std::size_t bytes) {
  return copy_now(line(to, Place::kDevice, address_of(from), Place::kHost, bytes));
}
CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, std::size_t bytes) {
  return copy_now(line(address_of(to), Place::kHost, from, Place::kDevice, bytes));
}
CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return copy_now(line(to, Place::kDevice, from, Place::kDevice, bytes));
}
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return enqueue_copy(line(to, Place::kAny, from, Place::kAny, bytes), stream);
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t bytes,
                              CUstream stream) {
  return enqueue_copy(line(to, Place::kDevice, address_of(from), Place::kHost, bytes), stream);
}
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return enqueue_copy(line(address_of(to), Place::kHost, from, Place::kDevice, bytes), stream);
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                              CUstream stream) {
  return enqueue_copy(line(to, Place::kDevice, from, Place::kDevice, bytes), stream);
}

// Addresses are unique in a process: the contexts only have to be some.
CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                           CUcontext from_context, std::size_t bytes, CUstream stream) {
  {
    const std::lock_guard lock(process().mutex);
    if (!process().contexts.contains(to_context) || !process().contexts.contains(from_context))
      return CUDA_ERROR_INVALID_CONTEXT;
  }
  return cuMemcpyDtoDAsync_v2(to, from, bytes, stream);
}
CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                      CUcontext from_context, std::size_t bytes) {
  if (const CUresult result = check_may_wait(); result != CUDA_SUCCESS) return result;
  return finish(cuMemcpyPeerAsync(to, to_context, from, from_context, bytes, nullptr));
}

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, std::size_t count) {
  return set_now(to, value, 1, rows_of(count));
}
CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, std::size_t count) {
  return set_now(to, value, 2, rows_of(count));
}
CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, std::size_t count) {
  return set_now(to, value, 4, rows_of(count));
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t count, CUstream stream) {
  return enqueue_set(to, value, 1, rows_of(count), stream);
}
CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, std::size_t count,
                          CUstream stream) {
  return enqueue_set(to, value, 2, rows_of(count), stream);
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, std::size_t count, CUstream stream) {
  return enqueue_set(to, value, 4, rows_of(count), stream);
}
CUresult cuMemsetD2D8_v2(CUdeviceptr to, std::size_t pitch, unsigned char value, std::size_t width,
                         std::size_t height) {
  return set_now(to, value, 1, rows_of(width, height, pitch));
}
CUresult cuMemsetD2D16_v2(CUdeviceptr to, std::size_t pitch, unsigned short value,
                          std::size_t width, std::size_t height) {
  return set_now(to, value, 2, rows_of(width, height, pitch));
}
CUresult cuMemsetD2D32_v2(CUdeviceptr to, std::size_t pitch, unsigned value, std::size_t width,
                          std::size_t height) {
  return set_now(to, value, 4, rows_of(width, height, pitch));
}
CUresult cuMemsetD2D8Async(CUdeviceptr to, std::size_t pitch, unsigned char value,
                           std::size_t width, std::size_t height, CUstream stream) {
  return enqueue_set(to, value, 1, rows_of(width, height, pitch), stream);
}
CUresult cuMemsetD2D16Async(CUdeviceptr to, std::size_t pitch, unsigned short value,
                            std::size_t width, std::size_t height, CUstream stream) {
  return enqueue_set(to, value, 2, rows_of(width, height, pitch), stream);
}
CUresult cuMemsetD2D32Async(CUdeviceptr to, std::size_t pitch, unsigned value, std::size_t width,
                            std::size_t height, CUstream stream) {
  return enqueue_set(to, value, 4, rows_of(width, height, pitch), stream);
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
