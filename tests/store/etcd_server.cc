#include "tests/store/etcd_server.h"

#include <csignal>
#include <utility>

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "regatta/base/os/process.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/platform/store/etcd_store.h"

namespace regatta::store {
namespace {

// A port that was free a moment ago.
int free_port() {
  const os::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(socket.get(), generic, size) != 0) return 0;
  if (::getsockname(socket.get(), generic, &size) != 0) return 0;
  return ntohs(address.sin_port);
}

}  // namespace

Result<std::unique_ptr<EtcdServer>> EtcdServer::start() {
  if (::access("/usr/bin/etcd", X_OK) != 0)
    return Error{Code::kUnsupported, "etcd is not installed (package etcd-server)"};
  REGATTA_TRY(folder, os::TempFolder::create());
  const std::string endpoint = fmt::format("127.0.0.1:{}", free_port());
  const std::string client = "http://" + endpoint;
  const std::string peer = fmt::format("http://127.0.0.1:{}", free_port());
  const std::string log_path = folder.path() + "/log";
  const os::UniqueFd log(::open(log_path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  REGATTA_TRY(pid, os::spawn({"/usr/bin/etcd", "--data-dir", folder.path() + "/data",
                              "--listen-client-urls", client, "--advertise-client-urls", client,
                              "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                              "--initial-cluster", "default=" + peer},
                             {.stdout_fd = log.get(), .stderr_fd = log.get()}));
  std::unique_ptr<EtcdServer> server(new EtcdServer(std::move(folder), endpoint, pid));
  REGATTA_TRY_DO(find_etcd_leader({.endpoints = {endpoint}, .request_limit = Seconds{20}}));
  return server;
}

EtcdServer::~EtcdServer() {
  resume();
  static_cast<void>(os::terminate(pid_, Seconds{5}).has_value());
}

void EtcdServer::pause() {
  ::kill(pid_, SIGSTOP);
}

void EtcdServer::resume() {
  ::kill(pid_, SIGCONT);
}

}  // namespace regatta::store
