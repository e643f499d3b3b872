#include "regatta/base/tls/internal/record_layer.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <sys/socket.h>

namespace regatta::tls {
namespace {

constexpr std::size_t kHeaderBytes = 5;
constexpr std::size_t kTagBytes = 16;
constexpr std::size_t kContentMax = 16 << 10;
constexpr std::size_t kBodyMax = kContentMax + 256;  // section 5.2
constexpr std::size_t kReceiveBytes = kHeaderBytes + kBodyMax;
// Content that one call of the system sends.
constexpr std::size_t kSendBytes = 4 * kContentMax;
// Below the 2^24.5 full records that one key of AES-GCM may protect (section 5.5).
constexpr std::uint64_t kRecordsPerKey = 1 << 23;

// Records without content, such as those that change keys, between two with content: they cost
// time and, by the answers that they ask for, memory.
constexpr int kEmptyRecordsMax = 32;

enum ContentType : std::uint8_t { kAlert = 21, kHandshake = 22, kApplicationData = 23 };
constexpr char kKeyUpdate = 24;
constexpr char kCloseNotify = 0;

struct FreeCipher {
  void operator()(EVP_CIPHER_CTX* context) const { ::EVP_CIPHER_CTX_free(context); }
};

// One for all connections of a thread, for it takes a kilobyte; it gets its key for each record.
EVP_CIPHER_CTX* cipher_context() {
  thread_local const std::unique_ptr<EVP_CIPHER_CTX, FreeCipher> only(::EVP_CIPHER_CTX_new());
  return only.get();
}

// HKDF-Expand-Label (section 7.1) with an empty context, for results of at most one digest.
void expand_label(const EVP_MD* digest, const unsigned char* secret, std::string_view label,
                  unsigned char* into, std::size_t size) {
  std::string info = {static_cast<char>(size >> 8), static_cast<char>(size & 0xFF)};
  info += static_cast<char>(6 + label.size());
  info += "tls13 ";
  info += label;
  info += '\0';    // the context's length
  info += '\x01';  // the first block
  std::array<unsigned char, EVP_MAX_MD_SIZE> block{};
  unsigned count = 0;
  const auto* const made = ::HMAC(digest, secret, ::EVP_MD_get_size(digest),
                                  reinterpret_cast<const unsigned char*>(info.data()), info.size(),
                                  block.data(), &count);
  REGATTA_CHECK(made != nullptr && size <= count);
  std::memcpy(into, block.data(), size);
  ::OPENSSL_cleanse(block.data(), block.size());
}

// The size of the record at the front with its header, or of the header that is not there yet.
std::size_t record_bytes(std::string_view bytes) {
  if (bytes.size() < kHeaderBytes) return kHeaderBytes;
  return kHeaderBytes + static_cast<std::size_t>(static_cast<unsigned char>(bytes[3]) << 8 |
                                                 static_cast<unsigned char>(bytes[4]));
}

unsigned char* bytes_of(char* text) {
  return reinterpret_cast<unsigned char*>(text);
}

}  // namespace

RecordCipher record_cipher(std::uint32_t suite) {
  switch (suite & 0xFFFF) {
    case 0x1301:
      return {::EVP_aes_128_gcm(), ::EVP_sha256(), 16};
    case 0x1302:
      return {::EVP_aes_256_gcm(), ::EVP_sha384(), 32};
    case 0x1303:
      return {::EVP_chacha20_poly1305(), ::EVP_sha256(), 32};
    default:
      return {};
  }
}

RecordKeys::RecordKeys(const RecordCipher& cipher, std::string_view secret) : cipher_(cipher) {
  REGATTA_CHECK(secret.size() == static_cast<std::size_t>(::EVP_MD_get_size(cipher.digest)));
  std::memcpy(secret_.data(), secret.data(), secret.size());
  derive();
}

RecordKeys::~RecordKeys() {
  ::OPENSSL_cleanse(secret_.data(), secret_.size());
  ::OPENSSL_cleanse(key_.data(), key_.size());
  ::OPENSSL_cleanse(iv_.data(), iv_.size());
}

void RecordKeys::derive() {
  expand_label(cipher_.digest, secret_.data(), "key", key_.data(), cipher_.key_bytes);
  expand_label(cipher_.digest, secret_.data(), "iv", iv_.data(), iv_.size());
  number_ = 0;
}

void RecordKeys::update() {
  std::array<unsigned char, 48> next{};
  expand_label(cipher_.digest, secret_.data(), "traffic upd", next.data(),
               static_cast<std::size_t>(::EVP_MD_get_size(cipher_.digest)));
  secret_ = next;
  ::OPENSSL_cleanse(next.data(), next.size());
  derive();
}

// The number of the record, combined with the iv (section 5.3).
std::array<unsigned char, 12> RecordKeys::nonce() const {
  std::array<unsigned char, 12> result = iv_;
  for (std::size_t i = 0; i < 8; ++i)
    result[11 - i] ^= static_cast<unsigned char>(number_ >> (8 * i));
  return result;
}

bool RecordKeys::seal(std::uint8_t type, std::string_view bytes, std::string& out) {
  const std::size_t body = bytes.size() + 1 + kTagBytes;
  const std::array<unsigned char, kHeaderBytes> header = {kApplicationData, 3, 3,
                                                          static_cast<unsigned char>(body >> 8),
                                                          static_cast<unsigned char>(body & 0xFF)};
  const std::size_t begin = out.size();
  out.resize(begin + kHeaderBytes + body);
  char* const at = out.data() + begin;
  std::memcpy(at, header.data(), kHeaderBytes);
  std::memcpy(at + kHeaderBytes, bytes.data(), bytes.size());
  at[kHeaderBytes + bytes.size()] = static_cast<char>(type);
  unsigned char* const content = bytes_of(at + kHeaderBytes);
  const auto own_nonce = nonce();
  EVP_CIPHER_CTX* const context = cipher_context();
  int count = 0;
  const bool is_sealed =
      context != nullptr &&
      ::EVP_EncryptInit_ex(context, cipher_.cipher, nullptr, key_.data(), own_nonce.data()) == 1 &&
      ::EVP_EncryptUpdate(context, nullptr, &count, header.data(), kHeaderBytes) == 1 &&
      ::EVP_EncryptUpdate(context, content, &count, content, static_cast<int>(bytes.size() + 1)) ==
          1 &&
      ::EVP_EncryptFinal_ex(context, content + count, &count) == 1 &&
      ::EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, kTagBytes,
                            content + bytes.size() + 1) == 1;
  ++number_;
  // Nothing leaves that is not sealed.
  if (!is_sealed) out.resize(begin);
  return is_sealed;
}

