// Steps of random programs: modules, libraries, graphs and contexts.
#include "tests/attacks/random_program.h"
#include "tests/attacks/random_steps.h"
#include "tests/standin/fat_binary.h"

namespace regatta::attacks {
namespace {

void launch_a_graph(RandomProgram& program) {
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphNode end = nullptr;
  CUgraphExec executable = nullptr;
  CUDA_MEM_ALLOC_NODE_PARAMS memory{};
  memory.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = kHere};
  memory.bytesize = 1 + program.below(40 * kMiB);
  MUST(CU(cuGraphCreate)(&graph, 0));
  MUST(CU(cuGraphAddMemAllocNode)(&node, graph, nullptr, 0, &memory));
  MUST(CU(cuGraphAddMemFreeNode)(&end, graph, &node, 1, memory.dptr));
  MUST(CU(cuGraphInstantiateWithFlags)(&executable, graph, 0));
  for (std::uint64_t i = program.below(4); i > 0; --i)
    if (CU(cuGraphLaunch)(executable, program.stream()) != CUDA_SUCCESS) break;
  MUST(CU(cuStreamSynchronize)(program.stream()));
  MUST(CU(cuGraphExecDestroy)(executable));
  MUST(CU(cuGraphDestroy)(graph));
  if (program.below(2) == 0) MUST(CU(cuDeviceGraphMemTrim)(0));
}

std::string module_text(RandomProgram& program) {
  std::string text = kPtxBegin;
  for (std::uint64_t i = program.below(3); i > 0; --i)
    text += ".visible .global .b8 v" + std::to_string(i) + "[" +
            std::to_string((1 + program.below(6)) * 2 * kMiB) + "];\n";
  return text + ".visible .entry spin_1us() { ret; }\n";
}

void load_a_module(RandomProgram& program) {
  CUmodule module = nullptr;
  const std::string text = module_text(program);
  std::string fat = regatta::standin::fat_binary_of(text, 75);
  // As if only the driver could read it.
  if (program.below(2) == 0 && program.options().has_hidden != 0) fat[16 + 41] = '\x40';
  const CUresult result = program.below(2) == 0
                              ? CU(cuModuleLoadData)(&module, text.c_str())
                              : CU(cuModuleLoadDataEx)(&module, fat.data(), 0, nullptr, nullptr);
  program.hold(result, [=] { return CU(cuModuleUnload)(module); });
}

void load_a_library(RandomProgram& program) {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  const std::string text = module_text(program);
  const CUresult result =
      CU(cuLibraryLoadData)(&library, text.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  if (!program.hold(result, [=] { return CU(cuLibraryUnload)(library); })) return;
  MUST(CU(cuLibraryGetKernel)(&kernel, library, "spin_1us"));
  MUST(CU(cuLaunchKernel)(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 0, nullptr,
                          nullptr, nullptr));
}

// In a context of its own, which takes its memory along.
void use_a_context(RandomProgram& program) {
  CUcontext context = nullptr;
  if (CU(cuCtxCreate_v2)(&context, 0, 0) != CUDA_SUCCESS) return;
  for (std::uint64_t i = program.below(6); i > 0; --i) {
    CUdeviceptr address = 0;
    CUmodule module = nullptr;
    if (program.below(3) == 0)
      CU(cuModuleLoadData)(&module, module_text(program).c_str());
    else
      CU(cuMemAlloc_v2)(&address, program.size());
  }
  MUST(program.below(2) == 0 ? CU(cuCtxDestroy_v2)(context) : CU(cuCtxDestroy)(context));
  MUST(CU(cuCtxSetCurrent)(program.context()));
}

}  // namespace

std::span<const RandomStep> code_steps() {
  static constexpr RandomStep kSteps[] = {{"a graph", launch_a_graph},
                                          {"a module", load_a_module},
                                          {"a library", load_a_library},
                                          {"a context", use_a_context}};
  return kSteps;
}

}  // namespace regatta::attacks
