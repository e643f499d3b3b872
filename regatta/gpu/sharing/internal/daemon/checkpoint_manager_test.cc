#include "regatta/gpu/sharing/internal/daemon/checkpoint_manager.h"

#include <cerrno>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "regatta/base/core/units.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/file.h"
#include "regatta/gpu/sharing/internal/daemon/test_refusal.h"

namespace regatta::sharing {
namespace {

using testing::ExitedWithCode;
using testing::HasSubstr;
using testing::Not;

// In a process of its own, whose lines the test reads. Its status says whether processes can leave
// their GPU: 0 no, 1 yes, 2 nobody knows after all that time.
class CheckpointProbe : public testing::Test {
 protected:
  [[noreturn]] void ask(CheckpointOptions options) const {
    auto tenant_store = TenantStore::open(MappedState::open(folder_.path()).value(), "/none",
                                          {{Bytes{1LL << 30}}, {}})
                            .value();
    CheckpointManager checkpoints(std::move(options));
    const Seconds end = os::monotonic_now() + Seconds{20.0};
    while (!checkpoints.is_decided() && os::monotonic_now() < end) {
      bool is_changed = false;
      const auto now = static_cast<std::uint64_t>(os::monotonic_now().value * 1e9);
      checkpoints.step(
          tenant_store, now, [](int, bool) { return true; }, is_changed);
      os::sleep_for(Seconds{0.002});
    }
    ::_exit(!checkpoints.is_decided() ? 2 : static_cast<int>(checkpoints.is_available()));
  }

  os::TempFolder folder_ = os::TempFolder::create("checkpoints").value();
};

TEST_F(CheckpointProbe, SaysNothingWhereThereIsNoDriver) {
  EXPECT_EXIT(ask({.library = folder_.path() + "/none.so"}), ExitedWithCode(0),
              Not(HasSubstr("leave their GPU")));
}

TEST_F(CheckpointProbe, WarnsOfADriverThatDoesNotAnswer) {
  const std::string fifo = folder_.path() + "/fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EXIT(ask({.library = fifo, .timeout = Seconds{0.05}}), ExitedWithCode(0),
              HasSubstr(fifo + " does not say whether processes can leave their GPU; none will"));
}

TEST_F(CheckpointProbe, WarnsWhenItFailsAsOnAnOldKernel) {
  if (!can_refuse()) GTEST_SKIP() << "this kernel has no seccomp";
  const auto ask_there = [this] {
    if (!refuse(SYS_close_range, ENOSYS)) ::_exit(3);
    ask({.library = folder_.path() + "/none.so"});
  };
  EXPECT_EXIT(ask_there(), ExitedWithCode(0),
              HasSubstr("failed, as it does before Linux 5.9; none will"));
}

}  // namespace
}  // namespace regatta::sharing
