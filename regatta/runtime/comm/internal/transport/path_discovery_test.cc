#include "regatta/runtime/comm/internal/transport/path_discovery.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "regatta/base/os/clock.h"
#include "regatta/runtime/comm/internal/transport/connector.h"

namespace regatta::comm {
namespace {

// Serves until the end; how long that took.
Seconds serve(PathDiscovery& discovery) {
  const Seconds start = os::monotonic_now();
  while (!discovery.serve(os::monotonic_now()) && os::monotonic_now() - start < Seconds{5}) {
    std::vector<pollfd> fds;
    discovery.add_poll_fds(fds);
    poll(fds.data(), fds.size(), 10);
  }
  return os::monotonic_now() - start;
}

TEST(PathDiscovery, KeepsThePortsOfTheKernelWhereNoRouterIsOnTheWay) {
  const auto listener = listen_tcp("127.0.0.1");
  ASSERT_TRUE(listener);
  PathDiscovery discovery(3, "127.0.0.1", {"127.0.0.1", listener->port}, 4);
  EXPECT_LT(serve(discovery), Seconds{1});
  const auto starts = discovery.take();
  ASSERT_EQ(starts.size(), 4U);
  // The first attempt got there: it is the first connection.
  ASSERT_TRUE(starts[0].fd);
  EXPECT_EQ(local_port(starts[0].fd.get()), starts[0].port);
  for (std::size_t i = 1; i < starts.size(); ++i) {
    EXPECT_EQ(starts[i].port, 0);
    EXPECT_FALSE(starts[i].fd);
  }
}

TEST(PathDiscovery, EndsInTimeWhereNobodyListens) {
  std::uint16_t free_port = 0;
  {
    const auto listener = listen_tcp("127.0.0.1");
    ASSERT_TRUE(listener);
    free_port = listener->port;
  }
  PathDiscovery discovery(3, "127.0.0.1", {"127.0.0.1", free_port}, 2);
  EXPECT_LT(serve(discovery), Seconds{1});
  const auto starts = discovery.take();
  ASSERT_EQ(starts.size(), 2U);
  EXPECT_FALSE(starts[0].fd);
  EXPECT_EQ(starts[0].port, 0);
}

TEST(Connector, TakesAnyPortWhereTheChosenOneIsTaken) {
  const auto listener = listen_tcp("127.0.0.1");
  ASSERT_TRUE(listener);
  const TcpAddress to{"127.0.0.1", listener->port};
  const auto taken = connect_tcp({"127.0.0.1", 0}, to, 1);
  ASSERT_TRUE(taken);
  const std::uint16_t port = local_port(taken->get());
  Connector connector(1, {.address = to.address, .port = to.port, .unix_name = "", .server = ""},
                      {"127.0.0.1", port}, {.connections = 2, .token = ""}, -1);
  const Seconds end = os::monotonic_now() + Seconds{2};
  while (connector.poll_fd() < 0 && os::monotonic_now() < end)
    connector.serve(os::monotonic_now());
  ASSERT_GE(connector.poll_fd(), 0);
  EXPECT_NE(local_port(connector.poll_fd()), port);
}

TEST(ConnectTcp, RefusesAPortAtAnAddressOfTheOtherFamily) {
  const auto fd = connect_tcp({"127.0.0.1", 40000}, {"::1", 40001});
  ASSERT_FALSE(fd);
  EXPECT_EQ(fd.error().code, Code::kInvalidInput);
}

}  // namespace
}  // namespace regatta::comm
