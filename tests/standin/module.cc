// Modules, their functions and their variables.
#include "tests/standin/module.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <set>
#include <utility>

#include "tests/standin/api.h"

using namespace regatta::standin;

namespace regatta::standin {
namespace {

constexpr int kMostShared = 227 << 10;  // of a block

std::set<CUmodule>& modules() {
  static auto* const all = new std::set<CUmodule>;
  return *all;
}

bool is_text(std::string_view image) {
  const char first = image.empty() ? '\0' : image[0];
  return first == '.' || first == '/' || std::isspace(static_cast<unsigned char>(first)) != 0;
}

bool is_function(CUfunction function) {
  return std::ranges::any_of(modules(), [&](CUmodule module) {
    return std::ranges::any_of(module->functions,
                               [&](const auto& entry) { return &entry.second == function; });
  });
}

}  // namespace

bool is_module(CUmodule module) {
  return modules().contains(module);
}

CUresult load_module(CUcontext context, std::string_view text, CUmodule* module) {
  if (!is_text(text)) return CUDA_ERROR_INVALID_IMAGE;
  if (!is_ptx(text)) return CUDA_ERROR_INVALID_IMAGE;
  if (!begins_as_ptx(text)) return CUDA_ERROR_INVALID_PTX;
  auto made = std::make_unique<CUmod_st>(CUmod_st{.context = context,
                                                  .target = target_of(text),
                                                  .functions = kernels_of(text),
                                                  .globals = globals_of(text)});
  for (auto& [name, global] : made->globals) {
    const CUresult result = allocate_device(context, global.bytes, &global.address);
    if (result == CUDA_SUCCESS) continue;
    unload_module(made.release());
    return result;
  }
  for (auto& [name, function] : made->functions)
    function.module = made.get();
  *module = made.release();
  modules().insert(*module);
  return CUDA_SUCCESS;
}

void unload_module(CUmodule module) {
  modules().erase(module);
  for (const auto& [name, global] : module->globals)
    if (const auto at = process().regions.find(global.address); at != process().regions.end())
      free_region(at);
  delete module;
}

void drop_modules(CUcontext context) {
  const std::vector<CUmodule> all(modules().begin(), modules().end());
  for (const CUmodule module : all)
    if (module->context == context) unload_module(module);
  drop_library_modules(context);
}

CUresult find_function(CUfunction handle, CUfunction* function) {
  const auto kernel = reinterpret_cast<CUkernel>(handle);
  *function = handle;
  if (!is_kernel(kernel)) return is_function(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
  CUcontext context = nullptr;
  const CUresult result = current_context(&context);
  return result == CUDA_SUCCESS ? function_of(kernel, context, function) : result;
}

CUresult read_attribute(const CUfunc_st& function, int attribute, int* value) {
  constexpr int kAttributes = 16;
  if (value == nullptr || attribute < 0 || attribute >= kAttributes)
    return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = 1024;
      break;
    case 4:  // registers of a thread
      *value = 32;
      break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
      *value = function.module->target;
      break;
    case 6:  // of the machine code
      *value = 90;
      break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = function.max_dynamic_shared;
      break;
    case 9:
      *value = function.carveout;
      break;
    default:
      *value = 0;
  }
  return CUDA_SUCCESS;
}

CUresult write_attribute(CUfunc_st& function, int attribute, int value) {
  if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
    if (value < 0 || value > kMostShared) return CUDA_ERROR_INVALID_VALUE;
    function.max_dynamic_shared = value;
    return CUDA_SUCCESS;
  }
  if (attribute == 9) {
    if (value < -1 || value > 100) return CUDA_ERROR_INVALID_VALUE;
    function.carveout = value;
    return CUDA_SUCCESS;
  }
  // About clusters, which change nothing here.
  return attribute >= 11 && attribute <= 15 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult find_parameter(const CUfunc_st& function, std::size_t index, std::size_t* offset,
                        std::size_t* bytes) {
  if (offset == nullptr || index >= function.parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = function.parameters[index].offset;
  if (bytes != nullptr) *bytes = function.parameters[index].bytes;
  return CUDA_SUCCESS;
}

}  // namespace regatta::standin

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
extern "C" {

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  if (module == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  CUcontext context = nullptr;
  if (const CUresult result = current_context(&context); result != CUDA_SUCCESS) return result;
  if (const CUresult result = check_no_capture(); result != CUDA_SUCCESS) return result;
  std::string text;
  if (const CUresult result = text_of_image(image, &text); result != CUDA_SUCCESS) return result;
  return load_module(context, text, module);
}

CUresult cuModuleLoad(CUmodule* module, const char* path) {
  if (module == nullptr || path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::ifstream file(path);
  if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
  const std::string image(std::istreambuf_iterator<char>(file), {});
  return cuModuleLoadData(module, image.c_str());
}

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned, int*, void**) {
  return cuModuleLoadData(module, image);
}

CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  return cuModuleLoadData(module, image);
}

CUresult cuModuleUnload(CUmodule module) {
  const std::lock_guard lock(process().mutex);
  if (!is_module(module)) return CUDA_ERROR_INVALID_HANDLE;
  unload_module(module);
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  if (function == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  if (!is_module(module)) return CUDA_ERROR_INVALID_HANDLE;
  const auto at = module->functions.find(name);
  if (at == module->functions.end()) return CUDA_ERROR_NOT_FOUND;
  *function = &at->second;
  return CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, std::size_t* bytes, CUmodule module,
                              const char* name) {
  if (name == nullptr || (address == nullptr && bytes == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  if (!is_module(module)) return CUDA_ERROR_INVALID_HANDLE;
  const auto at = module->globals.find(name);
  if (at == module->globals.end()) return CUDA_ERROR_NOT_FOUND;
  if (address != nullptr) *address = at->second.address;
  if (bytes != nullptr) *bytes = at->second.bytes;
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunctionCount(unsigned* count, CUmodule module) {
  const std::lock_guard lock(process().mutex);
  if (count == nullptr || !is_module(module)) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<unsigned>(module->functions.size());
  return CUDA_SUCCESS;
}

CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned count, CUmodule module) {
  const std::lock_guard lock(process().mutex);
  if (functions == nullptr || !is_module(module)) return CUDA_ERROR_INVALID_VALUE;
  for (auto& [name, function] : module->functions) {
    if (count-- == 0) break;
    *functions++ = &function;
  }
  return CUDA_SUCCESS;
}

// Eager: nothing is left to load.
CUresult cuModuleGetLoadingMode(int* mode) {
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *mode = 1;
  return CUDA_SUCCESS;
}

CUresult cuFuncGetModule(CUmodule* module, CUfunction handle) {
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  CUfunction function = nullptr;
  const CUresult found = find_function(handle, &function);
  if (found == CUDA_SUCCESS) *module = function->module;
  return found;
}

CUresult cuFuncGetAttribute(int* value, int attribute, CUfunction handle) {
  const std::lock_guard lock(process().mutex);
  CUfunction function = nullptr;
  const CUresult found = find_function(handle, &function);
  return found == CUDA_SUCCESS ? read_attribute(*function, attribute, value) : found;
}

CUresult cuFuncSetAttribute(CUfunction handle, int attribute, int value) {
  const std::lock_guard lock(process().mutex);
  CUfunction function = nullptr;
  const CUresult found = find_function(handle, &function);
  return found == CUDA_SUCCESS ? write_attribute(*function, attribute, value) : found;
}

CUresult cuFuncSetCacheConfig(CUfunction handle, int config) {
  const std::lock_guard lock(process().mutex);
  if (config < 0 || config > 3) return CUDA_ERROR_INVALID_VALUE;
  CUfunction function = nullptr;
  return find_function(handle, &function);
}

CUresult cuFuncGetName(const char** name, CUfunction handle) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  CUfunction function = nullptr;
  const CUresult found = find_function(handle, &function);
  if (found == CUDA_SUCCESS) *name = function->name.c_str();
  return found;
}

CUresult cuFuncGetParamInfo(CUfunction handle, std::size_t index, std::size_t* offset,
                            std::size_t* bytes) {
  const std::lock_guard lock(process().mutex);
  CUfunction function = nullptr;
  const CUresult found = find_function(handle, &function);
  return found == CUDA_SUCCESS ? find_parameter(*function, index, offset, bytes) : found;
}

CUresult cuFuncIsLoaded(int* state, CUfunction handle) {
  if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  CUfunction function = nullptr;
  const CUresult found = find_function(handle, &function);
  if (found == CUDA_SUCCESS) *state = 1;
  return found;
}

CUresult cuFuncLoad(CUfunction handle) {
  int state = 0;
  return cuFuncIsLoaded(&state, handle);
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
