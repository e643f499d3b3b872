// Launches, and how many blocks of a kernel the device runs at once.
#include "tests/standin/launch.h"

#include <algorithm>
#include <cstring>

#include "tests/standin/api.h"
#include "tests/standin/graph.h"
#include "tests/standin/module.h"

using namespace regatta::standin;

namespace {

constexpr Time kUnstated = std::chrono::microseconds(2);
constexpr unsigned kThreadsPerBlock = 1024;
constexpr int kThreadsPerProcessor = 2048;
constexpr int kBlocksPerProcessor = 32;
constexpr std::size_t kSharedPerProcessor = 228 << 10;

// Where the first parameter lies; null when the launch has none.
const void* first_parameter(const Shape& shape) {
  if (shape.parameters != nullptr) return shape.parameters[0];
  if (shape.extra == nullptr) return nullptr;
  const auto buffer_follows = reinterpret_cast<void*>(std::uintptr_t{1});
  for (void** at = shape.extra; *at != nullptr; at += 2)
    if (*at == buffer_follows) return at[1];
  return nullptr;
}

// Nanoseconds, when the kernel's name says nothing.
Time parameter_duration(const CUfunc_st& function, const void* parameter) {
  const std::size_t bytes = function.parameters.empty() ? 0 : function.parameters[0].bytes;
  if (bytes < 4 || bytes > 8) return kUnstated;
  std::uint64_t nanoseconds = 0;
  std::memcpy(&nanoseconds, parameter, bytes);
  return Time(static_cast<Time::rep>(nanoseconds));
}

int blocks_at_once(int block_threads, std::size_t shared_bytes) {
  int blocks = std::min(kBlocksPerProcessor, kThreadsPerProcessor / block_threads);
  if (shared_bytes > 0)
    blocks = std::min(blocks, static_cast<int>(kSharedPerProcessor / shared_bytes));
  return blocks;
}

// A captured launch can be asked for later.
void keep_for_capture(CUfunction function, const Shape& shape, CUstream handle, Work* work) {
  CUstream stream = nullptr;
  if (process().captures == 0 || find_stream(handle, &stream) != CUDA_SUCCESS ||
      stream->capture == nullptr)
    return;
  work->kernel = keep_launch({function, shape.grid[0], shape.grid[1], shape.grid[2], shape.block[0],
                              shape.block[1], shape.block[2], shape.shared_bytes, shape.parameters,
                              shape.extra, nullptr, nullptr});
}

CUresult prepare(CUfunction function, const Shape& shape, CUstream stream, bool is_cooperative,
                 Work* work) {
  const std::lock_guard lock(process().mutex);
  CUcontext context = nullptr;
  if (const CUresult result = current_context(&context); result != CUDA_SUCCESS) return result;
  const CUresult result = kernel_work(function, shape, work);
  if (result == CUDA_SUCCESS) keep_for_capture(function, shape, stream, work);
  if (result != CUDA_SUCCESS || !is_cooperative) return result;
  // All blocks have to be on the device at once.
  const auto threads = static_cast<int>(shape.block[0] * shape.block[1] * shape.block[2]);
  const auto at_once = static_cast<unsigned>(blocks_at_once(threads, shape.shared_bytes));
  return work->width > context->device->processors * at_once
             ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
             : CUDA_SUCCESS;
}

CUresult launch(CUfunction function, const Shape& shape, CUstream stream, bool is_cooperative) {
  Work work;
  const CUresult result = prepare(function, shape, stream, is_cooperative, &work);
  return result == CUDA_SUCCESS ? enqueue(stream, work) : result;
}

bool asks_to_cooperate(const CUlaunchConfig& config) {
  for (unsigned i = 0; i < config.numAttrs; ++i)
    if (config.attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE &&
        config.attrs[i].value.cooperative != 0)
      return true;
  return false;
}

}  // namespace

namespace regatta::standin {

CUresult kernel_work(CUfunction handle, const Shape& shape, Work* work) {
  CUfunction function = nullptr;
  if (const CUresult found = find_function(handle, &function); found != CUDA_SUCCESS) return found;
  std::uint64_t blocks = 1;
  std::uint64_t threads = 1;
  for (const int i : {0, 1, 2}) {
    if (shape.grid[i] == 0 || shape.block[i] == 0 || shape.block[i] > kThreadsPerBlock ||
        (i > 0 && shape.grid[i] > 65535))
      return CUDA_ERROR_INVALID_VALUE;
    blocks = std::min<std::uint64_t>(blocks * shape.grid[i], 1ULL << 31);
    threads *= shape.block[i];
  }
  if (threads > kThreadsPerBlock ||
      shape.shared_bytes > static_cast<unsigned>(function->max_dynamic_shared))
    return CUDA_ERROR_INVALID_VALUE;
  const void* const parameter = first_parameter(shape);
  if (!function->parameters.empty() && parameter == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *work = {.kind = OpKind::kKernel,
           .duration = function->duration.value_or(parameter_duration(*function, parameter)),
           .width = static_cast<unsigned>(blocks),
           .node_type = CU_GRAPH_NODE_TYPE_KERNEL,
           .fails = function->fails};
  return CUDA_SUCCESS;
}

}  // namespace regatta::standin

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
extern "C" {

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                        CUstream stream, void** parameters, void** extra) {
  const Shape shape{
      {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, parameters, extra};
  return launch(function, shape, stream, false);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters,
                          void** extra) {
  if (config == nullptr || (config->numAttrs > 0 && config->attrs == nullptr))
    return CUDA_ERROR_INVALID_VALUE;
  const Shape shape{{config->gridDimX, config->gridDimY, config->gridDimZ},
                    {config->blockDimX, config->blockDimY, config->blockDimZ},
                    config->sharedMemBytes,
                    parameters,
                    extra};
  return launch(function, shape, config->hStream, asks_to_cooperate(*config));
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                   unsigned grid_z, unsigned block_x, unsigned block_y,
                                   unsigned block_z, unsigned shared_bytes, CUstream stream,
                                   void** parameters) {
  const Shape shape{
      {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, parameters, nullptr};
  return launch(function, shape, stream, true);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction handle,
                                                     int block_threads, std::size_t shared_bytes) {
  const std::lock_guard lock(process().mutex);
  CUfunction function = nullptr;
  if (const CUresult found = find_function(handle, &function); found != CUDA_SUCCESS) return found;
  if (blocks == nullptr || block_threads <= 0) return CUDA_ERROR_INVALID_VALUE;
  *blocks = block_threads > static_cast<int>(kThreadsPerBlock)
                ? 0
                : blocks_at_once(block_threads, shared_bytes);
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction function,
                                                              int block_threads,
                                                              std::size_t shared_bytes,
                                                              unsigned flags) {
  if (flags > 1) return CUDA_ERROR_INVALID_VALUE;
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block_threads, shared_bytes);
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
