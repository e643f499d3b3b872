#include "regatta/runtime/comm/compression.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta::comm::compress {
namespace {

using testing::HasSubstr;

TEST(CompressionKind, IsFoundByItsName) {
  for (const CompressionKind kind : kCompressionKinds)
    EXPECT_EQ(compression_kind_named(to_string(kind)), kind);
  EXPECT_FALSE(compression_kind_named("gzip"));
}

TEST(Compression, RefusesWhatIsOutOfRange) {
  EXPECT_TRUE(check({}));
  EXPECT_THAT(check({.fraction = 0}).error().message, HasSubstr("fraction 0 of top_k"));
  EXPECT_FALSE(check({.fraction = 1.5}));
  EXPECT_THAT(check({.rank = 0}).error().message, HasSubstr("rank 0 of power_sgd"));
  EXPECT_THAT(check({.allowed = {CompressionKind::kTopK}}).error().message,
              HasSubstr("automatic cannot choose top_k"));
}

ErrorFeedback sample() {
  return {.residual = {1, -2.5F, 0, 1e-30F}, .factor = {3, 4}, .calls = 17};
}

TEST(ErrorFeedback, ComesBackFromItsBytes) {
  for (const ErrorFeedback& given : {sample(), ErrorFeedback{}}) {
    const auto back = error_feedback_from_bytes(to_bytes(given));
    ASSERT_TRUE(back);
    EXPECT_EQ(back->residual, given.residual);
    EXPECT_EQ(back->factor, given.factor);
    EXPECT_EQ(back->calls, given.calls);
  }
}

TEST(ErrorFeedback, RefusesBytesThatAreNotItsOwn) {
  const std::vector<std::byte> good = to_bytes(sample());
  const auto message = [](const std::vector<std::byte>& bytes) {
    const auto read = error_feedback_from_bytes(bytes);
    return read ? std::string("no error") : read.error().message;
  };
  EXPECT_THAT(message({}), HasSubstr("its head is cut off"));
  auto other = good;
  other[0] = std::byte{'x'};
  EXPECT_THAT(message(other), HasSubstr("something else"));
  other = good;
  other[4] = std::byte{9};
  EXPECT_THAT(message(other), HasSubstr("version 9 is not known here, only 1"));
  other = good;
  other[16] = std::byte{0xff};  // the number of elements
  EXPECT_THAT(message(other), HasSubstr("do not fit its head"));
  other = good;
  other[40] ^= std::byte{1};
  EXPECT_THAT(message(other), HasSubstr("changed since it was written"));
  for (std::size_t bytes = 0; bytes < good.size(); ++bytes)
    EXPECT_NE(message({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(bytes)}),
              "no error");
}

}  // namespace
}  // namespace regatta::comm::compress
