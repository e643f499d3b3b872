#include "tests/standin/launch.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <regex>
#include <set>

#include "tests/standin/api.h"

using namespace regatta::standin;

namespace {

constexpr Time kUnstated = std::chrono::microseconds(2);
constexpr unsigned kThreadsPerBlock = 1024;
constexpr unsigned kThreadsPerProcessor = 2048;

std::set<CUmodule>& modules() {
  static auto* const all = new std::set<CUmodule>;
  return *all;
}

// "spin_500us": the last number of the name that has a unit of time.
std::optional<Time> stated_duration(const std::string& name) {
  static const std::regex pattern("_([0-9]+)(ns|us|ms|s)(?![A-Za-z0-9])");
  std::optional<Time> found;
  for (std::sregex_iterator at(name.begin(), name.end(), pattern), end; at != end; ++at) {
    const std::int64_t number = std::stoll((*at)[1]);
    const std::string unit = (*at)[2];
    const std::int64_t scale = unit == "ns"   ? 1
                               : unit == "us" ? 1'000
                               : unit == "ms" ? 1'000'000
                                              : 1'000'000'000;
    found = Time(number * scale);
  }
  return found;
}

// The kernels of a PTX text: `.entry NAME(.param .u64 NAME_param_0, ...`.
std::map<std::string, CUfunc_st> kernels_of(const std::string& text) {
  static const std::regex pattern(
      R"(\.entry\s+([A-Za-z_$][A-Za-z0-9_$]*)\s*(?:\(\s*(?:\.param\s+\.[ubsf](8|16|32|64))?)?)");
  std::map<std::string, CUfunc_st> kernels;
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at) {
    const std::string name = (*at)[1];
    const unsigned bits = (*at)[2].matched ? static_cast<unsigned>(std::stoul((*at)[2])) : 0;
    kernels[name] = {.name = name, .duration = stated_duration(name), .parameter_bytes = bits / 8};
  }
  return kernels;
}

bool is_text(const char* image) {
  const char first = image[0];
  return first == '.' || first == '/' || std::isspace(static_cast<unsigned char>(first)) != 0;
}

// Nanoseconds, when the kernel's name says nothing.
Time parameter_duration(const CUfunc_st& function, void** parameters) {
  if (function.parameter_bytes < 4 || parameters == nullptr) return kUnstated;
  std::uint64_t nanoseconds = 0;
  std::memcpy(&nanoseconds, parameters[0], function.parameter_bytes);
  return Time(static_cast<Time::rep>(nanoseconds));
}

bool is_function(CUfunction function) {
  return std::ranges::any_of(modules(), [&](CUmodule module) {
    return std::ranges::any_of(module->functions,
                               [&](const auto& entry) { return &entry.second == function; });
  });
}

CUresult launch(CUfunction function, const Shape& shape, CUstream stream) {
  Work work;
  {
    const std::lock_guard lock(process().mutex);
    CUcontext context = nullptr;
    if (const CUresult result = current_context(&context); result != CUDA_SUCCESS) return result;
  }
  const CUresult result = kernel_work(function, shape, &work);
  return result == CUDA_SUCCESS ? enqueue(stream, work) : result;
}

}  // namespace

namespace regatta::standin {

CUresult kernel_work(CUfunction function, const Shape& shape, Work* work) {
  {
    const std::lock_guard lock(process().mutex);
    if (!is_function(function)) return CUDA_ERROR_INVALID_HANDLE;
  }
  std::uint64_t blocks = 1;
  std::uint64_t threads = 1;
  for (const int i : {0, 1, 2}) {
    if (shape.grid[i] == 0 || shape.block[i] == 0 || shape.block[i] > kThreadsPerBlock ||
        (i > 0 && shape.grid[i] > 65535))
      return CUDA_ERROR_INVALID_VALUE;
    blocks = std::min<std::uint64_t>(blocks * shape.grid[i], 1ULL << 31);
    threads *= shape.block[i];
  }
  if (threads > kThreadsPerBlock) return CUDA_ERROR_INVALID_VALUE;
  if (function->parameter_bytes != 0 && shape.parameters == nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  *work = {.kind = OpKind::kKernel,
           .duration = function->duration.value_or(parameter_duration(*function, shape.parameters)),
           .width = static_cast<unsigned>(blocks)};
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
  const auto* const text = static_cast<const char*>(image);
  if (!is_text(text)) return CUDA_ERROR_INVALID_IMAGE;
  std::map<std::string, CUfunc_st> kernels = kernels_of(text);
  *module = new CUmod_st{.context = context, .functions = std::move(kernels)};
  for (auto& [name, function] : (*module)->functions)
    function.module = *module;
  modules().insert(*module);
  return CUDA_SUCCESS;
}

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned, int*, void**) {
  return cuModuleLoadData(module, image);
}

CUresult cuModuleUnload(CUmodule module) {
  const std::lock_guard lock(process().mutex);
  if (modules().erase(module) == 0) return CUDA_ERROR_INVALID_HANDLE;
  delete module;
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  if (function == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  if (!modules().contains(module)) return CUDA_ERROR_INVALID_HANDLE;
  const auto at = module->functions.find(name);
  if (at == module->functions.end()) return CUDA_ERROR_NOT_FOUND;
  *function = &at->second;
  return CUDA_SUCCESS;
}

CUresult cuFuncGetModule(CUmodule* module, CUfunction function) {
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  if (!is_function(function)) return CUDA_ERROR_INVALID_HANDLE;
  *module = function->module;
  return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned,
                        CUstream stream, void** parameters, void**) {
  return launch(function, {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, parameters},
                stream);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters,
                          void**) {
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return launch(function,
                {{config->gridDimX, config->gridDimY, config->gridDimZ},
                 {config->blockDimX, config->blockDimY, config->blockDimZ},
                 parameters},
                config->hStream);
}

// All blocks have to be on the device at once.
CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                   unsigned grid_z, unsigned block_x, unsigned block_y,
                                   unsigned block_z, unsigned, CUstream stream, void** parameters) {
  const Shape shape{{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, parameters};
  Work work;
  if (const CUresult result = kernel_work(function, shape, &work); result != CUDA_SUCCESS)
    return result;
  {
    const std::lock_guard lock(process().mutex);
    CUcontext context = nullptr;
    if (const CUresult result = current_context(&context); result != CUDA_SUCCESS) return result;
    const unsigned per_processor = kThreadsPerProcessor / (block_x * block_y * block_z);
    if (work.width > context->device->processors * per_processor)
      return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
  }
  return enqueue(stream, work);
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
