// regatta-node-agent: runs the replicas of jobs on this server for the controller of a cluster.
// Exit status: 0 ended by SIGTERM, 1 the work failed, 2 the input is wrong.

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <malloc.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "regatta/base/core/text.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/log.h"
#include "regatta/base/os/process.h"
#include "regatta/platform/node_agent/internal/controller_link.h"
#include "regatta/platform/node_agent/internal/metrics_server.h"
#include "regatta/platform/node_agent/internal/node_agent.h"
#include "regatta/platform/node_agent/internal/node_identity.h"
#include "regatta/platform/node_agent/internal/precedence.h"
#include "regatta/platform/node_agent/internal/server_facts.h"
#include "regatta/platform/node_agent/internal/supervisor.h"

namespace {

using regatta::Code;
using regatta::Error;
using regatta::Result;
using regatta::Status;
namespace agent = regatta::node_agent;

constexpr const char* kConnectTarget = "/v1/nodes/connect";
constexpr std::string_view kUnixScheme = "unix:";

struct ProgramOptions {
  std::string controller;
  std::string token;
  std::string identity;
  std::string name;
  std::string state = "/var/lib/regatta-node";
  std::string address;
  std::string device_type;
  std::string device_memory;
  std::string gpu_daemon;
  int devices = -1;
  double grace_s = 10;
  long long log_bytes_max = 16 << 20;
  bool has_no_cgroups = false;
  int metrics_port = 0;
  std::string metrics_address = "0.0.0.0";
  std::string metrics_token_file;
};

int report(const Error& error) {
  std::fprintf(stderr, "regatta-node-agent: %s\n", error.message.c_str());
  return regatta::exit_status(error);
}

void add_options(CLI::App& app, ProgramOptions& options) {
  app.footer(
      "Example, on each server of the cluster:\n"
      "  REGATTA_JOIN_TOKEN=rg1.HASH.ID.SECRET regatta-node-agent --controller https://head:7443");
  app.add_option("--controller", options.controller,
                 "https://HOST:PORT, or unix:PATH of a controller on this server")
      ->required();
  app.add_option("--token", options.token,
                 "join token for the first start; better in REGATTA_JOIN_TOKEN, which other users "
                 "cannot read");
  app.add_option("--identity", options.identity,
                 "folder of the node's certificate (default: identity in the state folder)");
  app.add_option("--name", options.name, "of this node (default: the host's name)");
  app.add_option("--state", options.state, "folder of the journal and the replicas' logs");
  app.add_option("--address", options.address,
                 "at which other nodes reach this one (default: the host's name)");
  app.add_option("--devices", options.devices, "accelerators (default: those that are found)")
      ->check(CLI::Range(0, regatta::sched::kNodeDevicesMax));
  app.add_option("--device-type", options.device_type, "their type (default: as they are found)");
  app.add_option("--device-memory", options.device_memory,
                 "of each, such as 80GiB (default: as it is found)");
  app.add_option("--gpu-daemon", options.gpu_daemon,
                 "socket of `regatta gpu daemon`, /run/regatta-gpu/socket, which then enforces "
                 "parts of devices; "
                 "without it "
                 "they are only placed");
  app.add_option("--grace", options.grace_s, "seconds between SIGTERM and SIGKILL of a replica")
      ->check(CLI::Range(0.0, 3600.0));
  app.add_option("--log-bytes", options.log_bytes_max,
                 "of one log file of a rank; the latest two are kept")
      ->check(CLI::Range(4096LL, 1LL << 40));
  app.add_option("--metrics-port", options.metrics_port,
                 "serves /metrics for Prometheus there, with the node's certificate")
      ->check(CLI::Range(1, 65535));
  app.add_option("--metrics-address", options.metrics_address, "address to listen on");
  app.add_option("--metrics-token-file", options.metrics_token_file,
                 "the token that a reader of the metrics has to show; with --metrics-port");
  app.add_flag("--no-cgroups", options.has_no_cgroups, "find processes by their parents alone");
}

Error explained(const CLI::App& app, const CLI::ParseError& error) {
  std::string problem = error.what();
  const auto unknown = app.remaining(true);
  if (!unknown.empty()) {
    problem = fmt::format("there is no option '{}'", regatta::printable(unknown.front(), 60));
  } else if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError)) {
    problem = "--controller is missing";
  }
  return {Code::kInvalidInput, problem + "; see regatta-node-agent --help"};
}

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

