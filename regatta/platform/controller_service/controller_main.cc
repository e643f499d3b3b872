// regatta-controller: the controller of the platform. See docs/platform.md.
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <sys/resource.h>

#include "regatta/base/core/result.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/process.h"
#include "regatta/base/os/socket.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/platform/controller_service/alert_messages.h"
#include "regatta/platform/controller_service/cluster_member.h"
#include "regatta/platform/controller_service/controller_service.h"
#include "regatta/platform/controller_service/end_signal.h"
#include "regatta/platform/store/etcd_store.h"
#include "regatta/platform/store/sqlite_store.h"

namespace regatta::controller_service {
namespace {

constexpr std::size_t kConnectionsLeast = 64;
constexpr std::size_t kOtherFiles = 64;
constexpr int kLoopNice = -10;
constexpr Seconds kLastMessages{0.2};  // for them to leave before the program ends

struct Flags {
  std::string state;
  std::string address = "127.0.0.1";
  std::uint16_t port = 7780;
  std::string policy = "regatta";
  double lease_s = control::ControllerOptions{}.lease.value;
  std::vector<std::string> hosts;
  std::string shipping;
  std::string ready_file;
  std::string admin = "admin";
  std::string restore_from;
  std::string jobs_kept = "7d";
  std::size_t jobs_kept_most = 500'000;
  std::string history_kept = "30d";
  std::string page;
  std::string oidc;
  api::RateLimits limits;
  std::vector<std::string> prices;
  std::string currency = "EUR";
  std::string alerts_to;
  std::string etcd;
  std::string etcd_prefix = "regatta/";
  std::string etcd_ca;
  std::string etcd_certificate;
  std::string etcd_key;
  std::string url;
};

Result<sched::SchedulingPolicy> read_policy(const std::string& name) {
  if (!name.ends_with(".yaml")) return sched::find_scheduling_policy(name);
  REGATTA_TRY(text, os::read_text_file(name));
  return sched::parse_scheduling_policy(text, name);
}

Result<Seconds> time_of(const char* flag, const std::string& text) {
  auto time = parse_seconds(text);
  if (time && time->value > 0) return time;
  return Error{Code::kInvalidInput, fmt::format("{}: '{}' is no time above 0; write one like 7d",
                                                flag, printable(text, 40))};
}

// Where an installation has the built page, else where a build has it.
std::string default_page() {
  const auto programs = os::executable_folder();
  if (!programs) return "";
  const std::string installed = *programs + "/../share/regatta/web";
  return ::access((installed + "/index.html").c_str(), R_OK) == 0 ? installed
                                                                  : *programs + "/../web";
}

Status restore(const Flags& flags) {
  REGATTA_TRY(report, store::restore(flags.restore_from, flags.state));
  fmt::print("restored {} records up to revision {}{}; copy ca.pem and ca.key to {}, then start\n",
             report.records, report.revision,
             report.is_log_cut ? " (the last commit was incomplete and is left out)" : "",
             flags.state);
  return {};
}

struct Program {
  Flags flags;
  ServiceOptions service;
  std::optional<notification::NotifierOptions> receivers;  // of alerts
  EndSignal end;
};

Status prepare(Program& program) {
  const Flags& flags = program.flags;
  REGATTA_TRY(policy, read_policy(flags.policy));
  REGATTA_TRY_DO(os::make_folder(flags.state, 0700));
  ServiceOptions& options = program.service;
  options.folder = flags.state;
  options.server.address = flags.address;
  options.server.port = flags.port;
  // As many connections as the system allows, up to the usual bound.
  std::size_t& connections = options.server.connections_max;
  while (connections > kConnectionsLeast && !os::raise_descriptor_limit(connections + kOtherFiles))
    connections -= connections / 16;
  options.hosts = flags.hosts;
  options.admin = flags.admin;
  options.page = flags.page.empty() ? default_page() : flags.page;
  options.limits = flags.limits;
  if (!flags.oidc.empty()) {
    REGATTA_TRY(text, os::read_text_file(flags.oidc));
    REGATTA_TRY(oidc, login::parse_oidc_settings(text, flags.oidc));
    options.login.oidc = std::move(oidc);
  }
  options.runtime.policy = std::move(policy);
  REGATTA_TRY(jobs_kept, time_of("--jobs-kept", flags.jobs_kept));
  REGATTA_TRY(history_kept, time_of("--history-kept", flags.history_kept));
  options.runtime.control.ended_kept = jobs_kept;
  options.runtime.control.ended_most = flags.jobs_kept_most;
  options.history_kept = history_kept;
  REGATTA_TRY(prices, parse_prices(flags.prices));
  options.monitor.prices = std::move(prices);
  options.monitor.currency = flags.currency;
  if (!flags.alerts_to.empty()) {
    REGATTA_TRY(text, os::read_text_file(flags.alerts_to));
    REGATTA_TRY(receivers, notification::read_notifier_options(text, flags.alerts_to));
    program.receivers = std::move(receivers);
  }
  options.runtime.control.lease = Seconds{flags.lease_s};
  return {};
}

void announce(const Flags& flags, const std::string& url) {
  fmt::print("regatta-controller: {}  CA {}/ca.pem  token {}/admin.token\n", url, flags.state,
             flags.state);
  std::fflush(stdout);
  if (flags.ready_file.empty()) return;
  const Status written = os::write_file_atomically(flags.ready_file, url + "\n");
  if (!written) fmt::print(stderr, "regatta-controller: {}\n", written.error().message);
}

// Until the end of the program, or of the store: kConflict where another controller leads.
Status serve(Program& program, std::unique_ptr<store::Store> store,
             const std::function<void(const std::string& url)>& ready) {
  http::EventLoop loop;
  std::optional<Error> failure;
  // It posts to this loop, so it ends with it.
  ServiceOptions options = program.service;
  if (program.receivers) options.monitor.tell = alert_sender(*program.receivers);
  REGATTA_TRY(service,
              ControllerService::open(loop, std::move(store), options, [&](const Error& error) {
                failure = error;
                loop.stop();
              }));
  program.end.set_work([&] {
    loop.post([&] {
      service->close();
      service->extend_leases();
      loop.after(kLastMessages, [&] { loop.stop(); });
    });
  });
  // This thread before jobs on the same machine, where that is allowed: heartbeats wait for it.
  ::setpriority(PRIO_PROCESS, 0, kLoopNice);
  ready(fmt::format("https://{}:{}", program.flags.address, service->port()));
  loop.run();
  program.end.set_work({});
  if (failure) return *failure;
  return {};
}

Status serve_alone(Program& program) {
  store::SqliteStoreOptions options;
  options.folder = program.flags.state;
  options.backup.shipping_folder = program.flags.shipping;
  REGATTA_TRY(store, store::open_sqlite_store(options));
  program.service.runtime.is_disk_low = [options] {
    const auto disk = store::disk_state(options);
    return disk && disk->is_low;
  };
  return serve(program, std::move(store),
               [&](const std::string& url) { announce(program.flags, url); });
}

Result<store::EtcdStoreOptions> etcd_options(const Flags& flags) {
  store::EtcdStoreOptions options;
  options.prefix = flags.etcd_prefix;
  bool is_tls = false;
  for (std::string url : split(flags.etcd, ',')) {
    is_tls |= url.starts_with("https://");
    const std::size_t scheme = url.find("://");
    if (scheme != std::string::npos) url.erase(0, scheme + 3);
    if (!url.empty() && url.back() == '/') url.pop_back();
    if (!os::parse_host_port(url))
      return Error{Code::kInvalidInput,
                   fmt::format("--etcd: '{}' is no URL of a member; give http://HOST:2379",
                               printable(url, 60))};
    options.endpoints.push_back(std::move(url));
  }
  if (is_tls == flags.etcd_ca.empty())
    return Error{Code::kInvalidInput,
                 "--etcd-ca: it belongs to https:// URLs of etcd, and they to it; give both"};
  const auto read = [](const std::string& path, std::string& to) -> Status {
    if (path.empty()) return {};
    REGATTA_TRY(text, os::read_text_file(path));
    to = std::move(text);
    return {};
  };
  REGATTA_TRY_DO(read(flags.etcd_ca, options.tls.ca));
  REGATTA_TRY_DO(read(flags.etcd_certificate, options.tls.certificate));
  REGATTA_TRY_DO(read(flags.etcd_key, options.tls.private_key));
  return options;
}

// Follows and leads in turn.
Status serve_in_cluster(Program& program) {
  REGATTA_TRY(etcd, etcd_options(program.flags));
  MemberOptions member;
  member.folder = program.flags.state;
  member.hosts = program.flags.hosts;
  member.server = program.service.server;
  member.etcd = std::move(etcd);
  member.url = program.flags.url;
  program.service.has_own_store = false;
  bool is_announced = false;
  for (;;) {
    REGATTA_TRY(store, wait_to_lead(member, program.end, [&](const std::string& url) {
                  if (!std::exchange(is_announced, true)) announce(program.flags, url);
                }));
    if (store == nullptr) return {};
    program.service.server = member.server;
    const Status served = serve(program, std::move(store), [&](const std::string&) {
      fmt::print("regatta-controller: {} leads\n", member.url);
      std::fflush(stdout);
    });
    if (served || served.error().code != Code::kConflict) return served;
    fmt::print(stderr, "regatta-controller: {}; it follows now\n", served.error().message);
  }
}

Status serve_program(const Flags& flags) {
  // Never destroyed: its thread waits for signals until the end.
  static Program program;
  program.flags = flags;
  REGATTA_TRY_DO(prepare(program));
  return flags.etcd.empty() ? serve_alone(program) : serve_in_cluster(program);
}

}  // namespace
}  // namespace regatta::controller_service

