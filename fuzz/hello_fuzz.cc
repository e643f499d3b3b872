// fuzz/hello_fuzz.cc: any bytes as what ranks say when they meet: hello, reply, and the text of an
// endpoint.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "regatta/base/core/check.h"
#include "regatta/runtime/comm/hello.h"

namespace {

using namespace regatta::comm;  // NOLINT(google-build-using-namespace): a program of its own

// Bytes come one after the other: once they are refused or complete, more of them change nothing.
void check_hello(std::span<const std::byte> bytes) {
  const auto whole = decode_hello(bytes);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    const auto part = decode_hello(bytes.first(length));
    if (!part) {
      REGATTA_CHECK(!whole && whole.error().message == part.error().message);
      return;
    }
    if (!part->has_value()) continue;
    REGATTA_CHECK(whole && whole->has_value() && (*whole)->token == (*part)->token);
    const std::vector<std::byte> again = encode_hello(**part);
    REGATTA_CHECK(std::equal(again.begin(), again.end(), bytes.begin()));
    return;
  }
}

void check_reply(std::span<const std::byte> bytes) {
  const auto reply = decode_reply(bytes);
  if (!reply || !reply->has_value()) return;
  const std::vector<std::byte> again = encode_reply(**reply);
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
  check_hello(bytes);
  check_reply(bytes);
  check_endpoint(text);
  // With a right mark at the front, so that the fields behind it are reached.
  const std::vector<std::byte> hello = encode_hello({});
  std::vector<std::byte> marked(hello.begin(), hello.begin() + 12);
  marked.insert(marked.end(), bytes.begin(), bytes.end());
  check_hello(marked);
  check_endpoint("regatta-coll-3\t" + text);
  return 0;
}
