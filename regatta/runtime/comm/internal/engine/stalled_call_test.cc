#include "regatta/runtime/comm/internal/engine/stalled_call.h"

#include <gtest/gtest.h>

#include "regatta/model/collective/call.h"
#include "regatta/runtime/comm/internal/collective_names.h"

namespace regatta::comm {
namespace {

TEST(CallInWorld, NamesTheRootByItsRankOfTheWorld) {
  const std::uint64_t code = encode_call(
      {.kind = CallKind::kBroadcast, .reduction = {DataType::kF32, ReduceOp::kSum, 2}, .root = 1});
  EXPECT_EQ(describe_call(code, 4096), "broadcast of 4 KiB (f32) with root 1");
  EXPECT_EQ(describe_call(call_in_world(code, {4, 6}), 4096),
            "broadcast of 4 KiB (f32) with root 6");
}

TEST(CallInWorld, LeavesCallsWithoutARootAsTheyAre) {
  const std::uint64_t reduce =
      encode_call({.kind = CallKind::kAllReduce, .reduction = {DataType::kF32, ReduceOp::kSum, 2}});
  EXPECT_EQ(call_in_world(reduce, {4, 6}), reduce);
  const std::uint64_t receive = encode_transfer(false, 1);
  EXPECT_EQ(call_in_world(receive, {4, 6}), receive);
}

}  // namespace
}  // namespace regatta::comm
