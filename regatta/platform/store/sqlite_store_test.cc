#include "regatta/platform/store/sqlite_store.h"

#include <csignal>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "regatta/base/os/file.h"
#include "regatta/platform/store/test_records.h"

namespace regatta::store {
namespace {

using testing::HasSubstr;

class SqliteStoreTest : public testing::Test {
 protected:
  SqliteStoreTest() : temporary_(*memory_folder()) {
    options_.folder = temporary_.path() + "/store";
    options_.reserve = Bytes{1 << 20};
  }

  std::string file() const { return options_.folder + "/regatta.db"; }

  std::unique_ptr<Store> open() const {
    Result<std::unique_ptr<Store>> store = open_sqlite_store(options_);
    EXPECT_TRUE(store) << (store ? "" : store.error().message);
    return store ? std::move(*store) : nullptr;
  }

  Error open_error() const {
    const Result<std::unique_ptr<Store>> store = open_sqlite_store(options_);
    EXPECT_FALSE(store);
    return store ? Error{} : store.error();
  }

  void run_sql(const char* sql) const {
    sqlite3* handle = nullptr;
    ASSERT_EQ(sqlite3_open(file().c_str(), &handle), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(handle, sql, nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(handle);
  }

  // Replaces the first `from` in the file by a text of the same length.
  void patch_file(const std::string& from, const std::string& to) const {
    std::string bytes = *os::read_file(file());
    const std::size_t at = bytes.find(from);
    ASSERT_NE(at, bytes.npos);
    bytes.replace(at, to.size(), to);
    ASSERT_TRUE(os::write_file(file(), bytes));
  }

  os::TempFolder temporary_;
  SqliteStoreOptions options_;
};

TEST_F(SqliteStoreTest, IsEmptyInANewFolder) {
  const StoreContent content = content_of(*open());
  EXPECT_EQ(content.revision, 0);
  EXPECT_TRUE(content.records.empty());
}

TEST_F(SqliteStoreTest, GivesBackWhatWasCommittedAfterItIsOpenedAgain) {
  const std::string bytes("\0\xff\n", 3);
  {
    const auto store = open();
    ASSERT_TRUE(store->commit(std::vector{put("node/n2", 1, ""), put("job/2", 2, bytes)}));
    ASSERT_TRUE(store->commit(std::vector{put("job/1", 5, "a"), put("node/n2", 6, "b")}));
    ASSERT_TRUE(store->commit({}));
  }
  const StoreContent content = content_of(*open());
  EXPECT_EQ(content.revision, 6);
  const RecordMap expected{{"job/1", {5, "a"}}, {"job/2", {2, bytes}}, {"node/n2", {6, "b"}}};
  EXPECT_EQ(content.records, expected);
}

TEST_F(SqliteStoreTest, KeepsTheRevisionOfARemoval) {
  {
    const auto store = open();
    ASSERT_TRUE(store->commit(std::vector{put("job/1", 1, "a"), put("job/2", 2, "b")}));
    ASSERT_TRUE(store->commit(std::vector{removal("job/2", 3), removal("job/none", 4)}));
  }
  const StoreContent content = content_of(*open());
  EXPECT_EQ(content.revision, 4);
  EXPECT_EQ(content.records, (RecordMap{{"job/1", {1, "a"}}}));
}

TEST_F(SqliteStoreTest, EndsALoadAtTheFirstErrorOfItsReader) {
  const auto store = open();
  ASSERT_TRUE(store->commit(std::vector{put("job/1", 1, "a"), put("job/2", 2, "b")}));
  int visits = 0;
  const Result<Revision> loaded = store->load([&](const Record&) -> Status {
    ++visits;
    return Error{Code::kInvalidInput, "no job"};
  });
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().message, "no job");
  EXPECT_EQ(visits, 1);
  EXPECT_EQ(content_of(*store).records.size(), 2U);
}

TEST_F(SqliteStoreTest, RefusesASecondProcess) {
  const auto store = open();
  ASSERT_TRUE(store->commit(std::vector{put("job/1", 1, "a")}));
  const pid_t child = ::fork();
  if (child == 0) {
    const auto second = open_sqlite_store(options_);
    ::_exit(!second && second.error().code == Code::kConflict ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(open_error().code, Code::kConflict);
  EXPECT_TRUE(store->commit(std::vector{put("job/2", 2, "b")}));
}

TEST_F(SqliteStoreTest, RefusesANewerSchemaAndLeavesItAsItIs) {
  open();
  run_sql("PRAGMA user_version=2");
  const std::string before = *os::read_file(file());
  const Error error = open_error();
  EXPECT_EQ(error.code, Code::kInvalidInput);
  EXPECT_EQ(error.message, file() +
                               ": has schema version 2, and this program knows 1; start the "
                               "newer program, or restore a backup of the older one");
  EXPECT_EQ(*os::read_file(file()), before);
}

TEST_F(SqliteStoreTest, RefusesAnotherProgramsFileAndLeavesItAsItIs) {
  ASSERT_TRUE(os::make_folder(options_.folder));
  run_sql("CREATE TABLE contacts (name TEXT)");
  const std::string before = *os::read_file(file());
  EXPECT_EQ(open_error().message, file() + ": is another program's file; name another folder");
  EXPECT_EQ(*os::read_file(file()), before);
}

TEST_F(SqliteStoreTest, NamesADamagedFile) {
  open();
  patch_file("SQLite format", "SQLite farmat");
  const Error error = open_error();
  EXPECT_EQ(error.code, Code::kInvalidInput);
  EXPECT_EQ(error.message,
            file() + ": is damaged (file is not a database); restore it from a backup");
}

TEST_F(SqliteStoreTest, NamesADamagedRecord) {
  ASSERT_TRUE(open()->commit(std::vector{put("job/1", 1, "right"), put("job/2", 2, "second")}));
  patch_file("second", "sekond");
  const Result<StoreContent> content = read_content(*open());
  ASSERT_FALSE(content);
  EXPECT_EQ(content.error().code, Code::kInvalidInput);
  EXPECT_EQ(content.error().message,
            file() + ": the record 'job/2' is damaged; restore the store from a backup");
}

TEST_F(SqliteStoreTest, NamesAFileThatIsCutOff) {
  std::vector<Change> changes;
  for (int i = 1; i <= 200; ++i)
    changes.push_back(put("job/" + std::to_string(i), i, std::string(500, 'x')));
  ASSERT_TRUE(open()->commit(changes));
  const std::string bytes = *os::read_file(file());
  ASSERT_TRUE(os::write_file(file(), bytes.substr(0, bytes.size() / 2)));
  Result<std::unique_ptr<Store>> store = open_sqlite_store(options_);
  const Status status = store ? Status(Error{Code::kTimeout, ""}) : Status(store.error());
  const Error error = store ? read_content(**store).error() : status.error();
  EXPECT_EQ(error.code, Code::kInvalidInput);
  EXPECT_THAT(error.message, HasSubstr(file() + ": is damaged"));
}

// The limit of file sizes stands for any failing write in the middle of a commit.
TEST_F(SqliteStoreTest, WritesNothingOfACommitThatFailsAndThenRefusesAll) {
  auto store = open();
  ASSERT_TRUE(store->commit(std::vector{put("job/1", 1, "a")}));
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  rlimit limit = before;
  limit.rlim_cur = 64 << 10;
  ::setrlimit(RLIMIT_FSIZE, &limit);
  const Status status =
      store->commit(std::vector{put("job/1", 2, "b"), put("job/2", 3, std::string(1 << 20, 'x'))});
  ::setrlimit(RLIMIT_FSIZE, &before);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kUnavailable);
  EXPECT_THAT(status.error().message, HasSubstr("file too large"));
  const Status later = store->commit(std::vector{put("job/3", 4, "c")});
  ASSERT_FALSE(later);
  EXPECT_EQ(later.error().message, status.error().message);
  EXPECT_FALSE(store->maintain());
  EXPECT_FALSE(read_content(*store));
  store.reset();
  EXPECT_EQ(content_of(*open()).records, (RecordMap{{"job/1", {1, "a"}}}));
}

TEST_F(SqliteStoreTest, KeepsAReserveAndMakesItAgain) {
  const auto store = open();
  EXPECT_EQ(os::read_file(options_.folder + "/reserve")->size(), 1U << 20);
  EXPECT_FALSE(disk_state(options_)->is_low);
  ASSERT_TRUE(os::remove_tree(options_.folder + "/reserve"));
  EXPECT_TRUE(disk_state(options_)->is_low);
  ASSERT_TRUE(store->maintain());
  EXPECT_FALSE(disk_state(options_)->is_low);
}

TEST_F(SqliteStoreTest, MovesALongLogIntoItsPlace) {
  options_.log_pages_max = 16;
  const auto store = open();
  for (Revision revision = 1; revision <= 40; ++revision)
    ASSERT_TRUE(store->commit(std::vector{put("job/1", revision, std::string(20000, 'x'))}));
  ASSERT_TRUE(store->maintain());
  // Each commit writes some five pages; without moves the log would hold some 200.
  EXPECT_LE(os::read_file(file() + "-wal")->size(), 32U * 4200);
  EXPECT_EQ(content_of(*store).records.at("job/1").first, 40);
}

}  // namespace
}  // namespace regatta::store
