// Arrays: they take memory and cannot be used for anything yet.
#include <algorithm>
#include <map>

#include "tests/standin/api.h"
#include "tests/standin/process.h"

using namespace regatta::standin;

namespace {

struct Array {
  CUcontext context = nullptr;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

std::map<std::uint64_t, Array>& arrays() {
  static auto* const all = new std::map<std::uint64_t, Array>;
  return *all;
}

// Of one element, 0 when there is no such element.
std::uint64_t element_bytes(int format, unsigned channels) {
  static const std::map<int, std::uint64_t> kFormats = {{1, 1}, {2, 2},  {3, 4},    {8, 1},
                                                        {9, 2}, {10, 4}, {0x10, 2}, {0x20, 4}};
  const auto at = kFormats.find(format);
  if (at == kFormats.end() || (channels != 1 && channels != 2 && channels != 4)) return 0;
  return at->second * channels;
}

template <typename Handle>
CUresult create(Handle* handle, CUDA_ARRAY3D_DESCRIPTOR wanted, unsigned levels) {
  const std::uint64_t element = element_bytes(wanted.Format, wanted.NumChannels);
  if (handle == nullptr || element == 0 || wanted.Width == 0 || levels == 0)
    return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  CUcontext context = nullptr;
  if (const CUresult result = current_context(&context); result != CUDA_SUCCESS) return result;
  std::uint64_t bytes = 0;
  const bool is_layered = (wanted.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
  for (unsigned level = 0; level < levels; ++level) {
    bytes += element * wanted.Width * std::max<std::uint64_t>(wanted.Height, 1) *
             std::max<std::uint64_t>(wanted.Depth, 1);
    wanted.Width = std::max<std::uint64_t>(wanted.Width / 2, 1);
    wanted.Height /= 2;
    if (!is_layered) wanted.Depth /= 2;
  }
  bytes = (bytes + Arena::kBlock - 1) / Arena::kBlock * Arena::kBlock;
  const auto offset = context->device->arena.allocate(bytes);
  if (!offset) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::uint64_t number = context->device->arena.address(*offset);
  arrays()[number] = {context, *offset, bytes};
  *handle = reinterpret_cast<Handle>(number);
  return CUDA_SUCCESS;
}

template <typename Handle>
CUresult destroy(Handle handle) {
  const std::lock_guard lock(process().mutex);
  const auto at = arrays().find(reinterpret_cast<std::uint64_t>(handle));
  if (at == arrays().end()) return CUDA_ERROR_INVALID_HANDLE;
  at->second.context->device->arena.free(at->second.offset, at->second.bytes);
  arrays().erase(at);
  return CUDA_SUCCESS;
}

}  // namespace

namespace regatta::standin {

void free_arrays(CUcontext context) {
  std::erase_if(arrays(), [&](const auto& entry) {
    const Array& array = entry.second;
    if (array.context != context) return false;
    context->device->arena.free(array.offset, array.bytes);
    return true;
  });
}

}  // namespace regatta::standin

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
extern "C" {

CUresult cuArrayCreate_v2(CUarray* array, const CUDA_ARRAY_DESCRIPTOR* wanted) {
  if (wanted == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return create(array, {wanted->Width, wanted->Height, 0, wanted->Format, wanted->NumChannels, 0},
                1);
}

CUresult cuArray3DCreate_v2(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* wanted) {
  return wanted == nullptr ? CUDA_ERROR_INVALID_VALUE : create(array, *wanted, 1);
}

CUresult cuArrayDestroy(CUarray array) {
  return destroy(array);
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray* array, const CUDA_ARRAY3D_DESCRIPTOR* wanted,
                                unsigned levels) {
  return wanted == nullptr ? CUDA_ERROR_INVALID_VALUE : create(array, *wanted, levels);
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray array) {
  return destroy(array);
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