int RecordKeys::open(const unsigned char* header, char* body, std::size_t size,
                     std::uint8_t& type) {
  if (size < kTagBytes + 1) return -1;
  unsigned char* const content = bytes_of(body);
  const auto content_size = static_cast<int>(size - kTagBytes);
  const auto own_nonce = nonce();
  EVP_CIPHER_CTX* const context = cipher_context();
  int count = 0;
  const bool is_genuine =
      context != nullptr &&
      ::EVP_DecryptInit_ex(context, cipher_.cipher, nullptr, key_.data(), own_nonce.data()) == 1 &&
      ::EVP_DecryptUpdate(context, nullptr, &count, header, kHeaderBytes) == 1 &&
      ::EVP_DecryptUpdate(context, content, &count, content, content_size) == 1 &&
      ::EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, kTagBytes, content + content_size) ==
          1 &&
      ::EVP_DecryptFinal_ex(context, content + count, &count) == 1;
  if (!is_genuine) return -1;
  ++number_;
  // Zeros behind the type are padding.
  int end = content_size;
  while (end > 0 && content[end - 1] == 0)
    --end;
  if (end == 0) return -1;
  type = content[end - 1];
  return static_cast<std::size_t>(end - 1) > kContentMax ? -1 : end - 1;
}

RecordLayer::RecordLayer(int fd, const RecordCipher& cipher, std::string_view read_secret,
                         std::string_view write_secret)
    : fd_(fd), read_keys_(cipher, read_secret), write_keys_(cipher, write_secret) {}

StreamTransfer RecordLayer::fail(const char* problem) {
  has_failed_ = true;
  problem_ = problem;
  raw_ = std::string();
  plain_ = std::string();
  return {StreamProgress::kFailed, 0};
}

// A message between the ends after the handshake: kDone where it changes nothing for the reader.
StreamProgress RecordLayer::take_handshake(std::string_view message) {
  const bool is_update = message.size() == 5 && message[0] == kKeyUpdate && message[1] == 0 &&
                         message[2] == 0 && message[3] == 1 && (message[4] == 0 || message[4] == 1);
  if (!is_update) return fail("the peer sent an unexpected message").progress;
  read_keys_.update();
  if (message[4] == 1) {
    constexpr std::string_view kAnswer("\x18\0\0\1\0", 5);
    if (!write_keys_.seal(kHandshake, kAnswer, unsent_)) return fail("sealing failed").progress;
    write_keys_.update();
    flush();
  }
  return StreamProgress::kDone;
}