int main(int argc, char** argv) {
  using namespace regatta;  // NOLINT(google-build-using-namespace): a program of its own
  controller_service::Flags flags;
  CLI::App app(
      "The controller of the platform: jobs, nodes and queues behind an HTTP API.\n"
      "Example: regatta-controller --state /var/lib/regatta --address 0.0.0.0 --host head.example");
  app.add_option("--state", flags.state, "folder of the store, the certificates and the log")
      ->required();
  app.add_option("--address", flags.address, "address to listen on");
  app.add_option("--port", flags.port, "port; 0: any free one");
  app.add_option("--host", flags.hosts,
                 "name or address in the certificate; may come several times");
  app.add_option("--admin", flags.admin, "name of the user that the first start makes");
  app.add_option("--policy", flags.policy, "scheduling policy, by name or as a YAML file");
  app.add_option("--lease", flags.lease_s,
                 "seconds after which a server without word from the controller ends the jobs of "
                 "queues that have no lease of their own")
      ->check(CLI::Range(2.0, 86400.0));
  app.add_option("--ship-to", flags.shipping, "folder, best on another disk, for backups");
  app.add_option("--restore-from", flags.restore_from,
                 "folder of --ship-to or file of regatta backup: builds a new state folder from "
                 "it, and ends");
  app.add_option("--jobs-kept", flags.jobs_kept,
                 "how long jobs that are over stay; the history has them after that (7d)");
  app.add_option("--jobs-kept-most", flags.jobs_kept_most,
                 "how many jobs that are over stay at most (500000)");
  app.add_option("--history-kept", flags.history_kept, "how long events and attempts stay (30d)");
  app.add_option("--page", flags.page,
                 "folder of the built page (../share/regatta/web beside the program)");
  app.add_option("--oidc", flags.oidc,
                 "YAML file of an OpenID provider whose users may log in (docs/formats/oidc.md)");
  app.add_option("--user-rate", flags.limits.user.per_second,
                 "requests a second of a user that is no operator; 0: any number")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app.add_option("--address-rate", flags.limits.address.per_second,
                 "requests a second of an address without a known user; 0: any number")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--limit-loopback", flags.limits.has_loopback,
               "limit clients of this machine too, as behind a proxy");
  app.add_option("--price", flags.prices,
                 "TYPE=PRICE of a device for an hour; may come several times");
  app.add_option("--currency", flags.currency, "of the prices, for people");
  app.add_option("--alerts-to", flags.alerts_to,
                 "YAML file with the webhooks and mails that alerts go to");
  app.add_option("--etcd", flags.etcd,
                 "http://HOST:PORT of etcd's members, separated by commas: keeps the store there, "
                 "for several controllers of which one leads");
  app.add_option("--etcd-prefix", flags.etcd_prefix, "of all keys in etcd");
  app.add_option("--etcd-ca", flags.etcd_ca, "PEM file of the authority of https:// members");
  app.add_option("--etcd-cert", flags.etcd_certificate, "PEM file of the certificate for etcd");
  app.add_option("--etcd-key", flags.etcd_key, "PEM file of its key");
  app.add_option("--url", flags.url,
                 "https://HOST:PORT at which others reach this controller (default: the first "
                 "--host, or the address)");
  app.add_option("--ready-file", flags.ready_file, "gets the URL once the controller serves");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int status = app.exit(error);
    return status == 0 ? 0 : 2;
  }
  const Status status = flags.restore_from.empty() ? controller_service::serve_program(flags)
                                                   : controller_service::restore(flags);
  if (status) return 0;
  fmt::print(stderr, "regatta-controller: {}\n", status.error().message);
  return exit_status(status.error());
}
