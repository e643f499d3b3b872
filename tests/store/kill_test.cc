// tests/store/kill_test.cc: a store whose process is killed at random points and before each of its
// system calls.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "regatta/base/core/text.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/file.h"
#include "regatta/platform/store/test_records.h"
#include "tests/store/program_run.h"

namespace regatta::store {
namespace {

// A whole number of the environment, for long runs.
int setting(const char* name, int fallback) {
  const char* text = std::getenv(name);
  return text == nullptr ? fallback : parse_number<int>(text).value_or(fallback);
}

#define ASSERT_RUN(name, options)                             \
  const Result<ProgramRun> name = run_store_program(options); \
  ASSERT_TRUE(name) << name.error().message

// REGATTA_KILLS: how often; REGATTA_SEED: of the delays and sizes.
TEST(KilledStore, HoldsAllThatItAcknowledgedAfterManyKills) {
  const int kills = setting("REGATTA_KILLS", 300);
  const int seed = setting("REGATTA_SEED", 1);
  SCOPED_TRACE("REGATTA_SEED=" + std::to_string(seed));
  const os::TempFolder folder = *os::TempFolder::create();
  std::mt19937 random(static_cast<unsigned>(seed));
  std::uniform_real_distribution<double> delay(0.002, 0.030);
  std::int64_t durable = 0;
  int loads = 0;
  for (int kill = 0; kill < kills; ++kill) {
    const std::string waiting = std::to_string(1 + random() % 40);
    ASSERT_RUN(run, (ProgramOptions{.arguments = {folder.path(), "1000000", "--waiting", waiting},
                                    .killed_after = Seconds{delay(random)}}));
    ASSERT_EQ(run->end.signal, SIGKILL) << run->errors;
    if (run->loaded < 0) continue;
    ++loads;
    ASSERT_GE(run->loaded, durable) << "kill " << kill << ": acknowledged transactions are lost";
    durable = run->durable;
  }
  const Result<std::int64_t> found = transactions_in(folder.path());
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_GE(*found, durable);
  EXPECT_GT(loads, kills / 4) << "most runs were killed before they read the store";
  EXPECT_GT(durable, loads);
  RecordProperty("transactions", std::to_string(durable));
  RecordProperty("loads", loads);
}

// The calls of opening an existing store and of two transactions with their maintenance.
class KilledBetweenCalls : public testing::TestWithParam<const char*> {};

TEST_P(KilledBetweenCalls, TheStoreHoldsAllOrNoneOfTheNextTransaction) {
  const os::TempFolder folder = *memory_folder();
  const std::string counted = folder.path() + "/calls";
  const auto commit = [&](const std::string& store, const char* count, const std::string& fault) {
    return run_store_program({.arguments = {store, count, "--longest", "9000"}, .fault = fault});
  };
  const std::string pattern = folder.path() + "/pattern";
  const Result<ProgramRun> whole = commit(pattern, "2", "count:" + counted);
  ASSERT_TRUE(whole && whole->end.is_success()) << whole->errors;
  const int calls = *parse_number<int>(trim(*os::read_file(counted)));
  ASSERT_GT(calls, 20);
  for (int call = 1; call <= calls; ++call) {
    SCOPED_TRACE(call);
    const std::string store = folder.path() + "/" + std::to_string(call);
    const Result<ProgramRun> killed =
        commit(store, "2", std::string(GetParam()) + ":" + std::to_string(call));
    ASSERT_TRUE(killed);
    ASSERT_EQ(killed->end.signal, SIGKILL) << killed->errors;
    const Result<ProgramRun> after = commit(store, "1", "");
    ASSERT_TRUE(after && after->end.is_success()) << after->errors;
    EXPECT_GE(after->loaded, std::max<std::int64_t>(killed->durable, 0));
    EXPECT_LE(after->loaded, std::max<std::int64_t>(killed->durable, 0) + 1);
    EXPECT_EQ(after->durable, after->loaded + 1);
    ASSERT_TRUE(os::remove_tree(store));
  }
}

INSTANTIATE_TEST_SUITE_P(Faults, KilledBetweenCalls, testing::Values("kill", "tear"),
                         [](const auto& faults) { return std::string(faults.param); });

// After an error of fsync nobody knows what the disk holds.
TEST(StoreOfAFailingDisk, EndsAtTheFirstFailedSyncAndAcknowledgesNothingMore) {
  const os::TempFolder folder = *memory_folder();
  const std::string store = folder.path() + "/store";
  int ended = 0;
  for (int sync = 1; sync < 40; ++sync) {
    const Result<ProgramRun> run =
        run_store_program({.arguments = {store, "3"}, .fault = "sync:" + std::to_string(sync)});
    ASSERT_TRUE(run);
    const std::int64_t acknowledged = std::max<std::int64_t>(run->durable, 0);
    if (run->end.is_success()) break;
    ++ended;
    EXPECT_EQ(run->end.status, 4) << run->errors;
    EXPECT_NE(run->errors.find("input/output error"), std::string::npos) << run->errors;
    const Result<std::int64_t> found = transactions_in(store);
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_GE(*found, acknowledged);
    EXPECT_LE(*found, acknowledged + 1);
  }
  EXPECT_GT(ended, 3);
}

}  // namespace
}  // namespace regatta::store
