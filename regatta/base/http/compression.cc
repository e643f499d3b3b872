#include "regatta/base/http/compression.h"

#include <algorithm>

#include <zlib.h>

#include "regatta/base/core/result.h"
#include "regatta/base/http/static_files.h"

namespace regatta::http {
namespace {

constexpr std::size_t kWorthBytes = 1000;
constexpr int kGzipWindow = 15 + 16;  // the largest window, with the header of gzip
constexpr int kMemoryLevel = 8;

}  // namespace

std::string gzip(std::string_view body) {
  z_stream stream{};
  REGATTA_CHECK(deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzipWindow, kMemoryLevel,
                             Z_DEFAULT_STRATEGY) == Z_OK);
  std::string packed(deflateBound(&stream, static_cast<uLong>(body.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(body.data()));
  stream.avail_in = static_cast<uInt>(body.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  REGATTA_CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

bool accepts_gzip(std::string_view accept_encoding) {
  return takes_encoding(accept_encoding, "gzip");
}

void compress_for(const Request& request, Response& response) {
  if (response.body.size() < kWorthBytes) return;
  response.headers.emplace_back("Vary", "Accept-Encoding");
  if (!accepts_gzip(request.header("Accept-Encoding"))) return;
  response.body = gzip(response.body);
  response.headers.emplace_back("Content-Encoding", "gzip");
}

}  // namespace regatta::http
