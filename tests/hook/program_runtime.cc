// Uses the driver as the CUDA runtime library does: every function by a search with the version and
// the flags that the library gives (seen of 11.8 and 13.0), contexts and modules by its table.
// After each step it says a line and waits for one.
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include <dlfcn.h>

#include "tests/hook/program.h"
#include "tests/hook/program_steps.h"
#include "tests/standin/export_table.h"
#include "tests/standin/fat_binary.h"

namespace regatta::hook_test {
namespace {

constexpr std::size_t kMiB = 1 << 20;
constexpr std::uint64_t kOwnStream = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;

#define EXPECT_OK(call) expect((call) == CUDA_SUCCESS, #call)

void* search(const char* name, int version, std::uint64_t flags) {
  static auto* const find =
      reinterpret_cast<decltype(&::cuGetProcAddress)>(driver_symbol("cuGetProcAddress"));
  void* found = nullptr;
  expect(find(name, &found, version, flags) == CUDA_SUCCESS && found != nullptr, name);
  return found;
}
// FIND(cuMemAlloc_v2, "cuMemAlloc", 3020, 0)(&address, bytes): what it finds has the type of the
// first.
#define FIND(type, name, version, flags) \
  (reinterpret_cast<decltype(&::type)>(search(name, version, flags)))

const void* const* table(const CUuuid& id) {
  const void* found = nullptr;
  EXPECT_OK(FIND(cuGetExportTable, "cuGetExportTable", 3000, 0)(&found, &id));
  Dl_info info{};
  // The library checks that they are the driver's own.
  EXPECT(dladdr(found, &info) != 0 &&
         std::string(info.dli_fname).find("regatta_gpu") == std::string::npos);
  return static_cast<const void* const*>(found);
}

CUcontext retain_by_table() {
  using Retain = CUresult(CUcontext*, CUdevice);
  CUcontext context = nullptr;
  auto* const retain = reinterpret_cast<Retain*>(
      const_cast<void*>(table(standin::kRuntimeTable)[standin::kRuntimeGetPrimary]));
  EXPECT_OK(retain(&context, 0));
  EXPECT_OK(FIND(cuCtxSetCurrent, "cuCtxSetCurrent", 4000, 0)(context));
  return context;
}

CUdeviceptr take(std::size_t bytes) {
  CUdeviceptr address = 0;
  EXPECT_OK(FIND(cuMemAlloc_v2, "cuMemAlloc", 3020, 0)(&address, bytes));
  return address;
}

// A kernel of a module that has 4 MiB of its own; null where it is more than may be had.
CUfunction load_by_table(CUresult expected) {
  using Load = CUresult(CUmodule*, const void*, void*, void*, unsigned);
  static const std::string fat = standin::fat_binary_of(
      ".version 6.4\n.target sm_75\n.address_size 64\n.global .align 8 .b8 room[4194304];\n"
      ".visible .entry spin_1us() { ret; }\n",
      75);
  static const standin::FatBinaryWrapper wrapper{.fat_binary = fat.data()};
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  auto* const load = reinterpret_cast<Load*>(
      const_cast<void*>(table(standin::kRuntimeTable)[standin::kRuntimeLoadMore]));
  EXPECT_OK(load(&module, &wrapper, nullptr, nullptr, 0));
  // Memory of modules is measured at most ten times a second.
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  EXPECT(FIND(cuModuleGetFunction, "cuModuleGetFunction", 2000, 0)(&function, module, "spin_1us") ==
         expected);
  return expected == CUDA_SUCCESS ? function : nullptr;
}

void launch_alone_and_in_graphs(CUfunction function) {
  for (const std::uint64_t flags : {std::uint64_t{0}, kOwnStream})
    EXPECT_OK(FIND(cuLaunchKernel, "cuLaunchKernel", flags == 0 ? 4000 : 7000, flags)(
        function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  EXPECT_OK(FIND(cuStreamCreate, "cuStreamCreate", 2000, 0)(&stream, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(FIND(cuStreamBeginCapture, "cuStreamBeginCapture", 10000, kOwnStream)(stream));
  EXPECT_OK(FIND(cuLaunchKernel, "cuLaunchKernel", 7000, kOwnStream)(function, 1, 1, 1, 1, 1, 1, 0,
                                                                     stream, nullptr, nullptr));
  EXPECT_OK(FIND(cuStreamEndCapture, "cuStreamEndCapture", 10000, kOwnStream)(stream, &graph));
  EXPECT_OK(FIND(cuGraphInstantiate_v2, "cuGraphInstantiate", 11000, 0)(&executable, graph, nullptr,
                                                                        nullptr, 0));
  EXPECT_OK(FIND(cuGraphLaunch, "cuGraphLaunch", 10000, kOwnStream)(executable, stream));
  EXPECT_OK(FIND(cuStreamSynchronize, "cuStreamSynchronize", 7000, kOwnStream)(stream));
  using Count = std::uint64_t();
  auto* count = reinterpret_cast<Count*>(dlsym(RTLD_DEFAULT, "regatta_gpu_launches"));
  if (count == nullptr)
    count = reinterpret_cast<Count*>(
        dlsym(dlopen("libregatta_gpu.so", RTLD_LAZY | RTLD_NOLOAD), "regatta_gpu_launches"));
  EXPECT(count != nullptr && count() == 3);
}

}  // namespace

int use_as_the_runtime() {
  std::size_t free = 0;
  std::size_t total = 0;
  EXPECT_OK(FIND(cuInit, "cuInit", 2000, 0)(0));
  const auto* const first = retain_by_table();
  EXPECT_OK(FIND(cuMemGetInfo_v2, "cuMemGetInfo", 3020, 0)(&free, &total));
  EXPECT(total == 100 * kMiB && free == 90 * kMiB);
  step("a context by the table, asked how much is free");
  take(20 * kMiB);
  step("20 MiB in it");
  launch_alone_and_in_graphs(load_by_table(CUDA_SUCCESS));
  step("a module by the table");
  CUdeviceptr of_pool = 0;
  EXPECT_OK(
      FIND(cuMemAllocAsync, "cuMemAllocAsync", 11020, kOwnStream)(&of_pool, 6 * kMiB, nullptr));
  step("6 MiB of a pool");
  EXPECT_OK(FIND(cuDevicePrimaryCtxReset, "cuDevicePrimaryCtxReset", 7000, 0)(0));
  step("reset");
  const auto* const second = retain_by_table();
  CUdeviceptr address = take(80 * kMiB);
  EXPECT(FIND(cuMemAlloc_v2, "cuMemAlloc", 3020, 0)(&address, 20 * kMiB) ==
         CUDA_ERROR_OUT_OF_MEMORY);
  step(first == second ? "the same context" : "another context");
  EXPECT_OK(FIND(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease", 7000, 0)(0));
  step("released");
  retain_by_table();
  take(kMiB);
  step("a third one");
  return failures == 0 ? 0 : 1;
}

int take_in_a_context_that_is_too_large() {
  CUdeviceptr address = 0;
  EXPECT_OK(FIND(cuInit, "cuInit", 2000, 0)(0));
  retain_by_table();
  auto* const allocate = FIND(cuMemAlloc_v2, "cuMemAlloc", 3020, 0);
  EXPECT(allocate(&address, 512) == CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT(allocate(&address, 512) == CUDA_ERROR_OUT_OF_MEMORY);
  std::printf("%d wrong\n", failures.load());
  return failures == 0 ? 0 : 1;
}

int load_a_module_that_is_too_large() {
  CUdeviceptr address = 0;
  EXPECT_OK(FIND(cuInit, "cuInit", 2000, 0)(0));
  retain_by_table();
  EXPECT_OK(FIND(cuMemAlloc_v2, "cuMemAlloc", 3020, 0)(&address, 512));
  load_by_table(CUDA_ERROR_OUT_OF_MEMORY);
  std::printf("%d wrong\n", failures.load());
  return failures == 0 ? 0 : 1;
}

}  // namespace regatta::hook_test
