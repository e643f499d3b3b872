#include "regatta/base/http/compression.h"

#include <gtest/gtest.h>
#include <zlib.h>

namespace regatta::http {
namespace {

std::string gunzip(std::string packed, std::size_t size) {
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  std::string body(size, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(body.data());
  stream.avail_out = static_cast<uInt>(body.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  inflateEnd(&stream);
  return body;
}

TEST(Compression, GivesBackTheSameBytes) {
  std::string body;
  for (int i = 0; i < 20'000; ++i)
    body += static_cast<char>(i * i % 251);
  const std::string packed = gzip(body);
  EXPECT_LT(packed.size(), body.size());
  EXPECT_EQ(gunzip(packed, body.size()), body);
}

TEST(Compression, AsksWhetherTheClientAcceptsIt) {
  EXPECT_TRUE(accepts_gzip("gzip"));
  EXPECT_TRUE(accepts_gzip("deflate, gzip;q=0.8"));
  EXPECT_FALSE(accepts_gzip("gzip;q=0"));
  EXPECT_FALSE(accepts_gzip("gzip; q=0.000, br"));
  EXPECT_FALSE(accepts_gzip("x-gzip"));
  EXPECT_FALSE(accepts_gzip(""));
}

TEST(Compression, LeavesSmallBodiesAlone) {
  const Request request{.headers = {{"Accept-Encoding", "gzip"}}};
  Response small{.body = std::string(999, 'a')};
  compress_for(request, small);
  EXPECT_EQ(small.body.size(), 999U);
  Response large{.body = std::string(5000, 'a')};
  compress_for(request, large);
  EXPECT_EQ(find_header(large.headers, "content-encoding"), "gzip");
  EXPECT_EQ(gunzip(large.body, 5000), std::string(5000, 'a'));
}

}  // namespace
}  // namespace regatta::http
