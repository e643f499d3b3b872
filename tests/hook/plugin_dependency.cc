// Comes with plugin.cc, and is linked to the driver.
#include <dlfcn.h>

extern "C" void* regatta_test_find_in_dependency(const char* name) {
  void* volatile found = dlsym(RTLD_DEFAULT, name);  // no jump: this is who asks
  return found;
}
