// tls/internal/openssl_handles.h: objects of OpenSSL that free themselves, PEM texts, and errors.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "regatta/base/core/result.h"

namespace regatta::tls {

template <auto kFree>
struct OpensslFree {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
template <typename T, auto kFree>
using OpensslHandle = std::unique_ptr<T, OpensslFree<kFree>>;

using BioHandle = OpensslHandle<BIO, ::BIO_free_all>;
using BignumHandle = OpensslHandle<BIGNUM, ::BN_free>;
using CertificateHandle = OpensslHandle<X509, ::X509_free>;
using ExtensionHandle = OpensslHandle<X509_EXTENSION, ::X509_EXTENSION_free>;
using KeyHandle = OpensslHandle<EVP_PKEY, ::EVP_PKEY_free>;
using RequestHandle = OpensslHandle<X509_REQ, ::X509_REQ_free>;

// "what: reason", with the last reason of this thread's queue of errors, which is empty afterwards.
Error openssl_error(Code code, std::string_view what);

// kInvalidInput when the text holds none, or has an error in one of them.
Result<std::vector<CertificateHandle>> parse_certificates(const std::string& pem);
// The first one; kInvalidInput as above.
Result<CertificateHandle> parse_certificate(const std::string& pem);
Result<KeyHandle> parse_private_key(const std::string& pem);

// SHA-256 of the DER form in hex, 64 small letters.
Result<std::string> hash_of(const X509* certificate);

// Whether a host of a certificate or URL is an IP address.
bool is_ip_address(const std::string& host);

}  // namespace regatta::tls
