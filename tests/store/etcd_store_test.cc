// tests/store/etcd_store_test.cc: the store in a real etcd: one leader, its fence, large commits.
#include "regatta/platform/store/etcd_store.h"

#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/base/os/clock.h"
#include "regatta/platform/store/internal/etcd/client.h"
#include "regatta/platform/store/internal/etcd/keys.h"
#include "regatta/platform/store/test_records.h"
#include "tests/store/etcd_server.h"
#include "tests/store/program_run.h"
#include "tests/store/test_transactions.h"

namespace regatta::store {
namespace {

using testing::HasSubstr;

class EtcdStoreTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { started() = EtcdServer::start(); }
  static void TearDownTestSuite() { started() = Error{Code::kUnsupported, "ended"}; }

  void SetUp() override {
    if (!started() && started().error().code == Code::kUnsupported)
      GTEST_SKIP() << started().error().message;
    ASSERT_TRUE(started()) << started().error().message;
    static int tests = 0;
    options_.endpoints = {server().endpoint()};
    options_.prefix = "test" + std::to_string(++tests) + "/";
    options_.name = "first";
  }

  static Result<std::unique_ptr<EtcdServer>>& started() {
    static Result<std::unique_ptr<EtcdServer>> server = Error{Code::kUnsupported, "not started"};
    return server;
  }
  static EtcdServer& server() { return **started(); }

  std::unique_ptr<Store> open() const { return open_as("first"); }
  std::unique_ptr<Store> open_as(const std::string& name, double wait = 0) const {
    EtcdStoreOptions options = options_;
    options.name = name;
    options.wait_most = Seconds{wait};
    Result<std::unique_ptr<Store>> store = open_etcd_store(options);
    EXPECT_TRUE(store) << (store ? "" : store.error().message);
    return store ? std::move(*store) : nullptr;
  }

  // The keys in etcd that begin with the prefix and `rest`.
  int count_keys(const std::string& rest) const {
    EtcdClient client(options_.endpoints, {}, Seconds{5});
    etcdserverpb::RangeRequest request;
    request.set_key(options_.prefix + rest);
    request.set_range_end(end_of_prefix(options_.prefix + rest));
    request.set_keys_only(true);
    return client.read(request)->kvs_size();
  }

