// tls/internal/record_layer.h: the records of one TLS 1.3 connection after its handshake, from the
// secrets that the handshake agreed on. Source: RFC 8446, sections 4.6.3, 5 and 7.
//
// OpenSSL's SSL object takes 14 kB a connection, 24 kB with the client's certificate. A server that
// holds ten thousand connections keeps what their records need, some hundred bytes each, and lets
// the SSL object go. The ciphers are OpenSSL's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <openssl/evp.h>

#include "regatta/base/tls/tls_stream.h"

namespace regatta::tls {

// The cipher suite of a connection; nothing for one that is not known.
struct RecordCipher {
  const EVP_CIPHER* cipher = nullptr;
  const EVP_MD* digest = nullptr;
  std::uint8_t key_bytes = 0;
};
RecordCipher record_cipher(std::uint32_t suite);

// Keys and the number of the next record in one direction. Empties itself.
class RecordKeys {
 public:
  // `secret`: the traffic secret, as long as the digest.
  RecordKeys(const RecordCipher& cipher, std::string_view secret);
  RecordKeys(const RecordKeys&) = delete;
  RecordKeys& operator=(const RecordKeys&) = delete;
  ~RecordKeys();

  // Appends a record of at most 16 KiB to `out`. False when the cipher fails.
  bool seal(std::uint8_t type, std::string_view bytes, std::string& out);
  // Opens a record in place: `body` is what follows its header of 5 bytes. Returns the size of the
  // content, whose type is in `type`; -1 for a record that is not genuine.
  int open(const unsigned char* header, char* body, std::size_t size, std::uint8_t& type);
  // Goes on with the next secret (section 7.2).
  void update();
  std::uint64_t record_count() const { return number_; }

 private:
  void derive();
  std::array<unsigned char, 12> nonce() const;

  RecordCipher cipher_;
  std::array<unsigned char, 48> secret_{};
  std::array<unsigned char, 32> key_{};
  std::array<unsigned char, 12> iv_{};
  std::uint64_t number_ = 0;
};

// Both directions of a server's connection over its socket.
class RecordLayer {
 public:
  RecordLayer(int fd, const RecordCipher& cipher, std::string_view read_secret,
              std::string_view write_secret);

  StreamTransfer read(char* into, std::size_t count);
  StreamTransfer write(std::string_view bytes);
  // read() can give bytes, or see the end, without the socket.
  bool has_pending() const;
  void end_writing();
  const char* problem() const { return problem_; }

 private:
  StreamProgress take_record(char* header, std::size_t body_bytes, std::string_view& content);
  StreamTransfer give(char* into, std::size_t count);
  StreamProgress take_handshake(std::string_view message);
  bool flush();
  StreamTransfer fail(const char* problem);

  int fd_;
  bool is_over_ = false;  // the peer's end came
  bool has_failed_ = false;
  int empty_count_ = 0;  // records without content, since one with content
  RecordKeys read_keys_;
  RecordKeys write_keys_;
  std::string raw_;         // received, not yet opened
  std::string plain_;       // opened, not yet given
  std::string unsent_;      // sealed
  std::size_t sealed_ = 0;  // bytes of the caller in unsent_
  const char* problem_ = "";
};

}  // namespace regatta::tls
