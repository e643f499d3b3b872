// Steps of random programs: threads, other processes, descriptors, and sizes that wrap.
#include <thread>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/attacks/random_program.h"
#include "tests/attacks/random_steps.h"
#include "tests/standin/fat_binary.h"

namespace regatta::attacks {
namespace {

void ask_for_nonsense(RandomProgram& program) {
  CUdeviceptr address = 0;
  std::size_t pitch = 0;
  CUarray array = nullptr;
  CUmodule module = nullptr;
  const std::uint64_t huge = ~0ULL >> program.below(20);
  const CUDA_ARRAY3D_DESCRIPTOR shape = {huge, huge, huge, CU_AD_FORMAT_FLOAT, 4, 0};
  const std::string text = kPtxBegin + (".visible .global .b64 a[" + std::to_string(huge)) + "][" +
                           std::to_string(huge) + "];\n.visible .entry spin_1us() { ret; }";
  expect(CU(cuMemAlloc_v2)(&address, huge) != CUDA_SUCCESS, "cuMemAlloc of 2^44 and more");
  expect(CU(cuMemAllocPitch_v2)(&address, &pitch, huge, huge, 4) != CUDA_SUCCESS, "pitch");
  expect(CU(cuMemAllocAsync)(&address, huge, program.stream()) != CUDA_SUCCESS, "cuMemAllocAsync");
  expect(CU(cuArray3DCreate_v2)(&array, &shape) != CUDA_SUCCESS, "an array");
  expect(CU(cuModuleLoadData)(&module, text.c_str()) != CUDA_SUCCESS, "a module");
}

void allocate_from_threads(RandomProgram& program) {
  std::vector<std::thread> threads;
  const std::string text = kPtxBegin + std::string(".visible .global .b8 v[4194304];");
  std::string fat = regatta::standin::fat_binary_of(text, 75);
  if (program.options().has_hidden != 0) fat[16 + 41] = '\x40';
  const void* const images[] = {text.c_str(), fat.data()};
  for (unsigned i = 0; i < 3; ++i)
    threads.emplace_back(
        [context = program.context(), begin = program.draw(), image = images[program.below(2)]] {
          MUST(CU(cuCtxSetCurrent)(context));
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

[[noreturn]] void become_another(const ProgramOptions& options) {
  std::vector<std::string> words = words_of(options);
  std::vector<char*> arguments = {const_cast<char*>("random_program")};
  for (std::string& word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execv("/proc/self/exe", arguments.data());
  std::_Exit(99);
}

// Another one of this tenant, which ends by itself or at any moment.
void start_another(RandomProgram& program) {
  if (program.options().depth == 0) return;
  ProgramOptions options = program.options();
  options.seed = program.draw();
  options.calls = 25;
  options.depth = 0;
  const std::uint64_t lives_us = program.below(2) == 0 ? 0 : 1 + program.below(20'000);
  const pid_t child = ::fork();
  if (child == 0) become_another(options);
  if (lives_us != 0) {
    ::usleep(static_cast<useconds_t>(lives_us));
    ::kill(child, SIGKILL);
    ++program.record().kills;
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  constexpr int kNoRoom = 92;  // for its context
  expect(lives_us != 0 ||
             (WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == kNoRoom)),
         "the other one ends as it should");
}

// As a program that has leaked its descriptors.
void allocate_without_descriptors(RandomProgram& program) {
  std::vector<int> leaked;
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit few{64, before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &few);
  for (int file = ::open("/dev/null", O_RDONLY); file >= 0; file = ::open("/dev/null", O_RDONLY))
    leaked.push_back(file);
  for (std::uint64_t i = program.below(4); i > 0; --i) {
    CUdeviceptr address = 0;
    const CUresult result = CU(cuMemAlloc_v2)(&address, program.size());
    program.hold(result, [=] { return CU(cuMemFree_v2)(address); });
  }
  program.give_one();
  for (const int file : leaked)
    ::close(file);
  ::setrlimit(RLIMIT_NOFILE, &before);
}

}  // namespace

std::span<const RandomStep> process_steps() {
  static constexpr RandomStep kSteps[] = {{"sizes that wrap", ask_for_nonsense},
                                          {"threads", allocate_from_threads},
                                          {"another process", start_another},
                                          {"no descriptors left", allocate_without_descriptors}};
  return kSteps;
}

}  // namespace regatta::attacks
