// Arrays and mipmapped arrays. The driver does not say what one takes: counted are its elements, in
// whole blocks.
#include <algorithm>

#include "regatta/gpu/sharing/internal/hook/exports.h"
#include "regatta/gpu/sharing/internal/hook/memory.h"

namespace regatta::sharing::hook {
namespace {

// Bytes of one channel, by CU_AD_FORMAT_*.
std::uint64_t bytes_of_format(int format) {
  constexpr int kTwoBytes[] = {2, 9, 0x10};
  constexpr int kFourBytes[] = {3, 0x0a, CU_AD_FORMAT_FLOAT};
  if (format == CU_AD_FORMAT_UNSIGNED_INT8 || format == 8) return 1;
  if (std::ranges::find(kTwoBytes, format) != std::end(kTwoBytes)) return 2;
  if (std::ranges::find(kFourBytes, format) != std::end(kFourBytes)) return 4;
  return 4;  // packed and normalized ones: none has more for a channel
}

// ~0 where it is more than 64 bits, which nobody may have.
std::uint64_t bytes_of(const CUDA_ARRAY3D_DESCRIPTOR& array) {
  std::uint64_t bytes = bytes_of_format(array.Format);
  for (const std::uint64_t factor :
       {std::uint64_t{array.NumChannels}, std::uint64_t{array.Width},
        std::max<std::uint64_t>(array.Height, 1), std::max<std::uint64_t>(array.Depth, 1)})
    bytes = saturated_product(bytes, factor);
  return bytes;
}
std::uint64_t bytes_of(const CUDA_ARRAY_DESCRIPTOR& array) {
  return bytes_of(
      CUDA_ARRAY3D_DESCRIPTOR{array.Width, array.Height, 0, array.Format, array.NumChannels, 0});
}
std::uint64_t bytes_of(const CUDA_ARRAY_DESCRIPTOR_v1& array) {
  return bytes_of(
      CUDA_ARRAY3D_DESCRIPTOR{array.Width, array.Height, 0, array.Format, array.NumChannels, 0});
}
std::uint64_t bytes_of(const CUDA_ARRAY3D_DESCRIPTOR_v1& array) {
  return bytes_of(CUDA_ARRAY3D_DESCRIPTOR{array.Width, array.Height, array.Depth, array.Format,
                                          array.NumChannels, array.Flags});
}

// Each level has half of the one before it in each direction; layers and faces stay as many.
std::uint64_t bytes_of_levels(CUDA_ARRAY3D_DESCRIPTOR array, unsigned levels) {
  std::uint64_t bytes = 0;
  for (unsigned level = 0; level < levels; ++level) {
    bytes = saturated_sum(bytes, bytes_of(array));
    const bool is_layered = (array.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
    // The driver makes no more levels, however many it is asked for.
    if (array.Width <= 1 && array.Height <= 1 && (is_layered || array.Depth <= 1)) break;
    array.Width = std::max<std::size_t>(array.Width / 2, 1);
    array.Height /= 2;
    if (!is_layered) array.Depth /= 2;
  }
  return bytes;
}

template <typename Handle, typename RequestType>
CUresult create(Handle* handle, std::uint64_t bytes, RequestType&& ask) {
  const auto place = current_device_context();
  if (!place || handle == nullptr) return ask();
  if (!account_context(*place)) return CUDA_ERROR_OUT_OF_MEMORY;
  AccountingGuard busy;
  const auto granted = reserve(place->device, whole_blocks(bytes), &busy);
  if (!granted) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = ask();
  if (result != CUDA_SUCCESS) {
    release(place->device, *granted);
    return result;
  }
  allocations().put({.address = reinterpret_cast<std::uint64_t>(*handle),
                     .charged = *granted,
                     .context = place->context,
                     .device = place->device});
  return result;
}

template <typename Handle, typename RequestType>
CUresult destroy(Handle handle, RequestType&& ask) {
  const AccountingGuard busy;
  const auto known = allocations().extract(reinterpret_cast<std::uint64_t>(handle));
  const CUresult result = ask();
  if (known && result != CUDA_SUCCESS) allocations().put(*known);
  if (known && result == CUDA_SUCCESS) release_bytes(*known);
  return result;
}

}  // namespace

CUresult create_array(DriverFunction<DriverEntry::cuArrayCreate_v2> real, CUarray* array,
                      const CUDA_ARRAY_DESCRIPTOR* wanted) {
  return create(array, wanted == nullptr ? 0 : bytes_of(*wanted),
                [&] { return real(array, wanted); });
}

CUresult create_array(DriverFunction<DriverEntry::cuArray3DCreate_v2> real, CUarray* array,
                      const CUDA_ARRAY3D_DESCRIPTOR* wanted) {
  return create(array, wanted == nullptr ? 0 : bytes_of(*wanted),
                [&] { return real(array, wanted); });
}

CUresult create_array(DriverFunction<DriverEntry::cuArrayCreate> real, CUarray* array,
                      const CUDA_ARRAY_DESCRIPTOR_v1* wanted) {
  return create(array, wanted == nullptr ? 0 : bytes_of(*wanted),
                [&] { return real(array, wanted); });
}

CUresult create_array(DriverFunction<DriverEntry::cuArray3DCreate> real, CUarray* array,
                      const CUDA_ARRAY3D_DESCRIPTOR_v1* wanted) {
  return create(array, wanted == nullptr ? 0 : bytes_of(*wanted),
                [&] { return real(array, wanted); });
}

CUresult destroy_array(DriverFunction<DriverEntry::cuArrayDestroy> real, CUarray array) {
  return destroy(array, [&] { return real(array); });
}

CUresult create_mipmap(DriverFunction<DriverEntry::cuMipmappedArrayCreate> real,
                       CUmipmappedArray* array, const CUDA_ARRAY3D_DESCRIPTOR* wanted,
                       unsigned levels) {
  return create(array, wanted == nullptr ? 0 : bytes_of_levels(*wanted, levels),
                [&] { return real(array, wanted, levels); });
}

CUresult destroy_mipmap(DriverFunction<DriverEntry::cuMipmappedArrayDestroy> real,
                        CUmipmappedArray array) {
  return destroy(array, [&] { return real(array); });
}

}  // namespace regatta::sharing::hook
