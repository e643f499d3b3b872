#include "regatta/base/http/internal/message_parser.h"

#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta::http {
namespace {

TEST(RequestParser, ReadsARequestHoweverItIsCutAndLeavesTheNext) {
  const std::string bytes =
      "POST /a?b=c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3;x=y\r\nabc\r\n2\r\nde\r\n0\r\n\r\nGET /";
  for (const std::size_t piece : {std::size_t{1}, std::size_t{5}, bytes.size()}) {
    RequestParser parser({});
    std::string input;
    std::size_t at = 0;
    while (parser.state() == ParseState::kNeedsMore && at < bytes.size()) {
      input += bytes.substr(at, piece);
      at += piece;
      input.erase(0, parser.put(input));
    }
    ASSERT_EQ(parser.state(), ParseState::kComplete) << parser.problem();
    const Request request = parser.take();
    EXPECT_EQ(request.method, "POST");
    EXPECT_EQ(request.path, "/a");
    EXPECT_EQ(request.body, "abcde");
    EXPECT_EQ(request.header("host"), "x");
    EXPECT_TRUE(parser.keeps_connection());
    if (piece == bytes.size()) {
      EXPECT_EQ(input, "GET /");
    }
  }
}

TEST(RequestParser, GivesTheStatusForARequestThatIsRefused) {
  RequestParser parser({});
  parser.put("GET / HTTP/1.1\r\nHost: x\r\nExpect: wonders\r\n\r\n");
  EXPECT_EQ(parser.state(), ParseState::kFailed);
  EXPECT_EQ(parser.error_status(), 417);
  RequestParser newer({});
  newer.put("GET / HTTP/2.0\r\nHost: x\r\n\r\n");
  EXPECT_EQ(newer.state(), ParseState::kFailed);
  EXPECT_EQ(newer.error_status(), 505);
}

TEST(RequestParser, RefusesTransferCodingsByWhichARequestCouldHideInAnother) {
  for (const char* codings :
       {"identity", "chunked, identity", "gzip, chunked", "xchunked", "\vchunked",
        "chunked\r\nTransfer-Encoding: identity", "chunked\r\nContent-Length: 3"}) {
    RequestParser parser({});
    parser.put(std::string("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: ") + codings +
               "\r\n\r\n0\r\n\r\n");
    EXPECT_EQ(parser.state(), ParseState::kFailed) << codings;
    EXPECT_EQ(parser.error_status(), 400) << codings;
  }
}

TEST(RequestParser, ReadsHttp10WithoutHostAndKeepsNoConnection) {
  RequestParser parser({});
  parser.put("GET / HTTP/1.0\r\n\r\n");
  EXPECT_EQ(parser.state(), ParseState::kComplete);
  EXPECT_TRUE(parser.is_http_1_0());
  EXPECT_FALSE(parser.keeps_connection());
}

TEST(ResponseParser, SkipsInterimResponses) {
  ResponseParser parser(false, {});
  parser.put("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  ASSERT_EQ(parser.state(), ParseState::kComplete);
  EXPECT_EQ(parser.take().body, "ok");
}

TEST(ResponseParser, TakesABodyThatLastsUntilTheEnd) {
  ResponseParser parser(false, {});
  parser.put("HTTP/1.1 200 OK\r\n\r\nbody");
  EXPECT_EQ(parser.state(), ParseState::kNeedsMore);
  parser.put_end();
  ASSERT_EQ(parser.state(), ParseState::kComplete);
  EXPECT_FALSE(parser.keeps_connection());
  EXPECT_EQ(parser.take().body, "body");
}

TEST(ResponseParser, FailsForABodyThatIsCutOff) {
  ResponseParser parser(false, {});
  parser.put("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nbod");
  parser.put_end();
  EXPECT_EQ(parser.state(), ParseState::kFailed);
  ResponseParser none(false, {});
  none.put_end();
  EXPECT_EQ(none.state(), ParseState::kFailed);
}

TEST(ResponseParser, EndsWhenItsOwnerHasEnough) {
  std::string got;
  ResponseParser parser(false, {}, [&got](std::string_view piece) {
    got += piece;
    return false;
  });
  parser.put("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nbo");
  EXPECT_TRUE(parser.is_ended_by_owner());
  EXPECT_EQ(got, "bo");
}

}  // namespace
}  // namespace regatta::http
