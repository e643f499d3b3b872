#include "regatta/platform/identity/secret.h"

#include <array>

#include <sodium.h>

namespace regatta::identity {
namespace {

constexpr std::size_t kSecretBytes = 32;
constexpr std::size_t kIdBytes = 8;
constexpr unsigned long long kPasses = 2;
constexpr std::size_t kMemory = 19 << 20;

void start_library() {
  static const bool is_started = sodium_init() >= 0;
  REGATTA_CHECK(is_started);
}

template <std::size_t kSize>
std::string hex_of(const std::array<unsigned char, kSize>& bytes) {
  std::array<char, 2 * kSize + 1> text;
  sodium_bin2hex(text.data(), text.size(), bytes.data(), bytes.size());
  return text.data();
}

}  // namespace

std::string random_secret(std::string_view prefix) {
  start_library();
  std::array<unsigned char, kSecretBytes> bytes;
  randombytes_buf(bytes.data(), bytes.size());
  constexpr int kVariant = sodium_base64_VARIANT_URLSAFE_NO_PADDING;
  std::array<char, sodium_base64_ENCODED_LEN(kSecretBytes, kVariant)> text;
  sodium_bin2base64(text.data(), text.size(), bytes.data(), bytes.size(), kVariant);
  return std::string(prefix) + text.data();
}

std::string random_id() {
  start_library();
  std::array<unsigned char, kIdBytes> bytes;
  randombytes_buf(bytes.data(), bytes.size());
  return hex_of(bytes);
}

std::string secret_hash(std::string_view secret) {
  std::array<unsigned char, crypto_hash_sha256_BYTES> hash;
  crypto_hash_sha256(hash.data(), reinterpret_cast<const unsigned char*>(secret.data()),
                     secret.size());
  return hex_of(hash);
}

Result<std::string> hash_password(const std::string& password) {
  start_library();
  std::array<char, crypto_pwhash_STRBYTES> text;
  if (crypto_pwhash_str_alg(text.data(), password.data(), password.size(), kPasses, kMemory,
                            crypto_pwhash_ALG_ARGON2ID13) != 0)
    return Error{Code::kExhausted, "password: no memory to hash it; try again later"};
  return std::string(text.data());
}

bool verify_password(const std::string& hash, const std::string& password) {
  start_library();
  return hash.size() < crypto_pwhash_STRBYTES &&
         crypto_pwhash_str_verify(hash.c_str(), password.data(), password.size()) == 0;
}

}  // namespace regatta::identity
