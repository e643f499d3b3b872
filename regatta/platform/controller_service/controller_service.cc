#include "regatta/platform/controller_service/controller_service.h"

#include <cstdio>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/base/core/yaml_map.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/tls/certificate.h"
#include "regatta/platform/api/api_service.h"
#include "regatta/platform/api/problem.h"
#include "regatta/platform/controller/node_sessions.h"
#include "regatta/platform/controller_service/authority.h"
#include "regatta/platform/controller_service/follower.h"
#include "regatta/platform/controller_service/page_server.h"
#include "regatta/platform/history/cluster_history.h"
#include "regatta/platform/identity/secret.h"
#include "regatta/platform/node_protocol/node_message.h"

namespace regatta::controller_service {
namespace {

using SharedExchange = std::shared_ptr<api::AuditedExchange>;

constexpr Seconds kRotation{3.5 * 86400.0};  // half of a certificate's life
constexpr Seconds kJoinLifetime{3600};
constexpr Seconds kAuditMark{0.1};
// Every response has them; those of the page say more.
const http::Headers kCommonHeaders = {{"X-Content-Type-Options", "nosniff"},
                                      {"Referrer-Policy", "same-origin"},
                                      {"Cross-Origin-Resource-Policy", "same-origin"}};

std::int64_t unix_now() {
  return static_cast<std::int64_t>(os::system_now().value);
}

std::int64_t unix_now_ms() {
  return static_cast<std::int64_t>(os::system_now().value * 1000);
}

// The parts of rg1.CAHASH.ID.SECRET; kInvalidInput where it is no join token.
Result<std::string> secret_of_join_token(std::string_view token) {
  const std::vector<std::string> parts = split(token, '.');
  if (parts.size() != 4 || parts[0] != "rg1" || parts[3].empty())
    return Error{Code::kInvalidInput,
                 "body: token: no join token; make one with regatta token --join"};
  return parts[3];
}

}  // namespace

struct ControllerService::Impl {
  Impl(http::EventLoop& event_loop, Authority own, const ServiceOptions& options)
      : loop(event_loop),
        authority(std::move(own)),
        limits(options.limits),
        has_own_store(options.has_own_store),
        page(options.page) {}

  api::ApiHandlers handlers() {
    return {
        .authenticate = [this](const auto& request) { return logins->authenticate(request); },
        .hash_password =
            [this](std::string password, auto done) {
              logins->hash_password(std::move(password), std::move(done));
            },
        .enroll_node = [this](const SharedExchange& exchange) { enroll_node(exchange); },
        .connect_node = [this](const SharedExchange& exchange) { connect_node(exchange); },
        .login = [this](SharedExchange exchange) { logins->log_in(std::move(exchange)); },
        .logout = [this](const SharedExchange& exchange) { logins->log_out(exchange); },
        .begin_oidc = [this](const SharedExchange& exchange) { logins->begin_oidc(exchange); },
        .finish_oidc = [this](const SharedExchange& exchange) { logins->finish_oidc(exchange); },
        .page = [this](const SharedExchange& exchange) { page.handle(*exchange); },
        .history = history.get(),
        .work_folder = state_folder,
        .limits = limits,
        .audit = audit.get(),
        .monitor = monitor.get()};
  }

  void enroll_node(const SharedExchange& exchange) {
    const auto refuse = [&](const Error& error) { exchange->respond(api::problem(error)); };
    auto tree = parse_json(exchange->request().body, "body");
    if (!tree) return refuse(tree.error());
    const auto document = YamlDocument::read(std::move(*tree), "body");
    if (!document) return refuse(document.error());
    document->root().allow({"token", "name", "csr"});
    const std::string token = document->root().text("token");
    const std::string name = document->root().text("name");
    const std::string csr = document->root().text("csr");
    if (const Status status = document->status(); !status) return refuse(status.error());
    if (const Status status = node_protocol::check_node_name(name); !status)
      return refuse(status.error());
    exchange->set_object(name);
    const int index = runtime->tables().find_node(name);
    if (index >= 0 && runtime->tables().nodes[static_cast<std::size_t>(index)].is_connected)
      return refuse(
          {Code::kConflict,
           fmt::format("node {}: a server of this name is connected; choose another name", name)});
    const auto secret = secret_of_join_token(token);
    if (!secret) return refuse(secret.error());
    const auto used = runtime->change([&](auto& core, const control::Moment& moment) {
      return core.use_token(identity::secret_hash(*secret), identity::TokenUse::kJoin, moment);
    });
    if (!used)
      return exchange->respond(api::problem(401, "NotAuthenticated", used.error().message));
    exchange->set_user("join token " + used->id);
    const auto certificate = authority.sign_node(name, csr, unix_now());
    if (!certificate) return refuse(certificate.error());
    std::string body = R"({"certificate":)";
    append_json_quoted(*certificate, body);
    body += R"(,"ca":)";
    append_json_quoted(authority.certificate(), body);
    body += '}';
    exchange->note(200);
    runtime->when_durable([exchange, body] {
      http::Response response;
      response.body = body;
      exchange->respond(std::move(response));
    });
  }

