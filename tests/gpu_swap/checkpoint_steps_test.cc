// One step of a process off its device or back, and where the driver says that it is after that.
#include <cstdlib>

#include <sys/wait.h>

#include "regatta/gpu/sharing/internal/swap/checkpoint.h"
#include "tests/gpu_swap/over_commit.h"

namespace regatta::gpu_swap {
namespace {

using sharing::CheckpointAction;
using sharing::CheckpointOutcome;

constexpr const char* kDriver = REGATTA_DRIVER "/libcuda.so.1";

// A program without the hook, that nobody else takes off its device.
class CheckpointSteps : public OverCommit {
 protected:
  ~CheckpointSteps() override { ::unsetenv("REGATTA_STANDIN_FAULTS"); }
  void start_program(const std::string& kind) {
    device_ = std::make_unique<DeviceProcess>(std::vector<std::string>{"--memory", "64MiB"});
    ::setenv("REGATTA_STANDIN", device_->socket().c_str(), 1);
    pids_.push_back(sharing::start_process([&] {
      return TenantProgram::become({REGATTA_SWAP_PROGRAM, "0", std::to_string(control_fd_.get()),
                                    std::to_string(kBytes), kind},
                                   hook_test::environment_on(*device_, HookMode::kPlain));
    }));
    ASSERT_TRUE(wait_until([&] { return control_->rounds[0] > 0; }));
  }
  CheckpointOutcome step(CheckpointAction action, const std::string& faults = "",
                         const std::string& driver = kDriver) const {
    ::setenv("REGATTA_STANDIN_FAULTS", faults.c_str(), 1);
    const pid_t helper = sharing::start_checkpoint(driver, action, pids_[0], Seconds{2.0});
    ::unsetenv("REGATTA_STANDIN_FAULTS");
    int status = -1;
    EXPECT_EQ(::waitpid(helper, &status, 0), helper);
    return sharing::checkpoint_outcome(status);
  }
  bool goes_on() const {
    const long rounds = control_->rounds[0];
    return wait_until([&] { return control_->rounds[0] > rounds + 1; }, 0.3);
  }

  static constexpr std::uint64_t kBytes = 16 * kMiB;
};

TEST_F(CheckpointSteps, WhoCannotLeaveGoesOn) {
  start_program("staying");
  for (const char* const fault :
       {"cuCheckpointProcessLock:1=801", "cuCheckpointProcessCheckpoint:1=801"}) {
    EXPECT_EQ(step(CheckpointAction::kOut, fault), CheckpointOutcome::kStillHere) << fault;
    EXPECT_TRUE(goes_on()) << fault;
  }
  finish();
}

TEST_F(CheckpointSteps, WhoCannotComeBackIsStillAway) {
  start_program("staying");
  EXPECT_EQ(step(CheckpointAction::kOut), CheckpointOutcome::kDone);
  EXPECT_EQ(step(CheckpointAction::kIn, "cuCheckpointProcessRestore:1=801"),
            CheckpointOutcome::kStillAway);
  EXPECT_EQ(device_->used_bytes(), 0);
  EXPECT_EQ(step(CheckpointAction::kIn), CheckpointOutcome::kDone);
  EXPECT_TRUE(goes_on());
  finish();
}

TEST_F(CheckpointSteps, WhoIsLockedIsOnTheDeviceAndGoesOnAfterTheNextStep) {
  start_program("staying");
  EXPECT_EQ(step(CheckpointAction::kOut,
                 "cuCheckpointProcessCheckpoint:1=801,cuCheckpointProcessUnlock:1=801"),
            CheckpointOutcome::kLocked);
  EXPECT_GE(device_->used_bytes(), kBytes);
  EXPECT_FALSE(goes_on());
  EXPECT_EQ(step(CheckpointAction::kOut), CheckpointOutcome::kDone) << "from there, too";
  EXPECT_EQ(device_->used_bytes(), 0);
  EXPECT_EQ(step(CheckpointAction::kIn, "cuCheckpointProcessUnlock:1=801"),
            CheckpointOutcome::kLocked);
  EXPECT_GE(device_->used_bytes(), kBytes);
  EXPECT_FALSE(goes_on());
  EXPECT_EQ(step(CheckpointAction::kIn), CheckpointOutcome::kDone);
  EXPECT_TRUE(goes_on());
  finish();
}

TEST_F(CheckpointSteps, WhomTheDriverGaveUpIsBroken) {
  start_program("sharing");
  control_->idle[0] = true;
  os::sleep_for(Seconds{0.1});
  EXPECT_EQ(step(CheckpointAction::kOut), CheckpointOutcome::kBroken);
  EXPECT_GE(device_->used_bytes(), kBytes);
  EXPECT_EQ(step(CheckpointAction::kIn), CheckpointOutcome::kBroken);
  control_->idle[0] = false;
  EXPECT_NE(sharing::wait_status(pids_[0]), 0) << "its calls fail";
}

TEST_F(CheckpointSteps, ADriverThatDoesNotSayWhereItIsIsNotTrusted) {
  start_program("staying");
  EXPECT_EQ(step(CheckpointAction::kOut, "cuCheckpointProcessGetState:2=801"),
            CheckpointOutcome::kUnknown);
  EXPECT_EQ(step(CheckpointAction::kIn, "cuInit:1=100"), CheckpointOutcome::kUnknown);
  EXPECT_EQ(step(CheckpointAction::kIn, "", "/no/such/driver"), CheckpointOutcome::kMissing);
  EXPECT_EQ(step(CheckpointAction::kIn), CheckpointOutcome::kDone);
  finish();
}

}  // namespace
}  // namespace regatta::gpu_swap