  EtcdStoreOptions options_;
};

TEST_F(EtcdStoreTest, GivesBackWhatWasCommitted) {
  const std::string bytes("\0\xff\n", 3);
  const RecordMap expected{{"job/1", {5, "c"}}, {"job/3", {3, bytes}}, {"node/n", {6, ""}}};
  {
    const auto store = open();
    EXPECT_EQ(content_of(*store).revision, 0);
    ASSERT_TRUE(store->commit(
        std::vector{put("job/1", 1, "a"), put("job/2", 2, "b"), put("job/3", 3, bytes)}));
    ASSERT_TRUE(store->commit(
        std::vector{removal("job/2", 4), put("job/1", 5, "c"), put("node/n", 6, "")}));
    ASSERT_TRUE(store->commit(std::vector{put("job/9", 7, "d"), removal("job/9", 8)}));
    EXPECT_EQ(content_of(*store).records, expected) << "from the commits";
  }
  {
    const auto store = open();
    EXPECT_EQ(content_of(*store).records, expected) << "by the next leader";
    ASSERT_TRUE(store->maintain());
    EXPECT_EQ(content_of(*store).records, expected) << "from the records";
    EXPECT_EQ(count_keys("commit/"), 0);
    EXPECT_EQ(count_keys("record/"), 3);
  }
  const StoreContent content = content_of(*open());
  EXPECT_EQ(content.records, expected);
  EXPECT_EQ(content.revision, 8);
}

TEST_F(EtcdStoreTest, TakesCommitsBeyondTheLimitsOfEtcd) {
  const auto store = open();
  std::vector<Change> changes;
  for (Revision i = 1; i <= 1200; ++i)
    changes.push_back(put("job/" + std::to_string(10000 + i), i, std::string(3000, 'x')));
  ASSERT_TRUE(store->commit(changes));
  EXPECT_EQ(count_keys("part/"), 4);
  EXPECT_EQ(content_of(*store).records.size(), 1200U);
  ASSERT_TRUE(store->commit(std::vector{removal("job/10001", 1201)}));
  for (int i = 0; i < 2; ++i)
    ASSERT_TRUE(store->maintain());
  EXPECT_EQ(count_keys("part/"), 0);
  EXPECT_EQ(count_keys("record/"), 1199);
  const StoreContent content = content_of(*store);
  EXPECT_EQ(content.records.size(), 1199U);
  EXPECT_EQ(content.revision, 1201);
}

TEST_F(EtcdStoreTest, IgnoresPartsOfACommitThatNeverCameToBe) {
  ASSERT_TRUE(open()->commit(std::vector{put("job/1", 1, "a")}));
  EtcdClient client(options_.endpoints, {}, Seconds{5});
  etcdserverpb::TxnRequest request;
  add_put(request, EtcdKeys(options_.prefix).part(2, 0), "half of it");
  ASSERT_TRUE(client.transact(request));
  const auto store = open();
  EXPECT_EQ(count_keys("part/"), 0);
  EXPECT_EQ(content_of(*store).records, (RecordMap{{"job/1", {1, "a"}}}));
}

TEST_F(EtcdStoreTest, NamesTheLeaderToOthers) {
  EXPECT_EQ(*find_etcd_leader(options_), "");
  auto store = open();
  EXPECT_EQ(*find_etcd_leader(options_), "first");
  const auto second = open_etcd_store(options_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kConflict);
  EXPECT_THAT(second.error().message, HasSubstr("controller 'first' leads"));
  store.reset();
  EXPECT_EQ(*find_etcd_leader(options_), "") << "a leader that ends gives its lease back";
}

TEST_F(EtcdStoreTest, RefusesTheCommitsOfALeaderWhoseKeyIsGone) {
  const auto first = open();
  ASSERT_TRUE(first->commit(std::vector{put("job/1", 1, "a")}));
  // As the end of its lease does it.
  EtcdClient client(options_.endpoints, {}, Seconds{5});
  etcdserverpb::TxnRequest request;
  add_removal(request, EtcdKeys(options_.prefix).leader());
  ASSERT_TRUE(client.transact(request));
  const auto second = open_as("second");
  const Status late = first->commit(std::vector{put("job/1", 2, "late")});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::kConflict);
  EXPECT_THAT(late.error().message, HasSubstr("controller 'second' leads"));
  EXPECT_EQ(first->maintain().error().code, Code::kConflict);
  EXPECT_EQ(content_of(*second).records, (RecordMap{{"job/1", {1, "a"}}}));
  ASSERT_TRUE(second->commit(std::vector{put("job/1", 2, "b")}));
  EXPECT_EQ(content_of(*second).records, (RecordMap{{"job/1", {2, "b"}}}));
}

TEST_F(EtcdStoreTest, FindsOutByItselfThatItLeadsNoMore) {
  const auto first = open();
  EtcdClient client(options_.endpoints, {}, Seconds{5});
  etcdserverpb::TxnRequest request;
  add_removal(request, EtcdKeys(options_.prefix).leader());
  ASSERT_TRUE(first->maintain());
  ASSERT_TRUE(client.transact(request));
  const Status status = first->maintain();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kConflict);
}

TEST_F(EtcdStoreTest, WaitsForAnEtcdThatIsSilentForAWhile) {
  const auto store = open();
  ASSERT_TRUE(store->commit(std::vector{put("job/1", 1, "a")}));
  server().pause();
  std::thread waker([] {
    os::sleep_for(Seconds{0.7});
    server().resume();
  });
  const Status status = store->commit(std::vector{put("job/2", 2, "b")});
  waker.join();
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(content_of(*store).records.size(), 2U);
}

// The waiting controller takes over within the lease of 2 s and etcd's own check each half second.
TEST_F(EtcdStoreTest, AnotherTakesOverWithinThreeSecondsOfTheDeathOfTheLeader) {
  options_.prefix = "regatta/";
  for (int round = 0; round < 2; ++round) {
    const Result<ProgramRun> killed =
        run_store_program({.program = REGATTA_TEST_ETCD_STORE,
                           .arguments = {server().endpoint(), "victim", "1000000", "5"},
                           .killed_after = Seconds{1.5}});
    ASSERT_TRUE(killed);
    ASSERT_GT(killed->durable, 0) << killed->errors;
    const double start = os::monotonic_now().value;
    auto store = open_as("heir", 10);
    const Result<std::int64_t> found = count_transactions(*store, 300);
    ASSERT_TRUE(found) << found.error().message;
    ASSERT_TRUE(store->commit(test_transaction(*found + 1, 300)));
    const double seconds = os::monotonic_now().value - start;
    EXPECT_LE(seconds, 3.0);
    EXPECT_GE(*found, killed->durable);
    EXPECT_LE(*found, killed->durable + 1);
    RecordProperty("takeover_ms", static_cast<int>(seconds * 1000));
  }
}

}  // namespace
}  // namespace regatta::store