Result<regatta::sched::ClusterNode> facts_for(const ProgramOptions& options) {
  auto facts = agent::discover_server_facts();
  if (!facts && (options.devices < 0 || options.device_type.empty())) return facts.error();
  regatta::sched::ClusterNode node = facts ? *facts : regatta::sched::ClusterNode();
  node.name = options.name;
  if (options.devices >= 0) node.devices = options.devices;
  if (!options.device_type.empty()) node.device_type = options.device_type;
  if (!options.device_memory.empty()) {
    const auto memory = regatta::parse_bytes(options.device_memory);
    if (!memory) return Error{Code::kInvalidInput, "--device-memory: " + memory.error().message};
    node.device_memory_mib = static_cast<int>(memory->value / (1 << 20));
  }
  REGATTA_TRY_DO(regatta::node_protocol::check_node_name(node.name));
  return node;
}

std::int64_t unix_now() {
  return static_cast<std::int64_t>(regatta::os::system_now().value);
}

Result<agent::NodeCredentials> identity_for(const ProgramOptions& options) {
  auto known = agent::load_identity(options.identity);
  const bool is_expired =
      known && regatta::tls::valid_until(known->own.certificate).value_or(0) < unix_now();
  if (known && (!is_expired || options.token.empty())) return known;
  if (!known && known.error().code != Code::kNotFound) return known;
  if (options.token.empty())
    return Error{Code::kInvalidInput,
                 options.identity +
                     ": this node has no certificate yet; give a join token in REGATTA_JOIN_TOKEN"};
  REGATTA_TRY(token, agent::parse_join_token(options.token));
  REGATTA_TRY(enrolled, agent::enroll(options.controller, token, options.name));
  REGATTA_TRY_DO(agent::save_identity(options.identity, enrolled));
  regatta::os::log_info("enrolled as node " + options.name);
  return enrolled;
}

struct ProgramLink {
  std::unique_ptr<agent::ControllerLink> link;
  agent::CertificateRenewal renewal;
  std::shared_ptr<agent::MetricsServer> metrics;
};

Result<std::shared_ptr<agent::MetricsServer>> serve_metrics(
    const ProgramOptions& options, const agent::NodeCredentials& identity) {
  if (options.metrics_port == 0) return std::shared_ptr<agent::MetricsServer>();
  if (options.metrics_token_file.empty())
    return Error{Code::kInvalidInput,
                 "--metrics-port: give --metrics-token-file, with the token that readers show"};
  REGATTA_TRY(text, regatta::os::read_file(options.metrics_token_file));
  const std::string token = text.substr(0, text.find('\n'));
  if (token.empty())
    return Error{Code::kInvalidInput, options.metrics_token_file + ": its first line is empty"};
  REGATTA_TRY(server, agent::MetricsServer::create(
                          {.address = options.metrics_address,
                           .port = static_cast<std::uint16_t>(options.metrics_port),
                           .token = token,
                           .identity = {.certificate_chain = identity.own.certificate,
                                        .private_key = identity.own.private_key,
                                        .client_ca = {}}}));
  return std::shared_ptr<agent::MetricsServer>(std::move(server));
}

