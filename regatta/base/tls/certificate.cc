#include "regatta/base/tls/certificate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <functional>
#include <utility>

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>

#include "regatta/base/core/text.h"
#include "regatta/base/tls/internal/openssl_handles.h"

namespace regatta::tls {
namespace {

constexpr std::int64_t kClockLagSeconds = 3600;
constexpr long kVersion3 = 2;
constexpr int kSerialBits = 159;       // RFC 5280: positive and at most 20 octets
constexpr int kCommonNameMax = 64;     // RFC 5280, appendix A.1: ub-common-name
constexpr int kSecurityBitsMin = 112;  // RSA of 2048 bits
constexpr std::size_t kRequestBytesMax = 64 << 10;

Error failed(std::string_view what) {
  return openssl_error(Code::kUnavailable, std::string(what) + " failed");
}

Result<std::string> pem_text(const std::function<int(BIO*)>& write) {
  const BioHandle memory(::BIO_new(::BIO_s_mem()));
  if (memory == nullptr || write(memory.get()) != 1) return failed("writing PEM");
  char* begin = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &begin);
  return std::string(begin, static_cast<std::size_t>(size));
}

Result<std::string> private_key_pem(EVP_PKEY* key) {
  return pem_text([key](BIO* to) {
    return ::PEM_write_bio_PKCS8PrivateKey(to, key, nullptr, nullptr, 0, nullptr, nullptr);
  });
}

Result<std::string> certificate_pem(X509* certificate) {
  return pem_text([certificate](BIO* to) { return ::PEM_write_bio_X509(to, certificate); });
}

Result<KeyHandle> new_key() {
  KeyHandle key(EVP_EC_gen("P-256"));
  if (key == nullptr) return failed("making a key");
  return key;
}

Status set_common_name(X509_NAME* subject, const std::string& name) {
  if (name.empty() || name.size() > kCommonNameMax)
    return Error{Code::kInvalidInput, "the common name '" + printable(name, 80) +
                                          "' of a certificate needs 1 to 64 bytes"};
  if (::X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                                   reinterpret_cast<const unsigned char*>(name.data()),
                                   static_cast<int>(name.size()), -1, 0) != 1)
    return openssl_error(Code::kInvalidInput,
                         "the common name '" + printable(name, 80) + "' cannot be used");
  return {};
}

// Takes `name` into `names`, or fails.
Status push_name(GENERAL_NAMES* names, int type, const std::string& text) {
  // No name has a byte that another reader could take for its end.
  const bool is_plain = !text.empty() && std::ranges::all_of(text, [](unsigned char letter) {
    return letter > ' ' && letter < 127;
  });
  const Error error{Code::kInvalidInput,
                    "'" + printable(text, 80) + "' cannot be a name of a certificate"};
  if (!is_plain) return error;
  GENERAL_NAME* const name = ::a2i_GENERAL_NAME(nullptr, nullptr, nullptr, type, text.c_str(), 0);
  if (name == nullptr || sk_GENERAL_NAME_push(names, name) == 0) {
    ::GENERAL_NAME_free(name);
    ::ERR_clear_error();
    return error;
  }
  return {};
}

// The extension of subject alternative names; null when there is none.
Result<ExtensionHandle> alternative_names(const SubjectNames& names) {
  if (names.hosts.empty() && names.uris.empty()) return ExtensionHandle();
  const OpensslHandle<GENERAL_NAMES, ::GENERAL_NAMES_free> list(::GENERAL_NAMES_new());
  if (list == nullptr) return failed("making a list of names");
  for (const std::string& host : names.hosts)
    REGATTA_TRY_DO(push_name(list.get(), is_ip_address(host) ? GEN_IPADD : GEN_DNS, host));
  for (const std::string& uri : names.uris)
    REGATTA_TRY_DO(push_name(list.get(), GEN_URI, uri));
  ExtensionHandle extension(::X509V3_EXT_i2d(NID_subject_alt_name, 0, list.get()));
  if (extension == nullptr) return failed("writing the names");
  return extension;
}

Status add_extension(X509* certificate, X509* issuer, int kind, const char* value) {
  X509V3_CTX context;
  ::X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const ExtensionHandle extension(::X509V3_EXT_conf_nid(nullptr, &context, kind, value));
  if (extension == nullptr || ::X509_add_ext(certificate, extension.get(), -1) != 1)
    return failed("adding an extension");
  return {};
}

