// tests/store/disk_full_test.cc: a store on a small file system that becomes full, or read-only.
// Each test runs in a child process with mounts of its own.
#include <csignal>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "regatta/base/os/file.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/platform/store/commit_queue.h"
#include "regatta/platform/store/sqlite_store.h"
#include "tests/store/test_transactions.h"

namespace regatta::store {
namespace {

constexpr int kNoMounts = 77;
constexpr long long kDisk = 12 << 20;

// Mounts of this process alone; in a user namespace where it is not root.
bool enter_own_mounts() {
  const std::string map = "0 " + std::to_string(::getuid()) + " 1";
  if (::unshare(CLONE_NEWNS) != 0) {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    if (!os::write_file("/proc/self/uid_map", map)) return false;
  }
  return ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

// Runs `test` with an empty file system of kDisk bytes at the folder that it is given; the mount
// goes with the child.
void on_small_disk(const std::function<void(const std::string& disk)>& test) {
  const os::TempFolder folder = *os::TempFolder::create();
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string size = "size=" + std::to_string(kDisk);
    if (!enter_own_mounts() ||
        ::mount("tmpfs", folder.path().c_str(), "tmpfs", 0, size.c_str()) != 0)
      ::_exit(kNoMounts);
    test(folder.path());
    std::fflush(nullptr);
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoMounts)
    GTEST_SKIP() << "no right to mount a file system";
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the failures stand above";
}

SqliteStoreOptions small_store(const std::string& disk) {
  return {.folder = disk + "/store", .reserve = Bytes{2 << 20}, .log_pages_max = 128};
}

// Stands for other programs: a file of so many bytes.
void fill(const std::string& disk, long long size) {
  const os::UniqueFd file(::open((disk + "/other").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_TRUE(file);
  static_cast<void>(::posix_fallocate(file.get(), 0, size));
}

// All but `left` bytes.
void fill_but(const std::string& disk, long long left) {
  const long long free = disk_state(small_store(disk))->free.value;
  fill(disk, free - left);
}

// Transactions that only add: number N writes one record of up to 20,000 bytes.
constexpr std::size_t kLongest = 20'000;

std::vector<Change> addition(std::int64_t number) {
  return {{job_key(number), number, job_value(number, kLongest)}};
}

// How many of them the store holds; -1 where a record is not as it was committed.
std::int64_t count_additions(Store& store) {
  std::int64_t count = 0;
  const Result<Revision> revision = store.load([&](const Record& record) -> Status {
    ++count;
    if (record.key == job_key(count) && record.value == job_value(count, kLongest)) return {};
    return Error{Code::kInvalidInput, "another record"};
  });
  return revision && *revision == count ? count : -1;
}

// Commits additions from `next` on until the disk is full, and gives the next one.
std::int64_t add_until_full(Store& store, std::int64_t next) {
  for (;; ++next) {
    const Status status = store.commit(addition(next));
    if (status) continue;
    EXPECT_EQ(status.error().code, Code::kExhausted) << status.error().message;
    return next;
  }
}

TEST(StoreOnAFullDisk, HoldsExactlyWhatItAcknowledgedAndGoesOnWhenSpaceReturns) {
  on_small_disk([](const std::string& disk) {
    const SqliteStoreOptions options = small_store(disk);
    auto store = *open_sqlite_store(options);
    EXPECT_FALSE(disk_state(options)->is_low);
    ASSERT_TRUE(store->commit(addition(1)));
    fill_but(disk, 1 << 20);
    EXPECT_TRUE(disk_state(options)->is_low);

    std::int64_t next = add_until_full(*store, 2);
    EXPECT_FALSE(os::read_file(options.folder + "/reserve")) << "the reserve is not given up";
    EXPECT_EQ(count_additions(*store), next - 1);
    EXPECT_EQ(add_until_full(*store, next), next) << "the store went on without space";
    static_cast<void>(store->maintain().has_value());
    store.reset();
    store = *open_sqlite_store(options);
    EXPECT_EQ(count_additions(*store), next - 1);

    ::unlink((disk + "/other").c_str());
    const Status maintained = store->maintain();
    EXPECT_TRUE(maintained);
    EXPECT_FALSE(disk_state(options)->is_low);
    for (int i = 0; i < 20; ++i, ++next)
      ASSERT_TRUE(store->commit(addition(next)));
    EXPECT_EQ(count_additions(*store), next - 1);
  });
}

TEST(StoreOnAFullDisk, TakesWhatIsUnderWayFromItsReserve) {
  on_small_disk([](const std::string& disk) {
    const SqliteStoreOptions options = small_store(disk);
    auto store = *open_sqlite_store(options);
    fill_but(disk, 0);
    // Some 0.8 MiB, less than half of the reserve.
    for (std::int64_t number = 1; number <= 80; ++number) {
      const Status status = store->commit(addition(number));
      ASSERT_TRUE(status) << number << ": " << status.error().message;
    }
    EXPECT_TRUE(disk_state(options)->is_low);
    EXPECT_EQ(count_additions(*store), 80);
  });
}

TEST(StoreOnAFullDisk, OpensAfterItsProcessWasKilled) {
  on_small_disk([](const std::string& disk) {
    const SqliteStoreOptions options = small_store(disk);
    std::int64_t next = 0;
    const os::Pipe pipe = *os::make_pipe();
    const pid_t child = ::fork();
    if (child == 0) {
      auto store = *open_sqlite_store(options);
      fill_but(disk, 0);
      next = add_until_full(*store, 1);
      static_cast<void>(::write(pipe.write_end.get(), &next, sizeof(next)) > 0);
      ::raise(SIGKILL);
    }
    ASSERT_EQ(::read(pipe.read_end.get(), &next, sizeof(next)), 8);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    ASSERT_GT(next, 10);
    EXPECT_LT(disk_state(options)->free.value, 1 << 16);
    auto store = open_sqlite_store(options);
    ASSERT_TRUE(store) << store.error().message;
    EXPECT_EQ(count_additions(**store), next - 1);
    ::unlink((disk + "/other").c_str());
    EXPECT_TRUE((*store)->commit(addition(next)));
    EXPECT_EQ(count_additions(**store), next);
  });
}

TEST(StoreOnAFullDisk, LetsTheQueueWaitForSpace) {
  on_small_disk([](const std::string& disk) {
    const SqliteStoreOptions options = small_store(disk);
    auto store = *open_sqlite_store(options);
    fill_but(disk, 0);
    const std::int64_t next = add_until_full(*store, 1);
    const os::Pipe pipe = *os::make_pipe();
    CommitQueue queue(std::move(store), {.retry_after = Seconds{0.01}},
                      [&](const CommitReport& report) {
                        const char letter = report.status ? 'd' : 'f';
                        static_cast<void>(::write(pipe.write_end.get(), &letter, 1) > 0);
                      });
    queue.add(addition(next));
    char letter = 0;
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(::read(pipe.read_end.get(), &letter, 1), 1);
      EXPECT_EQ(letter, 'f');
    }
    ::unlink((disk + "/other").c_str());
    while (letter == 'f')
      ASSERT_EQ(::read(pipe.read_end.get(), &letter, 1), 1);
    EXPECT_EQ(queue.waiting_changes(), 0U);
  });
}

TEST(StoreOnAReadOnlyFileSystem, IsRefusedWithItsName) {
  on_small_disk([](const std::string& disk) {
    const SqliteStoreOptions options = small_store(disk);
    ASSERT_TRUE((*open_sqlite_store(options))->commit(addition(1)));
    ASSERT_EQ(::mount("none", disk.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr), 0);
    const auto store = open_sqlite_store(options);
    ASSERT_FALSE(store);
    EXPECT_EQ(store.error().code, Code::kUnavailable);
    EXPECT_EQ(store.error().message, options.folder +
                                         "/regatta.db: cannot be written; check its rights and "
                                         "whether its file system is mounted read-only");
  });
}

}  // namespace
}  // namespace regatta::store
