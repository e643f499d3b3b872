#include "regatta/runtime/comm/internal/transport/survey.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "regatta/base/os/clock.h"
#include "regatta/runtime/comm/internal/transport/dial.h"

namespace regatta::comm {
namespace {

// Serves until the end; how long that took.
Seconds serve(Survey& survey) {
  const Seconds start = os::monotonic_now();
  while (!survey.serve(os::monotonic_now()) && os::monotonic_now() - start < Seconds{5}) {
    std::vector<pollfd> fds;
    survey.add_poll_fds(fds);
    poll(fds.data(), fds.size(), 10);
  }
  return os::monotonic_now() - start;
}

TEST(Survey, KeepsThePortsOfTheKernelWhereNoRouterIsOnTheWay) {
  const auto listener = listen_tcp("127.0.0.1");
  ASSERT_TRUE(listener);
  Survey survey(3, "127.0.0.1", {"127.0.0.1", listener->port}, 4);
  EXPECT_LT(serve(survey), Seconds{1});
  const auto starts = survey.take();
  ASSERT_EQ(starts.size(), 4U);
  // The first attempt got there: it is the first connection.
  ASSERT_TRUE(starts[0].fd);
  EXPECT_EQ(local_port(starts[0].fd.get()), starts[0].port);
  for (std::size_t i = 1; i < starts.size(); ++i) {
    EXPECT_EQ(starts[i].port, 0);
    EXPECT_FALSE(starts[i].fd);
  }
}

TEST(Survey, EndsInTimeWhereNobodyListens) {
  std::uint16_t free_port = 0;
  {
    const auto listener = listen_tcp("127.0.0.1");
    ASSERT_TRUE(listener);
    free_port = listener->port;
  }
  Survey survey(3, "127.0.0.1", {"127.0.0.1", free_port}, 2);
  EXPECT_LT(serve(survey), Seconds{1});
  const auto starts = survey.take();
  ASSERT_EQ(starts.size(), 2U);
  EXPECT_FALSE(starts[0].fd);
  EXPECT_EQ(starts[0].port, 0);
}

TEST(Dial, TakesAnyPortWhereTheChosenOneIsTaken) {
  const auto listener = listen_tcp("127.0.0.1");
  ASSERT_TRUE(listener);
  const TcpAddress to{"127.0.0.1", listener->port};
  const auto taken = dial_tcp({"127.0.0.1", 0}, to, 1);
  ASSERT_TRUE(taken);
  const std::uint16_t port = local_port(taken->get());
  Dial dial(1, {.address = to.address, .port = to.port, .unix_name = "", .server = ""},
            {"127.0.0.1", port}, {.connections = 2, .token = ""}, -1);
  const Seconds end = os::monotonic_now() + Seconds{2};
  while (dial.poll_fd() < 0 && os::monotonic_now() < end)
    dial.serve(os::monotonic_now());
  ASSERT_GE(dial.poll_fd(), 0);
  EXPECT_NE(local_port(dial.poll_fd()), port);
}

TEST(DialTcp, RefusesAPortAtAnAddressOfTheOtherFamily) {
  const auto fd = dial_tcp({"127.0.0.1", 40000}, {"::1", 40001});
  ASSERT_FALSE(fd);
  EXPECT_EQ(fd.error().code, Code::kInvalidInput);
}

}  // namespace
}  // namespace regatta::comm
