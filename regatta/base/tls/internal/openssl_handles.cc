#include "regatta/base/tls/internal/openssl_handles.h"

#include <array>
#include <climits>
#include <utility>

#include <openssl/err.h>
#include <openssl/pem.h>

namespace regatta::tls {
namespace {

BioHandle memory_of(const std::string& text) {
  if (text.size() > INT_MAX) return nullptr;
  return BioHandle(::BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// A key that needs a password is refused instead of asking at the terminal.
int refuse_password(char*, int, int, void*) {
  return -1;
}

}  // namespace

Error openssl_error(Code code, std::string_view what) {
  const unsigned long number = ::ERR_peek_last_error();
  const char* const reason = ::ERR_reason_error_string(number);
  ::ERR_clear_error();
  std::string message(what);
  if (reason != nullptr) message += std::string(": ") + reason;
  return Error{code, std::move(message)};
}

Result<std::vector<CertificateHandle>> parse_certificates(const std::string& pem) {
  ::ERR_clear_error();
  const BioHandle memory = memory_of(pem);
  std::vector<CertificateHandle> certificates;
  while (memory != nullptr) {
    CertificateHandle one(::PEM_read_bio_X509(memory.get(), nullptr, refuse_password, nullptr));
    if (one == nullptr) break;
    certificates.push_back(std::move(one));
  }
  const bool is_at_end = ERR_GET_REASON(::ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  if (certificates.empty() || !is_at_end)
    return openssl_error(Code::kInvalidInput, "the text is no certificate in PEM form");
  ::ERR_clear_error();
  return certificates;
}

Result<CertificateHandle> parse_certificate(const std::string& pem) {
  REGATTA_TRY(certificates, parse_certificates(pem));
  return std::move(certificates.front());
}

Result<KeyHandle> parse_private_key(const std::string& pem) {
  ::ERR_clear_error();
  const BioHandle memory = memory_of(pem);
  KeyHandle key;
  if (memory != nullptr)
    key.reset(::PEM_read_bio_PrivateKey(memory.get(), nullptr, refuse_password, nullptr));
  if (key == nullptr)
    return openssl_error(Code::kInvalidInput, "the text is no private key in PEM form");
  return key;
}

Result<std::string> hash_of(const X509* certificate) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (::X509_digest(certificate, ::EVP_sha256(), digest.data(), &size) != 1)
    return openssl_error(Code::kUnavailable, "hashing a certificate failed");
  std::string text;
  for (unsigned i = 0; i < size; ++i) {
    text += "0123456789abcdef"[digest[i] >> 4];
    text += "0123456789abcdef"[digest[i] & 15];
  }
  return text;
}

bool is_ip_address(const std::string& host) {
  ASN1_OCTET_STRING* const address = ::a2i_IPADDRESS(host.c_str());
  ::ASN1_OCTET_STRING_free(address);
  if (address == nullptr) ::ERR_clear_error();
  return address != nullptr;
}

}  // namespace regatta::tls
