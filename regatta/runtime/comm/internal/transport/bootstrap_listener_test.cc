#include "regatta/runtime/comm/internal/transport/bootstrap_listener.h"

#include <vector>

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "regatta/base/os/clock.h"

namespace regatta::comm {
namespace {

constexpr std::size_t kPendingMax = 4;

class SmallListener : public testing::Test {
 protected:
  os::UniqueFd connect() const {
    return connect_tcp({.address = "127.0.0.1"}, {"127.0.0.1", listener_.port()}).value();
  }
  std::vector<AcceptedConnection> serve(Seconds now) {
    std::vector<pollfd> fds = poll_fds();
    ReadyFds ready;
    ready.wait(fds, Seconds{0.2});
    return listener_.serve(now, ready, [](const RankHandshake&) { return ""; });
  }
  std::vector<pollfd> poll_fds() const {
    std::vector<pollfd> fds;
    listener_.add_poll_fds(fds);
    return fds;
  }

  BootstrapListener listener_ =
      BootstrapListener::open("rank 0", "127.0.0.1", -1, kPendingMax).value();
};

TEST_F(SmallListener, LeavesConnectionsInTheBacklogWhileTooManyShowNoHandshake) {
  const Seconds start = os::monotonic_now();
  std::vector<os::UniqueFd> silent;
  for (std::size_t i = 0; i < 3 * kPendingMax; ++i)
    silent.push_back(connect());
  EXPECT_TRUE(serve(start).empty());
  EXPECT_EQ(poll_fds().size(), kPendingMax);

  const std::vector<std::byte> handshake =
      encode_handshake({.rank = 1, .world_size = 2, .connections = 1, .token = "t"});
  const os::UniqueFd peer = connect();
  ASSERT_EQ(send(peer.get(), handshake.data(), handshake.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(handshake.size()));
  // Each round refuses those whose time is over and accepts as many.
  std::vector<AcceptedConnection> accepted;
  for (int round = 1; accepted.empty() && round < 10; ++round)
    accepted = serve(start + Seconds{6.0 * round});
  ASSERT_EQ(accepted.size(), 1U);
  EXPECT_EQ(accepted[0].handshake.rank, 1U);
}

}  // namespace
}  // namespace regatta::comm
