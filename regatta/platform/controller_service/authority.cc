#include "regatta/platform/controller_service/authority.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>

#include "regatta/base/os/file.h"

namespace regatta::controller_service {
namespace {

constexpr Seconds kAuthorityLifetime{10 * 366 * 86400.0};
constexpr std::string_view kNodeUri = "regatta://cluster/node/";
constexpr std::string_view kNodeDomain = ".node.regatta.internal";

}  // namespace

Status write_secret(const std::string& path, std::string_view text) {
  const mode_t before = ::umask(0077);
  const Status status = os::write_file_atomically(path, text);
  ::umask(before);
  return status;
}

std::vector<std::string> with_loopback(std::vector<std::string> hosts) {
  for (const char* host : {"localhost", "127.0.0.1", "::1"})
    hosts.emplace_back(host);
  return hosts;
}

Result<Authority> Authority::open(const std::string& folder, std::int64_t now) {
  Authority authority;
  const std::string certificate_path = folder + "/ca.pem";
  const std::string key_path = folder + "/ca.key";
  auto certificate = os::read_file(certificate_path);
  if (certificate) {
    REGATTA_TRY(key, os::read_file(key_path));
    authority.identity_ = {std::move(*certificate), std::move(key)};
  } else if (certificate.error().code == Code::kNotFound) {
    REGATTA_TRY(made, tls::create_authority("regatta", now, kAuthorityLifetime));
    REGATTA_TRY_DO(write_secret(key_path, made.private_key));
    REGATTA_TRY_DO(os::write_file_atomically(certificate_path, made.certificate));
    authority.identity_ = std::move(made);
  } else {
    return certificate.error();
  }
  REGATTA_TRY(hash, tls::certificate_hash(authority.identity_.certificate));
  authority.hash_ = hash;
  return authority;
}

Result<http::ServerIdentity> Authority::issue_server(const std::vector<std::string>& hosts,
                                                     std::int64_t now) const {
  REGATTA_TRY(issued, tls::issue(identity_, {.common_name = "regatta-controller", .hosts = hosts},
                                 now, kCertificateLifetime));
  return http::ServerIdentity{.certificate_chain = issued.certificate + identity_.certificate,
                              .private_key = issued.private_key,
                              .client_ca = identity_.certificate};
}

Result<std::string> Authority::sign_node(const std::string& node, const std::string& request,
                                         std::int64_t now) const {
  // For the metrics that an agent serves. No host has such a name, so that no node can pose as one.
  return tls::sign_request(identity_, request,
                           {.common_name = node,
                            .hosts = {node + std::string(kNodeDomain)},
                            .uris = {fmt::format("{}{}", kNodeUri, node)}},
                           now, kCertificateLifetime);
}

std::string node_of_uris(const std::vector<std::string>& uris) {
  for (const std::string& uri : uris)
    if (uri.starts_with(kNodeUri)) return uri.substr(kNodeUri.size());
  return "";
}

std::string join_token(const Authority& authority, const std::string& id,
                       const std::string& secret) {
  return fmt::format("rg1.{}.{}.{}", authority.hash(), id, secret);
}

}  // namespace regatta::controller_service
