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

// What has been allocated and started before main().
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
  if (what == "lookups") return print_lookups(static_cast<unsigned>(std::stoul(argument)));
  if (what == "threads") return look_up_from_threads();
  std::fprintf(stderr, "%s: unknown word\n", what.c_str());
  return 64;
}
