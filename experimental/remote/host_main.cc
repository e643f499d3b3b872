// regatta-gpu-host: runs the calls of one remote program. The server sends it connections over the
// socket that is its standard input: one descriptor each, with the connection's number. The first,
// number 0, is the program's own, comes with the program's key, and its end ends this process.
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>

#include <poll.h>
#include <unistd.h>

#include "experimental/remote/internal/host_process.h"
#include "experimental/remote/internal/rendezvous.h"
#include "experimental/remote/internal/sandbox.h"
#include "regatta/gpu/sharing/messages.h"

namespace {

using namespace regatta;          // NOLINT(google-build-using-namespace): a program of its own
using namespace regatta::remote;  // NOLINT(google-build-using-namespace): likewise

int fail(const Error& error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  return exit_status(error);
}

struct Given {
  std::uint64_t id = 0;
  std::string offer;  // of RDMA
  os::UniqueFd fd;
};

Result<Given> receive_connection() {
  REGATTA_TRY(message,
              sharing::receive_message(STDIN_FILENO, sizeof(std::uint64_t) + kCardTextMax));
  Given given;
  if (message.bytes.size() < sizeof given.id)
    return Error{Code::kUnavailable, "the server is gone"};
  std::memcpy(&given.id, message.bytes.data(), sizeof given.id);
  given.offer = message.bytes.substr(sizeof given.id);
  given.fd = std::move(message.fds[0]);
  return given;
}

void serve(HostProcess& host, Given given, const std::string& key,
           const std::string& rdma_address) {
  const auto channel = accept_program(std::move(given.fd), key, given.offer, rdma_address);
  if (channel) serve_connection(host, *channel, given.id);
  host.note_end(given.id);
}

int run(const std::string& path, const std::string& user, const std::string& rdma_address) {
  auto driver = load_driver(path);
  if (!driver) return fail(driver.error());
  if (const Status entered = enter_sandbox(user); !entered) return fail(entered.error());
  if (const Status ready = sharing::send_message(STDIN_FILENO, "ready"); !ready)
    return fail(ready.error());
  static HostProcess host(**driver);  // its threads live on
  os::UniqueFd anchor;
  std::string key;  // of the program; "": without encryption
  for (;;) {
    pollfd watched[2] = {{STDIN_FILENO, POLLIN, 0}, {anchor.get(), POLLIN, 0}};
    if (::poll(watched, 2, -1) < 0) continue;
    if (watched[1].revents != 0) ::_exit(0);  // the program sends nothing here: it has ended
    if (watched[0].revents == 0) continue;
    auto given = receive_connection();
    if (!given) ::_exit(0);
    if (!given->fd) continue;  // this process had no descriptor left for it
    if (given->id == 0) {
      anchor = std::move(given->fd);
      key = given->offer;
      continue;
    }
    host.note_start(given->id);
    std::thread(serve, std::ref(host), std::move(*given), key, rdma_address).detach();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) {
    std::fprintf(
        stderr,
        "usage: regatta-gpu-host DRIVER USER [RDMA_ADDRESS]; regatta gpu serve starts it\n");
    return 2;
  }
  return run(argv[1], argv[2], argc == 4 ? argv[3] : "");
}
