// Bodies of the other processes of the tests.
#include <cstddef>
#include <cstdio>
#include <thread>
#include <vector>

#include <unistd.h>

#include "tests/standin/fixture.h"

namespace regatta::standin {
namespace {

void say(const std::string& text) {
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

void wait_for_end() {
  char letter = 0;
  while (read(STDIN_FILENO, &letter, 1) > 0) {
  }
}

// Takes blocks of 2 MiB until there are none, says how many, and keeps them.
int take_all() {
  CUdeviceptr address = 0;
  int count = 0;
  CUresult result = CUDA_SUCCESS;
  while ((result = CU(cuMemAlloc_v2)(&address, 2 * kMiB)) == CUDA_SUCCESS)
    ++count;
  say(result == CUDA_ERROR_OUT_OF_MEMORY ? std::to_string(count) : "failed");
  wait_for_end();
  return 0;
}

// Takes 4 MiB, writes this number to it, says the handle of it, and says the number at every line
// that it hears.
int show(const std::string& number) {
  CUdeviceptr address = 0;
  CUipcMemHandle handle{};
  auto value = static_cast<unsigned>(std::stoul(number, nullptr, 0));
  if (CU(cuMemAlloc_v2)(&address, 4 * kMiB) != CUDA_SUCCESS ||
      CU(cuMemsetD32_v2)(address, value, 1) != CUDA_SUCCESS ||
      CU(cuIpcGetMemHandle)(&handle, address) != CUDA_SUCCESS)
    return 1;
  say(to_hex(handle.reserved, sizeof handle));
  for (char letter = 0; read(STDIN_FILENO, &letter, 1) > 0;) {
    if (letter != '\n') continue;
    if (CU(cuMemcpyDtoH_v2)(&value, address, 4) != CUDA_SUCCESS) return 1;
    char text[20];
    std::snprintf(text, sizeof text, "0x%x", value);
    say(text);
  }
  return 0;
}

// Has this number in every kind of memory; says where and what it reads there, after a kernel, and
// again at every line that it hears.
int hold(const std::string& number) {
  const auto value = static_cast<unsigned>(std::stoul(number, nullptr, 0));
  CUdeviceptr plain = 0;
  CUdeviceptr pooled = 0;
  CUdeviceptr mapped = 0;
  CUarray array = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUmemGenericAllocationHandle handle = 0;
  const CUmemLocation here{CU_MEM_LOCATION_TYPE_DEVICE, 0};
  const CUmemAllocationProp properties{.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = here};
  const CUmemAccessDesc access{here, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  const CUDA_ARRAY_DESCRIPTOR shape{1024, 1024, CU_AD_FORMAT_FLOAT, 1};
  if (CU(cuModuleLoadData)(&module, kKernels) != CUDA_SUCCESS ||
      CU(cuModuleGetFunction)(&function, module, "spin_1us") != CUDA_SUCCESS ||
      CU(cuMemAlloc_v2)(&plain, 4 * kMiB) != CUDA_SUCCESS ||
      CU(cuMemAllocAsync)(&pooled, 4 * kMiB, nullptr) != CUDA_SUCCESS ||
      CU(cuMemCreate)(&handle, 4 * kMiB, &properties, 0) != CUDA_SUCCESS ||
      CU(cuMemAddressReserve)(&mapped, 4 * kMiB, 0, 0, 0) != CUDA_SUCCESS ||
      CU(cuMemMap)(mapped, 4 * kMiB, 0, handle, 0) != CUDA_SUCCESS ||
      CU(cuMemSetAccess)(mapped, 4 * kMiB, &access, 1) != CUDA_SUCCESS ||
      CU(cuArrayCreate_v2)(&array, &shape) != CUDA_SUCCESS ||
      CU(cuMemcpyHtoA_v2)(array, 0, &value, sizeof value) != CUDA_SUCCESS)
    return 1;
  for (const CUdeviceptr address : {plain, pooled, mapped})
    if (CU(cuMemsetD32_v2)(address, value, kMiB) != CUDA_SUCCESS) return 1;
  const auto tell = [&] {
    unsigned words[4] = {};
    if (launch(function, nullptr) != CUDA_SUCCESS) return false;
    for (const CUdeviceptr address : {plain, pooled, mapped}) {
      unsigned ends[2] = {};
      if (CU(cuMemcpyDtoH_v2)(&ends[0], address, 4) != CUDA_SUCCESS ||
          CU(cuMemcpyDtoH_v2)(&ends[1], address + 4 * kMiB - 4, 4) != CUDA_SUCCESS)
        return false;
      words[address == plain ? 0 : address == pooled ? 1 : 2] = ends[0] == ends[1] ? ends[0] : 0;
    }
    if (CU(cuMemcpyAtoH_v2)(&words[3], array, 0, 4) != CUDA_SUCCESS) return false;
    char text[100];
    std::snprintf(text, sizeof text, "0x%llx %x %x %x %x", static_cast<unsigned long long>(plain),
                  words[0], words[1], words[2], words[3]);
    say(text);
    return true;
  };
  if (!tell()) return 1;
  for (char letter = 0; read(STDIN_FILENO, &letter, 1) > 0;)
    if (letter == '\n' && !tell()) return 1;
  return 0;
}

// Allocates as often, says the results, found by name and by search in turns.
int allocate(const std::string& times) {
  void* found = nullptr;
  if (CU(cuGetProcAddress_v2)("cuMemAlloc", &found, 12000, 0, nullptr) != CUDA_SUCCESS) return 1;
  std::string results;
  for (int i = 0; i < std::stoi(times); ++i) {
    CUdeviceptr address = 0;
    const auto call =
        i % 2 == 0 ? CU(cuMemAlloc_v2) : reinterpret_cast<decltype(&cuMemAlloc_v2)>(found);
    results += (i == 0 ? "" : " ") + std::to_string(call(&address, kMiB));
  }
  say(results);
  return 0;
}

// Waits for a kernel that does not end; says what came of it, and what of the next call.
int wait_for_ever() {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr address = 0;
  if (CU(cuModuleLoadData)(&module, kKernels) != CUDA_SUCCESS ||
      CU(cuModuleGetFunction)(&function, module, "spin_forever") != CUDA_SUCCESS ||
      launch(function, nullptr) != CUDA_SUCCESS)
    return 1;
  say(std::to_string(CU(cuStreamQuery)(nullptr)));
  const CUresult waited = CU(cuCtxSynchronize)();
  say(std::to_string(waited) + " " + std::to_string(CU(cuMemAlloc_v2)(&address, kMiB)));
  return 0;
}

// Copies so many bytes to the device and back.
int copy(const std::string& bytes) {
  std::vector<std::byte> host(std::stoull(bytes));
  CUdeviceptr address = 0;
  const bool is_done = CU(cuMemAlloc_v2)(&address, host.size()) == CUDA_SUCCESS &&
                       CU(cuMemcpyHtoD_v2)(address, host.data(), host.size()) == CUDA_SUCCESS &&
                       CU(cuMemcpyDtoH_v2)(host.data(), address, host.size()) == CUDA_SUCCESS;
  say(is_done ? "done" : "failed");
  wait_for_end();
  return 0;
}

// Keeps the device busy with this kernel until its input ends.
int keep_busy(const std::string& kernel) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  if (CU(cuModuleLoadData)(&module, kKernels) != CUDA_SUCCESS ||
      CU(cuModuleGetFunction)(&function, module, kernel.c_str()) != CUDA_SUCCESS)
    return 1;
  say("ready");
  std::thread([] {
    wait_for_end();
    _exit(0);
  }).detach();
  while (launch(function, nullptr) == CUDA_SUCCESS) {
  }
  return 1;
}

}  // namespace

int run_client(const std::string& name, const std::string& argument) {
  CUcontext context = nullptr;
  if (CU(cuInit)(0) != CUDA_SUCCESS || CU(cuCtxCreate_v2)(&context, 0, 0) != CUDA_SUCCESS) return 1;
  if (name == "take_all") return take_all();
  if (name == "keep_busy") return keep_busy(argument);
  if (name == "copy") return copy(argument);
  if (name == "show") return show(argument);
  if (name == "hold") return hold(argument);
  if (name == "allocate") return allocate(argument);
  if (name == "wait_for_ever") return wait_for_ever();
  return 2;
}

}  // namespace regatta::standin
