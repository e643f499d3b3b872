// The gate in programs that know nothing of it: captures, contexts, devices, forks. Parts of the
// time are in tests/gpu_time.
#include <gmock/gmock.h>

#include "tests/hook/tenant.h"

namespace regatta::hook_test {
namespace {

const std::string kProgram = REGATTA_PROGRAM;

std::vector<standin::Packet> usage_of(const std::string& socket) {
  auto* const link = new standin::DeviceConnection;  // its threads live on
  std::vector<standin::Packet> lines;
  if (link->connect(socket)) link->call({.message = standin::PacketType::kUsage}, &lines);
  return lines;
}

class HookedLaunchGate : public testing::Test {
 protected:
  // Runs the program as a tenant that is held back, as another one always has work.
  std::string run_beside_another(const std::string& what) {
    const DeviceProcess device({"--memory", "1GiB"});
    const sharing::TestDaemon daemon;
    EXPECT_TRUE(daemon.query({{"request", "policy"}, {"policy", "equal"}}));
    TenantProgram other(daemon, "other", 100 * kMiB, {kProgram, "flood"},
                        environment_on(device, HookMode::kPreloaded));
    EXPECT_EQ(other.read_line(), "floods");
    TenantProgram program(daemon, "a", 100 * kMiB, {kProgram, what},
                          environment_on(device, HookMode::kPreloaded));
    const std::string line = program.read_line();
    EXPECT_EQ(program.finish(), 0);
    return line;
  }
};

TEST_F(HookedLaunchGate, AddsNothingToACaptureAndHoldsNoneBack) {
  EXPECT_EQ(run_beside_another("captures"), "captured");
}

TEST_F(HookedLaunchGate, LetsContextsComeAndGoWhileTheirWorkIsInFlight) {
  EXPECT_EQ(run_beside_another("contexts"), "0 failed");
}

TEST_F(HookedLaunchGate, IsNotThereInAChildThatTheDriverDoesNotServe) {
  EXPECT_EQ(run_beside_another("fork-launching"), "0 failed");
}

// Two devices of one daemon, and a tenant that has memory on both or on the first only.
std::string run_on_two_devices(bool has_both, std::uint64_t (&kernels)[2]) {
  const DeviceProcess first({"--memory", "1GiB"});
  const DeviceProcess second({"--memory", "1GiB"});
  const sharing::TestDaemon daemon({Bytes{1LL << 30}, Bytes{1LL << 30}});
  EXPECT_TRUE(daemon.query({{"request", "policy"}, {"policy", "equal"}}));
  auto output = os::make_pipe();
  const pid_t pid = sharing::start_process([&] {
    os::UniqueFd page;
    nlohmann::json memory{{"0", 100 * kMiB}};
    if (has_both) memory["1"] = 100 * kMiB;
    const nlohmann::json request{
        {"request", "join"}, {"name", "a"}, {"memory", memory}, {"compute_ppm", 100'000}};
    if (!sharing::send_control_request(daemon.socket(), request.dump(), &page)) return 99;
    ::fcntl(page.get(), F_SETFD, 0);
    ::dup2(output->write_end.get(), STDOUT_FILENO);
    std::vector<std::string> environment = environment_for(HookMode::kPreloaded);
    environment.push_back("REGATTA_STANDIN=" + first.socket() + ":" + second.socket());
    return TenantProgram::become({kProgram, "devices"}, environment);
  });
  char text[100] = {};
  [[maybe_unused]] const auto size = ::read(output->read_end.get(), text, sizeof text - 1);
  int i = 0;
  for (const DeviceProcess* device : {&first, &second}) {
    kernels[i] = 0;
    for (const standin::Packet& line : usage_of(device->socket()))
      kernels[i] += line.sequence;
    ++i;
  }
  sharing::wait_status(pid);
  return text;
}

TEST_F(HookedLaunchGate, IsOfTheDeviceThatIsLaunchedOn) {
  std::uint64_t kernels[2] = {};
  EXPECT_EQ(run_on_two_devices(true, kernels), "both\n");
}

TEST_F(HookedLaunchGate, RefusesADeviceThatTheTenantHasNothingOf) {
  std::uint64_t kernels[2] = {};
  EXPECT_EQ(run_on_two_devices(false, kernels), "device 1: 800\n");
  EXPECT_EQ(kernels[1], 0U);
}

}  // namespace
}  // namespace regatta::hook_test
