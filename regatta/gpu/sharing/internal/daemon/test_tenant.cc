// For tests: a program of a tenant. Reserves 1 MiB at a time until it is refused; its exit status
// is how often it was not (at most 250), or 255 when it belongs to no tenant. With the path of a
// socket as its argument it is the tenant of its cgroup there.

#include <cstdio>

#include "regatta/gpu/sharing/internal/client/client.h"

int main(int argc, char** argv) {
  constexpr regatta::Seconds kTimeout{10.0};
  const auto client = argc > 1 ? regatta::sharing::Client::connect_by_cgroup(argv[1], kTimeout)
                               : regatta::sharing::Client::connect(kTimeout);
  if (!client) {
    std::fprintf(stderr, "regatta-test-tenant: %s\n", client.error().message.c_str());
    return 255;
  }
  int granted = 0;
  while (granted < 250 && (*client)->reserve(0, 1ULL << 20))
    ++granted;
  return granted;
}
