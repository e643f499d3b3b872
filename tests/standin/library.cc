// Libraries: one image for all contexts, loaded into each when a kernel of it is first used there.
#include <fstream>
#include <iterator>
#include <set>

#include "tests/standin/api.h"
#include "tests/standin/module.h"

using namespace regatta::standin;

namespace regatta::standin {
namespace {

std::set<CUlibrary>& libraries() {
  static auto* const all = new std::set<CUlibrary>;
  return *all;
}

CUresult module_of(CUlib_st& library, CUcontext context, CUmodule* module) {
  CUmodule& own = library.modules[context];
  if (own == nullptr)
    if (const CUresult loaded = load_module(context, library.text, &own); loaded != CUDA_SUCCESS) {
      library.modules.erase(context);
      return loaded;
    }
  *module = own;
  return CUDA_SUCCESS;
}

CUresult load(CUlibrary* library, std::string text) {
  const std::lock_guard lock(process().mutex);
  if (!process().is_started) return CUDA_ERROR_NOT_INITIALIZED;
  if (text.empty() || text[0] == 0x7f) return CUDA_ERROR_INVALID_IMAGE;
  if (!is_ptx(text)) return CUDA_ERROR_INVALID_IMAGE;
  if (!begins_as_ptx(text)) return CUDA_ERROR_INVALID_PTX;
  auto made = std::make_unique<CUlib_st>();
  for (const auto& [name, function] : kernels_of(text))
    made->kernels[name] = {made.get(), name};
  made->text = std::move(text);
  *library = made.release();
  libraries().insert(*library);
  return CUDA_SUCCESS;
}

// The function of a kernel on the device's primary context, or on the current one of the device.
CUresult function_on(CUkernel kernel, CUdevice number, CUfunction* function) {
  if (!is_kernel(kernel)) return CUDA_ERROR_INVALID_HANDLE;
  CUcontext context = nullptr;
  if (const CUresult result = current_context(&context); result != CUDA_SUCCESS) return result;
  if (context->device->ordinal != number) return CUDA_ERROR_INVALID_DEVICE;
  return function_of(kernel, context, function);
}

}  // namespace

bool is_kernel(CUkernel kernel) {
  for (const CUlibrary library : libraries())
    for (auto& [name, own] : library->kernels)
      if (&own == kernel) return true;
  return false;
}

CUresult function_of(CUkernel kernel, CUcontext context, CUfunction* function) {
  CUmodule module = nullptr;
  const CUresult found = module_of(*kernel->library, context, &module);
  if (found == CUDA_SUCCESS) *function = &module->functions.at(kernel->name);
  return found;
}

void drop_library_modules(CUcontext context) {
  for (const CUlibrary library : libraries())
    library->modules.erase(context);
}

}  // namespace regatta::standin

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
extern "C" {

CUresult cuLibraryLoadData(CUlibrary* library, const void* image, int*, void**, unsigned, int*,
                           void**, unsigned) {
  if (library == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::string text;
  const CUresult read = text_of_image(image, &text);
  return read == CUDA_SUCCESS ? load(library, std::move(text)) : read;
}

CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* path, int*, void**, unsigned, int*,
                               void**, unsigned) {
  if (library == nullptr || path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::ifstream file(path);
  if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
  return load(library, {std::istreambuf_iterator<char>(file), {}});
}

CUresult cuLibraryUnload(CUlibrary library) {
  const std::lock_guard lock(process().mutex);
  if (libraries().erase(library) == 0) return CUDA_ERROR_INVALID_HANDLE;
  for (const auto& [context, module] : library->modules)
    unload_module(module);
  delete library;
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  if (kernel == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  if (!libraries().contains(library)) return CUDA_ERROR_INVALID_HANDLE;
  const auto at = library->kernels.find(name);
  if (at == library->kernels.end()) return CUDA_ERROR_NOT_FOUND;
  *kernel = &at->second;
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernelCount(unsigned* count, CUlibrary library) {
  const std::lock_guard lock(process().mutex);
  if (count == nullptr || !libraries().contains(library)) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<unsigned>(library->kernels.size());
  return CUDA_SUCCESS;
}

CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned count, CUlibrary library) {
  const std::lock_guard lock(process().mutex);
  if (kernels == nullptr || !libraries().contains(library)) return CUDA_ERROR_INVALID_VALUE;
  for (auto& [name, kernel] : library->kernels) {
    if (count-- == 0) break;
    *kernels++ = &kernel;
  }
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  if (!libraries().contains(library)) return CUDA_ERROR_INVALID_HANDLE;
  CUcontext context = nullptr;
  const CUresult result = current_context(&context);
  return result == CUDA_SUCCESS ? module_of(*library, context, module) : result;
}

CUresult cuLibraryGetGlobal(CUdeviceptr* address, std::size_t* bytes, CUlibrary library,
                            const char* name) {
  CUmodule module = nullptr;
  const CUresult found = cuLibraryGetModule(&module, library);
  return found == CUDA_SUCCESS ? cuModuleGetGlobal_v2(address, bytes, module, name) : found;
}

CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  if (!is_kernel(kernel)) return CUDA_ERROR_INVALID_HANDLE;
  CUcontext context = nullptr;
  const CUresult result = current_context(&context);
  return result == CUDA_SUCCESS ? function_of(kernel, context, function) : result;
}

CUresult cuKernelGetLibrary(CUlibrary* library, CUkernel kernel) {
  if (library == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  if (!is_kernel(kernel)) return CUDA_ERROR_INVALID_HANDLE;
  *library = kernel->library;
  return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char** name, CUkernel kernel) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  if (!is_kernel(kernel)) return CUDA_ERROR_INVALID_HANDLE;
  *name = kernel->name.c_str();
  return CUDA_SUCCESS;
}

CUresult cuKernelGetAttribute(int* value, int attribute, CUkernel kernel, CUdevice number) {
  const std::lock_guard lock(process().mutex);
  CUfunction function = nullptr;
  const CUresult found = function_on(kernel, number, &function);
  return found == CUDA_SUCCESS ? read_attribute(*function, attribute, value) : found;
}

CUresult cuKernelSetAttribute(int attribute, int value, CUkernel kernel, CUdevice number) {
  const std::lock_guard lock(process().mutex);
  CUfunction function = nullptr;
  const CUresult found = function_on(kernel, number, &function);
  return found == CUDA_SUCCESS ? write_attribute(*function, attribute, value) : found;
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, int config, CUdevice) {
  const std::lock_guard lock(process().mutex);
  if (config < 0 || config > 3) return CUDA_ERROR_INVALID_VALUE;
  return is_kernel(kernel) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuKernelGetParamInfo(CUkernel kernel, std::size_t index, std::size_t* offset,
                              std::size_t* bytes) {
  CUfunction function = nullptr;
  const CUresult found = cuKernelGetFunction(&function, kernel);
  return found == CUDA_SUCCESS ? cuFuncGetParamInfo(function, index, offset, bytes) : found;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
