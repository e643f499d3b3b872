// After its start it opens sockets of its own under the numbers of the library's descriptors, as a
// daemon that closes all its descriptors may. Then it takes memory and launches for a while.
// Ends with status 0 when all was granted and its sockets are open and silent, else with 1.
#include <algorithm>
#include <cerrno>
#include <iterator>
#include <string_view>
#include <vector>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/attacks/attack.h"

namespace {

// The driver's own sockets have other peers: losing them is not what is tried here.
bool is_of_library(int fd) {
  char text[80] = {};
  char path[40];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  if (::readlink(path, text, sizeof text - 1) <= 0) return false;
  if (std::string_view(text).find("regatta") != std::string_view::npos) return true;
  sockaddr_un peer{};
  socklen_t size = sizeof peer - 1;
  return ::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0 &&
         peer.sun_family == AF_UNIX && std::string_view(peer.sun_path).ends_with("/socket");
}

struct OwnSocket {
  int fd = -1;
  int other_end = -1;

  bool is_untouched() const {
    char byte = 0;
    // A closed end would be the end of the other one.
    return ::recv(other_end, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
  }
};

std::vector<OwnSocket> replace_all() {
  std::vector<OwnSocket> sockets;
  for (int fd = 3; fd < 1024; ++fd) {
    if (!is_of_library(fd)) continue;
    int ends[2] = {-1, -1};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0 ||
        ::dup2(ends[0], fd) != fd)
      std::_Exit(92);
    ::close(ends[0]);
    sockets.push_back({fd, ends[1]});
  }
  return sockets;
}

}  // namespace

int main() {
  regatta::attacks::open_context();
  const regatta::attacks::SpinKernel kernel;
  MUST(kernel.launch(1000));
  MUST(kernel.wait());
  const std::vector<OwnSocket> sockets = replace_all();
  CUdeviceptr address = 0;
  const CUresult taken = CU(cuMemAlloc_v2)(&address, 40 << 20);
  CUresult launched = CUDA_SUCCESS;
  for (int i = 0; i < 200 && launched == CUDA_SUCCESS; ++i) {
    launched = kernel.launch(100'000);
    if (launched == CUDA_SUCCESS) launched = kernel.wait();
  }
  const auto untouched = std::ranges::count_if(sockets, &OwnSocket::is_untouched);
  std::printf("%zu sockets, %td untouched, memory %d, launches %d\n", sockets.size(), untouched,
              static_cast<int>(taken), static_cast<int>(launched));
  return sockets.size() >= 3 && untouched == std::ssize(sockets) && taken == CUDA_SUCCESS &&
                 launched == CUDA_SUCCESS
             ? 0
             : 1;
}
