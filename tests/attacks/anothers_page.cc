// Takes device memory in a child process as a member of another tenant: the first word is the
// number of a process of that tenant and of this program's user, whose descriptor of the tenant's
// page it opens in place of its own. With the second word 1 the child has first lost its parent.
// Says how many MiB it got, up to 300.
#include <cstring>
#include <string>

#include <dirent.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/attacks/attack.h"

namespace {

// Calls `use(name)` with each descriptor of a tenant's page in the folder.
template <typename Use>
void for_each_page(const std::string& folder, const Use& use) {
  DIR* const entries = ::opendir(folder.c_str());
  while (const dirent* entry = entries == nullptr ? nullptr : ::readdir(entries)) {
    const std::string path = folder + "/" + entry->d_name;
    char target[64] = {};
    if (::readlink(path.c_str(), target, sizeof target - 1) > 0 &&
        std::strncmp(target, "/memfd:regatta-gpu-tenant", 25) == 0)
      use(entry->d_name);
  }
  if (entries != nullptr) ::closedir(entries);
}

int take(const std::string& victim) {
  for_each_page("/proc/self/fd", [](const char* name) { ::close(std::atoi(name)); });
  int page = -1;
  for (int i = 0; i < 5000 && page < 0; ++i) {  // it may be about to start
    for_each_page("/proc/" + victim + "/fd", [&](const char* name) {
      if (page < 0) page = ::open(("/proc/" + victim + "/fd/" + name).c_str(), O_RDONLY);
    });
    ::usleep(1000);
  }
  if (page < 0) std::puts("no page");
  CUcontext context = nullptr;
  int mib = 0;
  if (CU(cuInit)(0) == CUDA_SUCCESS && CU(cuCtxCreate_v2)(&context, 0, 0) == CUDA_SUCCESS) {
    CUdeviceptr memory = 0;
    while (mib < 300 && CU(cuMemAlloc_v2)(&memory, 10 << 20) == CUDA_SUCCESS)
      mib += 10;
  }
  std::printf("%d MiB\n", mib);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const bool is_orphan = regatta::attacks::number(argc, argv, 2, 0) != 0;
  const pid_t child = ::fork();
  if (child == 0) {
    const pid_t parent = ::getpid();
    if (is_orphan && ::fork() != 0) std::_Exit(0);
    while (is_orphan && ::getppid() == parent)
      ::usleep(1000);
    const int status = take(argv[1]);
    std::fflush(stdout);
    std::_Exit(status);
  }
  ::waitpid(child, nullptr, 0);
  for (;;)
    ::pause();
}
