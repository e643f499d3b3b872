// Launches: each passes the gate.
#include "regatta/vgpu/hook/exports.h"
#include "regatta/vgpu/hook/gate.h"
#include "regatta/vgpu/hook/memory.h"

namespace regatta::vgpu::hook {

Gate gate;

CUresult launch(Driver<Entry::cuLaunchKernel> real, CUfunction function, unsigned grid_x,
                unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                unsigned block_z, unsigned shared_bytes, CUstream stream, void** parameters,
                void** extra) {
  pass_gate(stream);
  return real(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream,
              parameters, extra);
}

CUresult launch(Driver<Entry::cuLaunchKernelEx> real, const CUlaunchConfig* config,
                CUfunction function, void** parameters, void** extra) {
  pass_gate(config == nullptr ? nullptr : config->hStream);
  return real(config, function, parameters, extra);
}

CUresult launch(Driver<Entry::cuLaunchCooperativeKernel> real, CUfunction function, unsigned grid_x,
                unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                unsigned block_z, unsigned shared_bytes, CUstream stream, void** parameters) {
  pass_gate(stream);
  return real(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream,
              parameters);
}

CUresult launch(Driver<Entry::cuGraphLaunch> real, CUgraphExec graph, CUstream stream) {
  pass_gate(stream);
  if (has_graph_memory.load(std::memory_order_relaxed)) [[unlikely]]
    return launch_with_memory(real, graph, stream);
  return real(graph, stream);
}

}  // namespace regatta::vgpu::hook

extern "C" std::uint64_t regatta_gpu_launches() {
  return regatta::vgpu::hook::gate.passed.load(std::memory_order_relaxed);
}
