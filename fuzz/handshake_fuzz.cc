// fuzz/handshake_fuzz.cc: any bytes as what ranks say when they meet: handshake, reply, and the
// text of an endpoint.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/runtime/comm/handshake.h"

namespace {

using namespace regatta::comm;  // NOLINT(google-build-using-namespace): a program of its own

// Bytes come one after the other: once they are refused or complete, more of them change nothing.
void check_handshake(std::span<const std::byte> bytes) {
  const auto whole = decode_handshake(bytes);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    const auto part = decode_handshake(bytes.first(length));
    if (!part) {
      REGATTA_CHECK(!whole && whole.error().message == part.error().message);
      return;
    }
    if (!part->has_value()) continue;
    REGATTA_CHECK(whole && whole->has_value() && (*whole)->token == (*part)->token);
    const std::vector<std::byte> again = encode_handshake(**part);
    REGATTA_CHECK(std::equal(again.begin(), again.end(), bytes.begin()));
    return;
  }
}

void check_reply(std::span<const std::byte> bytes) {
  const auto reply = decode_handshake_reply(bytes);
  if (!reply || !reply->has_value()) return;
  const std::vector<std::byte> again = encode_handshake_reply(**reply);
  REGATTA_CHECK(std::equal(again.begin(), again.end(), bytes.begin()));
}

void check_endpoint(const std::string& text) {
  const auto endpoint = parse_endpoint(text);
  if (!endpoint) return;
  const auto again = parse_endpoint(format_endpoint(*endpoint));
  REGATTA_CHECK(again && again->address == endpoint->address && again->port == endpoint->port &&
                again->unix_name == endpoint->unix_name && again->server == endpoint->server &&
                again->link_rate == endpoint->link_rate);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto bytes = std::as_bytes(std::span(text));
  check_handshake(bytes);
  check_reply(bytes);
  check_endpoint(text);
  // With a right mark at the front, so that the fields behind it are reached.
  const std::vector<std::byte> handshake = encode_handshake({});
  std::vector<std::byte> marked(handshake.begin(), handshake.begin() + 12);
  marked.insert(marked.end(), bytes.begin(), bytes.end());
  check_handshake(marked);
  check_endpoint("regatta-coll-3\t" + text);
  return 0;
}
