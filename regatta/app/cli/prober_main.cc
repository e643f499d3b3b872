// regatta-prober: the prober of one server of a cluster. Plans the same matrix as all others from
// the cluster file, and reports its windows to a collector, or on standard output until that is
// closed.
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <unistd.h>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/cluster_file.h"
#include "regatta/app/cli/internal/help.h"
#include "regatta/app/cli/internal/pluralized.h"
#include "regatta/app/cli/internal/time_flag.h"
#include "regatta/base/core/json.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/netlink.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/model/topo/addresses.h"
#include "regatta/network/fabric/routes.h"
#include "regatta/network/probe/collector.h"
#include "regatta/network/probe/handshake.h"
#include "regatta/network/probe/matrix.h"
#include "regatta/network/probe/prober.h"

namespace regatta {
namespace {

std::atomic<bool> g_stop = false;

// The reader may be gone: then the message is lost, which is no error.
void say(const std::string& text) {
  std::fputs(("regatta-prober: " + text + "\n").c_str(), stderr);
}

int report_error(const Error& error) {
  say(error.message);
  return exit_status(error);
}

struct Options {
  std::string cluster;
  std::string server;
  std::string plan;
  std::string collector;
  std::string period = "10ms";
  std::string transport = "udp";
};

Status write_all(const std::string& line) {
  for (std::size_t done = 0; done < line.size();) {
    const ssize_t count = ::write(STDOUT_FILENO, line.data() + done, line.size() - done);
    if (count < 0 && errno != EINTR) return os::errno_error("standard output");
    done += count > 0 ? static_cast<std::size_t>(count) : 0;
  }
  return {};
}

Result<NodeId> find_server(const topo::Cluster& cluster, const std::string& name) {
  for (std::size_t i = 0; i < cluster.servers.size(); ++i)
    if (cluster.servers[i].name == name) return NodeId{static_cast<int>(i)};
  std::vector<std::string> names;
  for (const topo::Server& server : cluster.servers)
    names.push_back(server.name);
  return Error{Code::kInvalidInput,
               fmt::format("--server {}: is not in cluster {}; it has {}", printable(name, 60),
                           cluster.name, cli::first_of(std::move(names)))};
}

probe::Transport transport_of(const Options& options) {
  return options.transport == "rdma" ? probe::Transport::kRdma : probe::Transport::kUdp;
}

Result<probe::ServerPlan> make_plan(const Options& options) {
  if (options.plan.empty() && options.cluster.empty())
    return Error{Code::kInvalidInput, "give a cluster file and --server, or --plan"};
  if (!options.plan.empty() && !options.cluster.empty())
    return Error{Code::kInvalidInput, "--plan " + options.plan + ": has all that " +
                                          options.cluster + " would say; leave one of them out"};
  if (!options.plan.empty()) {
    REGATTA_TRY(text, cli::read_named_file(options.plan == "-" ? "/dev/stdin" : options.plan,
                                           JsonLimits{}.size_max));
    auto plan = probe::parse_plan(text);
    if (!plan)
      return Error{Code::kInvalidInput, "--plan " + options.plan + ": " + plan.error().message +
                                            "; give the cluster file and --server instead"};
    return plan;
  }
  if (options.server.empty())
    return Error{Code::kInvalidInput, "--server is missing; name the server that this is"};
  REGATTA_TRY(cluster, cli::load_cluster(options.cluster));
  REGATTA_TRY(node, find_server(cluster, options.server));
  const topo::Graph graph = build_graph(cluster);
  probe::ServerPlan plan{.server = options.server, .number = 0, .part = {}, .matrix = {}};
  plan.matrix = probe::plan_matrix(graph, fabric::Routes(graph), topo::hash_seeds(cluster, graph),
                                   {.transport = transport_of(options)});
  plan.part = part_of(graph, plan.matrix, node);
  plan.number = plan_number(graph, plan.matrix);
  return plan;
}

// Probes of another server would be counted as lost, and hardware blamed that is well.
Status check_addresses(const probe::ServerPlan& plan) {
  for (const std::uint32_t address : own_addresses(plan.matrix, plan.part))
    if (!os::is_own_address(address))
      return Error{Code::kInvalidInput,
                   fmt::format("server {}: its address {} is none of this machine's; start the "
                               "prober on that server, give --server the name of this one, or give "
                               "the NIC its address",
                               plan.server, topo::address_text(address))};
  return {};
}

// Sends reports and answers to the collector and receives its orders.
Status report_to_collector(const Options& options, const probe::ServerPlan& plan, Seconds period,
                           probe::Prober& prober) {
  REGATTA_TRY(token, probe::token_of_environment());
  std::atomic<probe::CollectorConnection*> answers_to = nullptr;
  REGATTA_TRY(trace_agent,
              probe::TraceAgent::open(plan.matrix, plan.part,
                                      {.window = period * probe::ProberOptions().periods_per_window,
                                       .send = [&](const std::string& line) {
                                         if (auto* const to = answers_to.load()) to->send(line);
                                       }}));
  REGATTA_TRY(uplink,
              probe::CollectorConnection::open(
                  {.collector = options.collector,
                   .handshake = {.server = plan.server,
                                 .period = period,
                                 .plan = plan.number,
                                 .clock = {},
                                 .token = token},
                   .again = Seconds{1},
                   .note = [](const std::string& text) { say(text); },
                   .on_line = [&](std::string_view line) { return trace_agent.order(line); }}));
  answers_to = &uplink;
  Status status = prober.run(g_stop, [&](const std::string& line) -> Status {
    uplink.send(line);
    return {};
  });
  trace_agent.stop();  // before its output ends
  return status;
}

Status run(const Options& options) {
  REGATTA_TRY(period, cli::time_flag("--period", options.period, cli::kProbePeriods, "ms"));
  if (!options.collector.empty()) {
    const Status place = probe::check_collector(options.collector);
    if (!place) return Error{place.error().code, "--collector " + place.error().message};
  }
  REGATTA_TRY(plan, make_plan(options));
  REGATTA_TRY_DO(check_addresses(plan));
  REGATTA_TRY(prober, probe::Prober::open(plan.matrix, plan.part,
                                          {.period = period, .transport = transport_of(options)}));
  if (options.collector.empty()) return prober.run(g_stop, write_all);
  return report_to_collector(options, plan, period, prober);
}

int main_with(int count, char** values) {
  CLI::App app(
      "Send the probes of one server, answer those of others, and tell what became of them: to\n"
      "the collector (regatta probe CLUSTER --listen), or on standard output",
      "regatta-prober");
  app.set_help_flag("-h,--help", "Print this and exit");
  app.formatter(cli::help_formatter());
  app.footer(
      "Example:\n"
      "  regatta-prober cluster.yaml --server s3 --collector head-1:27899\n"
      "So on each server, until Ctrl-C. It goes on while there is no collector, and reports as "
      "soon\n"
      "as there is one. Where the collector has a token in REGATTA_PROBE_TOKEN, this needs the "
      "same.");
  Options options;
  app.add_option("CLUSTER", options.cluster, "Cluster file, the same on all servers")
      ->check(cli::not_empty());
  app.add_option("--server", options.server, "Which of its servers this is")
      ->type_name("NAME")
      ->check(cli::not_empty());
  app.add_option("--collector", options.collector,
                 "Where regatta probe listens: HOST:PORT or unix:PATH")
      ->type_name("PLACE")
      ->check(cli::not_empty());
  app.add_option("--plan", options.plan,
                 "Instead of CLUSTER and --server: what to probe, -: of standard input")
      ->type_name("FILE")
      ->check(cli::not_empty());
  app.add_option("--period", options.period, cli::kProbePeriodHelp)
      ->type_name("TIME")
      ->capture_default_str();
  app.add_option("--transport", options.transport,
                 "What carries the probes, on all servers alike: udp or rdma")
      ->type_name("NAME")
      ->check(cli::one_of({"udp", "rdma"}))
      ->capture_default_str();
  if (const auto known = cli::check_words(app, {values + 1, values + count}); !known)
    return report_error(known.error());
  try {
    app.parse(count, values);
  } catch (const CLI::ParseError& end) {
    if (end.get_exit_code() == 0) return app.exit(end);  // --help
    return report_error({Code::kInvalidInput, cli::explain(app, end)});
  }
  std::signal(SIGPIPE, SIG_IGN);
  for (const int signal : {SIGINT, SIGTERM})
    std::signal(signal, [](int) { g_stop = true; });
  const Status status = run(options);
  return status ? 0 : report_error(status.error());
}

}  // namespace
}  // namespace regatta

int main(int count, char** values) {
  try {
    return regatta::main_with(count, values);
  } catch (const std::exception& error) {
    regatta::say(fmt::format("bug: {}; please report it", error.what()));
    return 1;
  }
}
