#include "experimental/remote/internal/tls_channel.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include "experimental/remote/internal/hexadecimal.h"
#include "experimental/remote/internal/socket.h"
#include "regatta/base/core/mutex.h"
#include "regatta/base/os/clock.h"

namespace regatta::remote {
namespace {

constexpr std::size_t kKeyBytes = 32;
constexpr std::size_t kRecordBytes = 16 << 10;
constexpr std::size_t kAheadBytes = 16 * kRecordBytes;
// Far below what one key of AES-GCM may protect.
constexpr std::uint64_t kBytesPerKey = std::uint64_t{32} << 30;
constexpr std::array<unsigned char, 2> kCipher = {0x13, 0x01};  // TLS_AES_128_GCM_SHA256

std::string sha256(std::string_view purpose, std::string_view secret) {
  const std::string text = "regatta gpu " + std::string(purpose) + ": " + std::string(secret);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (::EVP_Digest(text.data(), text.size(), digest.data(), &size, ::EVP_sha256(), nullptr) != 1)
    std::abort();
  return {reinterpret_cast<const char*>(digest.data()), kKeyBytes};
}

// Between the callbacks and the channel that they are called for.
struct Secrets {
  const SharedSecret* own = nullptr;  // of an end that connects
  const FindKey* find_key = nullptr;  // of an end that accepts
};

const Secrets* secrets_of(const SSL* ssl) {
  return static_cast<const Secrets*>(SSL_get_app_data(ssl));
}

::SSL_SESSION* session_of(SSL* ssl, const std::string& key) {
  const SSL_CIPHER* const cipher = ::SSL_CIPHER_find(ssl, kCipher.data());
  ::SSL_SESSION* const session = ::SSL_SESSION_new();
  if (session == nullptr) return nullptr;
  if (cipher != nullptr && key.size() == kKeyBytes &&
      ::SSL_SESSION_set1_master_key(session, reinterpret_cast<const unsigned char*>(key.data()),
                                    key.size()) == 1 &&
      ::SSL_SESSION_set_cipher(session, cipher) == 1 &&
      ::SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1)
    return session;
  ::SSL_SESSION_free(session);
  return nullptr;
}

int use_secret(SSL* ssl, const EVP_MD*, const unsigned char** identity, std::size_t* size,
               SSL_SESSION** session) {
  const Secrets* const secrets = secrets_of(ssl);
  if (secrets == nullptr) return 0;
  *session = session_of(ssl, secrets->own->key);
  *identity = reinterpret_cast<const unsigned char*>(secrets->own->identity.data());
  *size = secrets->own->identity.size();
  return *session == nullptr ? 0 : 1;
}

int find_secret(SSL* ssl, const unsigned char* identity, std::size_t size, SSL_SESSION** session) {
  const Secrets* const secrets = secrets_of(ssl);
  *session = nullptr;
  if (secrets == nullptr) return 0;
  const auto key = (*secrets->find_key)({reinterpret_cast<const char*>(identity), size});
  if (!key) return 1;  // without it the handshake fails: there are no certificates
  *session = session_of(ssl, *key);
  return *session == nullptr ? 0 : 1;
}

// The library lies in programs that are not ours, which must not get SIGPIPE, and whose exit must
// not free what their threads use.
struct Socket {
  os::UniqueFd fd;
  bool has_send_ended = false;  // what the other end sent before may still be received
  bool has_receive_ended = false;
  std::string unsent;       // ciphered
  std::vector<char> inbox;  // likewise, with TlsReading::kAhead; of it [first, last)
  std::size_t first = 0;
  std::size_t last = 0;

