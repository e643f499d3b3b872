#include "regatta/platform/node_agent/internal/run_folder.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "regatta/base/os/file.h"
#include "regatta/platform/node_agent/internal/lease_file.h"

namespace regatta::node_agent {
namespace {

using testing::HasSubstr;

ReplicaSpec full_spec() {
  ReplicaSpec spec;
  spec.command = {"python3", "-c", "print('a=b')\n"};
  spec.environment = {{"A", "1=2"}, {"EMPTY", ""}};
  spec.working_folder = "/home/u";
  spec.user = ProcessUser{.uid = 1000, .gid = 100, .groups = {100, 4}};
  spec.cgroup = "/sys/fs/cgroup/x";
  spec.first_rank = 8;
  spec.ranks = 4;
  spec.log_bytes_max = 12345;
  spec.grace_ms = 50;
  spec.stop_signal = 10;
  return spec;
}

TEST(RunFolder, KeepsASpecThroughItsFile) {
  const auto read = decode_replica_spec(encode(full_spec()));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, full_spec());
  EXPECT_EQ(read->command[2], "print('a=b')\n");
  EXPECT_EQ(read->user->groups, (std::vector<gid_t>{100, 4}));
}

TEST(RunFolder, SkipsWhatANewerAgentAddsToASpec) {
  const auto read = decode_replica_spec(encode(full_spec()) + std::string("novelty=7\0", 10));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->ranks, 4);
}

TEST(RunFolder, RefusesASpecThatIsCutOffOrWrong) {
  const std::string text = encode(full_spec());
  EXPECT_FALSE(decode_replica_spec(text.substr(0, text.size() - 1)));
  EXPECT_FALSE(decode_replica_spec(encode(ReplicaSpec{})));
  EXPECT_FALSE(decode_replica_spec(text + std::string("ranks=0\0", 8)));
  EXPECT_FALSE(decode_replica_spec(std::string("regatta-replica-9\0", 18)));
}

TEST(RunFolder, KeepsHowAReplicaEnded) {
  const auto folder = os::TempFolder::create();
  ASSERT_TRUE(folder);
  const auto before = read_exit(folder->path());
  ASSERT_TRUE(before);
  EXPECT_FALSE(*before);
  const ReplicaExit exit{.exit_status = 3,
                         .signal = 9,
                         .is_node_fault = true,
                         .running_ms = 1234,
                         .reason = "rank 2 ended with status 3"};
  ASSERT_TRUE(write_durably(exit_path(folder->path()), encode(exit)));
  const auto after = read_exit(folder->path());
  ASSERT_TRUE(after && *after);
  EXPECT_EQ(**after, exit);
  ASSERT_TRUE(os::write_file(exit_path(folder->path()), "regatta-exit-1\nstatus 1\n"));
  EXPECT_FALSE(read_exit(folder->path()));
}

TEST(RunFolder, KnowsTheProcessThatHoldsTheLock) {
  const auto folder = os::TempFolder::create();
  ASSERT_TRUE(folder);
  EXPECT_EQ(*RunLock::holder(folder->path()), std::nullopt);
  int ready[2];
  int end[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(end), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(end[1]);
    const auto lock = RunLock::take(folder->path());
    static_cast<void>(::write(ready[1], "x", 1) < 0);
    char letter = 0;
    static_cast<void>(::read(end[0], &letter, 1) < 0);
    ::_exit(lock ? 0 : 1);
  }
  char letter = 0;
  ASSERT_EQ(::read(ready[0], &letter, 1), 1);
  EXPECT_EQ(*RunLock::holder(folder->path()), child);
  const auto second = RunLock::take(folder->path());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kConflict);
  ::close(end[1]);
  int state = 0;
  ASSERT_EQ(::waitpid(child, &state, 0), child);
  EXPECT_EQ(WEXITSTATUS(state), 0);
  EXPECT_EQ(*RunLock::holder(folder->path()), std::nullopt);
  EXPECT_TRUE(RunLock::take(folder->path()));
}

TEST(LeaseFile, IsSeenByOthersAndOutlivesItsWriterButNoBoot) {
  const auto folder = os::TempFolder::create();
  ASSERT_TRUE(folder);
  const std::string path = folder->path() + "/lease";
  EXPECT_FALSE(LeaseFile::open(path));
  {
    auto mine = LeaseFile::create(path, "boot-1", 1000);
    ASSERT_TRUE(mine) << mine.error().message;
    const auto others = LeaseFile::open(path);
    ASSERT_TRUE(others);
    mine->renew(5, 7);
    EXPECT_EQ(others->deadline_ns(-1), 12);  // that of the file
    EXPECT_EQ(others->deadline_ns(3), 8);    // of a replica
    EXPECT_EQ(others->deadline_ns(0), INT64_MAX);
    mine->keep_until(20);
    mine->renew(6, 7);
    EXPECT_EQ(others->deadline_ns(3), 20);
    EXPECT_EQ(others->deadline_ns(-1), 20);
    mine->end_extension();
    EXPECT_EQ(others->deadline_ns(3), 9);
    EXPECT_EQ(others->deadline_ns(-1), 13);
    mine->renew(5, 7);
  }
  EXPECT_EQ(LeaseFile::create(path, "boot-1", 1000)->last_contact_ns(), 5);
  const auto anew = LeaseFile::create(path, "boot-2", 1000);
  ASSERT_TRUE(anew);
  EXPECT_GT(anew->last_contact_ns(), 5);
  EXPECT_EQ(anew->deadline_ns(-1), anew->last_contact_ns() + 1000);
  // A file of before has less; supervisors that have mapped it go on with it.
  ASSERT_EQ(::truncate(path.c_str(), 88), 0);
  EXPECT_EQ(LeaseFile::open(path)->kept_until_ns(), 0);
  auto longer = LeaseFile::create(path, "boot-2", 1000);
  ASSERT_TRUE(longer);
  longer->keep_until(INT64_MAX - 1);
  EXPECT_EQ(anew->kept_until_ns(), INT64_MAX - 1);
  ASSERT_TRUE(os::write_file(path, "short"));
  EXPECT_FALSE(LeaseFile::open(path));
}

}  // namespace
}  // namespace regatta::node_agent
