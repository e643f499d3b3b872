// regatta-controller: the controller of the platform. See docs/platform.md.
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "regatta/base/core/result.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/process.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/platform/controller_service/controller_service.h"
#include "regatta/platform/store/sqlite_store.h"

namespace regatta::controller_service {
namespace {

constexpr std::size_t kConnectionsLeast = 64;
constexpr std::size_t kOtherFiles = 64;

struct Flags {
  std::string state;
  std::string address = "127.0.0.1";
  std::uint16_t port = 7780;
  std::string policy = "regatta";
  std::vector<std::string> hosts;
  std::string shipping;
  std::string ready_file;
  std::string admin = "admin";
  std::string restore_from;
  std::string jobs_kept = "7d";
  std::size_t jobs_kept_most = 500'000;
  std::string history_kept = "30d";
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

Status restore(const Flags& flags) {
  REGATTA_TRY(report, store::restore(flags.restore_from, flags.state));
  fmt::print("restored {} records up to revision {}{}; copy ca.pem and ca.key to {}, then start\n",
             report.records, report.revision,
             report.is_log_cut ? " (the last commit was incomplete and is left out)" : "",
             flags.state);
  return {};
}

Status serve(const Flags& flags) {
  REGATTA_TRY(policy, read_policy(flags.policy));
  REGATTA_TRY_DO(os::make_folder(flags.state, 0700));
  store::SqliteStoreOptions store_options;
  store_options.folder = flags.state;
  store_options.backup.shipping_folder = flags.shipping;
  REGATTA_TRY(store, store::open_sqlite_store(store_options));
  ServiceOptions options;
  options.folder = flags.state;
  options.server.address = flags.address;
  options.server.port = flags.port;
  // As many connections as the system allows, up to the usual bound.
  std::size_t& connections = options.server.connections_max;
  while (connections > kConnectionsLeast && !os::raise_descriptor_limit(connections + kOtherFiles))
    connections /= 2;
  options.hosts = flags.hosts;
  options.admin = flags.admin;
  options.runtime.policy = std::move(policy);
  REGATTA_TRY(jobs_kept, time_of("--jobs-kept", flags.jobs_kept));
  REGATTA_TRY(history_kept, time_of("--history-kept", flags.history_kept));
  options.runtime.control.ended_kept = jobs_kept;
  options.runtime.control.ended_most = flags.jobs_kept_most;
  options.history_kept = history_kept;
  options.runtime.is_disk_low = [store_options] {
    const auto disk = store::disk_state(store_options);
    return disk && disk->is_low;
  };
  http::EventLoop loop;
  std::optional<Error> failure;
  REGATTA_TRY(service,
              ControllerService::open(loop, std::move(store), options, [&](const Error& error) {
                failure = error;
                loop.stop();
              }));
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::thread waiter([&] {
    int number = 0;
    ::sigwait(&signals, &number);
    loop.post([&] { loop.stop(); });
  });
  waiter.detach();
  const std::string url = fmt::format("https://{}:{}", flags.address, service->port());
  fmt::print("regatta-controller: {}  CA {}/ca.pem  token {}/admin.token\n", url, flags.state,
             flags.state);
  std::fflush(stdout);
  if (!flags.ready_file.empty())
    REGATTA_TRY_DO(os::write_file_atomically(flags.ready_file, url + "\n"));
  loop.run();
  if (failure) return *failure;
  return {};
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
  app.add_option("--ship-to", flags.shipping, "folder, best on another disk, for backups");
  app.add_option("--restore-from", flags.restore_from,
                 "folder of --ship-to or file of regatta backup: builds a new state folder from "
                 "it, and ends");
  app.add_option("--jobs-kept", flags.jobs_kept,
                 "how long jobs that are over stay; the history has them after that (7d)");
  app.add_option("--jobs-kept-most", flags.jobs_kept_most,
                 "how many jobs that are over stay at most (500000)");
  app.add_option("--history-kept", flags.history_kept, "how long events and attempts stay (30d)");
  app.add_option("--ready-file", flags.ready_file, "gets the URL once the controller serves");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int status = app.exit(error);
    return status == 0 ? 0 : 2;
  }
  const Status status = flags.restore_from.empty() ? controller_service::serve(flags)
                                                   : controller_service::restore(flags);
  if (status) return 0;
  fmt::print(stderr, "regatta-controller: {}\n", status.error().message);
  return exit_status(status.error());
}
