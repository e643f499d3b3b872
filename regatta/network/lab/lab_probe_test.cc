#include "regatta/network/lab/internal/lab_probe_test.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>

#include <arpa/inet.h>
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "regatta/base/core/result.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/process.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/model/topo/cluster_yaml.h"
#include "regatta/network/lab/lab.h"

namespace regatta::lab {
namespace {

constexpr Seconds kReachLimit{2.0};

sockaddr_in address_of(const std::string& text, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = ::htons(static_cast<std::uint16_t>(port));
  REGATTA_CHECK(::inet_pton(AF_INET, text.c_str(), &address.sin_addr) == 1);
  return address;
}

const sockaddr* generic(const sockaddr_in& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

os::UniqueFd open_socket(int type) {
  os::UniqueFd fd(::socket(AF_INET, type | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const timeval limit{10, 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  return fd;
}

void echo_datagram(int udp) {
  std::array<char, 2048> block{};
  sockaddr_in from{};
  socklen_t size = sizeof from;
  const ssize_t count =
      ::recvfrom(udp, block.data(), block.size(), 0, reinterpret_cast<sockaddr*>(&from), &size);
  if (count >= 0) {
    ::sendto(udp, block.data(), static_cast<std::size_t>(count), 0, generic(from), size);
  }
}

// Reads a part; at the end of the stream answers with the count and says false.
bool count_bytes(int connection, long long& bytes) {
  static std::array<char, 1 << 18> block;
  const ssize_t count = ::recv(connection, block.data(), block.size(), MSG_DONTWAIT);
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  bytes += count;
  if (count > 0) return true;
  ::send(connection, &bytes, sizeof bytes, MSG_NOSIGNAL);
  return false;
}

int serve(int port) {
  const os::UniqueFd tcp = open_socket(SOCK_STREAM);
  const os::UniqueFd udp = open_socket(SOCK_DGRAM);
  const sockaddr_in any = address_of("0.0.0.0", port);
  REGATTA_CHECK(::bind(tcp.get(), generic(any), sizeof any) == 0);
  REGATTA_CHECK(::bind(udp.get(), generic(any), sizeof any) == 0);
  REGATTA_CHECK(::listen(tcp.get(), 256) == 0);
  std::map<int, std::pair<os::UniqueFd, long long>> open;
  for (;;) {
    std::vector<pollfd> waits = {{tcp.get(), POLLIN, 0}, {udp.get(), POLLIN, 0}};
    for (const auto& [fd, connection] : open)
      waits.push_back({fd, POLLIN, 0});
    ::poll(waits.data(), waits.size(), -1);
    if (waits[0].revents != 0) {
      const int fd = ::accept4(tcp.get(), nullptr, nullptr, SOCK_CLOEXEC);
      if (fd >= 0) open.emplace(fd, std::pair{os::UniqueFd(fd), 0LL});
    }
    if (waits[1].revents != 0) echo_datagram(udp.get());
    for (std::size_t i = 2; i < waits.size(); ++i) {
      const auto entry = open.find(waits[i].fd);
      if (waits[i].revents != 0 && !count_bytes(entry->first, entry->second.second)) {
        open.erase(entry);
      }
    }
  }
}

int reach(const std::string& to, int port) {
  const sockaddr_in address = address_of(to, port);
  const Seconds end = os::monotonic_now() + kReachLimit;
  while (os::monotonic_now() < end) {  // the server may still be starting
    const os::UniqueFd tcp = open_socket(SOCK_STREAM | SOCK_NONBLOCK);
    // Goes on in the background; how it ended is asked below.
    static_cast<void>(::connect(tcp.get(), generic(address), sizeof address) == 0);
    pollfd wait{tcp.get(), POLLOUT, 0};
    const double left = (end - os::monotonic_now()).value;
    ::poll(&wait, 1, static_cast<int>(left * 1e3));
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(tcp.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (wait.revents == POLLOUT && error == 0) {
      const os::UniqueFd udp = open_socket(SOCK_DGRAM);
      ::sendto(udp.get(), "x", 1, 0, generic(address), sizeof address);
      pollfd answer{udp.get(), POLLIN, 0};
      return ::poll(&answer, 1, 1000) == 1 ? 0 : 1;
    }
    os::sleep_for(Seconds{0.02});
  }
  return 1;
}

int send_bytes(const std::string& to, int port, long long bytes, int connections) {
  const sockaddr_in address = address_of(to, port);
  std::vector<os::UniqueFd> open;
  for (int i = 0; i < connections; ++i) {
    open.push_back(open_socket(SOCK_STREAM));
    if (::connect(open.back().get(), generic(address), sizeof address) != 0) return 1;
  }
  const std::string block(static_cast<std::size_t>(bytes / connections), 'x');
  const Seconds start = os::monotonic_now();
  for (const os::UniqueFd& fd : open) {
    for (std::size_t done = 0; done < block.size();) {
      const ssize_t count = ::send(fd.get(), block.data() + done, block.size() - done, 0);
      if (count < 0) return 1;
      done += static_cast<std::size_t>(count);
    }
    ::shutdown(fd.get(), SHUT_WR);
  }
  for (const os::UniqueFd& fd : open) {
    long long counted = 0;
    if (::recv(fd.get(), &counted, sizeof counted, MSG_WAITALL) != sizeof counted) return 1;
    if (counted != static_cast<long long>(block.size())) return 1;
  }
  fmt::print("{:.6f}\n", (os::monotonic_now() - start).value);
  return 0;
}

int echo(const std::string& to, int port, int count) {
  const sockaddr_in address = address_of(to, port);
  int answers = 0;
  for (int sent = 0; sent < count;) {  // in groups, so that no queue overflows
    std::vector<pollfd> waits;
    std::vector<os::UniqueFd> open;
    for (int i = 0; i < 200 && sent < count; ++i, ++sent) {
      open.push_back(open_socket(SOCK_DGRAM));
      ::sendto(open.back().get(), "x", 1, 0, generic(address), sizeof address);
      waits.push_back({open.back().get(), POLLIN, 0});
    }
    const Seconds end = os::monotonic_now() + Seconds{0.3};
    while (!waits.empty() && os::monotonic_now() < end) {
      ::poll(waits.data(), waits.size(), 20);
      answers += static_cast<int>(
          std::erase_if(waits, [](const pollfd& wait) { return wait.revents != 0; }));
    }
  }
  fmt::print("{}\n", answers);
  return 0;
}

// Returns which step failed, 0 for none.
int scenario() {
  const topo::Cluster cluster = test_cluster("user", 2, 1, 1);
  const auto lab = up(cluster, {.die_with_caller = true});
  if (!lab) {
    fmt::print("{}\n", lab.error().message);
    return lab.error().code == Code::kUnsupported ? 77 : 1;
  }
  fmt::print("{}\n", lab->user_namespace ? "user namespace" : "direct");
  const auto server = spawn(*lab, "s1", {probe_program(), "--probe", "serve", "5000"}, {});
  const auto try_reach = [&] {
    const auto pid =
        spawn(*lab, "s0",
              {probe_program(), "--probe", "reach", lab->servers[1].nic_addresses[0], "5000"}, {});
    return pid && os::wait_for(*pid)->is_success();
  };
  int failed = 0;
  if (!server || !try_reach()) failed = 2;
  if (!inject(*lab, {FaultKind::kLinkDrop, "s0.nic0-leaf0", {}, 1.0}) || try_reach()) failed = 3;
  if (!clear(*lab, "") || !try_reach()) failed = 4;
  if (processes(*lab)->size() != 1) failed = 5;
  if (!down(lab->name)) failed = 6;
  if (server && os::wait_for(*server)->signal != SIGTERM) failed = 7;
  if (std::filesystem::exists(lab->folder)) failed = 8;
  return failed;
}

int hold(const std::string& name) {
  const auto lab = up(test_cluster(name, 2, 2, 0), {.die_with_caller = true});
  fmt::print("{}\n", lab ? "up" : lab.error().message);
  std::fflush(stdout);
  os::sleep_for(Seconds{60});
  return 0;
}

}  // namespace

std::string test_cluster_text(const std::string& name, int servers, int per_leaf, int spines) {
  return fmt::format(
      "name: {}\n"
      "server_types:\n"
      "  cpu-1:\n"
      "    devices: {{count: 1, type: cpu, cpu_share: 10%}}\n"
      "    intra: {{kind: shm}}\n"
      "    nics: {{count: 1, rate: 100Mbps}}\n"
      "fabric:\n"
      "  tiers: [{}]\n"
      "  servers_per_leaf: {}\n{}"
      "servers: {{count: {}, type: cpu-1}}\n",
      name, spines > 0 ? "leaf, spine" : "leaf", per_leaf,
      spines > 0 ? fmt::format("  spines: {}\n  uplink: 100Mbps\n", spines) : "", servers);
}

topo::Cluster test_cluster(const std::string& name, int servers, int per_leaf, int spines) {
  const std::string full_name = fmt::format("test-{}-{}", ::getpid(), name);
  auto cluster =
      topo::parse_cluster(test_cluster_text(full_name, servers, per_leaf, spines), "test.yaml");
  if (!cluster) fmt::print(stderr, "{}\n", cluster.error().message);
  REGATTA_CHECK(cluster.has_value());
  return *cluster;
}

int run_probe(const std::vector<std::string>& arguments) {
  const std::string& mode = arguments.at(0);
  const auto number = [&](std::size_t i) { return std::atoi(arguments.at(i).c_str()); };
  if (mode == "serve") return serve(number(1));
  if (mode == "reach") return reach(arguments.at(1), number(2));
  if (mode == "send") return send_bytes(arguments.at(1), number(2), number(3), number(4));
  if (mode == "echo") return echo(arguments.at(1), number(2), number(3));
  if (mode == "ask") return request_traces(arguments.at(1));
  if (mode == "scenario") return scenario();
  if (mode == "hold") return hold(arguments.at(1));
  return 2;
}

std::string probe_program() {
  return std::filesystem::read_symlink("/proc/self/exe").string();
}

}  // namespace regatta::lab

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() > 1 && arguments[0] == "--probe") {
    return regatta::lab::run_probe({arguments.begin() + 1, arguments.end()});
  }
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
