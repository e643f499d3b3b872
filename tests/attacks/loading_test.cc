// Programs that do not load what is preloaded, and what they get of a device of which their tenant
// has 64 MiB.
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "tests/attacks/attack_path.h"
#include "tests/gpu_time/time_shared_machine.h"

namespace regatta::gpu_time {
namespace {

namespace fs = std::filesystem;

constexpr int kQuotaMib = 64;
constexpr int kAllMib = 512;  // as many as the programs want

struct Ended {
  std::string output;
  int status = -1;
  int mebibytes() const { return status == 0 ? std::atoi(output.c_str()) : -1; }
};

class LoadingAttack : public testing::Test {
 protected:
  // As another user by setpriv, which is the first program then.
  Ended run(const std::vector<std::string>& words, bool is_unprivileged = true) {
    auto pipe = os::make_pipe().value();
    const pid_t program = machine_.run_program(
        {.name = "attack", .is_unprivileged = is_unprivileged}, words, pipe.write_end.get());
    pipe.write_end.reset();
    Ended ended;
    char part[256];
    for (ssize_t size = 0; (size = ::read(pipe.read_end.get(), part, sizeof part)) > 0;)
      ended.output.append(part, static_cast<std::size_t>(size));
    ended.status = sharing::wait_status(program);
    return ended;
  }

  const std::string driver_ = std::string(REGATTA_DRIVER) + "/libcuda.so.1";
  TimeSharedMachine machine_;
};

TEST_F(LoadingAttack, AnHonestProgramHasItsQuota) {
  EXPECT_EQ(run({attack("take_memory")}).mebibytes(), kQuotaMib);
  EXPECT_EQ(run({attack("take_memory"), driver_}).mebibytes(), kQuotaMib);
}

TEST_F(LoadingAttack, APluginOpenedWithDeepBindingHasNoMore) {
  EXPECT_EQ(run({attack("deepbind"), REGATTA_DEEPBIND_PLUGIN}).mebibytes(), kQuotaMib);
}

// A program whose file gives it a capability, which the loader takes nothing from the environment
// for.
class FileCapabilities : public LoadingAttack {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root gives a file capabilities";
    fs::copy_file(attack("take_memory"), program_);
    vfs_cap_data rights{};
    rights.magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE;
    rights.data[0].permitted = 1U << CAP_NET_RAW;
    ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
    if (::setxattr(program_.c_str(), "security.capability", &rights, sizeof rights, 0) != 0)
      GTEST_SKIP() << "this file system has no capabilities";
  }
  const os::TempFolder folder_ = os::TempFolder::create("rights").value();
  const std::string program_ = folder_.path() + "/program";
};

TEST_F(FileCapabilities, GiveNoMore) {
  EXPECT_EQ(run({program_, driver_}).mebibytes(), kQuotaMib);
}

// Installed where only root may read, and with a blank in the path.
TEST_F(LoadingAttack, AFolderThatTheTenantCannotReadGivesNoMore) {
  const os::TempFolder folder = os::TempFolder::create("not for all").value();
  const fs::path from = fs::path(REGATTA_BINARY).parent_path();
  const fs::path to = folder.path();
  fs::create_directory(to / "replacement");
  for (const char* const file : {"regatta", "libregatta_gpu.so", "replacement/libcuda.so.1",
                                 "replacement/libnvidia-ml.so.1"})
    fs::copy_file(from / file, to / file);
  machine_.set_regatta((to / "regatta").string());
  EXPECT_EQ(run({attack("take_memory")}).mebibytes(), kQuotaMib);
}

TEST_F(LoadingAttack, AProgramThatHasNotLoadedTheHookIsKilled) {
  for (const auto& words : std::vector<std::vector<std::string>>{
           {attack("without_loader")}, {attack("without_loader"), "close"}}) {
    const Ended ended = run(words, false);
    EXPECT_EQ(ended.output.find("done"), std::string::npos);
    EXPECT_NE(ended.status, 0);
  }
  // It is the first program that counts: what a shell starts may be anything.
  EXPECT_EQ(run({"sh", "-c", attack("without_loader") + " | grep done; exit 7"}).output,
            "is done\n");
}

// docs/gpu-sharing.md says that `regatta gpu run` does not hold this.
TEST_F(LoadingAttack, AnEmptiedEnvironmentIsNotHeld) {
  const std::string device = machine_.device();
  EXPECT_EQ(
      run({"env", "-i", "REGATTA_STANDIN=" + device, attack("take_memory"), driver_}).mebibytes(),
      kAllMib);
}

}  // namespace
}  // namespace regatta::gpu_time
