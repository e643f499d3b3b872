// Opens the plug-in of the first word with RTLD_DEEPBIND, which takes memory until it is refused.
// Prints how many MiB it got.
#include <cstdio>

#include <dlfcn.h>

int main(int argc, char** argv) {
  void* const plugin = argc == 2 ? ::dlopen(argv[1], RTLD_NOW | RTLD_DEEPBIND) : nullptr;
  if (plugin == nullptr) {
    std::fprintf(stderr, "%s\n", argc == 2 ? ::dlerror() : "name the plug-in");
    return 90;
  }
  auto* const take = reinterpret_cast<int (*)()>(::dlsym(plugin, "take_all"));
  if (take == nullptr) return 91;
  std::printf("%d\n", take());
}