  // False: the socket accepts no more now, or has ended.
  bool flush() {
    std::size_t done = 0;
    while (done < unsent.size()) {
      const ssize_t sent =
          ::send(fd.get(), unsent.data() + done, unsent.size() - done, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) {
        has_send_ended = has_send_ended || errno != EAGAIN;
        break;
      }
      done += static_cast<std::size_t>(sent);
    }
    unsent.erase(0, done);
    return unsent.empty();
  }
};

// Many records go out by one call of the system.
int write_socket(BIO* bio, const char* bytes, int count) {
  BIO_clear_retry_flags(bio);
  static_cast<Socket*>(::BIO_get_data(bio))->unsent.append(bytes, static_cast<std::size_t>(count));
  return count;
}

int read_socket(BIO* bio, char* into, int count) {
  auto& socket = *static_cast<Socket*>(::BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  if (socket.first == socket.last) {
    const ssize_t came =
        socket.inbox.empty()
            ? ::recv(socket.fd.get(), into, static_cast<std::size_t>(count), MSG_DONTWAIT)
            : ::recv(socket.fd.get(), socket.inbox.data(), socket.inbox.size(), MSG_DONTWAIT);
    if (came < 0 && (errno == EAGAIN || errno == EINTR))
      BIO_set_retry_read(bio);
    else if (came <= 0)
      socket.has_receive_ended = true;
    if (came <= 0 || socket.inbox.empty()) return static_cast<int>(came);
    socket.first = 0;
    socket.last = static_cast<std::size_t>(came);
  }
  const std::size_t part = std::min(static_cast<std::size_t>(count), socket.last - socket.first);
  std::memcpy(into, socket.inbox.data() + socket.first, part);
  socket.first += part;
  return static_cast<int>(part);
}

long control_socket(BIO*, int command, long, void*) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

const BIO_METHOD* socket_method() {
  static const BIO_METHOD* const only = [] {
    BIO_METHOD* const made =
        ::BIO_meth_new(::BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "regatta socket");
    if (made == nullptr || ::BIO_meth_set_write(made, write_socket) != 1 ||
        ::BIO_meth_set_read(made, read_socket) != 1 ||
        ::BIO_meth_set_ctrl(made, control_socket) != 1)
      std::abort();
    return made;
  }();
  return only;
}

// For the life of the process.
SSL_CTX* context() {
  static SSL_CTX* const only = [] {
    ::OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT | OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
    SSL_CTX* const made = ::SSL_CTX_new(::TLS_method());
    if (made == nullptr || SSL_CTX_set_min_proto_version(made, TLS1_3_VERSION) != 1 ||
        ::SSL_CTX_set_ciphersuites(made, "TLS_AES_128_GCM_SHA256") != 1 ||
        ::SSL_CTX_set_num_tickets(made, 0) != 1)
      std::abort();
    ::SSL_CTX_set_options(made, SSL_OP_NO_TICKET);
    SSL_CTX_set_session_cache_mode(made, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(made, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    ::SSL_CTX_set_psk_use_session_callback(made, use_secret);
    ::SSL_CTX_set_psk_find_session_callback(made, find_secret);
    return made;
  }();
  return only;
}

// One thread sends while another receives; the mutex is held while bytes are ciphered, and never
// while the socket is waited for.
class TlsChannel final : public StreamChannel {
 public:
  TlsChannel(os::UniqueFd fd, TlsReading reading)
      : socket_{.fd = std::move(fd)}, ssl_(::SSL_new(context())), bio_(::BIO_new(socket_method())) {
    if (ssl_ == nullptr || bio_ == nullptr) std::abort();
    ::BIO_set_data(bio_, &socket_);
    ::BIO_set_init(bio_, 1);
    ::SSL_set_bio(ssl_, bio_, bio_);
    // The library's own reading ahead moves all that it has for each record.
    if (reading == TlsReading::kAhead) socket_.inbox.resize(kAheadBytes);
  }
  ~TlsChannel() override { ::SSL_free(ssl_); }

  bool handshake(const Secrets& secrets) {
    {
      const MutexLock lock(mutex_);
      SSL_set_app_data(ssl_, const_cast<Secrets*>(&secrets));
      const bool connects = secrets.own != nullptr;
      // No certificate is good.
      if (connects) ::SSL_set_verify(ssl_, SSL_VERIFY_PEER, nullptr);
      if (connects)
        ::SSL_set_connect_state(ssl_);
      else
        ::SSL_set_accept_state(ssl_);
    }
    const bool is_done =
        run(Direction::kBoth, [](SSL* ssl) { return ::SSL_do_handshake(ssl); }) > 0;
    const MutexLock lock(mutex_);
    SSL_set_app_data(ssl_, nullptr);
    // By the secret, and by nothing else.
    return is_done && ::SSL_session_reused(ssl_) == 1;
  }

  // Whether the handshake failed by what the peer sent, and not by its end.
  bool is_refused() const { return is_refused_; }

  bool send(std::string_view first, std::string_view second) override {
    // Short messages go out in one record.
    std::array<char, kRecordBytes> both;  // NOLINT(cppcoreguidelines-pro-type-member-init)
    if (!second.empty() && first.size() + second.size() <= both.size()) {
      std::ranges::copy(second, std::ranges::copy(first, both.begin()).out);
      return send_all({both.data(), first.size() + second.size()});
    }
    return send_all(first) && send_all(second);
  }
  std::size_t receive(void* into, std::size_t count) override {
    const int most = static_cast<int>(std::min<std::size_t>(count, 1 << 30));
    const int came =
        run(Direction::kReceive, [&](SSL* ssl) { return ::SSL_read(ssl, into, most); });
    return came > 0 ? static_cast<std::size_t>(came) : 0;
  }
  void close() override { socket_.fd.reset(); }
  void leave() override { socket_.fd.reset(); }
  int fd() const override { return socket_.fd.get(); }
  os::UniqueFd release() override { return std::move(socket_.fd); }
  void set_deadline(std::optional<Seconds> deadline) override { deadline_ = deadline; }

 private:
  bool send_all(std::string_view bytes) {
    while (!bytes.empty()) {
      const int most = static_cast<int>(std::min<std::size_t>(bytes.size(), kAheadBytes));
      const int sent =
          run(Direction::kSend, [&](SSL* ssl) { return ::SSL_write(ssl, bytes.data(), most); });
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
      sent_ += static_cast<std::uint64_t>(sent);
      if (sent_ >= kBytesPerKey) change_key();
    }
    return true;
  }
  void change_key() {
    const MutexLock lock(mutex_);
    sent_ = 0;
    ::SSL_key_update(ssl_, SSL_KEY_UPDATE_NOT_REQUESTED);
  }

  // Repeats a call of the library until it moves bytes, and then until what it ciphered is sent; 0
  // or less: the connection is over. A thread that receives leaves the latter to the one that
  // sends, or both ends might wait for each other.
  enum class Direction : std::uint8_t { kSend, kReceive, kBoth };
  template <typename Call>
  int run(Direction direction, Call&& call) {
    int result = 0;
    for (;;) {
      short events = 0;
      {
        const MutexLock lock(mutex_);
        if (result <= 0) result = call(ssl_);
        // Not SSL_get_error(): errors without consequence may stand in the library's queue.
        const bool is_later = result <= 0 && BIO_should_read(bio_);
        const bool is_sent = socket_.flush();
        if (result <= 0 && !is_later) is_refused_ = !socket_.has_receive_ended;
        if (is_later) events = POLLIN;
        if (!is_sent && !socket_.has_send_ended && direction != Direction::kReceive)
          events = POLLOUT;
        if (is_over(direction, is_later) || (result <= 0 && !is_later)) result = events = 0;
        ::ERR_clear_error();
      }
      if (events == 0) return result;
      if (!wait_for(events)) return 0;
    }
  }
  // A refusal that came is received, though the request before it could not be sent.
  bool is_over(Direction direction, bool is_later) const {
    if (direction == Direction::kReceive) return socket_.has_receive_ended;
    const bool may_receive = direction == Direction::kBoth && is_later;
    return socket_.has_receive_ended || (socket_.has_send_ended && !may_receive);
  }
  bool wait_for(short events) const { return wait_for_socket(socket_.fd.get(), events, deadline_); }

  Mutex mutex_;
  Socket socket_;
  SSL* const ssl_ REGATTA_GUARDED_BY(mutex_);
  BIO* const bio_ REGATTA_GUARDED_BY(mutex_);
  std::atomic<bool> is_refused_ = false;
  std::optional<Seconds> deadline_;
  std::uint64_t sent_ = 0;  // by this key
};

Result<std::unique_ptr<StreamChannel>> begin(os::UniqueFd fd, const Secrets& secrets,
                                             Seconds timeout, TlsReading reading) {
  auto channel = std::make_unique<TlsChannel>(std::move(fd), reading);
  channel->set_deadline(os::monotonic_now() + timeout);
  if (!channel->handshake(secrets)) {
    if (channel->is_refused()) {
      return Error{Code::kUnsupported,
                   "the other end has another secret, or is without encryption (--plain)"};
    }
    return Error{Code::kUnavailable, "the other end closed the connection, or does not answer"};
  }
  channel->set_deadline(std::nullopt);
  return std::unique_ptr<StreamChannel>(std::move(channel));
}

}  // namespace

SharedSecret secret_of_token(std::string_view token) {
  return {"token", sha256("token", token)};
}

SharedSecret secret_of_ticket(std::string_view ticket) {
  return {"ticket " + hexadecimal(sha256("name of a ticket", ticket)), sha256("ticket", ticket)};
}

SharedSecret secret_of_program(std::string_view key) {
  return {"program", sha256("program", key)};
}

Result<std::unique_ptr<StreamChannel>> connect_tls(os::UniqueFd fd, const SharedSecret& secret,
                                                   Seconds timeout, TlsReading reading) {
  return begin(std::move(fd), {.own = &secret}, timeout, reading);
}

Result<std::unique_ptr<StreamChannel>> accept_tls(os::UniqueFd fd, const FindKey& find_key,
                                                  Seconds timeout, TlsReading reading) {
  return begin(std::move(fd), {.find_key = &find_key}, timeout, reading);
}

}  // namespace regatta::remote
