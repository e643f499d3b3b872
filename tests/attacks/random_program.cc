// Takes and returns device memory in ways that are drawn at random: the first word is the seed, the
// second how many calls it makes, the third its quota in MiB, the fourth how deep it may start
// others like itself, some of which it kills, the fifth whether its device has less than the quota.
// After each call it compares what the device has for
// it with the quota (status 3), and now and then, when all is quiet, it says "step" and waits for a
// line, so that the books can be compared with the device.
#include <csignal>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "regatta/gpu/device/abi/nvml.h"
#include "tests/attacks/attack.h"
#include "tests/standin/fat_binary.h"

namespace {

using regatta::attacks::driver_symbol;
using regatta::attacks::number;

constexpr std::uint64_t kMiB = 1 << 20;
const CUmemAllocationProp kHere = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                   .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};

// The bytes that the device has for this process; none where NVML does not know it by its number,
// as in a container.
class DeviceView {
 public:
  DeviceView() : library_(::dlopen("libnvidia-ml.so.1", RTLD_NOW)) {
    if (library_ == nullptr || list_ == nullptr) {
      std::fputs("no NVML, or it lists no processes\n", stderr);
      std::_Exit(90);
    }
    find<nvmlReturn_t()>("nvmlInit_v2")();
    find<nvmlReturn_t(unsigned, nvmlDevice_t*)>("nvmlDeviceGetHandleByIndex_v2")(0, &device_);
  }
  std::uint64_t own_bytes() const {
    std::vector<nvmlProcessInfo_t> all(256);
    auto count = static_cast<unsigned>(all.size());
    list_(device_, &count, all.data());
    for (unsigned i = 0; i < count; ++i)
      if (all[i].pid == static_cast<unsigned>(::getpid()) &&
          all[i].usedGpuMemory != NVML_VALUE_NOT_AVAILABLE)
        return all[i].usedGpuMemory;
    return 0;
  }

 private:
  template <typename F>
  F* find(const char* name) const {
    return reinterpret_cast<F*>(::dlsym(library_, name));
  }

  void* library_;
  nvmlDevice_t device_ = nullptr;
  nvmlReturn_t (*list_)(nvmlDevice_t, unsigned*, nvmlProcessInfo_t*) =
      find<nvmlReturn_t(nvmlDevice_t, unsigned*, nvmlProcessInfo_t*)>(
          "nvmlDeviceGetComputeRunningProcesses_v3");
};

class RandomProgram {
 public:
  RandomProgram(std::uint64_t seed, std::uint64_t quota, std::uint64_t depth, bool is_small)
      : random_(seed), seed_(seed), quota_(quota), depth_(depth), is_small_(is_small) {
    context_ = regatta::attacks::open_context();
    is_stand_in_ = regatta::attacks::is_stand_in();
    MUST(CU(cuStreamCreate)(&stream_, CU_STREAM_NON_BLOCKING));
  }

  void run(std::uint64_t calls) {
    for (std::uint64_t i = 0; i < calls; ++i) {
      const Call& call = kCalls[below(std::size(kCalls))];
      (this->*call.make)();
      const std::uint64_t bytes = view_.own_bytes();
      if (bytes > quota_) {
        std::printf("seed %lu: %lu bytes, and the quota is %lu, after call %lu: %s\n",
                    static_cast<unsigned long>(seed_), static_cast<unsigned long>(bytes),
                    static_cast<unsigned long>(quota_), static_cast<unsigned long>(i), call.name);
        std::fflush(stdout);
        std::_Exit(3);
      }
      if (depth_ != 0 && below(12) == 0) step(call.name);
    }
    while (!held_.empty())
      give_one();
    if (depth_ != 0) step("all returned");
  }

 private:
  struct Call {
    const char* name;
    void (RandomProgram::*make)();
  };