Result<ProgramLink> make_link(const ProgramOptions& options) {
  if (options.controller.starts_with(kUnixScheme)) {
    REGATTA_TRY(link, agent::link_by_unix_socket(options.controller.substr(kUnixScheme.size())));
    return ProgramLink{.link = std::move(link), .renewal = {}, .metrics = {}};
  }
  REGATTA_TRY(identity, identity_for(options));
  REGATTA_TRY(metrics, serve_metrics(options, identity));
  regatta::http::ClientOptions client;
  client.url = options.controller;
  client.ca = identity.authority;
  client.certificate_chain = identity.own.certificate;
  client.private_key = identity.own.private_key;
  REGATTA_TRY(link, agent::link_by_web_socket(std::move(client), kConnectTarget));
  const auto renewal = std::make_shared<agent::IdentityRenewal>(
      options.identity, options.name, std::move(identity), agent::identity_time(options.identity));
  agent::ControllerLink* const target = link.get();
  return ProgramLink{
      .link = std::move(link),
      .renewal = {.due_request = [renewal] { return renewal->due_request(unix_now()); },
                  .renewed =
                      [renewal, target, metrics](const std::string& certificate) {
                        const auto own = renewal->renewed(certificate, unix_now());
                        if (!own) {
                          regatta::os::log_error(own.error().message);
                          return;
                        }
                        target->set_identity(own->certificate, own->private_key);
                        if (metrics != nullptr)
                          metrics->set_identity({.certificate_chain = own->certificate,
                                                 .private_key = own->private_key,
                                                 .client_ca = {}});
                      }},
      .metrics = metrics};
}

Status work(ProgramOptions options, int stop_fd) {
  if (options.name.empty()) options.name = host_name();
  if (options.address.empty()) options.address = host_name();
  if (options.identity.empty()) options.identity = options.state + "/identity";
  // Before there is a second thread.
  REGATTA_TRY(facts, facts_for(options));
  REGATTA_TRY(folder, regatta::os::executable_folder());
  agent::NodeAgentOptions agent_options;
  agent_options.runner.state_folder = options.state;
  agent_options.runner.supervisor = folder + "/" + agent::kSupervisorProgram;
  agent_options.runner.node = options.name;
  agent_options.runner.device_type = facts.device_type;
  agent_options.runner.address = options.address;
  agent_options.runner.leaf = facts.leaf;
  agent_options.runner.group = facts.group;
  agent_options.runner.log_bytes_max = options.log_bytes_max;
  agent_options.runner.grace_ms = static_cast<int>(options.grace_s * 1000);
  agent_options.runner.uses_cgroups = !options.has_no_cgroups;
  if (!options.gpu_daemon.empty()) {
    REGATTA_TRY(slices, agent::DeviceSlices::create(options.gpu_daemon));
    agent_options.runner.slices = std::move(slices);
  }
  // Devices that were found are real; those that are said to be there are emulated.
  if (options.devices < 0 && facts.device_type != "cpu")
    agent_options.device_reader = folder + "/" + agent::kDeviceReaderProgram;
  agent_options.facts = std::move(facts);
  agent_options.address = options.address;
  if (::access(agent_options.runner.supervisor.c_str(), X_OK) != 0)
    return Error{Code::kInvalidInput, agent_options.runner.supervisor +
                                          ": the program that supervises replicas is missing; "
                                          "install it beside regatta-node-agent"};
  REGATTA_TRY(connection, make_link(options));
  if (connection.metrics != nullptr)
    agent_options.publish_metrics = [metrics = connection.metrics](std::string text) {
      metrics->publish(std::move(text));
    };
  REGATTA_TRY(running,
              agent::NodeAgent::create(std::move(agent_options), std::move(connection.link),
                                       std::move(connection.renewal)));
  ::malloc_trim(0);
  agent::run_before_others();
  return running->run(stop_fd);
}

int run(int argc, char** argv) {
  CLI::App app("Runs the replicas of jobs on this server.", "regatta-node-agent");
  ProgramOptions options;
  add_options(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& end) {
    if (end.get_exit_code() == 0) return app.exit(end);  // --help
    return report(explained(app, end));
  }
  if (const char* token = std::getenv("REGATTA_JOIN_TOKEN");
      token != nullptr && options.token.empty())
    options.token = token;
  ::unsetenv("REGATTA_JOIN_TOKEN");  // no business of the supervisors
  ::mallopt(M_ARENA_MAX, 1);         // threads that hardly allocate need no memory of their own
  std::signal(SIGPIPE, SIG_IGN);
  sigset_t ends;
  ::sigemptyset(&ends);
  ::sigaddset(&ends, SIGTERM);
  ::sigaddset(&ends, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  const int stop_fd = ::signalfd(-1, &ends, SFD_CLOEXEC);
  const Status status = work(std::move(options), stop_fd);
  return status ? 0 : report(status.error());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "regatta-node-agent: bug: %s; please report it\n", error.what());
    return 1;
  }
}
