// tests/gpu_swap/over_commit.h: tenants that run program.cc on one device, and what they say of it.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <sys/mman.h>

#include "tests/gpu_swap/program_control.h"
#include "tests/hook/tenant.h"

namespace regatta::gpu_swap {

using hook_test::DeviceProcess;
using hook_test::HookMode;
using hook_test::kMiB;
using hook_test::TenantProgram;
using sharing::TestDaemon;

class OverCommit : public testing::Test {
 protected:
  OverCommit() {
    control_fd_ = os::UniqueFd(::memfd_create("board", 0));
    EXPECT_EQ(::ftruncate(control_fd_.get(), sizeof(ProgramControl)), 0);
    void* const memory = ::mmap(nullptr, sizeof(ProgramControl), PROT_READ | PROT_WRITE, MAP_SHARED,
                                control_fd_.get(), 0);
    control_ = new (memory) ProgramControl;
  }
  ~OverCommit() override { ::munmap(control_, sizeof(ProgramControl)); }

  // `context`: what a context takes. `driver`: of the daemon's helpers, which take processes off
  // the device; "": there are none.
  void start_device(std::uint64_t mebibytes, const char* speed, Seconds longest_wait,
                    const std::string& driver = "", const std::string& context = "0B") {
    const std::string memory = std::to_string(mebibytes) + "MiB";
    device_ = std::make_unique<DeviceProcess>(std::vector<std::string>{
        "--memory", memory, "--copy-speed", speed, "--context-memory", context});
    ::setenv("REGATTA_STANDIN", device_->socket().c_str(), 1);
    link_ = std::stod(speed) * 1e6;
    sharing::DaemonOptions options{
        .policy = REGATTA_SHARE_BURST_WEIGHT,
        .host_memory = Bytes{1LL << 32},
        .residency = {.link = BytesPerSecond{link_},
                      .longest_wait = longest_wait,
                      .timeout = Seconds{5.0},
                      .checkpoints = {.library = driver, .timeout = Seconds{5.0}}}};
    daemon_ = std::make_unique<TestDaemon>(
        std::vector<Bytes>{Bytes{static_cast<long long>(mebibytes * kMiB)}}, options);
  }
  // The program of this number, as a tenant of its own with a little more than it takes. `kind`: of
  // its memory, as program.cc knows it.
  pid_t start(int number, std::uint64_t bytes, unsigned lease_s = 0,
              const std::string& kind = "swappable") {
    const pid_t pid = sharing::start_process([&, this] {
      os::UniqueFd page;
      const nlohmann::json request{{"request", "join"},
                                   {"name", "t" + std::to_string(number)},
                                   {"memory", {{"0", bytes + (kind == "graphs" ? 16 : 4) * kMiB}}},
                                   {"overcommit", true},
                                   {"lease_s", lease_s},
                                   {"compute_ppm", 10'000}};
      const auto answer = sharing::send_control_request(daemon_->socket(), request.dump(), &page);
      if (!answer) std::fprintf(stderr, "%s\n", answer.error().message.c_str());
      if (!answer) return 99;
      ::fcntl(page.get(), F_SETFD, 0);
      return TenantProgram::become({REGATTA_SWAP_PROGRAM, std::to_string(number),
                                    std::to_string(control_fd_.get()), std::to_string(bytes), kind},
                                   hook_test::environment_on(*device_, HookMode::kPreloaded));
    });
    pids_.push_back(pid);
    return pid;
  }
  // The program of this number, of no tenant.
  void start_outside(int number, std::uint64_t bytes) {
    pids_.push_back(sharing::start_process([&, this] {
      return TenantProgram::become(
          {REGATTA_SWAP_PROGRAM, std::to_string(number), std::to_string(control_fd_.get()),
           std::to_string(bytes), "staying"},
          hook_test::environment_on(*device_, HookMode::kPlain));
    }));
  }
  bool wait_until(const std::function<bool()>& condition, double seconds = 60) const {
    const Seconds end = os::monotonic_now() + Seconds{seconds};
    while (!condition() && os::monotonic_now() < end)
      os::sleep_for(Seconds{0.002});
    return condition();
  }
  // So many times each of them comes to work after another one did.
  void wait_for_turns(int count, int turns) {
    std::vector<int> all;
    for (int i = 0; i < count; ++i)
      all.push_back(i);
    wait_for_turns_of(all, turns);
  }
  void wait_for_turns_of(const std::vector<int>& numbers, int turns) {
    const std::size_t count = numbers.size();
    std::vector<long> seen(count, 0);
    std::vector<int> turn(count, 0);
    std::size_t last = count;
    const bool all = wait_until([&] {
      for (std::size_t i = 0; i < count; ++i) {
        const long rounds = control_->rounds[numbers[i]];
        if (rounds > seen[i] && last != i) {
          ++turn[i];
          last = i;
        }
        seen[i] = rounds;
      }
      return *std::min_element(turn.begin(), turn.end()) >= turns;
    });
    EXPECT_TRUE(all) << "least turns of one: " << *std::min_element(turn.begin(), turn.end());
  }
  nlohmann::json memory_of(int number) const {
    const auto listing = daemon_->query({{"request", "ps"}});
    if (!listing) return {};
    for (const auto& tenant : (*listing)["tenants"])
      if (tenant["name"] == "t" + std::to_string(number) && !tenant["memory"].empty())
        return tenant["memory"][0];
    return {};
  }
  // "0", or what the daemon counts on the device is not what the device has.
  std::string difference() const {
    std::uint64_t counted = 0;
    const auto listing = daemon_->query({{"request", "ps"}});
    if (!listing) return "no answer";
    for (const auto& tenant : (*listing)["tenants"])
      if (!tenant["memory"].empty())
        counted += tenant["memory"][0]["resident_bytes"].get<std::uint64_t>();
    const std::uint64_t real = device_->used_bytes();
    return counted == real ? "0" : std::to_string(counted) + ", really " + std::to_string(real);
  }
  void finish() {
    control_->stop = true;
    for (const pid_t pid : pids_)
      EXPECT_EQ(sharing::wait_status(pid), 0);
    pids_.clear();
    EXPECT_TRUE(wait_until([&] { return device_->used_bytes() == 0; }, 5));
  }

  std::unique_ptr<DeviceProcess> device_;
  std::unique_ptr<TestDaemon> daemon_;
  double link_ = 0;
  os::UniqueFd control_fd_;
  ProgramControl* control_ = nullptr;
  std::vector<pid_t> pids_;
};

}  // namespace regatta::gpu_swap
