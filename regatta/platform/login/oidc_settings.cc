#include "regatta/platform/login/oidc_settings.h"

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/base/core/yaml_map.h"
#include "regatta/base/os/file.h"

namespace regatta::login {
namespace {

constexpr std::size_t kSecretMost = 4096;
constexpr std::size_t kAuthorityMost = 1 << 20;
constexpr std::string_view kHttps = "https://";

Status check_address(std::string_view key, const std::string& address, const std::string& name) {
  if (address.starts_with(kHttps) && address.size() > kHttps.size() && !address.ends_with('/'))
    return {};
  return Error{
      Code::kInvalidInput,
      fmt::format("{}: {}: it is no https:// address without a slash at its end; write one "
                  "such as https://login.example",
                  name, key)};
}

}  // namespace

Result<OidcSettings> parse_oidc_settings(std::string_view text, const std::string& name) {
  REGATTA_TRY(tree, parse_yaml(text, name));
  REGATTA_TRY(document, YamlDocument::read(std::move(tree), name));
  const YamlMap root = document.root();
  root.allow({"issuer", "client_id", "client_secret_file", "ca_file", "address", "user_claim",
              "roles_claim", "roles"});
  OidcSettings settings;
  settings.issuer = root.text("issuer");
  settings.client_id = root.text("client_id");
  const std::string secret_file = root.text("client_secret_file");
  const std::string ca_file = root.text("ca_file");
  settings.address = root.text("address");
  settings.user_claim = root.text("user_claim", settings.user_claim);
  settings.roles_claim = root.text("roles_claim", settings.roles_claim);
  Choices<identity::AccessRole> choices;
  for (std::size_t i = 0; i < identity::kAccessRoleNames.size(); ++i)
    choices.emplace_back(identity::kAccessRoleNames[i], static_cast<identity::AccessRole>(i));
  const YamlMap roles = root.map("roles");
  for (const std::string& key : roles.keys())
    settings.roles.emplace_back(key, roles.choice(key, choices));
  REGATTA_TRY_DO(document.status());
  REGATTA_TRY_DO(check_address("issuer", settings.issuer, name));
  REGATTA_TRY_DO(check_address("address", settings.address, name));
  REGATTA_TRY(secret, os::read_text_file(secret_file, kSecretMost));
  settings.client_secret = std::string(trim(secret));
  REGATTA_TRY(ca, os::read_text_file(ca_file, kAuthorityMost));
  settings.ca = std::move(ca);
  return settings;
}

}  // namespace regatta::login
