// The executors of all ranks of a group, driven by one thread.
#include "regatta/runtime/comm/internal/shm/shm_executor.h"

#include <cstdint>
#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/runtime/comm/internal/shm/test_shm_ranks.h"

namespace regatta::comm {
namespace {

using testing::Each;
using testing::HasSubstr;

class Executors {
 public:
  explicit Executors(int ranks) : ranks_(ranks) {
    for (int rank = 0; rank < ranks; ++rank) {
      progress_.push_back(std::make_unique<ShmGroupProgress>(ranks_.peers(rank), 1));
      executors_.push_back(std::make_unique<ShmExecutor>(ranks_.peers(rank), ranks_.segment(rank),
                                                         GroupStart{}, *progress_.back()));
    }
  }
  ShmExecutor& of(int rank) { return *at(executors_, rank); }
  const ShmGroupProgress& progress(int rank) const { return *at(progress_, rank); }

 private:
  TestShmRanks ranks_;
  std::vector<std::unique_ptr<ShmGroupProgress>> progress_;
  std::vector<std::unique_ptr<ShmExecutor>> executors_;
};

ShmOperation sum_of(std::vector<std::int32_t>& data, int ranks) {
  ShmOperation operation;
  auto* bytes = reinterpret_cast<std::byte*>(data.data());
  operation.call = {.kind = CallKind::kAllReduce,
                    .reduction = {DataType::kI32, ReduceOp::kSum, ranks},
                    .in = bytes,
                    .out = bytes,
                    .bytes = data.size() * sizeof(std::int32_t)};
  operation.state = std::make_shared<Handle::State>();
  return operation;
}

TEST(ShmExecutor, WaitsForTheAnnouncementOfEveryRank) {
  Executors executors(2);
  std::vector<std::int32_t> data(4, 1);
  ShmOperation operation = sum_of(data, 2);
  executors.of(0).start(operation);
  EXPECT_FALSE(executors.of(0).advance(operation).value());
  EXPECT_EQ(operation.target.counter, PeerCounter::kPosts);
  EXPECT_THAT(executors.progress(0).waited_for(), testing::ElementsAre(1));
}

// Sizes of a slot, of one staged round and of several.
TEST(ShmExecutor, AddsUpTheVectorsOfAllRanks) {
  for (const std::size_t count : {4U, 10'000U, 3'000'000U}) {
    Executors executors(3);
    std::vector<std::vector<std::int32_t>> data;
    std::vector<ShmOperation> operations(3);
    for (int rank = 0; rank < 3; ++rank)
      data.emplace_back(count, rank + 1);
    for (int rank = 0; rank < 3; ++rank) {
      at(operations, rank) = sum_of(at(data, rank), 3);
      executors.of(rank).start(at(operations, rank));
    }
    std::vector<bool> has_ended(3);
    while (testing::Value(has_ended, testing::Contains(false)))
      for (int rank = 0; rank < 3; ++rank)
        if (!at(has_ended, rank))
          at(has_ended, rank) = executors.of(rank).advance(at(operations, rank)).value();
    for (int rank = 0; rank < 3; ++rank) {
      executors.of(rank).end(at(operations, rank));
      EXPECT_THAT(at(data, rank), Each(6));
      EXPECT_TRUE(at(operations, rank).state->done);
    }
  }
}

TEST(ShmExecutor, FailsWhereARankCalledSomethingElse) {
  Executors executors(2);
  std::vector<std::int32_t> data(4, 1);
  std::vector<std::int32_t> longer(5, 1);
  ShmOperation operation = sum_of(data, 2);
  ShmOperation other = sum_of(longer, 2);
  executors.of(0).start(operation);
  executors.of(1).start(other);
  const Result<bool> advanced = executors.of(0).advance(operation);
  ASSERT_FALSE(advanced);
  EXPECT_EQ(advanced.error().code, Code::kConflict);
  EXPECT_THAT(advanced.error().message, HasSubstr("rank 1"));
  executors.of(0).abort(operation, advanced.error());
  EXPECT_EQ(operation.state->error->code, Code::kConflict);
}

}  // namespace
}  // namespace regatta::comm
