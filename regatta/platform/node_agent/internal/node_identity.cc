#include "regatta/platform/node_agent/internal/node_identity.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/stat.h>

#include "regatta/base/core/json.h"
#include "regatta/base/core/text.h"
#include "regatta/base/http/http_client.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/socket.h"
#include "regatta/platform/node_agent/internal/run_folder.h"

namespace regatta::node_agent {
namespace {

constexpr std::int64_t kAskAgainS = 60;

std::string identity_path(const std::string& folder) {
  return folder + "/node.pem";
}

struct OpensslFree {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL* ssl) const { SSL_free(ssl); }
  void operator()(BIO* bio) const { BIO_free(bio); }
};

std::string pem_of(X509* certificate) {
  const std::unique_ptr<BIO, OpensslFree> memory(BIO_new(BIO_s_mem()));
  if (memory == nullptr || PEM_write_bio_X509(memory.get(), certificate) != 1) return "";
  char* text = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

// "https://HOST:PORT"; the port is 443 where it is missing.
Result<os::HostPort> server_of(const std::string& url) {
  constexpr std::string_view kScheme = "https://";
  if (!url.starts_with(kScheme))
    return Error{Code::kInvalidInput,
                 fmt::format("'{}': a node is enrolled by https://HOST:PORT", printable(url, 80))};
  std::string rest = url.substr(kScheme.size());
  rest.erase(std::find(rest.begin(), rest.end(), '/'), rest.end());
  if (rest.find(':') == std::string::npos || rest.ends_with(']')) rest += ":443";
  return os::parse_host_port(rest);
}

Result<std::string> certificate_of(const http::Response& response) {
  if (response.status != 200)
    return Error{Code::kUnavailable,
                 fmt::format("the controller refuses to enroll this node, status {}: {}",
                             response.status, printable(response.body, 200))};
  REGATTA_TRY(root, JsonReader::parse(response.body, "answer to the enrolment"));
  std::string certificate;
  root.read("certificate", certificate);
  return root.finish(certificate);
}

}  // namespace

Result<JoinToken> parse_join_token(std::string_view text) {
  const std::vector<std::string> parts = split(text, '.');
  const bool has_parts = parts.size() == 4 && parts[0] == "rg1" && parts[1].size() >= 16 &&
                         parts[1].size() <= 64 && !parts[2].empty() && !parts[3].empty();
  if (!has_parts || parts[1].find_first_not_of("0123456789abcdef") != std::string::npos)
    return Error{Code::kInvalidInput,
                 "the join token is no rg1.HASH.ID.SECRET; ask the operator for a new one"};
  return JoinToken{.text = std::string(text), .authority_hash = parts[1]};
}

std::string node_uri(const std::string& name) {
  return "regatta://cluster/node/" + name;
}

// One file, so that a crash leaves no key without its certificate: the certificate, its key, the
// authority.
Result<NodeCredentials> load_identity(const std::string& folder) {
  const std::string path = identity_path(folder);
  REGATTA_TRY(text, os::read_text_file(path));
  const std::size_t key_mark = text.find("PRIVATE KEY-----");
  const std::size_t key = text.rfind("-----BEGIN", key_mark);
  const std::size_t key_end = text.find("-----END", key_mark);
  const std::size_t authority = text.find("-----BEGIN", key_end);
  if (key_mark == std::string::npos || key_end == std::string::npos ||
      authority == std::string::npos)
    return Error{Code::kInvalidInput,
                 path + ": a part is missing; remove the file and enroll the node again"};
  return NodeCredentials{.authority = text.substr(authority),
                         .own = {.certificate = text.substr(0, key),
                                 .private_key = text.substr(key, authority - key)}};
}

Status save_identity(const std::string& folder, const NodeCredentials& identity) {
  REGATTA_TRY_DO(os::make_folder(folder, 0700));
  return write_durably(identity_path(folder),
                       identity.own.certificate + identity.own.private_key + identity.authority);
}

namespace {

Result<std::string> authority_at(const std::string& url, const std::string& hash, Seconds limit) {
  REGATTA_TRY(server, server_of(url));
  REGATTA_TRY(socket, os::connect_tcp(server, limit));
  timeval time{.tv_sec = static_cast<time_t>(limit.value) + 1, .tv_usec = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
  // Nothing is verified here: what matters is in the hash, and the connection carries no secret.
  const std::unique_ptr<SSL_CTX, OpensslFree> context(SSL_CTX_new(TLS_client_method()));
  const std::unique_ptr<SSL, OpensslFree> ssl(context ? SSL_new(context.get()) : nullptr);
  if (ssl == nullptr || SSL_set_fd(ssl.get(), socket.get()) != 1 || SSL_connect(ssl.get()) != 1)
    return Error{Code::kUnavailable, url + ": no TLS connection can be made"};
  STACK_OF(X509)* const chain = SSL_get_peer_cert_chain(ssl.get());
  for (int i = 0; chain != nullptr && i < sk_X509_num(chain); ++i) {
    std::string certificate = pem_of(sk_X509_value(chain, i));
    const auto found = tls::certificate_hash(certificate);
    if (found && found->starts_with(hash)) return certificate;
  }
  return Error{Code::kInvalidInput,
               url +
                   ": it presents no certificate of the authority that the join token names; "
                   "make sure that the URL is the controller's, or ask for a new token"};
}

}  // namespace

Result<std::string> presented_authority(const std::string& urls, const std::string& hash,
                                        Seconds limit) {
  Result<std::string> found = Error{Code::kInvalidInput, "no URL of a controller is given"};
  for (const std::string& url : split(urls, ',')) {
    found = authority_at(url, hash, limit);
    // One that cannot be reached says nothing about the others.
    if (found || found.error().code != Code::kUnavailable) return found;
  }
  return found;
}

Result<NodeCredentials> enroll(const std::string& url, const JoinToken& token,
                               const std::string& name) {
  REGATTA_TRY(authority, presented_authority(url, token.authority_hash, Seconds{10}));
  REGATTA_TRY(signing,
              tls::create_request({.common_name = name, .hosts = {}, .uris = {node_uri(name)}}));
  http::ClientOptions client_options;
  client_options.url = url;
  client_options.ca = authority;
  REGATTA_TRY(client, http::HttpClient::create(client_options));
  const nlohmann::json body = {{"token", token.text}, {"name", name}, {"csr", signing.request}};
  REGATTA_TRY(response, client.send("POST", "/v1/nodes/enroll",
                                    {{"Content-Type", "application/json"}}, body.dump()));
  REGATTA_TRY(certificate, certificate_of(response));
  return NodeCredentials{
      .authority = std::move(authority),
      .own = {.certificate = std::move(certificate), .private_key = signing.private_key}};
}

IdentityRenewal::IdentityRenewal(std::string folder, std::string name, NodeCredentials identity,
                                 std::int64_t obtained)
    : folder_(std::move(folder)), name_(std::move(name)), identity_(std::move(identity)) {
  plan(obtained);
}

void IdentityRenewal::plan(std::int64_t obtained) {
  const auto until = tls::valid_until(identity_.own.certificate);
  due_ = until ? obtained + (*until - obtained) / 2 : 0;
}

std::optional<std::string> IdentityRenewal::due_request(std::int64_t unix_now) {
  if (unix_now < due_ || unix_now < asked_ + kAskAgainS) return std::nullopt;
  asked_ = unix_now;
  auto signing =
      tls::create_request({.common_name = name_, .hosts = {}, .uris = {node_uri(name_)}});
  if (!signing) return std::nullopt;
  pending_key_ = std::move(signing->private_key);
  return std::move(signing->request);
}

Result<tls::Identity> IdentityRenewal::renewed(const std::string& certificate,
                                               std::int64_t unix_now) {
  NodeCredentials next{.authority = identity_.authority,
                       .own = {.certificate = certificate, .private_key = pending_key_}};
  http::ClientOptions options;
  options.url = "https://localhost:1";
  options.ca = next.authority;
  options.certificate_chain = next.own.certificate;
  options.private_key = next.own.private_key;
  const auto fits = http::HttpClient::create(std::move(options));
  if (pending_key_.empty() || !fits)
    return Error{Code::kInvalidInput, "the renewed certificate does not fit its key"};
  REGATTA_TRY_DO(save_identity(folder_, next));
  identity_ = std::move(next);
  pending_key_.clear();
  plan(unix_now);
  return identity_.own;
}

std::int64_t identity_time(const std::string& folder) {
  struct stat state {};
  const std::string path = identity_path(folder);
  return ::stat(path.c_str(), &state) == 0 ? std::int64_t{state.st_mtime} : 0;
}

}  // namespace regatta::node_agent
