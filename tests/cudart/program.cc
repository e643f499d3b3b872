// A program of the CUDA runtime library that knows nothing of tenants: regatta-test-cudart [steps].
// Opens libcudart.so.11.0 and uses it as compiled programs do. Prints what is wrong, what it saw
// and what it got; with `steps` it stops after each part until it is given a line. Exit status 77
// where there is no such library, or where it takes no driver that it finds.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>

#include "tests/cudart/runtime_api.h"
#include "tests/hook/program_steps.h"
#include "tests/standin/fat_binary.h"

namespace hook_test = regatta::hook_test;

namespace {

constexpr std::size_t kMiB = 1 << 20;
constexpr std::size_t kPiece = 16 * kMiB;

// Stores 42 where it is told to. The stand-in device goes by the name alone.
constexpr char kKernel[] = R"(.version 6.4
.target sm_50
.address_size 64
.visible .entry spin_100us(.param .u64 spin_100us_param_0)
{
  .reg .u64 %rd<3>;
  .reg .u32 %r<2>;
  ld.param.u64 %rd1, [spin_100us_param_0];
  cvta.to.global.u64 %rd2, %rd1;
  mov.u32 %r1, 42;
  st.global.u32 [%rd2], %r1;
  ret;
}
)";

bool stops = false;

void* find(const char* name) {
  static void* const library = dlopen("libcudart.so.11.0", RTLD_NOW | RTLD_GLOBAL);
  void* const found = library == nullptr ? nullptr : dlsym(library, name);
  if (found != nullptr) return found;
  std::printf("not run: no %s in libcudart.so.11.0\n", name);
  std::exit(77);
}
#define RT(name) (reinterpret_cast<decltype(&::name)>(find(#name)))

void expect_error(cudaError_t found, cudaError_t wanted, const char* what) {
  if (found == wanted) return;
  std::printf("wrong: %s: %d (%s) instead of %d\n", what, found, RT(cudaGetErrorString)(found),
              wanted);
  ++hook_test::failures;
}
#define EXPECT_OK(call) expect_error(call, cudaSuccess, #call)

void step(const char* name) {
  if (stops) hook_test::step(name);
}

void* take(std::size_t bytes) {
  void* address = nullptr;
  EXPECT_OK(RT(cudaMalloc)(&address, bytes));
  return address;
}

void look_at_devices() {
  int version = 0;
  int count = 0;
  std::size_t free = 0;
  std::size_t total = 0;
  const cudaError_t counted = RT(cudaGetDeviceCount)(&count);
  if (counted != cudaSuccess) {
    std::printf("not run: the library takes no driver here: %d, %s\n", counted,
                RT(cudaGetErrorString)(counted));
    std::exit(77);
  }
  EXPECT_OK(RT(cudaRuntimeGetVersion)(&version));
  static cudaDeviceProp properties;
  static cudaDeviceProp none;
  EXPECT_OK(RT(cudaGetDeviceProperties)(&properties, 0));
  EXPECT(std::strlen(properties.name) > 0);
  EXPECT(properties.warpSize == 32);
  EXPECT(RT(cudaGetDeviceProperties)(&none, count) == cudaErrorInvalidDevice);
  EXPECT(RT(cudaSetDevice)(count) == cudaErrorInvalidDevice);
  EXPECT_OK(RT(cudaSetDevice)(0));
  step("devices");
  EXPECT_OK(RT(cudaMemGetInfo)(&free, &total));
  EXPECT(properties.totalGlobalMem == total && free <= total);
  std::printf("runtime %d, total %zu, free %zu\n", version, total, free);
  step("a context");
}

std::vector<std::uint8_t> numbers(std::size_t count) {
  std::vector<std::uint8_t> made(count);
  for (std::size_t i = 0; i < count; ++i)
    made[i] = static_cast<std::uint8_t>(i * 7 + i / 251);
  return made;
}

