#include "regatta/network/probe/internal/batch.h"

#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "regatta/base/core/text.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/process.h"
#include "regatta/network/probe/matrix.h"

namespace regatta::probe {
namespace {

constexpr std::uint32_t kHere = 0x0a090001;   // 10.9.0.1
constexpr std::uint32_t kThere = 0x0a090002;  // 10.9.0.2

// A new network of the calling thread with a cable of 1,500 bytes to kThere, for which the kernel
// remembers a path MTU of 600. Returns why there is none.
std::string make_network() {
  const Status entered = os::enter_new_network_namespace();
  if (!entered) return entered.error().message;
  const auto network = os::open_network_namespace();
  if (!network) return network.error().message;
  const auto pid =
      os::spawn({"sh", "-c",
                 "echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6; "
                 "ip link add near type veth peer name far && ip addr add 10.9.0.1/24 dev near && "
                 "ip link set near up && ip link set far up && "
                 "ip neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev near && "
                 "ip route add 10.9.0.2/32 dev near src 10.9.0.1 mtu 600"},
                {.environment = {}, .namespaces = {network->get()}});
  if (!pid) return pid.error().message;
  const auto end = os::wait_for(*pid);
  return end && end->is_success() ? "" : "no veth devices here";
}

// Bytes that the near end of the cable has sent.
long long sent_bytes() {
  const auto text = os::read_file("/proc/thread-self/net/dev");
  for (const std::string& line : split(text.value_or(""), '\n')) {
    const std::size_t at = line.find("near:");
    if (at == std::string::npos) continue;
    long long bytes = 0;
    std::sscanf(line.c_str() + at + 5, "%*d %*d %*d %*d %*d %*d %*d %*d %lld", &bytes);
    return bytes;
  }
  return -1;
}

// A prober sees a path that is too narrow, and sees when it is wide again; the kernel would
// remember for ten minutes the MTU of a router on it.
TEST(Sender, SendsLargePacketsWhateverMtuTheKernelRemembers) {
  std::string skipped;
  long long sent = 0;
  bool is_raw = false;
  std::thread([&] {
    skipped = make_network();
    if (!skipped.empty()) return;
    auto sender = Sender::open({kFirstSourcePort});
    ASSERT_TRUE(sender) << sender.error().message;
    is_raw = sender->is_raw();
    const Packet packet{.local = kHere,
                        .remote = kThere,
                        .local_port = kFirstSourcePort,
                        .remote_port = kProbePort,
                        .payload = {.magic = kProbeMagic},
                        .size = 1400};
    sender->send(std::vector{packet});
    sent = sent_bytes();
  }).join();
  if (!skipped.empty()) GTEST_SKIP() << skipped;
  EXPECT_TRUE(is_raw);
  EXPECT_GE(sent, 1400);
}

}  // namespace
}  // namespace regatta::probe
