// Programs that attack the daemon by its socket, its files and what others show in /proc, beside
// honest ones.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <unistd.h>

#include "tests/attacks/attack_path.h"
#include "tests/gpu_time/time_shared_machine.h"

namespace regatta::gpu_time {
namespace {

class DaemonAttack : public testing::Test {
 protected:
  // Its first line.
  std::string run_attack(const std::string& name, std::vector<std::string> words) {
    words.insert(words.begin(), attack(name));
    auto output = os::make_pipe();
    machine_.run_program({.name = name, .is_unprivileged = true}, words, output->write_end.get());
    output->write_end.reset();
    std::string line;
    for (char letter = 0; ::read(output->read_end.get(), &letter, 1) == 1 && letter != '\n';)
      line += letter;
    return line;
  }
  // A process of a tenant of 400 MiB and of the attack's user; its number.
  std::string start_victim() {
    return std::to_string(
        machine_.run_program({.name = "victim", .memory = "400MiB", .is_unprivileged = true},
                             {attack("short_processes")}));
  }

  TimeSharedMachine machine_;
};

TEST_F(DaemonAttack, ConnectionsInSilenceKeepNobodyOut) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  ASSERT_EQ(run_attack("silent_connections", {machine_.daemon().socket(), "100", "125"}), "ready");
  const Seconds begin = os::monotonic_now();
  EXPECT_TRUE(machine_.daemon().query({{"request", "ps"}}));
  machine_.run({.name = "honest"}, {});
  machine_.wait_until_ready();
  EXPECT_LT((os::monotonic_now() - begin).value, 4.0);
}

TEST_F(DaemonAttack, ATenantsPageIsOfNoUseToAnotherTenantOfItsUser) {
  const std::string victim = start_victim();
  EXPECT_EQ(run_attack("anothers_page", {victim}), "0 MiB");
}

TEST_F(DaemonAttack, ATenantsPageIsOfNoUseToAProcessWithoutParents) {
  const std::string victim = start_victim();
  EXPECT_EQ(run_attack("anothers_page", {victim, "1"}), "0 MiB");
}

}  // namespace
}  // namespace regatta::gpu_time
