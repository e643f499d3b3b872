// regatta-prober: the prober of one server of a cluster. Plans the same matrix as everybody else
// from the cluster file, and tells its windows on standard output; ends when that is closed.
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <unistd.h>

#include "regatta/core/units_text.h"
#include "regatta/fabric/routes.h"
#include "regatta/os/errno_text.h"
#include "regatta/os/file.h"
#include "regatta/probe/matrix.h"
#include "regatta/probe/prober.h"
#include "regatta/topo/addresses.h"
#include "regatta/topo/cluster_yaml.h"

namespace regatta {
namespace {

std::atomic<bool> g_stop = false;

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
  return Error{Code::kInvalidInput, "--server " + name + ": is not in cluster " + cluster.name};
}

Status run(const std::string& path, const std::string& server, const std::string& period_text) {
  REGATTA_TRY(period, parse_seconds(period_text));
  if (period.value < 0.01 || period.value > 60)
    return Error{Code::kInvalidInput, "--period: must be from 10ms to 1min, like 10ms"};
  REGATTA_TRY(text, os::read_file(path, os::kTextFileMost));
  REGATTA_TRY(cluster, topo::parse_cluster(text, path));
  REGATTA_TRY(node, find_server(cluster, server));
  const topo::Graph graph = build_graph(cluster);
  const probe::Matrix matrix =
      probe::plan_matrix(graph, fabric::Routes(graph), topo::hash_seeds(cluster, graph));
  REGATTA_TRY(prober,
              probe::Prober::open(matrix, part_of(graph, matrix, node), {.period = period}));
  return prober.run(g_stop, write_all);
}

}  // namespace
}  // namespace regatta

int main(int count, char** values) {
  CLI::App app(
      "Probes of one server: sends its own, answers those of others, tells what became of "
      "them, a line for each window (regatta/probe/report_text.h).");
  app.footer("Example:\n  regatta-prober cluster.yaml --server s3 --period 10ms");
  std::string cluster;
  std::string server;
  std::string period = "10ms";
  app.add_option("CLUSTER", cluster, "Cluster file, the same on all servers")->required();
  app.add_option("--server", server, "Which of its servers this is")->required();
  app.add_option("--period", period, "Between two probes on the same way, 10ms to 1min")
      ->capture_default_str();
  CLI11_PARSE(app, count, values);
  std::signal(SIGPIPE, SIG_IGN);
  for (const int signal : {SIGINT, SIGTERM})
    std::signal(signal, [](int) { regatta::g_stop = true; });
  const regatta::Status status = regatta::run(cluster, server, period);
  if (status) return 0;
  fmt::print(stderr, "regatta-prober: {}\n", status.error().message);
  return regatta::exit_status(status.error());
}
