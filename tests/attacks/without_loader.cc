// A static program: no loader takes the hook into it. It works for 1 s, or closes all descriptors
// first ("close").
#include <cstdio>

#include <unistd.h>

int main(int argc, char**) {
  for (int fd = 3; argc > 1 && fd < 1024; ++fd)
    ::close(fd);
  std::puts("works");
  std::fflush(stdout);
  ::sleep(1);
  std::puts("is done");
  return 0;
}
