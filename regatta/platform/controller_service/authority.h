// controller_service/authority.h: the controller's own certificate authority and certificate, kept
// in its state folder, and the tokens by which servers join.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/base/http/http_server.h"
#include "regatta/base/tls/certificate.h"

namespace regatta::controller_service {

inline constexpr Seconds kCertificateLifetime{7 * 86400.0};

class Authority {
 public:
  // Reads FOLDER/ca.pem and ca.key (mode 0600), or makes them. `now`: Unix seconds.
  static Result<Authority> open(const std::string& folder, std::int64_t now);

  const std::string& certificate() const { return identity_.certificate; }
  // The certificate's SHA-256 in hex: part of a join token.
  const std::string& hash() const { return hash_; }
  // A new certificate of the server for these host names and addresses.
  Result<http::ServerIdentity> issue_server(const std::vector<std::string>& hosts,
                                            std::int64_t now) const;
  // For the agent of a node: its URI is regatta://cluster/node/NAME.
  Result<std::string> sign_node(const std::string& node, const std::string& request,
                                std::int64_t now) const;

 private:
  tls::Identity identity_;
  std::string hash_;
};

// The names of a server's certificate: these, and those of loopback.
std::vector<std::string> with_loopback(std::vector<std::string> hosts);

// Writes a file that nobody else may read (mode 0600), not even for a moment.
Status write_secret(const std::string& path, std::string_view text);

// The node in the URIs of a client's certificate; "" when there is none.
std::string node_of_uris(const std::vector<std::string>& uris);

// rg1.CAHASH.ID.SECRET: the agent checks the hash before it sends the secret.
std::string join_token(const Authority& authority, const std::string& id,
                       const std::string& secret);

}  // namespace regatta::controller_service