  void connect_node(const SharedExchange& exchange) {
    const std::string node = node_of_uris(exchange->request().peer_uris);
    if (node.empty())
      return exchange->respond(api::problem(
          401, "NotAuthenticated", "the client has no certificate of a node; enrol it first"));
    auto socket = exchange->accept_web_socket();
    if (!socket) return exchange->respond(api::problem(socket.error()));
    sessions->add(node, std::move(*socket));
  }

  Status make_admin(const std::string& folder, const std::string& name) {
    if (!runtime->tables().identities.users.empty()) return {};
    const std::string secret = identity::random_secret("rgt_");
    REGATTA_TRY_DO(write_secret(folder + "/admin.token", secret + "\n"));
    return runtime->change([&](auto& core, const control::Moment& moment) {
      core.add_token({.id = identity::random_id(),
                      .user = name,
                      .name = "first start",
                      .secret_hash = identity::secret_hash(secret),
                      .created_ms = moment.unix_ms});
      return core.set_user({.name = name, .role = identity::AccessRole::kAdmin});
    });
  }

  // A record that the history has not read, as the controller ended first, or the file is lost.
  void read_late(const store::Record& record) const {
    if (record.revision <= history->opened_at()) return;
    history->add({{std::string(record.key), record.revision, std::string(record.value)}},
                 unix_now_ms(), true);
  }

  // From now on the history reads each change once it is durable.
  void write_history() {
    const control::ClusterTables& tables = runtime->tables();
    std::vector<history::ToldObject> told;
    for (const auto& [id, job] : tables.jobs)
      if (!is_over(job.phase) && job.revision <= history->opened_at())
        told.push_back(
            {.job = id, .node = "", .phase = static_cast<int>(job.phase), .is_held = job.is_held});
    for (const control::ManagedNode& node : tables.nodes)
      if (node.revision <= history->opened_at())
        told.push_back({.job = 0, .node = node.facts.name, .phase = static_cast<int>(node.intent)});
    history->learn(std::move(told));
    runtime->on_commit([this](std::span<const store::Change> changes) {
      history->add({changes.begin(), changes.end()}, unix_now_ms(), false);
    });
  }

  // The head of the audit's chain goes into the store a few times a second while it moves: a tail
  // that is cut off later is missed.
  void mark_audit() {
    if (std::exchange(is_mark_due, true)) return;
    loop.after(kAuditMark, [this, alive = std::weak_ptr(life)] {
      if (alive.expired()) return;
      is_mark_due = false;
      runtime->change([&](auto& core, const control::Moment&) {
        core.mark_audit(audit->head().number, audit->head().hash);
        return 0;
      });
    });
  }

  Status open_audit(const std::string& folder) {
    const control::AuditMark& mark = runtime->tables().audit;
    audit::AuditHead known;
    if (has_own_store && mark.number > 0) known = {mark.number, mark.hash};
    REGATTA_TRY(log, audit::AuditLog::open(loop, {.folder = folder + "/audit"}, known));
    audit = std::move(log);
    if (has_own_store) audit->on_durable([this] { mark_audit(); });
    if (!audit->damage().empty())
      fmt::print(stderr, "regatta-controller: audit: {}; see regatta audit verify\n",
                 audit->damage());
    audit->add({.user = {}, .token = {}, .address = {}, .action = "start", .object = {}});
    return {};
  }

  // A controller that another one may have replaced could say what is not true any more.
  void handle(std::unique_ptr<http::Exchange> exchange) {
    if (runtime->is_leading()) return service->handle(std::move(exchange));
    exchange->respond(no_leader());
  }

  void rotate() {
    loop.after(kRotation, [this, alive = std::weak_ptr(life)] {
      if (alive.expired()) return;
      // Where it fails the old certificate still serves for days, and the next try comes before.
      if (auto identity = authority.issue_server(hosts, unix_now()); identity)
        if (server->set_identity(*identity)) see_certificate(*identity);
      rotate();
    });
  }

  void see_certificate(const http::ServerIdentity& identity) {
    certificate_end_ms = tls::valid_until(identity.certificate_chain).value_or(0) * 1000;
  }

