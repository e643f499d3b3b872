// Loads modules until it is refused: as many as the first word says, each with so many MiB of
// variables as the second says (KiB of small libraries), by the way that the third names; beside as
// many threads as the fourth says, which allocate and free without a pause. Says how many it got,
// and keeps them.
#include <atomic>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include "tests/attacks/attack.h"
#include "tests/standin/export_table.h"
#include "tests/standin/fat_binary.h"

namespace {

using regatta::attacks::driver_symbol;
using regatta::attacks::number;

// The text of a module, and the forms in which `load` hands it over.
struct Image {
  std::string text;
  std::string fat;
  regatta::standin::FatBinaryWrapper wrapper;
  std::string path;
};

Image image_of(std::uint64_t bytes) {
  Image made;
  made.text = regatta::attacks::kPtxBegin +
              (".visible .global .align 8 .b8 room[" + std::to_string(bytes)) +
              "];\n.visible .entry spin_1us() { ret; }\n";
  made.fat = regatta::standin::fat_binary_of(made.text, 75);
  const char* const folder = std::getenv("TMPDIR");
  made.path = (folder == nullptr ? "/tmp" : folder) + std::string("/regatta-attack-module.") +
              std::to_string(::getpid());
  return made;
}

CUresult by_table(const Image& image) {
  using Load = CUresult(CUmodule*, const void*);
  const void* table = nullptr;
  MUST(CU(cuGetExportTable)(&table, &regatta::standin::kRuntimeTable));
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  auto* const load = reinterpret_cast<Load*>(
      const_cast<void*>(static_cast<const void* const*>(table)[regatta::standin::kRuntimeLoad]));
  const CUresult result = load(&module, &image.wrapper);
  if (result != CUDA_SUCCESS) return result;
  const CUresult found = CU(cuModuleGetFunction)(&function, module, "spin_1us");
  // A handle that was refused may be there all the same.
  if (found == CUDA_SUCCESS || function == nullptr) return found;
  return CU(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
}

// A thread writes the text when somebody opens the pipe, and only once.
CUresult by_pipe(const Image& image) {
  const std::string path = image.path + ".pipe";
  if (::mkfifo(path.c_str(), 0600) != 0) std::_Exit(92);
  std::thread([path, text = image.text] { std::ofstream(path) << text; }).detach();
  CUmodule module = nullptr;
  const CUresult result = CU(cuModuleLoad)(&module, path.c_str());
  ::unlink(path.c_str());
  return result;
}

CUresult launch_of(CUresult result, const CUlibrary& library) {
  CUkernel kernel = nullptr;
  if (result != CUDA_SUCCESS) return result;
  MUST(CU(cuLibraryGetKernel)(&kernel, library, "spin_1us"));
  // The driver places the library at the launch, if it has not before.
  return CU(cuLaunchKernel)(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 0, nullptr,
                            nullptr, nullptr);
}

CUresult load(const Image& image, std::string_view way) {
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  if (way == "data") return CU(cuModuleLoadData)(&module, image.text.c_str());
  if (way == "data-ex")
    return CU(cuModuleLoadDataEx)(&module, image.fat.data(), 0, nullptr, nullptr);
  if (way == "fat" || way == "hidden") return CU(cuModuleLoadFatBinary)(&module, image.fat.data());
  if (way == "pipe") return by_pipe(image);
  if (way == "file") return CU(cuModuleLoad)(&module, image.path.c_str());
  if (way == "library" || way == "small-library")
    return launch_of(CU(cuLibraryLoadData)(&library, image.text.c_str(), nullptr, nullptr, 0,
                                           nullptr, nullptr, 0),
                     library);
  if (way == "library-file")
    return launch_of(CU(cuLibraryLoadFromFile)(&library, image.path.c_str(), nullptr, nullptr, 0,
                                               nullptr, nullptr, 0),
                     library);
  return by_table(image);
}

// Blocks of 1 MiB, again and again.
void allocate_until(const std::atomic<bool>& ends, CUcontext context) {
  MUST(CU(cuCtxSetCurrent)(context));
  auto* const allocate = CU(cuMemAlloc_v2);
  auto* const free = CU(cuMemFree_v2);
  while (!ends) {
    CUdeviceptr address = 0;
    if (allocate(&address, 1 << 20) == CUDA_SUCCESS) MUST(free(address));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string way = argc > 3 ? argv[3] : "data";
  const int unit = way == "small-library" ? 10 : 20;
  Image image = image_of(number(argc, argv, 2, 6144) << unit);
  image.wrapper.fat_binary = image.fat.data();
  // The flag says that the part is compressed in a way that only the driver can read.
  if (way == "hidden") image.fat[16 + 41] = '\x40';
  CUcontext context = regatta::attacks::open_context();
  if (way == "hidden") regatta::attacks::require_stand_in("an image that only the driver can read");
  std::ofstream(image.path) << image.text;
  std::atomic<bool> ends = false;
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < number(argc, argv, 4, 0); ++i)
    threads.emplace_back([&] { allocate_until(ends, context); });
  std::uint64_t got = 0;
  CUresult result = CUDA_SUCCESS;
  for (; got < number(argc, argv, 1, 1); ++got)
    if ((result = load(image, way)) != CUDA_SUCCESS) break;
  if (way == "pipe" && got == 0 && result == CUDA_ERROR_FILE_NOT_FOUND) {
    std::fprintf(stderr, "the driver reads no modules from pipes\n");
    std::_Exit(90);
  }
  ends = true;
  for (std::thread& thread : threads)
    thread.join();
  ::unlink(image.path.c_str());
  std::printf("%lu loaded, then %d\n", static_cast<unsigned long>(got), static_cast<int>(result));
  std::fflush(stdout);
  ::pause();
}
