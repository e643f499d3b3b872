#include "regatta/base/http/internal/web_socket_frames.h"

#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta::http {
namespace {

using Event = FrameReader::Event;
using namespace std::string_literals;

constexpr std::size_t kMessageMax = 1 << 20;

Event event_of(const std::string& bytes, WebSocketRole from = WebSocketRole::kServer) {
  FrameReader reader(from, 1000);
  std::string_view rest = bytes;
  return reader.next(rest);
}

TEST(WebSocketFrames, AreReadAsTheyWereWrittenHoweverTheyAreCut) {
  for (const WebSocketRole role : {WebSocketRole::kServer, WebSocketRole::kClient}) {
    const std::vector<std::string> sent = {"", "hello", std::string(126, 'a'),
                                           std::string(65536, 'b')};
    std::string bytes;
    for (const std::string& message : sent) {
      append_frame(bytes, role, FrameOpcode::kBinary, message);
      append_frame(bytes, role, FrameOpcode::kPing, "p");
    }
    for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, bytes.size()}) {
      FrameReader reader(role, kMessageMax);
      std::vector<std::string> messages;
      int pings = 0;
      for (std::size_t at = 0; at < bytes.size(); at += piece) {
        std::string_view part = std::string_view(bytes).substr(at, piece);
        for (Event event = reader.next(part); event != Event::kNeedsMore;
             event = reader.next(part)) {
          if (event == Event::kMessage) messages.push_back(reader.payload());
          pings += event == Event::kPing ? 1 : 0;
        }
      }
      EXPECT_EQ(messages, sent);
      EXPECT_EQ(pings, 4);
    }
  }
}

TEST(WebSocketFrames, ReadTheExamplesOfRfc6455) {
  // Section 5.7: a fragmented message, here binary, with a ping between its parts.
  const std::string bytes = "\x02\x03Hel\x89\x05Hello\x80\x02lo"s;
  FrameReader reader(WebSocketRole::kServer, 1000);
  std::string_view rest = bytes;
  EXPECT_EQ(reader.next(rest), Event::kPing);
  EXPECT_EQ(reader.payload(), "Hello");
  EXPECT_EQ(reader.next(rest), Event::kMessage);
  EXPECT_EQ(reader.payload(), "Hello");
  // A masked one.
  FrameReader masked(WebSocketRole::kClient, 1000);
  const std::string from_client = "\x82\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"s;
  rest = from_client;
  EXPECT_EQ(masked.next(rest), Event::kMessage);
  EXPECT_EQ(masked.payload(), "Hello");
  // Section 1.3.
  EXPECT_EQ(web_socket_accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

TEST(WebSocketFrames, ThatBreakTheProtocolAreErrors) {
  EXPECT_EQ(event_of("\x82\x01x"s, WebSocketRole::kClient), Event::kError);          // no mask
  EXPECT_EQ(event_of("\x82\x81\0\0\0\0x"s, WebSocketRole::kServer), Event::kError);  // a mask
  EXPECT_EQ(event_of("\xC2\x01x"s), Event::kError);                                  // reserved bit
  EXPECT_EQ(event_of("\x81\x01x"s), Event::kError);                                  // text
  EXPECT_EQ(event_of("\x83\x01x"s), Event::kError);                                  // unknown
  EXPECT_EQ(event_of("\x80\x01x"s), Event::kError);           // continues nothing
  EXPECT_EQ(event_of("\x09\x01x"s), Event::kError);           // a ping in parts
  EXPECT_EQ(event_of("\x89\x7E\0\x7E"s), Event::kError);      // a long ping
  EXPECT_EQ(event_of("\x02\x01x\x02\x01x"s), Event::kError);  // a second begin
}

TEST(WebSocketFrames, OfMessagesThatAreTooLargeAreRefusedByTheirHeader) {
  FrameReader reader(WebSocketRole::kServer, 1000);
  const std::string bytes = "\x82\x7F\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF"s;
  std::string_view rest = bytes;
  EXPECT_EQ(reader.next(rest), Event::kError);
  EXPECT_EQ(reader.error_status(), kCloseTooLarge);
  // The sum of the parts counts.
  FrameReader parts(WebSocketRole::kServer, 5);
  const std::string two =
      "\x02\x03"
      "abc\x80\x03"
      "def"s;
  rest = two;
  EXPECT_EQ(parts.next(rest), Event::kError);
  EXPECT_EQ(parts.error_status(), kCloseTooLarge);
}

}  // namespace
}  // namespace regatta::http