  http::EventLoop& loop;
  Authority authority;
  api::RateLimits limits;
  bool has_own_store = true;
  std::vector<std::string> hosts;
  std::string state_folder;
  std::unique_ptr<history::ClusterHistory> history;
  std::unique_ptr<controller::ControllerRuntime> runtime;
  std::unique_ptr<controller::NodeSessions> sessions;
  std::unique_ptr<audit::AuditLog> audit;
  bool is_mark_due = false;
  std::unique_ptr<login::LoginService> logins;
  PageServer page;
  std::unique_ptr<controller::ClusterMonitor> monitor;
  std::unique_ptr<api::ApiService> service;
  std::unique_ptr<http::HttpServer> server;
  std::int64_t certificate_end_ms = 0;
  std::shared_ptr<int> life = std::make_shared<int>(0);
};

Result<std::unique_ptr<ControllerService>> ControllerService::open(
    http::EventLoop& loop, std::unique_ptr<store::Store> store, const ServiceOptions& options,
    std::function<void(const Error&)> ended) {
  REGATTA_TRY(authority, Authority::open(options.folder, unix_now()));
  auto impl = std::make_unique<Impl>(loop, std::move(authority), options);
  Impl* self = impl.get();
  impl->hosts = with_loopback(options.hosts);
  REGATTA_TRY(history, history::ClusterHistory::open(
                           {.path = options.folder + "/history.db", .kept = options.history_kept}));
  impl->history = std::move(history);
  impl->state_folder = options.folder;
  controller::RuntimeOptions runtime_options = options.runtime;
  runtime_options.loaded = [self](const store::Record& record) { self->read_late(record); };
  REGATTA_TRY(runtime, controller::ControllerRuntime::open(
                           loop, std::move(store), std::move(runtime_options), std::move(ended)));
  impl->runtime = std::move(runtime);
  impl->write_history();
  REGATTA_TRY_DO(impl->make_admin(options.folder, options.admin));
  REGATTA_TRY_DO(impl->open_audit(options.folder));
  impl->sessions = std::make_unique<controller::NodeSessions>(
      loop, *impl->runtime, [self](const std::string& node, const std::string& csr) {
        return self->authority.sign_node(node, csr, unix_now());
      });
  impl->logins = std::make_unique<login::LoginService>(loop, *impl->runtime, options.login);
  controller::MonitorOptions monitor_options = options.monitor;
  monitor_options.certificate_end_ms = [self] { return self->certificate_end_ms; };
  REGATTA_TRY(monitor,
              controller::ClusterMonitor::open(loop, *impl->runtime, *impl->sessions,
                                               std::move(monitor_options), identity::random_id()));
  impl->monitor = std::move(monitor);
  impl->service =
      std::make_unique<api::ApiService>(loop, *impl->runtime, *impl->sessions, impl->handlers());
  REGATTA_TRY(identity, impl->authority.issue_server(impl->hosts, unix_now()));
  impl->see_certificate(identity);
  http::ServerOptions server_options = options.server;
  server_options.headers.insert(server_options.headers.end(), kCommonHeaders.begin(),
                                kCommonHeaders.end());
  REGATTA_TRY(server, http::HttpServer::listen(loop, server_options, identity,
                                               [self](std::unique_ptr<http::Exchange> exchange) {
                                                 self->handle(std::move(exchange));
                                               }));
  impl->server = std::move(server);
  impl->rotate();
  return std::unique_ptr<ControllerService>(new ControllerService(std::move(impl)));
}

ControllerService::ControllerService(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

ControllerService::~ControllerService() {
  impl_->life.reset();
  impl_->server.reset();
}

std::uint16_t ControllerService::port() const {
  return impl_->server->port();
}

controller::ControllerRuntime& ControllerService::runtime() {
  return *impl_->runtime;
}

controller::ClusterMonitor& ControllerService::monitor() {
  return *impl_->monitor;
}

std::string ControllerService::create_join_token(int uses) {
  const std::string id = identity::random_id();
  const std::string secret = identity::random_secret("");
  impl_->runtime->change([&](auto& core, const control::Moment& moment) {
    core.add_token(
        {.id = id,
         .use = identity::TokenUse::kJoin,
         .user = {},
         .name = "join",
         .secret_hash = identity::secret_hash(secret),
         .created_ms = moment.unix_ms,
         .expires_ms = moment.unix_ms + static_cast<std::int64_t>(kJoinLifetime.value * 1000),
         .uses_left = uses});
    return 0;
  });
  return join_token(impl_->authority, id, secret);
}

void ControllerService::extend_leases() {
  impl_->sessions->extend_leases();
}

void ControllerService::close() {
  impl_->server->close_listener();
}

}  // namespace regatta::controller_service
