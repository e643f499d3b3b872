// Opens the plug-in of the first word with RTLD_DEEPBIND, which takes memory until it is refused.
// Says how many MiB it got. The second word is how many it wants (kMostMib); then it keeps them
// until it is ended.
#include <cstdio>

#include <dlfcn.h>

#include "tests/attacks/take_memory.h"

int main(int argc, char** argv) {
  void* const plugin = argc > 1 ? ::dlopen(argv[1], RTLD_NOW | RTLD_DEEPBIND) : nullptr;
  if (plugin == nullptr) {
    std::fprintf(stderr, "%s\n", argc > 1 ? ::dlerror() : "name the plug-in");
    return 90;
  }
  auto* const take = reinterpret_cast<int (*)(int)>(::dlsym(plugin, "take_all"));
  if (take == nullptr) return 91;
  const std::uint64_t most = regatta::attacks::number(argc, argv, 2, regatta::attacks::kMostMib);
  regatta::attacks::say_mebibytes(take(static_cast<int>(most)), argc);
}
