// tls/tls_stream.h: TLS 1.2 and 1.3 over a socket that does not block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/tls/certificate.h"

struct ssl_ctx_st;
struct ssl_st;

namespace regatta::tls {

// The settings that the streams of one server or client share. A copy is the same context; streams
// that were made of it keep it.
class TlsContext {
 public:
  // A server's. With `client_ca` (PEM) it asks each client for a certificate: a client without one
  // is served, one with a certificate that the CA did not sign fails the handshake. kInvalidInput
  // for texts that cannot be used.
  static Result<TlsContext> server(const Identity& identity, const std::string& client_ca);
  // A client's that trusts what `ca` (PEM) signed, and nothing else. `own` may be empty.
  static Result<TlsContext> client(const std::string& ca, const Identity& own);
  // A client's that knows of its CA the certificate_hash() alone, as a join token has it, and
  // trusts the one of that hash in the chain that the server sends.
  static Result<TlsContext> client_of_hash(const std::string& ca_hash);

  ssl_ctx_st* get() const { return context_.get(); }

 private:
  explicit TlsContext(std::shared_ptr<ssl_ctx_st> context) : context_(std::move(context)) {}
  std::shared_ptr<ssl_ctx_st> context_;
};

// How a call on a stream ended. kWantRead and kWantWrite: call again when the socket is readable or
// writable; kEnded: the peer ended the stream; kFailed: see TlsStream::problem().
enum class StreamProgress : std::uint8_t { kDone, kWantRead, kWantWrite, kEnded, kFailed };

struct StreamTransfer {
  StreamProgress progress = StreamProgress::kFailed;
  std::size_t bytes = 0;
};

class RecordLayer;

// One connection. While it is idle it holds no buffers; a server's of TLS 1.3 takes some hundred
// bytes then, all others some 15 kB, which are OpenSSL's.
class TlsStream {
 public:
  // `fd` does not block and stays the caller's. kExhausted without memory.
  static Result<TlsStream> accept(const TlsContext& context, int fd);
  // The server's certificate must be good for `host`, a DNS name or an IP address.
  static Result<TlsStream> connect(const TlsContext& context, int fd, const std::string& host);
  TlsStream(TlsStream&&) noexcept;
  TlsStream& operator=(TlsStream&&) noexcept;
  ~TlsStream();

  StreamProgress handshake();
  // Reads at least one byte where it is done.
  StreamTransfer read(char* into, std::size_t count);
  // Writes a part of at most 64 KiB. After kWantWrite the next call has the same bytes first, which
  // may lie elsewhere.
  StreamTransfer write(std::string_view bytes);
  // Bytes have come that read() has not given; the socket need not be readable for them.
  bool has_pending() const;
  // Tells the peer that no more is written; does not wait.
  void end_writing();

  // The URIs among the subject's alternative names of the peer's verified certificate, after the
  // handshake.
  const std::vector<std::string>& peer_uris() const { return peer_uris_; }
  // Why the last call failed.
  const std::string& problem() const { return problem_; }
  // Whether it failed because the peer's certificate is not trusted.
  bool is_untrusted() const;

 private:
  struct Free {
    void operator()(ssl_st* ssl) const;
  };
  explicit TlsStream(ssl_st* ssl);
  static Result<TlsStream> create(const TlsContext& context, int fd);
  StreamProgress progress_of(int result);
  StreamTransfer checked(StreamTransfer transfer);
  void finish_handshake();

  std::unique_ptr<ssl_st, Free> ssl_;  // null when there are records
  std::unique_ptr<RecordLayer> records_;
  std::vector<std::string> peer_uris_;
  std::string problem_;
};

}  // namespace regatta::tls