struct Validity {
  std::int64_t now;
  Seconds lifetime;
};

// Version, serial number, validity and public key; the names are left out.
Result<CertificateHandle> blank_certificate(EVP_PKEY* public_key, Validity validity) {
  if (!(validity.lifetime.value >= 1) || validity.lifetime.value > 1e10)
    return Error{Code::kInvalidInput, "a certificate needs a lifetime of at least one second"};
  const std::int64_t end =
      validity.now + static_cast<std::int64_t>(std::floor(validity.lifetime.value));
  CertificateHandle certificate(::X509_new());
  const BignumHandle serial(::BN_new());
  if (certificate == nullptr || serial == nullptr ||
      ::BN_rand(serial.get(), kSerialBits, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) != 1 ||
      ::BN_to_ASN1_INTEGER(serial.get(), ::X509_get_serialNumber(certificate.get())) == nullptr ||
      ::X509_set_version(certificate.get(), kVersion3) != 1 ||
      ::ASN1_TIME_set(X509_getm_notBefore(certificate.get()), validity.now - kClockLagSeconds) ==
          nullptr ||
      ::ASN1_TIME_set(X509_getm_notAfter(certificate.get()), end) == nullptr ||
      ::X509_set_pubkey(certificate.get(), public_key) != 1)
    return failed("making a certificate");
  return certificate;
}

struct Authority {
  CertificateHandle certificate;
  KeyHandle key;
};

Result<Authority> parse_authority(const Identity& identity) {
  REGATTA_TRY(certificate, parse_certificate(identity.certificate));
  REGATTA_TRY(key, parse_private_key(identity.private_key));
  if (::X509_check_private_key(certificate.get(), key.get()) != 1)
    return openssl_error(Code::kInvalidInput,
                         "the authority's private key is not that of its certificate");
  return Authority{std::move(certificate), std::move(key)};
}

// The holder may serve the hosts, or be a client as the URIs.
const char* extended_key_usage(const SubjectNames& names) {
  if (names.hosts.empty()) return "clientAuth";
  return names.uris.empty() ? "serverAuth" : "serverAuth,clientAuth";
}

Result<std::string> sign_key(const Authority& authority, EVP_PKEY* public_key,
                             const SubjectNames& names, Validity validity) {
  REGATTA_TRY(certificate, blank_certificate(public_key, validity));
  X509* const made = certificate.get();
  X509* const issuer = authority.certificate.get();
  REGATTA_TRY_DO(set_common_name(::X509_get_subject_name(made), names.common_name));
  if (::X509_set_issuer_name(made, ::X509_get_subject_name(issuer)) != 1)
    return failed("making a certificate");
  REGATTA_TRY_DO(add_extension(made, issuer, NID_basic_constraints, "critical,CA:FALSE"));
  REGATTA_TRY_DO(add_extension(made, issuer, NID_key_usage, "critical,digitalSignature"));
  REGATTA_TRY_DO(add_extension(made, issuer, NID_ext_key_usage, extended_key_usage(names)));
  REGATTA_TRY_DO(add_extension(made, issuer, NID_authority_key_identifier, "keyid"));
  REGATTA_TRY(list, alternative_names(names));
  if (list != nullptr && ::X509_add_ext(made, list.get(), -1) != 1)
    return failed("adding the names");
  if (::X509_sign(made, authority.key.get(), ::EVP_sha256()) == 0)
    return failed("signing a certificate");
  return certificate_pem(made);
}

}  // namespace

Result<Identity> create_authority(const std::string& name, std::int64_t now, Seconds lifetime) {
  REGATTA_TRY(key, new_key());
  REGATTA_TRY(certificate, blank_certificate(key.get(), {now, lifetime}));
  X509* const made = certificate.get();
  REGATTA_TRY_DO(set_common_name(::X509_get_subject_name(made), name));
  if (::X509_set_issuer_name(made, ::X509_get_subject_name(made)) != 1)
    return failed("making a certificate");
  // It signs certificates, and none of them may sign others.
  REGATTA_TRY_DO(add_extension(made, made, NID_basic_constraints, "critical,CA:TRUE,pathlen:0"));
  REGATTA_TRY_DO(add_extension(made, made, NID_key_usage, "critical,keyCertSign,cRLSign"));
  REGATTA_TRY_DO(add_extension(made, made, NID_subject_key_identifier, "hash"));
  if (::X509_sign(made, key.get(), ::EVP_sha256()) == 0) return failed("signing a certificate");
  REGATTA_TRY(certificate_text, certificate_pem(made));
  REGATTA_TRY(key_text, private_key_pem(key.get()));
  return Identity{std::move(certificate_text), std::move(key_text)};
}

