#include "tests/standin/launch.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <set>
#include <string_view>
#include <utility>

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

bool is_letter(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_' || letter == '$';
}

std::string_view skip_spaces(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first == text.npos ? std::string_view() : text.substr(first);
}

// The number that a text starts with, which is cut off; none: it starts with none.
std::optional<std::int64_t> take_number(std::string_view& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

// "spin_500us": the last part of the name that is a number with a unit of time.
std::optional<Time> stated_duration(std::string_view name) {
  constexpr std::pair<std::string_view, std::int64_t> kUnits[] = {
      {"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}};
  std::optional<Time> found;
  for (std::size_t at = name.find('_'); at != name.npos; at = name.find('_', at + 1)) {
    std::string_view part = name.substr(at + 1);
    const auto number = take_number(part);
    part = part.substr(0, part.find('_'));
    for (const auto& [unit, nanoseconds] : kUnits)
      if (number && part == unit) found = Time(*number * nanoseconds);
  }
  return found;
}

// Of the parameters that start here, the bytes of the first: `(.param .u64 NAME, ...`.
unsigned first_parameter_bytes(std::string_view text) {
  if (!text.starts_with('(')) return 0;
  text = skip_spaces(text.substr(1));
  if (!text.starts_with(".param")) return 0;
  text = skip_spaces(text.substr(6));
  if (text.size() < 3) return 0;
  text.remove_prefix(2);  // ".u"
  return static_cast<unsigned>(take_number(text).value_or(0) / 8);
}

// The kernels of a PTX text: `.entry NAME(.param .u64 NAME_param_0, ...`.
std::map<std::string, CUfunc_st> kernels_of(std::string_view text) {
  constexpr std::string_view kEntry = ".entry";
  std::map<std::string, CUfunc_st> kernels;
  for (std::size_t at = text.find(kEntry); at != text.npos; at = text.find(kEntry, at + 1)) {
    const std::string_view rest = skip_spaces(text.substr(at + kEntry.size()));
    const std::string name(rest.begin(), std::ranges::find_if_not(rest, is_letter));
    if (name.empty()) continue;
    kernels[name] = {
        .name = name,
        .duration = stated_duration(name),
        .parameter_bytes = first_parameter_bytes(skip_spaces(rest.substr(name.size())))};
  }
  return kernels;
}

bool is_text(const char* image) {
  const char first = image[0];
  return first == '.' || first == '/' || std::isspace(static_cast<unsigned char>(first)) != 0;
}

// Nanoseconds, when the kernel's name says nothing.
Time parameter_duration(const CUfunc_st& function, void** parameters) {
  if (function.parameter_bytes < 4 || function.parameter_bytes > 8 || parameters == nullptr)
    return kUnstated;
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
