// Calls the functions of before CUDA 4 under the names without a version, with which a program
// might pass by those of today. Says what it got by each.
#include <string>

#include <unistd.h>

#include "tests/attacks/attack.h"

int main() {
  CUcontext context = nullptr;
  CUarray array = nullptr;
  unsigned address = 0;
  unsigned pitch = 0;
  unsigned free = 0;
  unsigned total = 0;
  char bytes[16] = {};
  MUST(CU(cuInit)(0));
  MUST(CU(cuCtxCreate)(&context, 0, 0));
  CUfunction const function =
      regatta::attacks::load_kernel(".visible .entry spin_1us() { ret; }\n", "spin_1us");
  const auto said = [](const char* name, CUresult result) {
    std::printf("%s %d, ", name, static_cast<int>(result));
  };
  said("cuMemAlloc", CU(cuMemAlloc)(&address, 1U << 30));
  said("cuMemAllocPitch", CU(cuMemAllocPitch)(&address, &pitch, 65536, 65535, 4));
  said("cuMemcpyHtoD", CU(cuMemcpyHtoD)(address, bytes, sizeof bytes));
  said("cuMemcpyDtoH", CU(cuMemcpyDtoH)(bytes, address, sizeof bytes));
  const CUDA_ARRAY_DESCRIPTOR_v1 square = {8192, 8192, CU_AD_FORMAT_FLOAT, 4};
  const CUDA_ARRAY3D_DESCRIPTOR_v1 cube = {1024, 1024, 1024, CU_AD_FORMAT_FLOAT, 1, 0};
  const CUDA_ARRAY_DESCRIPTOR_v1 small = {1024, 1024, CU_AD_FORMAT_FLOAT, 1};
  said("cuArrayCreate", CU(cuArrayCreate)(&array, &square));
  said("cuArray3DCreate", CU(cuArray3DCreate)(&array, &cube));
  said("cuArrayCreate", CU(cuArrayCreate)(&array, &small));
  MUST(CU(cuMemGetInfo)(&free, &total));
  std::printf("free %u of %u MiB, ", free >> 20, total >> 20);
  MUST(CU(cuDeviceTotalMem)(&total, 0));
  std::printf("total %u MiB, ", total >> 20);
  CUDA_LAUNCH_PARAMS launches[2] = {{function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr},
                                    {function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr}};
  said("cuLaunch", CU(cuLaunch)(function));
  said("cuLaunchGrid", CU(cuLaunchGrid)(function, 2, 2));
  said("cuLaunchGridAsync", CU(cuLaunchGridAsync)(function, 2, 2, nullptr));
  said("on one device", CU(cuLaunchCooperativeKernelMultiDevice)(launches, 1, 0));
  said("on two devices", CU(cuLaunchCooperativeKernelMultiDevice)(launches, 2, 0));
  auto* const count =
      reinterpret_cast<std::uint64_t (*)()>(::dlsym(RTLD_DEFAULT, "regatta_gpu_launches"));
  std::printf("%lu launches\n", count == nullptr ? 0UL : static_cast<unsigned long>(count()));
  std::fflush(stdout);
  ::pause();
}
