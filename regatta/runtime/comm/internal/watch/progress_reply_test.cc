#include "regatta/runtime/comm/internal/watch/progress_reply.h"

#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace regatta::comm {
namespace {

ProgressReply example() {
  return {.report = {.state = MemberState::kNotCalled,
                     .call = ~std::uint64_t{0},
                     .bytes = 4096,
                     .is_elsewhere = true,
                     .other_call = 7,
                     .other_bytes = 8},
          .stopped_rank = 3,
          .busiest = LinkUtilization{.to = 5, .rate = {31e6}, .busy = 0.75}};
}

TEST(ProgressReply, ComesBackAsItWas) {
  const auto answer = decode_progress_reply(encode_progress_reply(example()));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->report.state, MemberState::kNotCalled);
  EXPECT_FALSE(answer->report.knows_call);
  EXPECT_EQ(answer->report.call, ~std::uint64_t{0});
  EXPECT_EQ(answer->report.bytes, 4096U);
  EXPECT_TRUE(answer->report.is_elsewhere);
  EXPECT_EQ(answer->report.other_call, 7U);
  EXPECT_EQ(answer->report.other_bytes, 8U);
  EXPECT_EQ(answer->stopped_rank, 3);
  ASSERT_TRUE(answer->busiest);
  EXPECT_EQ(answer->busiest->to, 5);
  EXPECT_EQ(answer->busiest->rate.value, 31e6);
  EXPECT_EQ(answer->busiest->busy, 0.75);
  EXPECT_FALSE(decode_progress_reply(encode_progress_reply({}))->busiest);
}

TEST(ProgressReply, RefusesOtherBytes) {
  std::string text = encode_progress_reply(example());
  EXPECT_FALSE(decode_progress_reply(text.substr(1)));
  EXPECT_FALSE(decode_progress_reply(text + " "));
  EXPECT_FALSE(decode_progress_reply(""));
  std::string other = text;
  other[0] = 2;
  EXPECT_FALSE(decode_progress_reply(other));
  other = text;
  other[1] = 100;
  EXPECT_FALSE(decode_progress_reply(other));
  for (const double impossible : {-1.0, 1.5, std::numeric_limits<double>::quiet_NaN()}) {
    ProgressReply answer = example();
    answer.busiest->busy = impossible;
    EXPECT_FALSE(decode_progress_reply(encode_progress_reply(answer))) << impossible;
  }
}

}  // namespace
}  // namespace regatta::comm
