#include "tests/hook/program.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include <dlfcn.h>
#include <malloc.h>

namespace regatta::hook_test {

void* driver_handle() {
  static void* const handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) std::abort();
  return handle;
}

void* driver_symbol(const char* name) {
  return dlsym(driver_handle(), name);
}

namespace {

// Uses the driver without looking anything up but what CU() does.
int use() {
  int version = 0;
  if (CU(cuInit)(0) != CUDA_SUCCESS || CU(cuDriverGetVersion)(&version) != CUDA_SUCCESS) return 1;
  CUcontext context = nullptr;
  CUdeviceptr address = 0;
  if (CU(cuCtxCreate_v2)(&context, 0, 0) != CUDA_SUCCESS) return 2;
  if (CU(cuMemAlloc_v2)(&address, 1 << 20) != CUDA_SUCCESS) return 3;
  if (CU(cuMemFree_v2)(address) != CUDA_SUCCESS) return 4;
  const char* const kernels =
      ".version 6.4\n.target sm_75\n.address_size 64\n.visible .entry spin_1us() { ret; }\n";
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  if (CU(cuModuleLoadData)(&module, kernels) != CUDA_SUCCESS ||
      CU(cuModuleGetFunction)(&function, module, "spin_1us") != CUDA_SUCCESS)
    return 5;
  for (int i = 0; i < 7; ++i)
    if (CU(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) !=
        CUDA_SUCCESS)
      return 6;
  if (CU(cuCtxDestroy_v2)(context) != CUDA_SUCCESS) return 7;
  using Count = std::uint64_t();
  auto* const launches = reinterpret_cast<Count*>(dlsym(RTLD_DEFAULT, "regatta_gpu_launches"));
  if (launches == nullptr) {
    void* const hook = dlopen("libregatta_gpu.so", RTLD_LAZY | RTLD_NOLOAD);
    if (hook != nullptr) {
      std::printf("%d\n", static_cast<int>(
                              reinterpret_cast<Count*>(dlsym(hook, "regatta_gpu_launches"))()));
      return 0;
    }
  }
  std::printf("%d\n", launches == nullptr ? -1 : static_cast<int>(launches()));
  return 0;
}

// Allocations and threads from before main().
int print_start() {
  int threads = 0;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task"))
    threads += thread.is_directory() ? 1 : 0;
  std::printf("%d threads\n", threads);
  return 0;
}

}  // namespace
}  // namespace regatta::hook_test

int main(int argc, char** argv) {
  using namespace regatta::hook_test;
  const std::size_t allocated = mallinfo2().uordblks;
  const std::string what = argc > 1 ? argv[1] : "";
  const std::string argument = argc > 2 ? argv[2] : "";
  if (what == "start") {
    std::printf("%zu bytes\n", allocated);
    return print_start();
  }
  if (what == "use") return use();
  if (what == "lookups") return print_lookups(static_cast<unsigned>(std::stoul(argument)));
  if (what == "threads") return look_up_from_threads();
  if (what == "dependency") return look_up_in_dependency(argument.c_str());
  if (what == "memory") return take_memory_in_every_way();
  if (what == "runtime") return use_as_the_runtime();
  if (what == "too-large") return take_in_a_context_that_is_too_large();
  if (what == "large-module") return load_a_module_that_is_too_large();
  if (what == "share") return open_memory_of_another();
  if (what == "faults") return take_with_faults();
  if (what == "outage") return take_beside_a_daemon();
  if (what == "hang") return wait_beside_a_daemon_that_hangs();
  if (what == "debts") return take_while_debts_are_paid();
  if (what == "slow") return take_beside_a_slow_call();
  if (what == "waits") return make_a_context_beside_one_who_waits();
  if (what == "storm") return storm(std::stoi(argument), std::stoi(argv[3]), argc > 4);
  if (what == "fork") return fork_and_go_on();
  if (what == "become") return become_another(argv);
  if (what == "cost") return print_cost();
  if (what == "start-cost") return print_start_cost(std::stoi(argument), argc == 3);
  if (what == "copy") return copy_there_and_back((40 << 20) + 7);
  if (what == "copy-for")
    return copy_for(std::stoi(argument), std::stoull(argv[3]), argv[4] == std::string("in"));
  if (what == "captures") return capture_beside_launches();
  if (what == "contexts") return launch_in_many_contexts();
  if (what == "devices") return launch_on_two_devices();
  if (what == "fork-launching") return fork_while_launching();
  if (what == "flood") return flood();
  if (what == "code-for") return code_for(std::stoi(argument), argv[3] == std::string("encode"));
  if (what == "sessions") return open_sessions();
  if (what == "take") return take_all(std::stoull(argument));
  std::fprintf(stderr, "%s: unknown word\n", what.c_str());
  return 64;
}
