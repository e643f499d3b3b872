#include "regatta/platform/node_agent/internal/gpu_reader.h"

#include <utility>

#include <dlfcn.h>

#include "regatta/base/os/process.h"
#include "regatta/gpu/device/abi/nvml.h"

namespace regatta::node_agent {

struct GpuReader::Functions {
  nvmlReturn_t (*init)() = nullptr;
  nvmlReturn_t (*count)(unsigned*) = nullptr;
  nvmlReturn_t (*handle)(unsigned, nvmlDevice_t*) = nullptr;
  nvmlReturn_t (*use)(nvmlDevice_t, nvmlUtilization_t*) = nullptr;
  nvmlReturn_t (*memory)(nvmlDevice_t, nvmlMemory_t*) = nullptr;
  // Null in old drivers.
  nvmlReturn_t (*remapped_rows)(nvmlDevice_t, unsigned* correctable, unsigned* uncorrectable,
                                unsigned* is_pending, unsigned* has_failed) = nullptr;
};

namespace {

bool is_failure(nvmlReturn_t result) {
  return result == NVML_ERROR_GPU_IS_LOST || result == NVML_ERROR_RESET_REQUIRED;
}

}  // namespace

Result<GpuReader> GpuReader::open(const std::string& library) {
  void* const found = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (found == nullptr)
    return Error{Code::kUnsupported, library + ": it is not there; install NVIDIA's driver"};
  auto functions = std::make_shared<Functions>();
  const bool is_complete =
      os::find_symbol(found, "nvmlInit_v2", functions->init) &&
      os::find_symbol(found, "nvmlDeviceGetCount_v2", functions->count) &&
      os::find_symbol(found, "nvmlDeviceGetHandleByIndex_v2", functions->handle) &&
      os::find_symbol(found, "nvmlDeviceGetUtilizationRates", functions->use) &&
      os::find_symbol(found, "nvmlDeviceGetMemoryInfo", functions->memory);
  os::find_symbol(found, "nvmlDeviceGetRemappedRows", functions->remapped_rows);
  unsigned count = 0;
  if (!is_complete || functions->init() != NVML_SUCCESS ||
      functions->count(&count) != NVML_SUCCESS || count == 0)
    return Error{Code::kUnsupported, library + ": the driver is too old, or it finds no GPU"};
  return GpuReader(std::move(functions), static_cast<int>(count));
}

GpuReading GpuReader::read(int index) const {
  GpuReading reading;
  nvmlDevice_t device = nullptr;
  const nvmlReturn_t found = functions_->handle(static_cast<unsigned>(index), &device);
  if (found != NVML_SUCCESS) {
    reading.has_failed = is_failure(found);
    return reading;
  }
  nvmlUtilization_t use{};
  const nvmlReturn_t use_result = functions_->use(device, &use);
  if (use_result == NVML_SUCCESS) reading.use_percent = static_cast<int>(use.gpu);
  nvmlMemory_t memory{};
  const nvmlReturn_t memory_result = functions_->memory(device, &memory);
  if (memory_result == NVML_SUCCESS && memory.total > 0)
    reading.memory_percent = static_cast<int>(memory.used * 100 / memory.total);
  unsigned correctable = 0;
  unsigned uncorrectable = 0;
  unsigned is_pending = 0;
  unsigned has_failed = 0;
  if (functions_->remapped_rows != nullptr)
    functions_->remapped_rows(device, &correctable, &uncorrectable, &is_pending, &has_failed);
  reading.has_failed = is_failure(use_result) || is_failure(memory_result) || has_failed != 0;
  return reading;
}

}  // namespace regatta::node_agent
