// Launches: each passes the gate.
#include "regatta/gpu/sharing/internal/hook/exports.h"
#include "regatta/gpu/sharing/internal/hook/launch_gate.h"
#include "regatta/gpu/sharing/internal/hook/memory.h"

namespace regatta::sharing::hook {
namespace {

// The stream that the program means: in the variants of the name with _ptsz the default stream is
// the thread's own (CU_STREAM_PER_THREAD).
template <DriverEntry own, typename Real>
CUstream meant(Real real, CUstream stream) {
  if (stream != nullptr || real != driver<own>()) return stream;
  constexpr std::uintptr_t kPerThread = 2;
  return reinterpret_cast<CUstream>(kPerThread);
}

std::uint64_t key_of(CUfunction function, std::uint64_t x, std::uint64_t y, std::uint64_t z) {
  return KernelDurations::key_of(function, x * y * z);
}

}  // namespace

CUresult launch(DriverFunction<DriverEntry::cuLaunchKernel> real, CUfunction function,
                unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream,
                void** parameters, void** extra) {
  return pass_gate(key_of(function, grid_x, grid_y, grid_z),
                   meant<DriverEntry::cuLaunchKernel_ptsz>(real, stream), [&] {
                     return real(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                                 shared_bytes, stream, parameters, extra);
                   });
}

CUresult launch(DriverFunction<DriverEntry::cuLaunchKernelEx> real, const CUlaunchConfig* config,
                CUfunction function, void** parameters, void** extra) {
  if (config == nullptr) return real(config, function, parameters, extra);
  return pass_gate(key_of(function, config->gridDimX, config->gridDimY, config->gridDimZ),
                   meant<DriverEntry::cuLaunchKernelEx_ptsz>(real, config->hStream),
                   [&] { return real(config, function, parameters, extra); });
}

CUresult launch(DriverFunction<DriverEntry::cuLaunchCooperativeKernel> real, CUfunction function,
                unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream,
                void** parameters) {
  return pass_gate(key_of(function, grid_x, grid_y, grid_z),
                   meant<DriverEntry::cuLaunchCooperativeKernel_ptsz>(real, stream), [&] {
                     return real(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                                 shared_bytes, stream, parameters);
                   });
}

CUresult launch(DriverFunction<DriverEntry::cuGraphLaunch> real, CUgraphExec graph,
                CUstream stream) {
  CUstream const gate_stream = meant<DriverEntry::cuGraphLaunch_ptsz>(real, stream);
  if (has_graph_memory.load(std::memory_order_relaxed)) [[unlikely]]
    return launch_with_memory(real, graph, stream, gate_stream);
  return pass_gate(KernelDurations::key_of(graph, 0), gate_stream,
                   [&] { return real(graph, stream); });
}

}  // namespace regatta::sharing::hook
