#include "regatta/base/tls/tls_stream.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include "regatta/base/core/text.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/base/tls/internal/openssl_handles.h"
#include "regatta/base/tls/internal/record_layer.h"

namespace regatta::tls {
namespace {

constexpr std::size_t kRecordBytes = 16 << 10;

// OpenSSL's own BIO of a socket writes without MSG_NOSIGNAL, so that a peer that is gone would end
// the process.
int socket_of(BIO* bio) {
  return static_cast<int>(reinterpret_cast<std::intptr_t>(::BIO_get_data(bio)));
}

int send_bytes(BIO* bio, const char* bytes, int count) {
  BIO_clear_retry_flags(bio);
  const ssize_t sent =
      ::send(socket_of(bio), bytes, static_cast<std::size_t>(count), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

int receive_bytes(BIO* bio, char* into, int count) {
  BIO_clear_retry_flags(bio);
  const ssize_t came = ::recv(socket_of(bio), into, static_cast<std::size_t>(count), MSG_DONTWAIT);
  if (came < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
  if (came == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  return static_cast<int>(came);
}

long control_stream(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

const BIO_METHOD* stream_method() {
  static const BIO_METHOD* const only = [] {
    BIO_METHOD* const made =
        ::BIO_meth_new(::BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "regatta stream");
    if (made == nullptr || ::BIO_meth_set_write(made, send_bytes) != 1 ||
        ::BIO_meth_set_read(made, receive_bytes) != 1 ||
        ::BIO_meth_set_ctrl(made, control_stream) != 1)
      std::abort();
    return made;
  }();
  return only;
}

// The secrets that protect the two directions after the handshake, in hex, as OpenSSL tells them in
// the format of SSLKEYLOGFILE. They belong to the SSL object of a server's handshake.
struct TrafficSecrets {
  std::string client;
  std::string server;

  ~TrafficSecrets() {
    ::OPENSSL_cleanse(client.data(), client.size());
    ::OPENSSL_cleanse(server.data(), server.size());
  }
};

int secrets_index() {
  static const int only = ::SSL_get_ex_new_index(
      0, nullptr, nullptr, nullptr, [](void*, void* secrets, CRYPTO_EX_DATA*, int, long, void*) {
        delete static_cast<TrafficSecrets*>(secrets);
      });
  return only;
}

void keep_secret(const SSL* ssl, const char* line) {
  auto* const secrets = static_cast<TrafficSecrets*>(::SSL_get_ex_data(ssl, secrets_index()));
  if (secrets == nullptr) return;
  const std::string_view text(line);
  for (const auto& [label, into] :
       {std::pair{std::string_view("CLIENT_TRAFFIC_SECRET_0 "), &secrets->client},
        std::pair{std::string_view("SERVER_TRAFFIC_SECRET_0 "), &secrets->server}})
    if (text.starts_with(label)) *into = text.substr(text.rfind(' ') + 1);
}

// Empty for a text that is no hex.
std::string bytes_of_hex(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    const auto byte = parse_number<unsigned char>(text.substr(i, 2), 16);
    if (!byte) return {};
    bytes += static_cast<char>(*byte);
  }
  return bytes;
}

Result<std::shared_ptr<SSL_CTX>> new_context(const SSL_METHOD* method) {
  ::ERR_clear_error();
  std::shared_ptr<SSL_CTX> context(::SSL_CTX_new(method), ::SSL_CTX_free);
  if (context == nullptr || SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1)
    return openssl_error(Code::kUnavailable, "TLS cannot be set up");
  // A full handshake each time: tickets would cost a write each, and let a client in that a new
  // authority does not know.
  ::SSL_CTX_set_options(context.get(),
                        SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  ::SSL_CTX_set_num_tickets(context.get(), 0);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  return context;
}

int hash_index() {
  static const int only = SSL_CTX_get_ex_new_index(
      0, nullptr, nullptr, nullptr, [](void*, void* hash, CRYPTO_EX_DATA*, int, long, void*) {
        delete static_cast<std::string*>(hash);
      });
  return only;
}

// Verifies the server's chain with the one certificate in it that has the hash as the trusted CA.
int verify_by_hash(X509_STORE_CTX* verification, void* hash) {
  STACK_OF(X509)* const sent = ::X509_STORE_CTX_get0_untrusted(verification);
  for (int i = 0; i < sk_X509_num(sent); ++i) {
    X509* const one = sk_X509_value(sent, i);
    const auto own_hash = hash_of(one);
    if (!own_hash || *own_hash != *static_cast<const std::string*>(hash)) continue;
    STACK_OF(X509)* const trusted = sk_X509_new_null();
    if (trusted == nullptr || sk_X509_push(trusted, one) == 0) {
      sk_X509_free(trusted);
      break;
    }
    ::X509_STORE_CTX_set0_trusted_stack(verification, trusted);
    const int result = ::X509_verify_cert(verification);
    sk_X509_free(trusted);
    return result;
  }
  ::X509_STORE_CTX_set_error(verification, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY);
  return 0;
}

Status use_identity(SSL_CTX* context, const Identity& identity) {
  REGATTA_TRY(chain, parse_certificates(identity.certificate));
  REGATTA_TRY(key, parse_private_key(identity.private_key));
  bool is_used = ::SSL_CTX_use_certificate(context, chain.front().get()) == 1;
  for (std::size_t i = 1; i < chain.size() && is_used; ++i)
    is_used = SSL_CTX_add1_chain_cert(context, chain[i].get()) == 1;
  if (!is_used || ::SSL_CTX_use_PrivateKey(context, key.get()) != 1)
    return openssl_error(Code::kInvalidInput,
                         "the certificate and the private key cannot be used together");
  return {};
}

Status trust(SSL_CTX* context, const std::string& ca, bool is_server) {
  REGATTA_TRY(certificates, parse_certificates(ca));
  X509_STORE* const store = ::SSL_CTX_get_cert_store(context);
  for (const CertificateHandle& one : certificates)
    if (::X509_STORE_add_cert(store, one.get()) != 1 ||
        (is_server && ::SSL_CTX_add_client_CA(context, one.get()) != 1))
      return openssl_error(Code::kInvalidInput, "the authority's certificate cannot be used");
  ::SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  return {};
}

}  // namespace

Result<TlsContext> TlsContext::server(const Identity& identity, const std::string& client_ca) {
  REGATTA_TRY(context, new_context(::TLS_server_method()));
  REGATTA_TRY_DO(use_identity(context.get(), identity));
  if (!client_ca.empty()) REGATTA_TRY_DO(trust(context.get(), client_ca, true));
  ::SSL_CTX_set_keylog_callback(context.get(), keep_secret);
  return TlsContext(std::move(context));
}

Result<TlsContext> TlsContext::client(const std::string& ca, const Identity& own) {
  REGATTA_TRY(context, new_context(::TLS_client_method()));
  REGATTA_TRY_DO(trust(context.get(), ca, false));
  if (!own.certificate.empty()) REGATTA_TRY_DO(use_identity(context.get(), own));
  return TlsContext(std::move(context));
}

Result<TlsContext> TlsContext::client_of_hash(const std::string& ca_hash) {
  const bool is_hash =
      ca_hash.size() == 64 && ca_hash.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!is_hash)
    return Error{Code::kInvalidInput, "'" + printable(ca_hash, 80) +
                                          "' is no SHA-256 of a CA: 64 letters of 0-9 and a-f"};
  REGATTA_TRY(context, new_context(::TLS_client_method()));
  auto hash = std::make_unique<std::string>(ca_hash);
  if (::SSL_CTX_set_ex_data(context.get(), hash_index(), hash.get()) != 1)
    return openssl_error(Code::kUnavailable, "TLS cannot be set up");
  ::SSL_CTX_set_cert_verify_callback(context.get(), verify_by_hash, hash.release());
  ::SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  return TlsContext(std::move(context));
}

TlsStream::TlsStream(ssl_st* ssl) : ssl_(ssl) {}
TlsStream::TlsStream(TlsStream&&) noexcept = default;
TlsStream& TlsStream::operator=(TlsStream&&) noexcept = default;
TlsStream::~TlsStream() = default;

void TlsStream::Free::operator()(ssl_st* ssl) const {
  ::SSL_free(ssl);
}

Result<TlsStream> TlsStream::create(const TlsContext& context, int fd) {
  ::ERR_clear_error();
  TlsStream stream(::SSL_new(context.get()));
  BIO* const bio = ::BIO_new(stream_method());
  if (stream.ssl_ == nullptr || bio == nullptr) {
    ::BIO_free(bio);
    return openssl_error(Code::kExhausted, "a TLS connection cannot be set up");
  }
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the descriptor is the BIO's whole state
  ::BIO_set_data(bio, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)));
  ::BIO_set_init(bio, 1);
  ::SSL_set_bio(stream.ssl_.get(), bio, bio);
  return stream;
}

Result<TlsStream> TlsStream::accept(const TlsContext& context, int fd) {
  REGATTA_TRY(stream, create(context, fd));
  ::SSL_set_accept_state(stream.ssl_.get());
  auto secrets = std::make_unique<TrafficSecrets>();
  if (::SSL_set_ex_data(stream.ssl_.get(), secrets_index(), secrets.get()) == 1)
    static_cast<void>(secrets.release());
  return stream;
}

Result<TlsStream> TlsStream::connect(const TlsContext& context, int fd, const std::string& host) {
  REGATTA_TRY(stream, create(context, fd));
  SSL* const ssl = stream.ssl_.get();
  ::SSL_set_connect_state(ssl);
  const bool is_set = is_ip_address(host) ? ::X509_VERIFY_PARAM_set1_ip_asc(::SSL_get0_param(ssl),
                                                                            host.c_str()) == 1
                                          : ::SSL_set1_host(ssl, host.c_str()) == 1 &&
                                                SSL_set_tlsext_host_name(ssl, host.c_str()) == 1;
  if (host.empty() || !is_set)
    return openssl_error(Code::kInvalidInput, "the host '" + host + "' cannot be checked");
  return stream;
}

StreamProgress TlsStream::progress_of(int result) {
  if (result > 0) return StreamProgress::kDone;
  const int number = errno;
  switch (::SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return StreamProgress::kWantRead;
    case SSL_ERROR_WANT_WRITE:
      return StreamProgress::kWantWrite;
    case SSL_ERROR_ZERO_RETURN:
      return StreamProgress::kEnded;
    case SSL_ERROR_SYSCALL:
      problem_ = number == 0 ? "the connection ended" : os::errno_text(number);
      break;
    default: {
      const long verified = ::SSL_get_verify_result(ssl_.get());
      const char* const reason = ::ERR_reason_error_string(::ERR_peek_last_error());
      if (verified != X509_V_OK)
        problem_ = ::X509_verify_cert_error_string(verified);
      else
        problem_ = reason == nullptr ? "the connection failed" : reason;
    }
  }
  ::ERR_clear_error();
  return StreamProgress::kFailed;
}

StreamProgress TlsStream::handshake() {
  if (records_ != nullptr) return StreamProgress::kDone;
  ::ERR_clear_error();
  errno = 0;
  const StreamProgress progress = progress_of(::SSL_do_handshake(ssl_.get()));
  if (progress == StreamProgress::kDone) finish_handshake();
  return progress;
}

namespace {

std::vector<std::string> uris_of(const SSL* ssl) {
  std::vector<std::string> uris;
  const X509* const certificate = ::SSL_get0_peer_certificate(ssl);
  if (certificate == nullptr || ::SSL_get_verify_result(ssl) != X509_V_OK) return uris;
  const OpensslHandle<GENERAL_NAMES, ::GENERAL_NAMES_free> names(static_cast<GENERAL_NAMES*>(
      ::X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* const text = name->d.uniformResourceIdentifier;
    uris.emplace_back(reinterpret_cast<const char*>(::ASN1_STRING_get0_data(text)),
                      static_cast<std::size_t>(::ASN1_STRING_length(text)));
  }
  return uris;
}

}  // namespace

// A server's connection of TLS 1.3 goes on with its records alone. The handshake reads no byte
// behind itself, and no record but those of the handshake was sent, so both numbers begin at 0.
void TlsStream::finish_handshake() {
  SSL* const ssl = ssl_.get();
  peer_uris_ = uris_of(ssl);
  const auto* const secrets =
      static_cast<const TrafficSecrets*>(::SSL_get_ex_data(ssl, secrets_index()));
  const bool is_usual = ::SSL_version(ssl) == TLS1_3_VERSION && ::SSL_has_pending(ssl) == 0 &&
                        ::SSL_SESSION_get_max_fragment_length(::SSL_get0_session(ssl)) ==
                            TLSEXT_max_fragment_length_DISABLED;
  if (secrets != nullptr && is_usual) {
    const RecordCipher cipher = record_cipher(::SSL_CIPHER_get_id(::SSL_get_current_cipher(ssl)));
    std::string read_secret = bytes_of_hex(secrets->client);
    std::string write_secret = bytes_of_hex(secrets->server);
    if (cipher.cipher != nullptr && read_secret.size() == write_secret.size() &&
        read_secret.size() == static_cast<std::size_t>(::EVP_MD_get_size(cipher.digest))) {
      records_ = std::make_unique<RecordLayer>(socket_of(::SSL_get_rbio(ssl)), cipher, read_secret,
                                               write_secret);
      ssl_.reset();
    }
    ::OPENSSL_cleanse(read_secret.data(), read_secret.size());
    ::OPENSSL_cleanse(write_secret.data(), write_secret.size());
  }
  // A record by one call of the system instead of two.
  if (ssl_ != nullptr) SSL_set_read_ahead(ssl_.get(), 1);
}

StreamTransfer TlsStream::checked(StreamTransfer transfer) {
  if (transfer.progress == StreamProgress::kFailed) problem_ = records_->problem();
  return transfer;
}

StreamTransfer TlsStream::read(char* into, std::size_t count) {
  if (records_ != nullptr) return checked(records_->read(into, count));
  ::ERR_clear_error();
  errno = 0;
  StreamTransfer transfer;
  transfer.progress = progress_of(::SSL_read_ex(ssl_.get(), into, count, &transfer.bytes));
  return transfer;
}

StreamTransfer TlsStream::write(std::string_view bytes) {
  if (records_ != nullptr) return checked(records_->write(bytes));
  ::ERR_clear_error();
  errno = 0;
  StreamTransfer transfer;
  transfer.progress = progress_of(::SSL_write_ex(
      ssl_.get(), bytes.data(), std::min(bytes.size(), kRecordBytes), &transfer.bytes));
  return transfer;
}

bool TlsStream::has_pending() const {
  return records_ != nullptr ? records_->has_pending() : ::SSL_has_pending(ssl_.get()) == 1;
}

void TlsStream::end_writing() {
  if (records_ != nullptr) return records_->end_writing();
  // Fails where the handshake is not over or the connection has failed: there is nobody to tell.
  if (::SSL_is_init_finished(ssl_.get()) == 1) ::SSL_shutdown(ssl_.get());
  ::ERR_clear_error();
}

bool TlsStream::is_untrusted() const {
  return ssl_ != nullptr && ::SSL_get_verify_result(ssl_.get()) != X509_V_OK;
}

}  // namespace regatta::tls
