#include "regatta/platform/store/backup.h"

#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/base/os/file.h"
#include "regatta/platform/store/internal/shipping_folder.h"
#include "regatta/platform/store/sqlite_store.h"
#include "regatta/platform/store/test_records.h"

namespace regatta::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class BackupTest : public testing::Test {
 protected:
  BackupTest() : temporary_(*memory_folder()) {
    options_.folder = temporary_.path() + "/store";
    options_.reserve = Bytes{0};
    options_.backup.shipping_folder = shipping();
    options_.backup.snapshot_every = Seconds{1e6};
  }

  std::string shipping() const { return temporary_.path() + "/shipping"; }
  std::string target() const { return temporary_.path() + "/restored"; }
  std::string log(Revision start) const { return log_path(shipping(), start); }

  std::unique_ptr<Store> open() const {
    Result<std::unique_ptr<Store>> store = open_sqlite_store(options_);
    EXPECT_TRUE(store) << (store ? "" : store.error().message);
    return store ? std::move(*store) : nullptr;
  }

  // One change each, from `first` on.
  static void commit(Store& store, Revision first, int count) {
    for (Revision revision = first; revision < first + count; ++revision)
      ASSERT_TRUE(
          store.commit(std::vector{put("job/" + std::to_string(revision % 7), revision, "value")}));
  }

  RestoreReport restored() const {
    const Result<RestoreReport> report = restore(shipping(), target());
    EXPECT_TRUE(report) << (report ? "" : report.error().message);
    return report ? *report : RestoreReport{};
  }

  StoreContent restored_content() const {
    return content_of(**open_sqlite_store({.folder = target(), .reserve = Bytes{0}}));
  }

  Error restore_error() const {
    const Result<RestoreReport> report = restore(shipping(), target());
    EXPECT_FALSE(report);
    EXPECT_FALSE(std::filesystem::exists(target()));
    EXPECT_FALSE(std::filesystem::exists(target() + ".restoring"));
    return report ? Error{} : report.error();
  }

  os::TempFolder temporary_;
  SqliteStoreOptions options_;
};

TEST_F(BackupTest, RestoresASnapshotAndTheCommitsAfterIt) {
  auto store = open();
  commit(*store, 1, 20);
  ASSERT_TRUE(store->commit(std::vector{removal("job/0", 21), removal("job/1", 22)}));
  ASSERT_TRUE(store->backup_status());
  const StoreContent content = content_of(*store);
  const RestoreReport report = restored();
  EXPECT_EQ(report.snapshot, 0);
  EXPECT_EQ(report.revision, 22);
  EXPECT_EQ(report.commits, 21);
  EXPECT_EQ(report.records, 5);
  EXPECT_FALSE(report.is_log_cut);
  EXPECT_EQ(restored_content().records, content.records);
  EXPECT_EQ(restored_content().revision, 22);
}

TEST_F(BackupTest, GoesOnWithItsLogAfterARestart) {
  commit(*open(), 1, 5);
  commit(*open(), 6, 5);
  EXPECT_THAT(list_shipped_files(shipping())->snapshots, ElementsAre(0));
  EXPECT_EQ(restored().revision, 10);
}

TEST_F(BackupTest, CutsHalfACommitFromItsLogAfterARestart) {
  commit(*open(), 1, 5);
  const std::string bytes = *os::read_file(log(0));
  ASSERT_TRUE(os::write_file(log(0), bytes + bytes.substr(0, 30)));
  commit(*open(), 6, 1);
  EXPECT_EQ(restored().revision, 6);
}

TEST_F(BackupTest, MakesASnapshotWhenTheLogEndsBeforeTheStore) {
  commit(*open(), 1, 5);
  const std::string bytes = *os::read_file(log(0));
  ASSERT_TRUE(os::write_file(log(0), bytes.substr(0, bytes.size() - 1)));
  commit(*open(), 6, 1);
  EXPECT_THAT(list_shipped_files(shipping())->snapshots, ElementsAre(0, 5));
  const RestoreReport report = restored();
  EXPECT_EQ(report.snapshot, 5);
  EXPECT_EQ(report.revision, 6);
}

TEST_F(BackupTest, RefusesAFolderThatIsAheadOfItsStore) {
  commit(*open(), 1, 5);
  ASSERT_TRUE(os::remove_tree(options_.folder));
  const auto store = open_sqlite_store(options_);
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, Code::kConflict);
  EXPECT_EQ(store.error().message, shipping() +
                                       ": its copies end at revision 5, and the store at 0; "
                                       "restore the store from them, or name another folder");
}

TEST_F(BackupTest, RefusesAFolderInUse) {
  const auto store = open();
  options_.folder += "2";
  const auto second = open_sqlite_store(options_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kConflict);
}

