#include "regatta/base/tls/internal/record_layer.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::tls {
namespace {

constexpr std::uint8_t kHandshakeType = 22;
constexpr std::uint8_t kDataType = 23;
const std::string kSecret(32, 's');

// A server's end, and the keys of its client.
struct RecordPair {
  RecordPair() {
    std::array<int, 2> fds{};
    REGATTA_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds.data()) == 0);
    own.reset(fds[0]);
    peer.reset(fds[1]);
  }
  void send(std::uint8_t type, std::string_view content) {
    std::string record;
    REGATTA_CHECK(keys.seal(type, content, record));
    REGATTA_CHECK(::send(peer.get(), record.data(), record.size(), 0) ==
                  static_cast<ssize_t>(record.size()));
  }
  StreamTransfer read() { return layer().read(bytes.data(), bytes.size()); }
  RecordLayer& layer() {
    if (made == nullptr)
      made = std::make_unique<RecordLayer>(own.get(), record_cipher(0x1301), kSecret, kSecret);
    return *made;
  }

  os::UniqueFd own;
  os::UniqueFd peer;
  RecordKeys keys{record_cipher(0x1301), kSecret};
  std::unique_ptr<RecordLayer> made;
  std::array<char, 100> bytes{};
};

TEST(RecordLayer, OpensWhatItsPeerSealedOnceAndInOrder) {
  RecordPair pair;
  std::string first;
  std::string second;
  ASSERT_TRUE(pair.keys.seal(kDataType, "first", first));
  ASSERT_TRUE(pair.keys.seal(kDataType, "second", second));
  const auto send = [&pair](const std::string& record) {
    ::send(pair.peer.get(), record.data(), record.size(), 0);
  };
  send(first);
  EXPECT_EQ(pair.read().bytes, 5U);
  send(first);
  EXPECT_EQ(pair.read().progress, StreamProgress::kFailed);

  RecordPair swapped;
  ::send(swapped.peer.get(), second.data(), second.size(), 0);
  EXPECT_EQ(swapped.read().progress, StreamProgress::kFailed);
}

TEST(RecordLayer, GivesWholeRecordsHoweverTheyAreCut) {
  RecordPair pair;
  std::string record;
  ASSERT_TRUE(pair.keys.seal(kDataType, "hello", record));
  for (std::size_t i = 0; i + 1 < record.size(); ++i) {
    ASSERT_EQ(::send(pair.peer.get(), &record[i], 1, 0), 1);
    EXPECT_EQ(pair.read().progress, StreamProgress::kWantRead);
    EXPECT_FALSE(pair.layer().has_pending());
  }
  ASSERT_EQ(::send(pair.peer.get(), &record.back(), 1, 0), 1);
  EXPECT_EQ(pair.read().bytes, 5U);
}

TEST(RecordLayer, TellsThatFurtherRecordsHaveCome) {
  RecordPair pair;
  pair.send(kDataType, "one");
  pair.send(kDataType, std::string(150, 'x'));
  EXPECT_EQ(pair.read().bytes, 3U);
  EXPECT_TRUE(pair.layer().has_pending());
  EXPECT_EQ(pair.read().bytes, 100U);
  EXPECT_TRUE(pair.layer().has_pending());
  EXPECT_EQ(pair.read().bytes, 50U);
  EXPECT_FALSE(pair.layer().has_pending());
}

TEST(RecordLayer, EndsAPeerThatSendsManyRecordsWithoutContent) {
  RecordPair pair;
  for (int i = 0; i < 32; ++i)
    pair.send(kDataType, "");
  EXPECT_EQ(pair.read().progress, StreamProgress::kWantRead);
  pair.send(kDataType, "x");
  EXPECT_EQ(pair.read().bytes, 1U);

  constexpr std::string_view kUpdate("\x18\0\0\1\1", 5);
  for (int i = 0; i < 33; ++i) {
    pair.send(kHandshakeType, kUpdate);
    pair.keys.update();
  }
  EXPECT_EQ(pair.read().progress, StreamProgress::kFailed);
}

}  // namespace
}  // namespace regatta::tls
