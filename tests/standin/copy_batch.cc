// Batches of copies: as a whole in the order of the stream, among themselves in any.
#include <cstdint>

#include "tests/standin/api.h"
#include "tests/standin/copy.h"

using namespace regatta::standin;

namespace {

constexpr int kLastOrder = 3;  // of the CU_MEMCPY_SRC_ACCESS_ORDERs; 0 is none

// Each copy has attributes: those of the last entry that begins at or before it.
bool are_right(const CUmemcpyAttributes* attributes, const std::size_t* firsts, std::size_t count,
               std::size_t copies) {
  if (attributes == nullptr || firsts == nullptr || count == 0 || count > copies || firsts[0] != 0)
    return false;
  for (std::size_t i = 0; i < count; ++i)
    if (attributes[i].srcAccessOrder <= 0 || attributes[i].srcAccessOrder > kLastOrder ||
        (i > 0 && firsts[i] <= firsts[i - 1]) || firsts[i] >= copies)
      return false;
  return true;
}

CUresult check_stream(CUstream stream) {
  const bool is_legacy =
      (stream == nullptr && !per_thread_default()) || reinterpret_cast<std::uintptr_t>(stream) == 1;
  if (is_legacy) return CUDA_ERROR_INVALID_VALUE;
  int status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult result = cuStreamIsCapturing(stream, &status);
  if (result != CUDA_SUCCESS) return result;
  return status == CU_STREAM_CAPTURE_STATUS_NONE ? CUDA_SUCCESS
                                                 : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
extern "C" {

CUresult cuMemcpyBatchAsync(CUdeviceptr* to, CUdeviceptr* from, std::size_t* bytes,
                            std::size_t count, CUmemcpyAttributes* attributes, std::size_t* firsts,
                            std::size_t attribute_count, std::size_t* failed, CUstream stream) {
  if (failed != nullptr) *failed = SIZE_MAX;  // none in particular
  if (to == nullptr || from == nullptr || bytes == nullptr || count == 0 ||
      !are_right(attributes, firsts, attribute_count, count))
    return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = check_stream(stream); result != CUDA_SUCCESS) return result;
  for (std::size_t i = 0; i < count; ++i) {
    const CUresult result = enqueue_copy(
        {.to = {Place::kAny, to[i], 0, 0}, .from = {Place::kAny, from[i], 0, 0}, .width = bytes[i]},
        stream);
    if (result == CUDA_SUCCESS) continue;
    if (failed != nullptr) *failed = i;
    return result;
  }
  return CUDA_SUCCESS;
}

CUresult cuMemcpyBatchAsync_v2(CUdeviceptr* to, CUdeviceptr* from, std::size_t* bytes,
                               std::size_t count, CUmemcpyAttributes* attributes,
                               std::size_t* firsts, std::size_t attribute_count, CUstream stream) {
  return cuMemcpyBatchAsync(to, from, bytes, count, attributes, firsts, attribute_count, nullptr,
                            stream);
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