Result<SigningRequest> create_request(const SubjectNames& names) {
  REGATTA_TRY(key, new_key());
  const RequestHandle request(::X509_REQ_new());
  if (request == nullptr || ::X509_REQ_set_version(request.get(), 0) != 1 ||
      ::X509_REQ_set_pubkey(request.get(), key.get()) != 1)
    return failed("making a request");
  REGATTA_TRY_DO(set_common_name(::X509_REQ_get_subject_name(request.get()), names.common_name));
  REGATTA_TRY(list, alternative_names(names));
  if (list != nullptr) {
    const OpensslHandle<STACK_OF(X509_EXTENSION),
                        [](STACK_OF(X509_EXTENSION) * stack) { sk_X509_EXTENSION_free(stack); }>
        extensions(sk_X509_EXTENSION_new_null());
    if (extensions == nullptr || sk_X509_EXTENSION_push(extensions.get(), list.get()) == 0 ||
        ::X509_REQ_add_extensions(request.get(), extensions.get()) != 1)
      return failed("adding the names");
  }
  if (::X509_REQ_sign(request.get(), key.get(), ::EVP_sha256()) == 0)
    return failed("signing a request");
  REGATTA_TRY(request_text, pem_text([&request](BIO* to) {
                return ::PEM_write_bio_X509_REQ(to, request.get());
              }));
  REGATTA_TRY(key_text, private_key_pem(key.get()));
  return SigningRequest{std::move(request_text), std::move(key_text)};
}

Result<std::string> sign_request(const Identity& authority, const std::string& request,
                                 const SubjectNames& names, std::int64_t now, Seconds lifetime) {
  REGATTA_TRY(signer, parse_authority(authority));
  const BioHandle memory(::BIO_new_mem_buf(
      request.data(), static_cast<int>(std::min<std::size_t>(request.size(), kRequestBytesMax))));
  RequestHandle parsed;
  if (memory != nullptr)
    parsed.reset(::PEM_read_bio_X509_REQ(memory.get(), nullptr, nullptr, nullptr));
  if (parsed == nullptr)
    return openssl_error(Code::kInvalidInput, "the text is no signing request in PEM form");
  EVP_PKEY* const key = ::X509_REQ_get0_pubkey(parsed.get());
  if (key == nullptr || ::X509_REQ_verify(parsed.get(), key) != 1)
    return openssl_error(Code::kInvalidInput, "the signing request's own signature is wrong");
  if (::EVP_PKEY_get_security_bits(key) < kSecurityBitsMin)
    return Error{Code::kInvalidInput, "the signing request's key is too weak; use P-256"};
  return sign_key(signer, key, names, {now, lifetime});
}

Result<Identity> issue(const Identity& authority, const SubjectNames& names, std::int64_t now,
                       Seconds lifetime) {
  REGATTA_TRY(signer, parse_authority(authority));
  REGATTA_TRY(key, new_key());
  REGATTA_TRY(certificate, sign_key(signer, key.get(), names, {now, lifetime}));
  REGATTA_TRY(key_text, private_key_pem(key.get()));
  return Identity{std::move(certificate), std::move(key_text)};
}

Result<std::string> certificate_hash(const std::string& certificate) {
  REGATTA_TRY(parsed, parse_certificate(certificate));
  return hash_of(parsed.get());
}

Result<std::int64_t> valid_until(const std::string& certificate) {
  REGATTA_TRY(parsed, parse_certificate(certificate));
  std::tm end{};
  if (::ASN1_TIME_to_tm(::X509_get0_notAfter(parsed.get()), &end) != 1)
    return openssl_error(Code::kInvalidInput, "the certificate's end of validity cannot be read");
  return static_cast<std::int64_t>(::timegm(&end));
}

}  // namespace regatta::tls
