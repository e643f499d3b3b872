// fuzz/shipped_log_fuzz.cc: any bytes as the log of a store's commits, in part with right
// checksums, so that the content behind them is read.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include <fuzzer/FuzzedDataProvider.h>

#include "regatta/base/core/result.h"
#include "regatta/platform/store/internal/crc32c.h"
#include "regatta/platform/store/internal/shipped_log.h"

namespace {

using namespace regatta;         // NOLINT(google-build-using-namespace): a program of its own
using namespace regatta::store;  // NOLINT(google-build-using-namespace): the same

std::string number(std::uint32_t value) {
  std::string bytes(sizeof(value), '\0');
  std::memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

// As encode_commit() frames a body.
std::string framed(const std::string& body) {
  std::string bytes = "RGL1" + number(static_cast<std::uint32_t>(body.size()));
  bytes += number(crc32c(bytes));
  return bytes + number(crc32c(body)) + body;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider input(data, size);
  std::string log;
  while (input.remaining_bytes() > 0) {
    const bool is_framed = input.ConsumeBool();
    const std::string bytes = input.ConsumeRandomLengthString();
    log += is_framed ? framed(bytes) : bytes;
  }
  ShippedLogReader reader(log, "log");
  for (;;) {
    const std::size_t before = reader.position();
    const auto commit = reader.next();
    if (!commit) {
      REGATTA_CHECK(commit.error().message.starts_with("log: "));
      return 0;
    }
    if (!*commit) return 0;
    const ShippedCommit& read = **commit;
    REGATTA_CHECK(!read.changes.empty() && read.changes.front().revision > read.previous);
    // There is one way to write a commit.
    REGATTA_CHECK(encode_commit(read.previous, read.changes) ==
                  log.substr(before, reader.position() - before));
  }
}