void copy_and_set() {
  const auto sent = numbers(3 * kMiB + 5);
  std::vector<std::uint8_t> back(sent.size());
  void* const first = take(sent.size());
  void* const second = take(sent.size());
  step("two blocks");
  EXPECT_OK(RT(cudaMemcpy)(first, sent.data(), sent.size(), cudaMemcpyHostToDevice));
  EXPECT_OK(RT(cudaMemcpy)(second, first, sent.size(), cudaMemcpyDeviceToDevice));
  EXPECT_OK(RT(cudaMemcpy)(back.data(), second, sent.size(), cudaMemcpyDeviceToHost));
  EXPECT(back == sent);
  EXPECT_OK(RT(cudaMemset)(first, 9, 1000));
  // The first 10 bytes of 50 rows of 100.
  constexpr std::size_t kPitch = 20;
  EXPECT_OK(RT(cudaMemcpy2D)(back.data(), kPitch, first, 100, 10, 50, cudaMemcpyDeviceToHost));
  EXPECT(back[0] == 9 && back[9 * kPitch + 9] == 9 && back[10] == sent[10]);
  EXPECT(back[10 * kPitch] == sent[1000] && back[49 * kPitch + 9] == sent[4909]);
  EXPECT_OK(RT(cudaFree)(first));
  EXPECT_OK(RT(cudaFree)(second));
  EXPECT(RT(cudaFree)(second) != cudaSuccess);
  EXPECT(RT(cudaGetLastError)() != cudaSuccess);
  EXPECT_OK(RT(cudaGetLastError)());
  step("blocks freed");
}

void work_in_streams() {
  constexpr std::size_t kBytes = 2 * kMiB;
  cudaStream_t stream = nullptr;
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  void* pinned = nullptr;
  void* of_pool = nullptr;
  float ms = -1;
  EXPECT_OK(RT(cudaStreamCreateWithFlags)(&stream, cudaStreamNonBlocking));
  EXPECT_OK(RT(cudaEventCreate)(&begin));
  EXPECT_OK(RT(cudaEventCreate)(&end));
  EXPECT_OK(RT(cudaMallocHost)(&pinned, kBytes));
  EXPECT_OK(RT(cudaMallocAsync)(&of_pool, kBytes, stream));
  step("of a pool");
  std::memset(pinned, 1, kBytes);
  EXPECT_OK(RT(cudaEventRecord)(begin, stream));
  EXPECT_OK(RT(cudaMemsetAsync)(of_pool, 5, kBytes, stream));
  EXPECT_OK(RT(cudaMemcpyAsync)(pinned, of_pool, kBytes / 2, cudaMemcpyDeviceToHost, stream));
  EXPECT_OK(RT(cudaEventRecord)(end, stream));
  EXPECT_OK(RT(cudaEventSynchronize)(end));
  EXPECT_OK(RT(cudaEventElapsedTime)(&ms, begin, end));
  EXPECT(ms >= 0);
  const auto* const bytes = static_cast<const std::uint8_t*>(pinned);
  EXPECT(bytes[0] == 5 && bytes[kBytes / 2 - 1] == 5 && bytes[kBytes / 2] == 1);
  EXPECT_OK(RT(cudaFreeAsync)(of_pool, stream));
  EXPECT_OK(RT(cudaStreamSynchronize)(stream));
  EXPECT_OK(RT(cudaFreeHost)(pinned));
  EXPECT_OK(RT(cudaEventDestroy)(begin));
  EXPECT_OK(RT(cudaEventDestroy)(end));
  EXPECT_OK(RT(cudaStreamDestroy)(stream));
  step("no pool");
}

// The compiler names a kernel by its address on the host.
void kernel() {}

void register_kernel() {
  static const std::string fat = regatta::standin::fat_binary_of(kKernel, 50);
  static regatta::standin::FatBinaryWrapper wrapper{.fat_binary = fat.data()};
  static char name[] = "spin_100us";
  void** const binary = RT(__cudaRegisterFatBinary)(&wrapper);
  RT(__cudaRegisterFunction)
  (binary, reinterpret_cast<const char*>(&kernel), name, name, -1, nullptr, nullptr, nullptr,
   nullptr, nullptr);
  RT(__cudaRegisterFatBinaryEnd)(binary);
}

cudaError_t launch(void* to, cudaStream_t stream) {
  void* parameters[] = {&to};
  return RT(cudaLaunchKernel)(reinterpret_cast<const void*>(&kernel), {}, {}, parameters, 0,
                              stream);
}

void expect_kernels_work(void* where) {
  int found = 0;
  EXPECT_OK(RT(cudaMemcpy)(&found, where, sizeof found, cudaMemcpyDeviceToHost));
  const bool runs_code = std::getenv("REGATTA_STANDIN") == nullptr;
  EXPECT(found == (runs_code ? 42 : 0));
}