  std::uint64_t below(std::uint64_t end) { return random_() % end; }
  // Many small ones, some that fill blocks, a few that no quota has room for.
  std::uint64_t size() {
    switch (below(8)) {
      case 0:
        return 1 + below(2 * quota_);
      case 1:
      case 2:
        return (1 + below(8)) * 2 * kMiB;
      case 3:
        return 1 + below(8 * kMiB);
      default:
        return 1 + below(200'000);
    }
  }
  static void expect(bool is_right, const char* what) {
    if (is_right) return;
    std::printf("wrong: %s\n", what);
    std::fflush(stdout);
    std::_Exit(4);
  }
  // Something that was given is held, to be returned by `give`.
  void hold(CUresult result, std::function<CUresult()> give) {
    if (result == CUDA_SUCCESS) held_.push_back(std::move(give));
  }
  void give_one() {
    if (held_.empty()) return;
    std::swap(held_[below(held_.size())], held_.back());
    const std::function<CUresult()> give = std::move(held_.back());
    held_.pop_back();
    expect(give() == CUDA_SUCCESS, "what was given can be returned");
  }
  void step(const char* after) {
    MUST(CU(cuCtxSynchronize)());
    std::printf("step %s\n", after);
    std::fflush(stdout);
    for (char letter = 0; ::read(STDIN_FILENO, &letter, 1) == 1 && letter != '\n';) {
    }
  }

  void allocate() {
    CUdeviceptr address = 0;
    const CUresult result = CU(cuMemAlloc_v2)(&address, size());
    hold(result, [=] { return CU(cuMemFree_v2)(address); });
  }
  void allocate_rows() {
    CUdeviceptr address = 0;
    std::size_t pitch = 0;
    const CUresult result =
        CU(cuMemAllocPitch_v2)(&address, &pitch, 1 + below(5000), 1 + below(3000), 4);
    hold(result, [=] { return CU(cuMemFree_v2)(address); });
  }
  // On a full device it lies with the host, and counts all the same.
  void allocate_managed() {
    if (is_small_) return;
    CUdeviceptr address = 0;
    const CUresult result = CU(cuMemAllocManaged)(&address, 1 + below(6 * kMiB), 1);
    hold(result, [=] { return CU(cuMemFree_v2)(address); });
  }
  void create_physical() {
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr range = 0;
    const std::uint64_t bytes = (1 + below(6)) * 2 * kMiB;
    if (CU(cuMemCreate)(&handle, bytes, &kHere, 0) != CUDA_SUCCESS) return;
    if (below(2) == 0) {
      held_.push_back([=] { return CU(cuMemRelease)(handle); });
      return;
    }
    MUST(CU(cuMemAddressReserve)(&range, bytes, 0, 0, 0));
    MUST(CU(cuMemMap)(range, bytes, 0, handle, 0));
    MUST(CU(cuMemRelease)(handle));
    held_.push_back([=] {
      const CUresult result = CU(cuMemUnmap)(range, bytes);
      MUST(CU(cuMemAddressFree)(range, bytes));
      return result;
    });
  }
  void create_array() {
    CUarray array = nullptr;
    const CUDA_ARRAY3D_DESCRIPTOR shape = {
        1 + below(600), 1 + below(600), below(8), CU_AD_FORMAT_FLOAT, 1, 0};
    const CUDA_ARRAY_DESCRIPTOR_v1 old = {static_cast<unsigned>(1 + below(3000)),
                                          static_cast<unsigned>(1 + below(1000)),
                                          CU_AD_FORMAT_FLOAT, 4};
    const CUresult result =
        below(2) == 0 ? CU(cuArray3DCreate_v2)(&array, &shape) : CU(cuArrayCreate)(&array, &old);
    hold(result, [=] { return CU(cuArrayDestroy)(array); });
  }
  void create_mipmap() {
    CUmipmappedArray array = nullptr;
    const CUDA_ARRAY3D_DESCRIPTOR shape = {
        1 + below(2000), 1 + below(1000), 0, CU_AD_FORMAT_FLOAT, 2, 0};
    const CUresult result =
        CU(cuMipmappedArrayCreate)(&array, &shape, static_cast<unsigned>(1 + below(14)));
    hold(result, [=] { return CU(cuMipmappedArrayDestroy)(array); });
  }
  void allocate_in_stream() {
    CUdeviceptr address = 0;
    CUstream stream = stream_;
    const CUresult result = CU(cuMemAllocAsync)(&address, size(), stream);
    hold(result, [=] { return CU(cuMemFreeAsync)(address, stream); });
  }
  void use_a_pool() {
    CUmemoryPool pool = nullptr;
    const CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                       .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    std::uint64_t keep = below(2) * 100 * kMiB;
    std::vector<CUdeviceptr> addresses(1 + below(5));
    MUST(CU(cuMemPoolCreate)(&pool, &properties));
    MUST(CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
    for (CUdeviceptr& address : addresses)
      if (CU(cuMemAllocFromPoolAsync)(&address, size(), pool, stream_) != CUDA_SUCCESS) address = 0;
    for (const CUdeviceptr address : addresses)
      if (address != 0) MUST(CU(cuMemFreeAsync)(address, stream_));
    if (below(2) == 0) MUST(CU(cuStreamSynchronize)(stream_));
    MUST(CU(cuMemPoolDestroy)(pool));
    MUST(CU(cuCtxSynchronize)());
  }
  void launch_a_graph() {
    CUgraph graph = nullptr;
    CUgraphNode node = nullptr;
    CUgraphNode end = nullptr;
    CUgraphExec executable = nullptr;
    CUDA_MEM_ALLOC_NODE_PARAMS memory{};
    memory.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                        .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    memory.bytesize = 1 + below(40 * kMiB);
    MUST(CU(cuGraphCreate)(&graph, 0));
    MUST(CU(cuGraphAddMemAllocNode)(&node, graph, nullptr, 0, &memory));
    MUST(CU(cuGraphAddMemFreeNode)(&end, graph, &node, 1, memory.dptr));
    MUST(CU(cuGraphInstantiateWithFlags)(&executable, graph, 0));
    for (std::uint64_t i = below(4); i > 0; --i)
      if (CU(cuGraphLaunch)(executable, stream_) != CUDA_SUCCESS) break;
    MUST(CU(cuStreamSynchronize)(stream_));
    MUST(CU(cuGraphExecDestroy)(executable));
    MUST(CU(cuGraphDestroy)(graph));
    if (below(2) == 0) MUST(CU(cuDeviceGraphMemTrim)(0));
  }
  // As if only the driver could read it; real ones would not.
  void hide(std::string& fat) const {
    if (is_stand_in_) fat[16 + 41] = '\x40';
  }
  std::string module_text() {
    std::string text = regatta::attacks::kPtxBegin;
    for (std::uint64_t i = below(3); i > 0; --i)
      text += ".visible .global .b8 v" + std::to_string(i) + "[" +
              std::to_string((1 + below(6)) * 2 * kMiB) + "];\n";
    return text + ".visible .entry spin_1us() { ret; }\n";
  }
  void load_a_module() {
    CUmodule module = nullptr;
    const std::string text = module_text();
    std::string fat = regatta::standin::fat_binary_of(text, 75);
    if (below(2) == 0) hide(fat);
    const CUresult result = below(2) == 0
                                ? CU(cuModuleLoadData)(&module, text.c_str())
                                : CU(cuModuleLoadDataEx)(&module, fat.data(), 0, nullptr, nullptr);
    hold(result, [=] { return CU(cuModuleUnload)(module); });
  }
  void load_a_library() {
    CUlibrary library = nullptr;
    CUkernel kernel = nullptr;
    const std::string text = module_text();
    if (CU(cuLibraryLoadData)(&library, text.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0) !=
        CUDA_SUCCESS)
      return;
    MUST(CU(cuLibraryGetKernel)(&kernel, library, "spin_1us"));
    MUST(CU(cuLaunchKernel)(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 0, nullptr,
                            nullptr, nullptr));
    held_.push_back([=] { return CU(cuLibraryUnload)(library); });
  }
  // In a context of its own, which takes its memory along.
  void use_a_context() {
    CUcontext context = nullptr;
    if (CU(cuCtxCreate_v2)(&context, 0, 0) != CUDA_SUCCESS) return;
    for (std::uint64_t i = below(6); i > 0; --i) {
      CUdeviceptr address = 0;
      CUmodule module = nullptr;
      if (below(3) == 0)
        CU(cuModuleLoadData)(&module, module_text().c_str());
      else
        CU(cuMemAlloc_v2)(&address, size());
    }
    MUST(below(2) == 0 ? CU(cuCtxDestroy_v2)(context) : CU(cuCtxDestroy)(context));
    MUST(CU(cuCtxSetCurrent)(context_));
  }
  void ask_for_nonsense() {
    CUdeviceptr address = 0;
    std::size_t pitch = 0;
    CUarray array = nullptr;
    CUmodule module = nullptr;
    const std::uint64_t huge = ~0ULL >> below(20);
    const CUDA_ARRAY3D_DESCRIPTOR shape = {huge, huge, huge, CU_AD_FORMAT_FLOAT, 4, 0};
    const std::string text = regatta::attacks::kPtxBegin +
                             (".visible .global .b64 a[" + std::to_string(huge)) + "][" +
                             std::to_string(huge) + "];\n.visible .entry spin_1us() { ret; }";
    expect(CU(cuMemAlloc_v2)(&address, huge) != CUDA_SUCCESS, "cuMemAlloc of 2^44 and more");
    expect(CU(cuMemAllocPitch_v2)(&address, &pitch, huge, huge, 4) != CUDA_SUCCESS, "pitch");
    expect(CU(cuMemAllocAsync)(&address, huge, stream_) != CUDA_SUCCESS, "cuMemAllocAsync");
    expect(CU(cuArray3DCreate_v2)(&array, &shape) != CUDA_SUCCESS, "an array");
    expect(CU(cuModuleLoadData)(&module, text.c_str()) != CUDA_SUCCESS, "a module");
  }
  void allocate_from_threads() {
    std::vector<std::thread> threads;
    const std::string text =
        regatta::attacks::kPtxBegin + std::string(".visible .global .b8 v[4194304];");
    std::string fat = regatta::standin::fat_binary_of(text, 75);
    hide(fat);
    const void* const images[] = {text.c_str(), fat.data()};
    for (unsigned i = 0; i < 3; ++i)
      threads.emplace_back([this, begin = random_(), image = images[below(2)]] {
        MUST(CU(cuCtxSetCurrent)(context_));
        std::mt19937_64 random(begin);
        for (int round = 0; round < 60; ++round) {
          CUdeviceptr address = 0;
          CUmodule module = nullptr;
          if (round % 20 == 19) {
            if (CU(cuModuleLoadData)(&module, image) == CUDA_SUCCESS)
              MUST(CU(cuModuleUnload)(module));
          } else if (CU(cuMemAlloc_v2)(&address, 1 + random() % (4 * kMiB)) == CUDA_SUCCESS) {
            MUST(CU(cuMemFree_v2)(address));
          }
        }
      });
    for (std::thread& thread : threads)
      thread.join();
  }
  // Another one of this tenant, which ends by itself or at any moment.
  void start_another() {
    if (depth_ == 0) return;
    const std::string seed = std::to_string(random_());
    const std::string quota = std::to_string(quota_ / kMiB);
    const std::uint64_t lives_us = below(2) == 0 ? 0 : 1 + below(20'000);
    const pid_t child = ::fork();
    if (child == 0) {
      ::execl("/proc/self/exe", "random_program", seed.c_str(), "25", quota.c_str(), "0",
              is_small_ ? "1" : "0", nullptr);
      std::_Exit(99);
    }
    if (lives_us != 0) {
      ::usleep(static_cast<useconds_t>(lives_us));
      ::kill(child, SIGKILL);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    constexpr int kNoRoom = 91;  // for its context
    expect(lives_us != 0 ||
               (WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == kNoRoom)),
           "the other one ends as it should");
  }

  static constexpr Call kCalls[] = {
      {"cuMemAlloc", &RandomProgram::allocate},
      {"cuMemAlloc", &RandomProgram::allocate},
      {"cuMemAllocPitch", &RandomProgram::allocate_rows},
      {"cuMemAllocManaged", &RandomProgram::allocate_managed},
      {"cuMemCreate", &RandomProgram::create_physical},
      {"an array", &RandomProgram::create_array},
      {"a mipmapped array", &RandomProgram::create_mipmap},
      {"cuMemAllocAsync", &RandomProgram::allocate_in_stream},
      {"a pool", &RandomProgram::use_a_pool},
      {"a graph", &RandomProgram::launch_a_graph},
      {"a module", &RandomProgram::load_a_module},
      {"a library", &RandomProgram::load_a_library},
      {"a context", &RandomProgram::use_a_context},
      {"sizes that wrap", &RandomProgram::ask_for_nonsense},
      {"threads", &RandomProgram::allocate_from_threads},
      {"another process", &RandomProgram::start_another},
      {"a release", &RandomProgram::give_one},
      {"a release", &RandomProgram::give_one},
      {"a release", &RandomProgram::give_one},
      {"a release", &RandomProgram::give_one},
  };

  std::mt19937_64 random_;
  const std::uint64_t seed_;
  const std::uint64_t quota_;
  const std::uint64_t depth_;
  const bool is_small_;  // the device has less than the quota
  DeviceView view_;
  CUcontext context_ = nullptr;
  bool is_stand_in_ = false;
  CUstream stream_ = nullptr;
  std::vector<std::function<CUresult()>> held_;
};

}  // namespace

int main(int argc, char** argv) {
  RandomProgram program(number(argc, argv, 1, 1), number(argc, argv, 3, 100) * kMiB,
                        number(argc, argv, 4, 1), number(argc, argv, 5, 0) != 0);
  program.run(number(argc, argv, 2, 100));
}