// Opens the record at `header`; `content` is its application data.
StreamProgress RecordLayer::take_record(char* header, std::size_t body_bytes,
                                        std::string_view& content) {
  std::uint8_t type = 0;
  char* const body = header + kHeaderBytes;
  content = {};
  if (header[0] != kApplicationData) return fail("the peer sent a record in clear").progress;
  const int size = read_keys_.open(bytes_of(header), body, body_bytes, type);
  if (size < 0) return fail("a record is not genuine").progress;
  const std::string_view opened(body, static_cast<std::size_t>(size));
  switch (type) {
    case kApplicationData:
      content = opened;
      return StreamProgress::kDone;
    case kHandshake:
      return take_handshake(opened);
    case kAlert:
      if (opened.size() == 2 && opened[1] == kCloseNotify) {
        is_over_ = true;
        return StreamProgress::kEnded;
      }
      return fail("the peer sent an alert").progress;
    default:
      return fail("the peer sent a record of an unknown type").progress;
  }
}

bool RecordLayer::has_pending() const {
  return !plain_.empty() || record_bytes(raw_) <= raw_.size();
}

StreamTransfer RecordLayer::read(char* into, std::size_t count) {
  // Records are opened where they were received; the connection keeps what it cannot give yet.
  thread_local std::array<char, kReceiveBytes> received;
  if (has_failed_) return {StreamProgress::kFailed, 0};
  if (!plain_.empty()) return give(into, count);
  if (is_over_) return {StreamProgress::kEnded, 0};
  std::size_t begin = 0;
  std::size_t end = raw_.size();
  std::memcpy(received.data(), raw_.data(), end);
  raw_ = std::string();
  for (;;) {
    const std::string_view rest(received.data() + begin, end - begin);
    const std::size_t needed = record_bytes(rest);
    if (needed > kReceiveBytes) return fail("a record is too long");
    if (rest.size() >= needed) {
      std::string_view content;
      const StreamProgress progress =
          take_record(received.data() + begin, needed - kHeaderBytes, content);
      begin += needed;
      if (progress != StreamProgress::kDone) return {progress, 0};
      if (content.empty()) {
        if (++empty_count_ > kEmptyRecordsMax)
          return fail("the peer sends records without content");
        continue;
      }
      empty_count_ = 0;
      raw_.assign(received.data() + begin, end - begin);
      const std::size_t part = std::min(count, content.size());
      std::memcpy(into, content.data(), part);
      if (part < content.size()) plain_ = content.substr(part);
      return {StreamProgress::kDone, part};
    }
    std::memmove(received.data(), rest.data(), rest.size());
    begin = 0;
    end = rest.size();
    const ssize_t came = ::recv(fd_, received.data() + end, received.size() - end, MSG_DONTWAIT);
    if (came > 0) {
      end += static_cast<std::size_t>(came);
      continue;
    }
    if (came == 0 || (errno != EAGAIN && errno != EINTR))
      return fail(came == 0 ? "the connection ended" : "the connection failed");
    raw_.assign(received.data(), end);
    return {StreamProgress::kWantRead, 0};
  }
}

StreamTransfer RecordLayer::give(char* into, std::size_t count) {
  const std::size_t part = std::min(count, plain_.size());
  std::memcpy(into, plain_.data(), part);
  plain_.erase(0, part);
  if (plain_.empty()) plain_ = std::string();
  return {StreamProgress::kDone, part};
}

// Whether nothing is left.
bool RecordLayer::flush() {
  std::size_t done = 0;
  while (done < unsent_.size()) {
    const ssize_t sent =
        ::send(fd_, unsent_.data() + done, unsent_.size() - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno != EAGAIN) fail("the connection failed");
    if (sent < 0) break;
    done += static_cast<std::size_t>(sent);
  }
  unsent_.erase(0, done);
  if (unsent_.empty()) unsent_ = std::string();
  return unsent_.empty();
}

StreamTransfer RecordLayer::write(std::string_view bytes) {
  if (has_failed_) return {StreamProgress::kFailed, 0};
  if (sealed_ == 0) {
    if (write_keys_.record_count() >= kRecordsPerKey) {
      constexpr std::string_view kUpdate("\x18\0\0\1\0", 5);
      if (!write_keys_.seal(kHandshake, kUpdate, unsent_)) return fail("sealing failed");
      write_keys_.update();
    }
    std::string_view rest = bytes.substr(0, kSendBytes);
    sealed_ = rest.size();
    unsent_.reserve(rest.size() + (rest.size() / kContentMax + 1) * 64);
    while (!rest.empty()) {
      const std::string_view part = rest.substr(0, kContentMax);
      if (!write_keys_.seal(kApplicationData, part, unsent_)) return fail("sealing failed");
      rest.remove_prefix(part.size());
    }
  }
  const bool is_sent = flush();
  if (has_failed_) return {StreamProgress::kFailed, 0};
  if (!is_sent) return {StreamProgress::kWantWrite, 0};
  return {StreamProgress::kDone, std::exchange(sealed_, 0)};
}

void RecordLayer::end_writing() {
  constexpr std::string_view kEnd("\1\0", 2);  // a warning: close_notify
  if (!has_failed_ && write_keys_.seal(kAlert, kEnd, unsent_)) flush();
}

}  // namespace regatta::tls
