#include "regatta/base/tls/tls_stream.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::tls {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Seconds kDay{86400};

std::int64_t now() {
  return static_cast<std::int64_t>(os::system_now().value);
}

Identity authority() {
  static const Identity only = create_authority("test authority", now(), kDay).value();
  return only;
}

Identity server_identity() {
  return issue(authority(), {.common_name = "server", .hosts = {"server.example", "127.0.0.1"}},
               now(), kDay)
      .value();
}

Identity client_identity(const Identity& by = authority()) {
  return issue(by, {.common_name = "n1", .uris = {"regatta://cluster/node/n1"}}, now(), kDay)
      .value();
}

// Both ends of one connection in this thread.
struct StreamPair {
  StreamPair(const TlsContext& server_context, const TlsContext& client_context,
             const std::string& host) {
    std::array<int, 2> fds{};
    REGATTA_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds.data()) == 0);
    server_fd.reset(fds[0]);
    client_fd.reset(fds[1]);
    server.emplace(TlsStream::accept(server_context, fds[0]).value());
    client.emplace(TlsStream::connect(client_context, fds[1], host).value());
  }

  // Steps both until each is over or neither can go on.
  void handshake() {
    for (int step = 0; step < 20; ++step) {
      if (is_waiting(at_client)) at_client = client->handshake();
      if (is_waiting(at_server)) at_server = server->handshake();
    }
  }
  static bool is_waiting(StreamProgress progress) {
    return progress == StreamProgress::kWantRead || progress == StreamProgress::kWantWrite;
  }

  os::UniqueFd server_fd;
  os::UniqueFd client_fd;
  std::optional<TlsStream> server;
  std::optional<TlsStream> client;
  StreamProgress at_server = StreamProgress::kWantRead;
  StreamProgress at_client = StreamProgress::kWantRead;
};

TlsContext trusting_client(const Identity& own = {}) {
  return TlsContext::client(authority().certificate, own).value();
}

TlsContext server_of(const Identity& identity) {
  return TlsContext::server(identity, authority().certificate).value();
}

std::string read_some(TlsStream& stream) {
  std::array<char, 64> bytes{};
  const StreamTransfer transfer = stream.read(bytes.data(), bytes.size());
  return transfer.progress == StreamProgress::kDone ? std::string(bytes.data(), transfer.bytes)
                                                    : std::string();
}

TEST(TlsStream, CarriesBytesBothWaysBetweenEndsThatTrustOneAuthority) {
  StreamPair pair(server_of(server_identity()), trusting_client(client_identity()),
                  "server.example");
  pair.handshake();
  ASSERT_EQ(pair.at_client, StreamProgress::kDone) << pair.client->problem();
  ASSERT_EQ(pair.at_server, StreamProgress::kDone) << pair.server->problem();
  EXPECT_THAT(pair.server->peer_uris(), ElementsAre("regatta://cluster/node/n1"));
  EXPECT_EQ(pair.client->write("to server").bytes, 9U);
  EXPECT_EQ(read_some(*pair.server), "to server");
  EXPECT_EQ(pair.server->write("to client").bytes, 9U);
  EXPECT_EQ(read_some(*pair.client), "to client");
  EXPECT_EQ(pair.client->read(nullptr, 0).progress, StreamProgress::kWantRead);
}

TEST(TlsStream, ServesAClientWithoutACertificateAndGivesItNoUri) {
  StreamPair pair(server_of(server_identity()), trusting_client(), "127.0.0.1");
  pair.handshake();
  EXPECT_EQ(pair.at_server, StreamProgress::kDone);
  EXPECT_EQ(pair.at_client, StreamProgress::kDone);
  EXPECT_THAT(pair.server->peer_uris(), IsEmpty());
}

TEST(TlsStream, RefusesAClientOfAnotherAuthority) {
  const Identity other = create_authority("test authority", now(), kDay).value();
  StreamPair pair(server_of(server_identity()), trusting_client(client_identity(other)),
                  "server.example");
  pair.handshake();
  EXPECT_EQ(pair.at_server, StreamProgress::kFailed);
  EXPECT_TRUE(pair.server->is_untrusted());
}

