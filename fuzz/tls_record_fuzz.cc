// fuzz/tls_record_fuzz.cc: any bytes as the records that a peer sends after the handshake, and any
// content of genuine records, as a peer that knows the keys may send.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <sys/socket.h>

#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/base/tls/internal/record_layer.h"

namespace {

using namespace regatta;  // NOLINT(google-build-using-namespace): a program of its own

const std::string kSecret(32, 's');
constexpr std::uint32_t kSuite = 0x1301;

// Reads all that a connection gives for `bytes`; returns the content.
std::string read_all(std::string_view bytes) {
  std::array<int, 2> fds{};
  REGATTA_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds.data()) == 0);
  const os::UniqueFd own(fds[0]);
  os::UniqueFd peer(fds[1]);
  tls::RecordLayer layer(own.get(), tls::record_cipher(kSuite), kSecret, kSecret);
  REGATTA_CHECK(::send(peer.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
                static_cast<ssize_t>(bytes.size()));
  peer.reset();
  std::string content;
  std::array<char, 1000> piece{};
  for (;;) {
    const tls::StreamTransfer transfer = layer.read(piece.data(), piece.size());
    if (transfer.progress != tls::StreamProgress::kDone) {
      REGATTA_CHECK(transfer.progress == tls::StreamProgress::kEnded ||
                    transfer.progress == tls::StreamProgress::kFailed);
      return content;
    }
    REGATTA_CHECK(transfer.bytes > 0 && transfer.bytes <= piece.size());
    content.append(piece.data(), transfer.bytes);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data),
                              std::min<std::size_t>(size, 4000));
  // Nobody seals a record without the keys.
  REGATTA_CHECK(read_all(text).empty());
  if (text.empty()) return 0;
  tls::RecordKeys keys(tls::record_cipher(kSuite), kSecret);
  std::string records;
  REGATTA_CHECK(keys.seal(23, "before", records));
  REGATTA_CHECK(keys.seal(static_cast<std::uint8_t>(text.front()), text.substr(1), records));
  REGATTA_CHECK(read_all(records).starts_with("before"));
  return 0;
}
