// node_agent/internal/node_identity.h: the certificate by which the controller knows a node: how a
// new node gets one for a join token, where it is kept, and when it is renewed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/base/tls/certificate.h"

namespace regatta::node_agent {

// rg1.CAHASH.ID.SECRET: the first 16 to 64 hex digits of the SHA-256 of the controller's authority,
// and what is to be shown.
struct JoinToken {
  std::string text;
  std::string authority_hash;
};
// kInvalidInput gives the form.
Result<JoinToken> parse_join_token(std::string_view text);

struct NodeCredentials {
  std::string authority;  // PEM of the one CA that is trusted
  tls::Identity own;
};

// The URI in a node's certificate: regatta://cluster/node/NAME.
std::string node_uri(const std::string& name);

// A file of the folder, readable by the owner alone. kNotFound where there is none.
Result<NodeCredentials> load_identity(const std::string& folder);
Status save_identity(const std::string& folder, const NodeCredentials& identity);

// The certificate whose hash begins with `hash` among those that a server presents: the first one
// of `urls` (with commas between them) that can be reached. Nothing is sent to it. kInvalidInput
// when it presents none: it is not the controller that the token is for.
Result<std::string> presented_authority(const std::string& urls, const std::string& hash,
                                        Seconds limit);

// POST /v1/nodes/enroll {"token", "name", "csr"} gives {"certificate"}. The token is sent when
// the server has proved that it has a certificate of the authority which the token names.
Result<NodeCredentials> enroll(const std::string& url, const JoinToken& token,
                               const std::string& name);

// A certificate is renewed when half of its life is over.
class IdentityRenewal {
 public:
  // `obtained`: Unix seconds when the certificate was written.
  IdentityRenewal(std::string folder, std::string name, NodeCredentials identity,
                  std::int64_t obtained);
  // A request for a new key, when one is due and none was made in the last minute.
  std::optional<std::string> due_request(std::int64_t unix_now);
  // The answer to the latest request, saved; kInvalidInput when it does not fit its key.
  Result<tls::Identity> renewed(const std::string& certificate, std::int64_t unix_now);

 private:
  void plan(std::int64_t obtained);

  std::string folder_;
  std::string name_;
  NodeCredentials identity_;
  std::int64_t due_ = 0;
  std::int64_t asked_ = 0;
  std::string pending_key_;
};

// Unix seconds when the certificate in the folder was written; 0: unknown.
std::int64_t identity_time(const std::string& folder);

}  // namespace regatta::node_agent
