#include "regatta/runtime/comm/internal/engine/operation_inbox.h"

#include <gtest/gtest.h>

namespace regatta::comm {
namespace {

struct Submission {
  std::vector<std::unique_ptr<Operation>> operations;
  std::shared_ptr<Handle::State> handle = std::make_shared<Handle::State>();

  Submission() {
    operations.push_back(std::make_unique<Operation>());
    operations.back()->handle = handle;
  }
};

TEST(OperationInbox, WakesTheProgressThreadOnceForEachSleep) {
  OperationInbox inbox;
  EXPECT_FALSE(inbox.submit(Submission().operations)) << "the thread is awake";
  EXPECT_FALSE(inbox.begin_sleep()) << "an operation waits";
  EXPECT_EQ(inbox.consume().size(), 1U);
  EXPECT_TRUE(inbox.begin_sleep());
  EXPECT_TRUE(inbox.submit(Submission().operations));
  EXPECT_FALSE(inbox.submit(Submission().operations));
  inbox.end_sleep();
  EXPECT_EQ(inbox.consume().size(), 2U);
}

TEST(OperationInbox, EndsOperationsThatWereNotConsumedAndLaterOnesWithTheError) {
  OperationInbox inbox;
  Submission early;
  Submission late;
  inbox.submit(std::move(early.operations));
  EXPECT_FALSE(early.handle->done.load());
  inbox.fail({Code::kUnavailable, "rank 3 at s0: connection lost"}, Seconds{2});
  inbox.submit(std::move(late.operations));
  for (const Submission* one : {&early, &late}) {
    ASSERT_TRUE(one->handle->done.load());
    EXPECT_EQ(one->handle->error->message, "rank 3 at s0: connection lost");
  }
  EXPECT_TRUE(inbox.consume().empty());
}

}  // namespace
}  // namespace regatta::comm
