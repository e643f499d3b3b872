#include "regatta/runtime/comm/internal/watch/answer.h"

#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace regatta::comm {
namespace {

Answer example() {
  return {.report = {.standing = Standing::kNotCalled,
                     .call = ~std::uint64_t{0},
                     .bytes = 4096,
                     .is_elsewhere = true,
                     .other_call = 7,
                     .other_bytes = 8},
          .stopped_rank = 3,
          .busiest = LinkPace{.to = 5, .rate = {31e6}, .busy = 0.75}};
}

TEST(Answer, ComesBackAsItWas) {
  const auto answer = decode_answer(encode_answer(example()));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->report.standing, Standing::kNotCalled);
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
  EXPECT_FALSE(decode_answer(encode_answer({}))->busiest);
}

TEST(Answer, RefusesWhatIsNone) {
  std::string text = encode_answer(example());
  EXPECT_FALSE(decode_answer(text.substr(1)));
  EXPECT_FALSE(decode_answer(text + " "));
  EXPECT_FALSE(decode_answer(""));
  std::string other = text;
  other[0] = 2;
  EXPECT_FALSE(decode_answer(other));
  other = text;
  other[1] = 100;
  EXPECT_FALSE(decode_answer(other));
  for (const double impossible : {-1.0, 1.5, std::numeric_limits<double>::quiet_NaN()}) {
    Answer answer = example();
    answer.busiest->busy = impossible;
    EXPECT_FALSE(decode_answer(encode_answer(answer))) << impossible;
  }
}

}  // namespace
}  // namespace regatta::comm
