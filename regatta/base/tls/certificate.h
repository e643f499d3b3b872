// tls/certificate.h: a certificate authority of one's own: keys, requests and certificates (P-256,
// X.509 v3) as PEM texts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"

namespace regatta::tls {

// A certificate and its private key, both PEM; the certificate may be a chain.
struct Identity {
  std::string certificate;
  std::string private_key;
};

// The names that a certificate is good for: the server's DNS names and IP addresses, and the URI of
// a client, such as regatta://cluster/node/NAME.
struct SubjectNames {
  std::string common_name;
  std::vector<std::string> hosts;  // DNS names and IP addresses
  std::vector<std::string> uris;
};

// Times are Unix seconds; certificates begin an hour earlier, for clocks that lag.
Result<Identity> create_authority(const std::string& name, std::int64_t now, Seconds lifetime);
// A new key and a request (PKCS #10, PEM) that carries `names`.
struct SigningRequest {
  std::string request;
  std::string private_key;
};
Result<SigningRequest> create_request(const SubjectNames& names);
// Signs the public key of `request` for `names`, never for the names that the request asks for.
// kInvalidInput when the request's own signature is wrong.
Result<std::string> sign_request(const Identity& authority, const std::string& request,
                                 const SubjectNames& names, std::int64_t now, Seconds lifetime);
// A key and a certificate in one step.
Result<Identity> issue(const Identity& authority, const SubjectNames& names, std::int64_t now,
                       Seconds lifetime);

// SHA-256 of the DER form in hex: how a join token names the authority.
Result<std::string> certificate_hash(const std::string& certificate);
// Unix seconds of the end of the first certificate's validity.
Result<std::int64_t> valid_until(const std::string& certificate);

}  // namespace regatta::tls
