// Takes as many connections to the daemon as it can and says nothing on them: the first word is
// the daemon's socket, the second how many processes, the third how many connections each. Says
// "ready" when it has tried all, and keeps them until it is ended.
#include <csignal>
#include <cstring>

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/attacks/attack.h"

namespace {

void connect_in_silence(const char* path, std::uint64_t connections) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  for (std::uint64_t i = 0; i < connections; ++i) {
    const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
    if (fd < 0 || ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      std::_Exit(92);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const std::uint64_t processes = regatta::attacks::number(argc, argv, 2, 100);
  const std::uint64_t connections = regatta::attacks::number(argc, argv, 3, 125);
  int done[2] = {};
  if (::pipe(done) != 0) return 93;
  for (std::uint64_t i = 0; i < processes; ++i) {
    if (::fork() != 0) continue;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    connect_in_silence(argv[1], connections);
    if (::write(done[1], "x", 1) != 1) std::_Exit(94);
    for (;;)
      ::pause();
  }
  char letter = 0;
  for (std::uint64_t i = 0; i < processes; ++i)
    if (::read(done[0], &letter, 1) != 1) return 95;
  std::puts("ready");
  std::fflush(stdout);
  for (;;)
    ::pause();
}
