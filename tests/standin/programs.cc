// What the other processes of the tests do.
#include <cstdio>
#include <thread>

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
  if (name == "show") return show(argument);
  return 2;
}

}  // namespace regatta::standin