TEST_F(BackupTest, KeepsTheNewestSnapshots) {
  options_.backup.snapshot_every = Seconds{0};
  options_.backup.snapshots_kept = 2;
  const auto store = open();
  for (Revision revision = 1; revision <= 5; ++revision) {
    commit(*store, revision, 1);
    ASSERT_TRUE(store->maintain());
    ASSERT_TRUE(store->backup_status());
  }
  EXPECT_THAT(list_shipped_files(shipping())->snapshots, ElementsAre(4, 5));
  EXPECT_THAT(list_shipped_files(shipping())->logs, ElementsAre(4, 5));
  EXPECT_EQ(restored().snapshot, 5);
}

TEST_F(BackupTest, RestoresFromAnOlderSnapshotAndBothLogs) {
  options_.backup.snapshot_every = Seconds{0};
  {
    const auto store = open();
    commit(*store, 1, 3);
    ASSERT_TRUE(store->maintain());
    commit(*store, 4, 3);
  }
  const std::string newest = snapshot_path(shipping(), 3);
  ASSERT_TRUE(os::write_file(newest, "no store"));
  EXPECT_THAT(restore_error().message, HasSubstr(newest + ": is damaged ("));
  ASSERT_TRUE(os::remove_tree(newest));
  const RestoreReport report = restored();
  EXPECT_EQ(report.snapshot, 0);
  EXPECT_EQ(report.revision, 6);
  EXPECT_EQ(report.commits, 6);
}

TEST_F(BackupTest, LeavesAnIncompleteLastCommitOut) {
  commit(*open(), 1, 5);
  const std::string bytes = *os::read_file(log(0));
  ASSERT_TRUE(os::write_file(log(0), bytes.substr(0, bytes.size() - 1)));
  const RestoreReport report = restored();
  EXPECT_EQ(report.revision, 4);
  EXPECT_TRUE(report.is_log_cut);
}

TEST_F(BackupTest, NamesADamagedCommitAndLeavesNothing) {
  commit(*open(), 1, 5);
  std::string bytes = *os::read_file(log(0));
  bytes[bytes.size() / 2] ^= 1;
  ASSERT_TRUE(os::write_file(log(0), bytes));
  const Error error = restore_error();
  EXPECT_EQ(error.code, Code::kInvalidInput);
  EXPECT_THAT(error.message, HasSubstr(log(0) + ": the commit at byte "));
}

TEST_F(BackupTest, NamesAGapBetweenCommits) {
  commit(*open(), 1, 4);
  const std::string bytes = *os::read_file(log(0));
  const std::size_t quarter = bytes.size() / 4;  // all commits have one size
  ASSERT_TRUE(os::write_file(log(0), bytes.substr(0, quarter) + bytes.substr(2 * quarter)));
  EXPECT_THAT(restore_error().message, HasSubstr("follows revision 2, and those before end at 1"));
}

TEST_F(BackupTest, NeedsASnapshotAndAnEmptyTarget) {
  ASSERT_TRUE(os::make_folder(shipping()));
  EXPECT_EQ(restore_error().code, Code::kNotFound);
  commit(*open(), 1, 1);
  ASSERT_TRUE(os::make_folder(target()));
  ASSERT_TRUE(os::write_file(target() + "/file", "text"));
  const Result<RestoreReport> report = restore(shipping(), target());
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, Code::kConflict);
  EXPECT_EQ(*os::read_file(target() + "/file"), "text");
}

TEST_F(BackupTest, CommitsWithoutItsCopies) {
  ASSERT_TRUE(os::write_file(shipping(), "no folder"));
  const auto store = open();
  commit(*store, 1, 2);
  EXPECT_FALSE(store->backup_status());
  EXPECT_TRUE(store->maintain());
}

TEST(Backup, RestoresAFileThatTheStoreHasCopied) {
  const os::TempFolder folder = os::TempFolder::create().value();
  const std::string file = folder.path() + "/copy.db";
  {
    auto store = open_sqlite_store({.folder = folder.path() + "/a", .reserve = Bytes{0}});
    ASSERT_TRUE(store);
    const std::vector<Change> changes = {{"job/1", 1, "one"}, {"job/2", 2, "two"}};
    ASSERT_TRUE((*store)->commit(changes));
    ASSERT_TRUE((*store)->copy_to(file));
    EXPECT_FALSE((*store)->copy_to(file));  // nothing is written over
  }
  const auto report = restore(file, folder.path() + "/b");
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->records, 2);
  EXPECT_EQ(report->revision, 2);
  ASSERT_TRUE(os::write_file(file, "no database"));
  const auto damaged = restore(file, folder.path() + "/c");
  ASSERT_FALSE(damaged);
  EXPECT_THAT(damaged.error().message, testing::HasSubstr("copy.db"));
}

}  // namespace
}  // namespace regatta::store
