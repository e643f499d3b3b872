// login/oidc_settings.h: the OpenID provider of an installation, and which of its users may do
// what: docs/formats/oidc.md.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/platform/identity/identity_tables.h"

namespace regatta::login {

struct OidcSettings {
  std::string issuer;         // https://..., as its tokens say
  std::string client_id;      // ours at the provider
  std::string client_secret;  // from a file
  std::string ca;             // PEM of the authority of its certificate
  std::string address;        // of this controller as browsers know it: https://HOST[:PORT]
  std::string user_claim = "preferred_username";
  std::string roles_claim = "groups";
  // By value of the roles' claim. Users have the highest of theirs, and without any do not get in.
  std::vector<std::pair<std::string, identity::AccessRole>> roles;
};

// `name` stands for the text in errors; files that it names are read. kInvalidInput with file, line
// and key.
Result<OidcSettings> parse_oidc_settings(std::string_view text, const std::string& name);

}  // namespace regatta::login