void launch_kernels() {
  void* const where = take(kMiB);
  EXPECT_OK(RT(cudaMemset)(where, 0, kMiB));
  for (int i = 0; i < 3; ++i)
    EXPECT_OK(launch(where, nullptr));
  EXPECT_OK(RT(cudaDeviceSynchronize)());
  expect_kernels_work(where);
  EXPECT(RT(cudaLaunchKernel)(reinterpret_cast<const void*>(&take), {}, {}, nullptr, 0, nullptr) ==
         cudaErrorInvalidDeviceFunction);
  EXPECT(RT(cudaGetLastError)() == cudaErrorInvalidDeviceFunction);

  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  EXPECT_OK(RT(cudaMemset)(where, 0, kMiB));
  EXPECT_OK(RT(cudaStreamCreateWithFlags)(&stream, cudaStreamNonBlocking));
  EXPECT_OK(RT(cudaStreamBeginCapture)(stream, cudaStreamCaptureModeGlobal));
  EXPECT_OK(launch(where, stream));
  EXPECT_OK(launch(where, stream));
  EXPECT_OK(RT(cudaStreamEndCapture)(stream, &graph));
  EXPECT_OK(RT(cudaGraphInstantiate)(&executable, graph, nullptr, nullptr, 0));
  EXPECT_OK(RT(cudaGraphLaunch)(executable, stream));
  EXPECT_OK(RT(cudaGraphLaunch)(executable, stream));
  EXPECT_OK(RT(cudaStreamSynchronize)(stream));
  expect_kernels_work(where);
  EXPECT_OK(RT(cudaGraphExecDestroy)(executable));
  EXPECT_OK(RT(cudaGraphDestroy)(graph));
  EXPECT_OK(RT(cudaStreamDestroy)(stream));
  EXPECT_OK(RT(cudaFree)(where));
  step("kernels and graphs");
}

void work_in_a_thread(std::size_t bytes) {
  const auto sent = numbers(bytes);
  std::vector<std::uint8_t> back(bytes);
  for (int round = 0; round < 50; ++round) {
    void* const block = take(bytes);
    EXPECT_OK(RT(cudaMemcpy)(block, sent.data(), bytes, cudaMemcpyHostToDevice));
    EXPECT_OK(launch(static_cast<char*>(block) + bytes - 4, nullptr));
    EXPECT_OK(RT(cudaMemcpy)(back.data(), block, bytes / 2, cudaMemcpyDeviceToHost));
    EXPECT(std::memcmp(back.data(), sent.data(), bytes / 2) == 0);
    EXPECT_OK(RT(cudaFree)(block));
  }
}

void work_in_threads() {
  std::thread first([] { work_in_a_thread(100'000); });
  std::thread second([] { work_in_a_thread(200'000); });
  first.join();
  second.join();
  step("two threads");
}

void take_all() {
  std::vector<void*> pieces;
  void* piece = nullptr;
  cudaError_t result = cudaSuccess;
  while ((result = RT(cudaMalloc)(&piece, kPiece)) == cudaSuccess)
    pieces.push_back(piece);
  EXPECT(RT(cudaGetLastError)() == result);
  std::printf("took %zu pieces of %zu, then %d\n", pieces.size(), kPiece, result);
  step("full");
  for (void* const each : pieces)
    EXPECT_OK(RT(cudaFree)(each));
  step("empty");
}

using Count = std::uint64_t();
void print_launches() {
  void* hook = dlsym(RTLD_DEFAULT, "regatta_gpu_launches");
  if (hook == nullptr)
    if (void* const library = dlopen("libregatta_gpu.so", RTLD_LAZY | RTLD_NOLOAD))
      hook = dlsym(library, "regatta_gpu_launches");
  if (hook == nullptr)
    std::printf("launches: not held\n");
  else
    std::printf("launches: %d held\n", static_cast<int>(reinterpret_cast<Count*>(hook)()));
}

}  // namespace

int main(int argc, char** argv) {
  stops = argc > 1 && argv[1] == std::string("steps");
  register_kernel();
  look_at_devices();
  copy_and_set();
  work_in_streams();
  launch_kernels();
  work_in_threads();
  take_all();
  take(20 * kMiB);
  EXPECT_OK(RT(cudaDeviceReset)());
  step("reset");
  void* const again = take(4 * kMiB);
  step("after the reset");
  EXPECT_OK(launch(again, nullptr));
  EXPECT_OK(RT(cudaDeviceSynchronize)());
  EXPECT_OK(RT(cudaFree)(again));
  print_launches();
  std::printf("%d wrong\n", hook_test::failures.load());
  return hook_test::failures == 0 ? 0 : 1;
}