TEST(TlsStream, RefusesAClientWhoseCertificateHasExpired) {
  const Identity expired =
      issue(authority(), {.common_name = "n1", .uris = {"regatta://cluster/node/n1"}}, now() - 7200,
            Seconds{60})
          .value();
  StreamPair pair(server_of(server_identity()), trusting_client(expired), "server.example");
  pair.handshake();
  EXPECT_EQ(pair.at_server, StreamProgress::kFailed);
  EXPECT_THAT(pair.server->problem(), HasSubstr("expired"));
}

TEST(TlsStream, RefusesAServerThatIsMerelyAClientOfTheAuthority) {
  const Identity node = issue(authority(), {.common_name = "server.example"}, now(), kDay).value();
  StreamPair pair(server_of(node), trusting_client(), "server.example");
  pair.handshake();
  EXPECT_EQ(pair.at_client, StreamProgress::kFailed);
  EXPECT_TRUE(pair.client->is_untrusted());
}

TEST(TlsStream, RefusesAServerOfAnotherNameOrAuthority) {
  StreamPair named(server_of(server_identity()), trusting_client(), "other.example");
  named.handshake();
  EXPECT_EQ(named.at_client, StreamProgress::kFailed);
  EXPECT_THAT(named.client->problem(), HasSubstr("ostname"));

  const Identity other = create_authority("test authority", now(), kDay).value();
  StreamPair signed_by_other(server_of(server_identity()),
                             TlsContext::client(other.certificate, {}).value(), "server.example");
  signed_by_other.handshake();
  EXPECT_EQ(signed_by_other.at_client, StreamProgress::kFailed);
  EXPECT_TRUE(signed_by_other.client->is_untrusted());
}

TEST(TlsStream, TrustsTheAuthorityWhoseHashItKnows) {
  const std::string hash = certificate_hash(authority().certificate).value();
  const TlsContext by_hash = TlsContext::client_of_hash(hash).value();
  StreamPair pair(server_of(server_identity()), by_hash, "server.example");
  pair.handshake();
  EXPECT_EQ(pair.at_client, StreamProgress::kDone) << pair.client->problem();
  StreamPair named(server_of(server_identity()), by_hash, "other.example");
  named.handshake();
  EXPECT_EQ(named.at_client, StreamProgress::kFailed);

  // An authority of the same name, and one that sends the right authority beside its own.
  const Identity other = create_authority("test authority", now(), kDay).value();
  Identity forged =
      issue(other, {.common_name = "server", .hosts = {"server.example"}}, now(), kDay).value();
  StreamPair unknown(TlsContext::server(forged, other.certificate).value(), by_hash,
                     "server.example");
  unknown.handshake();
  EXPECT_EQ(unknown.at_client, StreamProgress::kFailed);
  EXPECT_TRUE(unknown.client->is_untrusted());
  forged.certificate += other.certificate + authority().certificate;
  StreamPair beside(TlsContext::server(forged, "").value(), by_hash, "server.example");
  beside.handshake();
  EXPECT_EQ(beside.at_client, StreamProgress::kFailed);
  // Another client's certificate does not make a server either.
  Identity client = client_identity();
  client.certificate += authority().certificate;
  StreamPair as_server(TlsContext::server(client, "").value(), by_hash, "n1");
  as_server.handshake();
  EXPECT_EQ(as_server.at_client, StreamProgress::kFailed);
  EXPECT_FALSE(TlsContext::client_of_hash("abc"));
}

TEST(TlsStream, TellsAnEndFromAConnectionThatBroke) {
  StreamPair ended(server_of(server_identity()), trusting_client(), "server.example");
  ended.handshake();
  ended.server->end_writing();
  std::array<char, 8> bytes{};
  EXPECT_EQ(ended.client->read(bytes.data(), bytes.size()).progress, StreamProgress::kEnded);

  StreamPair broken(server_of(server_identity()), trusting_client(), "server.example");
  broken.handshake();
  broken.server_fd.reset();
  EXPECT_EQ(broken.client->read(bytes.data(), bytes.size()).progress, StreamProgress::kFailed);
}

