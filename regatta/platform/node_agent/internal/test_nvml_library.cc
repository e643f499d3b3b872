// A library in the place of NVML, for gpu_reader_test.cc: GPU 0 works, GPU 1 is lost, GPU 2 has a
// row of memory that could not be replaced and does not tell its use.
#include "regatta/gpu/device/abi/nvml.h"

extern "C" {
// NOLINTBEGIN(readability-identifier-naming): the names are NVML's
nvmlReturn_t nvmlInit_v2() {
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 3;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* device) {
  *device = reinterpret_cast<nvmlDevice_t>(static_cast<std::uintptr_t>(index + 1));
  return index == 1 ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t* use) {
  if (reinterpret_cast<std::uintptr_t>(device) != 1) return NVML_ERROR_NOT_FOUND;
  *use = {.gpu = 93, .memory = 41};
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t /*device*/, nvmlMemory_t* memory) {
  *memory = {.total = 80ULL << 30, .free = 60ULL << 30, .used = 20ULL << 30};
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned* /*correctable*/,
                                       unsigned* /*uncorrectable*/, unsigned* /*is_pending*/,
                                       unsigned* has_failed) {
  *has_failed = reinterpret_cast<std::uintptr_t>(device) == 3 ? 1 : 0;
  return NVML_SUCCESS;
}
// NOLINTEND(readability-identifier-naming)
}
