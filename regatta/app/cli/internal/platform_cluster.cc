#include "regatta/app/cli/internal/platform_cluster.h"

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/cluster_file.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/platform_client.h"
#include "regatta/app/cli/internal/platform_past.h"
#include "regatta/app/cli/internal/print_now.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/yaml_map.h"
#include "regatta/base/os/clock.h"

namespace regatta::cli {
namespace {

constexpr Seconds kReconnectFor{30};  // then the controller counts as gone
constexpr Seconds kReconnectPause{0.3};

struct ClusterOptions {
  PastEventOptions past;
  ConnectionOptions connection;
  std::string name;
  std::string file;
  std::string kinds;
  bool json = false;
};

std::string state_of_node(const nlohmann::json& node) {
  const nlohmann::json status = node.value("status", nlohmann::json::object());
  std::string state = "ready";
  if (!status.value("connected", false)) state = "not connected";
  if (status.value("silent", false)) state = "silent";
  if (status.value("fenced", false)) state = "fenced";
  if (status.contains("fabric_fault")) state += ", fabric fault";
  const std::string intent = text_in(status, "intent");
  return intent.empty() || intent == "in_use" ? state : state + ", " + intent;
}

Result<int> list_nodes(const ClusterOptions& options) {
  REGATTA_TRY(client, PlatformClient::open(options.connection));
  REGATTA_TRY(page, client.call({.target = "/v1/nodes"}));
  const nlohmann::json nodes = page.value("items", nlohmann::json::array());
  if (options.json) {
    fmt::print("{}\n", nodes.dump());
    return 0;
  }
  std::vector<std::vector<std::string>> rows = {
      {"node", "state", "device type", "devices", "in use", "cpus", "memory", "replicas"}};
  for (const nlohmann::json& node : nodes) {
    const nlohmann::json status = node.value("status", nlohmann::json::object());
    rows.push_back({printable(text_in(node, "name"), 60), state_of_node(node),
                    printable(text_in(node, "device_type"), 40),
                    std::to_string(node.value("devices", 0)),
                    std::to_string(status.value("devices_in_use", 0)),
                    fmt::format("{:g}", node.value("cpus", 0.0)),
                    fmt::format("{:.4g}GiB", node.value("memory_mib", 0.0) / 1024),
                    std::to_string(status.value("replicas", nlohmann::json::array()).size())});
  }
  std::fputs(nodes.empty() ? "no nodes\n" : format_table(rows).c_str(), stdout);
  return 0;
}

Result<int> set_intent(const ClusterOptions& options, const std::string& intent) {
  REGATTA_TRY(client, PlatformClient::open(options.connection));
  REGATTA_TRY(node, client.call_again({.method = "PUT",
                                       .target = "/v1/nodes/" + url_text(options.name) + "/intent",
                                       .body = nlohmann::json{{"intent", intent}}.dump()}));
  if (options.json)
    fmt::print("{}\n", node.dump());
  else
    fmt::print("{}: {}\n", printable(text_in(node, "name"), 60), state_of_node(node));
  return 0;
}

// The quotas of the file in place of the controller's, which must be those that were just read.
Result<nlohmann::json> set_queues(PlatformClient& client, const std::string& path) {
  REGATTA_TRY(text, read_named_file(path, kYamlMaxBytes));
  REGATTA_TRY(tree, parse_yaml(text, path));
  if (tree.find("queues") == nullptr)
    return Error{Code::kInvalidInput,
                 path + ": the key queues is missing; see docs/formats/sched_state.md"};
  REGATTA_TRY(before, client.call({.target = "/v1/queues"}));
  auto after = client.call({.method = "PUT",
                            .target = "/v1/queues",
                            .headers = {{"If-Match", "\"" + text_in(before, "rev") + "\""}},
                            .body = json_text(tree)});
  if (!after) return Error{after.error().code, path + ": " + after.error().message};
  return after;
}

Result<int> show_queues(const ClusterOptions& options) {
  REGATTA_TRY(client, PlatformClient::open(options.connection));
  auto queues = options.file.empty() ? client.call({.target = "/v1/queues"})
                                     : set_queues(client, options.file);
  if (!queues) return queues.error();
  if (options.json) {
    fmt::print("{}\n", queues->dump());
    return 0;
  }
  std::vector<std::vector<std::string>> rows = {{"queue", "waiting", "running", "devices"}};
  for (const nlohmann::json& queue : queues->value("items", nlohmann::json::array()))
    rows.push_back(
        {printable(text_in(queue, "name"), 60), std::to_string(queue.value("pending", 0)),
         std::to_string(queue.value("running", 0)), std::to_string(queue.value("devices", 0))});
  std::fputs(format_table(rows).c_str(), stdout);
  return 0;
}

// "12:03:41  job  hello-1: running: ..." for a line of a watch; "" for one that says nothing.
std::string change_text(const nlohmann::json& event) {
  const nlohmann::json object = event.value("object", nlohmann::json::object());
  const nlohmann::json status = object.value("status", nlohmann::json::object());
  const std::string kind = text_in(event, "kind");
  std::string what;
  if (kind == "job") {
    what = fmt::format("{}: {}{}", text_in(object, "handle"), text_in(status, "phase"),
                       status.value("held", false) ? " (held)" : "");
    if (const std::string reason = text_in(status, "reason"); !reason.empty())
      what += ": " + reason;
  } else if (kind == "node") {
    what = text_in(object, "name") + ": " + state_of_node(object);
  } else if (kind == "queues") {
    what = "quotas of revision " + text_in(object, "rev");
  }
  const auto now_ms = static_cast<long long>(os::system_now().value * 1000);
  return fmt::format("{}  {:<6}  {}\n", time_text(now_ms), kind, printable(what, 300));
}

Status check_kinds(const std::string& kinds) {
  const std::vector<std::string> known = {"job", "node", "queues"};
  for (const std::string& kind : split(kinds, ','))
    if (kind != known[0] && kind != known[1] && kind != known[2])
      return Error{Code::kInvalidInput,
                   fmt::format("events: --kinds: there is no kind '{}'; write a list of {}",
                               printable(kind, 40), join(known, ", "))};
  return {};
}

// The past where it is asked for; else lines of a watch, from the moment of the call on, also where
// the controller starts again.
Result<int> watch_events(const ClusterOptions& options) {
  if (!options.kinds.empty()) REGATTA_TRY_DO(check_kinds(options.kinds));
  REGATTA_TRY(client, PlatformClient::open(options.connection));
  if (!options.past.since.empty() || !options.past.object.empty()) {
    PastEventOptions past = options.past;
    past.kinds = options.kinds;
    past.json = options.json;
    REGATTA_TRY_DO(print_past_events(client, past));
    return 0;
  }
  std::string from;
  Seconds heard = os::monotonic_now();
  bool is_written = true;
  for (;;) {
    std::string target = "/v1/watch?kinds=" + options.kinds;
    if (!from.empty()) target += "&from=" + from;
    LineSplitter lines;
    const Status status =
        client.stream(target, {{"Accept", "application/x-ndjson"}}, [&](std::string_view piece) {
          heard = os::monotonic_now();
          lines.append(piece);
          while (const auto line = lines.next()) {
            const nlohmann::json event = nlohmann::json::parse(*line, nullptr, false);
            if (!event.is_object()) continue;
            from = text_in(event, "rev");
            const std::string text = options.json ? *line + "\n" : change_text(event);
            std::fputs(text.c_str(), stdout);
          }
          return is_written = std::fflush(stdout) == 0;
        });
    if (!is_written) return 0;  // the reader has gone
    const bool is_away = status || status.error().code == Code::kUnavailable ||
                         status.error().code == Code::kTimeout;
    if (!is_away || os::monotonic_now() - heard > kReconnectFor)
      return status ? Error{Code::kUnavailable, "the controller ends the watch"} : status.error();
    os::sleep_for(kReconnectPause);
  }
}

int finish_cluster(const Result<int>& done) {
  return done ? *done : report_error(done.error());
}

void add_intent(CLI::App& app, int& exit_status, const char* name, const char* help,
                const std::string& intent) {
  const auto options = std::make_shared<ClusterOptions>();
  CLI::App* command = add_command(
      app, name, help, fmt::format("regatta {} node-0", name),
      [=, &exit_status] { exit_status = finish_cluster(set_intent(*options, intent)); });
  command->add_option("NODE", options->name, "Name of the node")->required()->check(not_empty());
  command->add_flag("--json", options->json, "Print the node as the API shows it");
  add_connection_options(*command, options->connection);
}

}  // namespace

void add_platform_cluster_commands(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<ClusterOptions>();
  CLI::App* nodes =
      add_command(app, "nodes", "List the servers of the platform", "regatta nodes --json",
                  [=, &exit_status] { exit_status = finish_cluster(list_nodes(*options)); });
  nodes->add_flag("--json", options->json, "Print a JSON list of nodes as the API shows them");
  add_connection_options(*nodes, options->connection);
  add_intent(app, exit_status, "cordon", "Keep new jobs from a node; its jobs stay", "cordoned");
  add_intent(app, exit_status, "drain", "Let the jobs leave a node", "draining");
  add_intent(app, exit_status, "resume", "Use a node again", "in_use");
  CLI::App* queues = add_command(
      app, "queues", "Show the queues, or set their quotas", "regatta queues --set queues.yaml",
      [=, &exit_status] { exit_status = finish_cluster(show_queues(*options)); });
  queues->add_option("--set", options->file, "YAML file with the list queues; an operator may")
      ->type_name("FILE")
      ->check(not_empty());
  queues->add_flag("--json", options->json, "Print the queues as the API shows them");
  add_connection_options(*queues, options->connection);
  CLI::App* events = add_command(app, "events",
                                 "Print what changes, a line each, until Ctrl-C, or what has "
                                 "happened",
                                 "regatta events --since 1h --kinds job,node", [=, &exit_status] {
                                   exit_status = finish_cluster(watch_events(*options));
                                 });
  events->add_option("--since", options->past.since, "What has happened for so long, and end")
      ->type_name("TIME")
      ->check(not_empty());
  events->add_option("--object", options->past.object, "What happened to this job or node, and end")
      ->type_name("NAME")
      ->check(not_empty());
  events->add_option("--limit", options->past.limit, "Of the past at most so many, the latest")
      ->type_name("N")
      ->capture_default_str()
      ->check(whole_number(1, 1'000'000));
  events->add_option("--kinds", options->kinds, "Of these kinds alone: job,node,queues")
      ->type_name("KINDS")
      ->check(not_empty());
  events->add_flag("--json", options->json, "Print a line of JSON for each");
  add_connection_options(*events, options->connection);
}

}  // namespace regatta::cli