TEST(TlsStream, WritesToAPeerThatIsGoneWithoutASignal) {
  StreamPair pair(server_of(server_identity()), trusting_client(), "server.example");
  pair.handshake();
  pair.client_fd.reset();
  EXPECT_EQ(pair.server->write("hello").progress, StreamProgress::kFailed);
}

// A client of OpenSSL's own at the other end of a stream, for what TlsStream does not offer. A
// second pair of sockets lies between them, so that a test can change what passes.
class ForeignClient {
 public:
  ForeignClient(int version, const char* suite) : context_(::SSL_CTX_new(::TLS_client_method())) {
    SSL_CTX_set_max_proto_version(context_, version);
    if (suite != nullptr) {
      REGATTA_CHECK(::SSL_CTX_set_ciphersuites(context_, suite) == 1);
    }
    ssl_ = ::SSL_new(context_);
    std::array<int, 2> fds{};
    REGATTA_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds.data()) == 0);
    client_fd_.reset(fds[0]);
    client_side_.reset(fds[1]);
    REGATTA_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds.data()) == 0);
    server_side_.reset(fds[0]);
    server_fd_.reset(fds[1]);
    ::SSL_set_fd(ssl_, client_fd_.get());
    ::SSL_set_connect_state(ssl_);
    server.emplace(TlsStream::accept(server_of(server_identity()), server_fd_.get()).value());
    for (int step = 0; step < 10; ++step) {
      ::SSL_do_handshake(ssl_);
      pass();
      is_open = server->handshake() == StreamProgress::kDone;
      pass();
    }
  }
  ~ForeignClient() {
    ::SSL_free(ssl_);
    ::SSL_CTX_free(context_);
  }
  ForeignClient(const ForeignClient&) = delete;
  ForeignClient& operator=(const ForeignClient&) = delete;

  SSL* ssl() const { return ssl_; }
  // Moves what waits in both directions; changes the byte `changed` of what goes to the server.
  void pass(std::ptrdiff_t changed = -1) const {
    std::array<char, 64 << 10> bytes{};
    for (const auto& [from, to] :
         {std::pair{&client_side_, &server_side_}, std::pair{&server_side_, &client_side_}}) {
      const ssize_t came = ::recv(from->get(), bytes.data(), bytes.size(), 0);
      if (came <= 0) continue;
      if (from == &client_side_ && changed >= 0) bytes[static_cast<std::size_t>(changed)] ^= 1;
      EXPECT_EQ(::send(to->get(), bytes.data(), static_cast<std::size_t>(came), 0), came);
    }
  }
  // Bytes on the way to the server that are not the client's.
  void inject(std::string_view bytes) const {
    EXPECT_EQ(::send(server_side_.get(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
  }
  void expect_exchange(const std::string& message) {
    EXPECT_EQ(::SSL_write(ssl_, message.data(), static_cast<int>(message.size())),
              static_cast<int>(message.size()));
    pass();
    EXPECT_EQ(read_some(*server), message);
    EXPECT_EQ(server->write(message).bytes, message.size());
    pass();
    std::string back(64, '\0');
    back.resize(static_cast<std::size_t>(std::max(::SSL_read(ssl_, back.data(), 64), 0)));
    EXPECT_EQ(back, message);
  }

  std::optional<TlsStream> server;
  bool is_open = false;

 private:
  SSL_CTX* context_;
  SSL* ssl_ = nullptr;
  os::UniqueFd client_fd_;
  os::UniqueFd client_side_;
  os::UniqueFd server_side_;
  os::UniqueFd server_fd_;
};

TEST(TlsStream, ServesClientsOfEachCipherSuiteAndOfTls12) {
  for (const char* const suite :
       {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}) {
    ForeignClient client(TLS1_3_VERSION, suite);
    ASSERT_TRUE(client.is_open) << suite;
    client.expect_exchange("first");
    client.expect_exchange("second");
  }
  ForeignClient older(TLS1_2_VERSION, nullptr);
  ASSERT_TRUE(older.is_open);
  older.expect_exchange("first");
}

TEST(TlsStream, GoesOnWithNewKeysWhenTheClientChangesThem) {
  ForeignClient client(TLS1_3_VERSION, nullptr);
  ASSERT_TRUE(client.is_open);
  client.expect_exchange("before");
  for (const int kind : {SSL_KEY_UPDATE_NOT_REQUESTED, SSL_KEY_UPDATE_REQUESTED}) {
    ASSERT_EQ(::SSL_key_update(client.ssl(), kind), 1);
    client.expect_exchange("after");
    client.expect_exchange("again");
  }
}

TEST(TlsStream, RefusesARecordThatWasChanged) {
  for (const std::ptrdiff_t changed : {0, 4, 5, 9, 20}) {
    ForeignClient client(TLS1_3_VERSION, nullptr);
    ASSERT_TRUE(client.is_open);
    ::SSL_write(client.ssl(), "hello", 5);
    client.pass(changed);
    std::array<char, 64> bytes{};
    const StreamTransfer transfer = client.server->read(bytes.data(), bytes.size());
    // A changed length may ask for a byte that never comes.
    EXPECT_TRUE(transfer.progress == StreamProgress::kFailed ||
                (changed == 4 && transfer.progress == StreamProgress::kWantRead))
        << changed;
    EXPECT_EQ(transfer.bytes, 0U);
  }
}

TEST(TlsStream, RefusesBytesThatNobodySealed) {
  ForeignClient client(TLS1_3_VERSION, nullptr);
  ASSERT_TRUE(client.is_open);
  client.inject(std::string("\x17\x03\x03\0\x05hello", 10));
  std::array<char, 64> bytes{};
  EXPECT_EQ(client.server->read(bytes.data(), bytes.size()).progress, StreamProgress::kFailed);
  ForeignClient alert(TLS1_3_VERSION, nullptr);
  alert.inject(std::string("\x15\x03\x03\0\x02\x01\0", 7));
  EXPECT_EQ(alert.server->read(bytes.data(), bytes.size()).progress, StreamProgress::kFailed);
}

TEST(TlsStream, CarriesAnyAmountThoughThePeerReadsLate) {
  StreamPair pair(server_of(server_identity()), trusting_client(), "server.example");
  pair.handshake();
  ASSERT_EQ(pair.at_server, StreamProgress::kDone);
  std::string sent;
  for (int i = 0; sent.size() < 1'000'000; ++i)
    sent += std::to_string(i) + ",";
  std::size_t done = 0;
  std::string received;
  std::array<char, 5000> bytes{};
  bool was_blocked = false;
  while (received.size() < sent.size()) {
    while (done < sent.size()) {
      const StreamTransfer transfer = pair.server->write(std::string_view(sent).substr(done));
      ASSERT_NE(transfer.progress, StreamProgress::kFailed);
      done += transfer.bytes;
      if (transfer.progress == StreamProgress::kWantWrite) break;
    }
    was_blocked = was_blocked || done < sent.size();
    const StreamTransfer transfer = pair.client->read(bytes.data(), bytes.size());
    if (transfer.progress == StreamProgress::kDone) received.append(bytes.data(), transfer.bytes);
  }
  EXPECT_TRUE(was_blocked);
  EXPECT_EQ(received, sent);
  // And to the server, in reads smaller than a record.
  std::string back;
  for (done = 0; back.size() < sent.size();) {
    if (done < sent.size()) done += pair.client->write(std::string_view(sent).substr(done)).bytes;
    const StreamTransfer transfer = pair.server->read(bytes.data(), bytes.size());
    if (transfer.progress == StreamProgress::kDone) back.append(bytes.data(), transfer.bytes);
  }
  EXPECT_EQ(back, sent);
}

TEST(TlsContext, RefusesAKeyOfAnotherCertificateAndTextsThatAreNone) {
  Identity mixed = server_identity();
  mixed.private_key = client_identity().private_key;
  EXPECT_EQ(TlsContext::server(mixed, "").error().code, Code::kInvalidInput);
  EXPECT_EQ(TlsContext::server({}, "").error().code, Code::kInvalidInput);
  EXPECT_EQ(TlsContext::client("no certificate", {}).error().code, Code::kInvalidInput);
}

}  // namespace
}  // namespace regatta::tls
