#include "regatta/app/cli/internal/up_command.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/local_cluster.h"
#include "regatta/app/cli/internal/platform_access.h"
#include "regatta/app/cli/internal/platform_client.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/process.h"

namespace regatta::cli {
namespace {

constexpr Seconds kStartLook{0.02};
constexpr Seconds kStartLimit{20};      // until the controller serves, or all agents have joined
constexpr Seconds kJobsLimit{8};        // until the jobs have ended, before their processes are
constexpr Seconds kProcessGrace{3};     // of the controller and the agents
constexpr const char* kJobGrace = "2";  // seconds of the agents of `up`, which serve trials
constexpr int kNodesMax = 64;

struct UpOptions {
  std::string state = default_state_folder();
  std::string context_file;
  int nodes = 0;     // 0: not given
  int devices = -1;  // -1: those that are found
  std::string device_memory;
  std::string gpu_daemon;
  std::string token;
  std::string server;
  std::string name;
  bool json = false;
};

// Jobs run as their user: the one who starts the platform here is its first.
std::string own_user() {
  const passwd* entry = ::getpwuid(::geteuid());
  return entry != nullptr ? entry->pw_name : "admin";
}

std::string port_of(const std::string& url) {
  return url.empty() ? "0" : url.substr(url.rfind(':') + 1);
}

// Looks until `is_done`; errors of it end the wait.
template <typename Look>
Status look_until(const std::string& what, Look is_done) {
  const Seconds end = os::monotonic_now() + kStartLimit;
  for (;;) {
    REGATTA_TRY(done, is_done());
    if (done) return {};
    if (os::monotonic_now() > end)
      return Error{Code::kTimeout, fmt::format("{} after {:g} s", what, kStartLimit.value)};
    os::sleep_for(kStartLook);
  }
}

Status start_controller(const std::string& state, LocalCluster& cluster) {
  REGATTA_TRY(programs, os::executable_folder());
  const std::string ready = state + "/controller.url";
  REGATTA_TRY_DO(os::remove_tree(ready));
  const std::vector<std::string> argv = {programs + "/regatta-controller",
                                         "--state",
                                         state + "/controller",
                                         "--port",
                                         port_of(cluster.url),
                                         "--admin",
                                         own_user(),
                                         "--ready-file",
                                         ready};
  REGATTA_TRY_DO(start_local_process(state, kControllerName, argv, {}, cluster));
  const Status serves = look_until("the controller does not serve", [&]() -> Result<bool> {
    const auto url = os::read_file(ready);
    if (!url) {
      REGATTA_TRY_DO(check_local_process(state, kControllerName, cluster));
      return false;
    }
    cluster.url = std::string(trim(*url));
    return true;
  });
  if (!serves) return serves.error();
  return save_local_cluster(state, cluster);
}

// On the port of before, which context files name; on any other where a program has taken it and no
// agent still looks for the controller there.
Status start_controller_again(const std::string& state, LocalCluster& cluster) {
  Status started = start_controller(state, cluster);
  const bool has_agent = std::ranges::any_of(
      cluster.processes, [&](const auto& each) { return cluster.is_running(each.name); });
  if (started || cluster.url.empty() || has_agent) return started;
  cluster.url.clear();
  return start_controller(state, cluster);
}

Status start_agent(const UpOptions& options, const std::string& name, const std::string& token,
                   LocalCluster& cluster) {
  REGATTA_TRY(programs, os::executable_folder());
  std::vector<std::string> argv = {
      programs + "/regatta-node-agent", "--controller", cluster.url, "--name", name, "--state",
      options.state + "/" + name,       "--grace",      kJobGrace};
  if (options.token.empty()) argv.insert(argv.end(), {"--address", "127.0.0.1"});
  if (cluster.devices >= 0)
    argv.insert(argv.end(),
                {"--devices", std::to_string(cluster.devices), "--device-type", "emulated"});
  if (!cluster.device_memory.empty())
    argv.insert(argv.end(), {"--device-memory", cluster.device_memory});
  if (!cluster.gpu_daemon.empty()) argv.insert(argv.end(), {"--gpu-daemon", cluster.gpu_daemon});
  std::vector<std::string> environment;
  if (!token.empty()) environment.push_back("REGATTA_JOIN_TOKEN=" + token);
  // Noted before they are made, so that a crash in between leaves none.
  for (const std::string& folder : cgroups_of_agent(name))
    if (std::ranges::find(cluster.cgroups, folder) == cluster.cgroups.end())
      cluster.cgroups.push_back(folder);
  return start_local_process(options.state, name, argv, environment, cluster);
}

bool has_certificate(const std::string& state, const std::string& name) {
  std::error_code error;
  const bool is_empty = std::filesystem::is_empty(state + "/" + name + "/identity", error);
  return !error && !is_empty;
}

Result<PlatformContext> own_context(const std::string& state, const LocalCluster& cluster) {
  REGATTA_TRY(ca, os::read_text_file(state + "/controller/ca.pem"));
  REGATTA_TRY(token, os::read_text_file(state + "/controller/admin.token"));
  return PlatformContext{.server = cluster.url, .ca = ca, .token = std::string(trim(token))};
}

// The same, for the other commands too.
Result<PlatformContext> saved_context(const UpOptions& options, const LocalCluster& cluster) {
  REGATTA_TRY(context, own_context(options.state, cluster));
  REGATTA_TRY_DO(save_context(
      options.context_file.empty() ? default_context_file() : options.context_file, context));
  return context;
}

Status wait_for_nodes(const std::string& state, const std::vector<std::string>& names,
                      PlatformClient& client, const LocalCluster& cluster) {
  return look_until("not all agents have joined", [&]() -> Result<bool> {
    for (const std::string& name : names)
      REGATTA_TRY_DO(check_local_process(state, name, cluster));
    REGATTA_TRY(page, client.call({.target = "/v1/nodes"}));
    std::set<std::string> connected;
    for (const nlohmann::json& node : page.value("items", nlohmann::json::array()))
      if (node.value("status", nlohmann::json::object()).value("connected", false))
        connected.insert(text_in(node, "name"));
    return std::ranges::all_of(names, [&](const auto& name) { return connected.contains(name); });
  });
}

// The names of the nodes that this `up` shall have: as many as before where no number is given.
Result<std::vector<std::string>> wanted_nodes(const UpOptions& options,
                                              const LocalCluster& cluster) {
  std::vector<std::string> names;
  for (const LocalProcess& process : cluster.processes)
    if (process.name != kControllerName) names.push_back(process.name);
  const int count = options.nodes > 0 ? options.nodes : 1;
  const bool is_other = options.nodes > 0 && static_cast<int>(names.size()) != options.nodes;
  if (!names.empty() && is_other)
    return Error{Code::kConflict, fmt::format("up: {} has {}; end them with regatta down first",
                                              options.state, pluralized(names.size(), "node"))};
  for (int i = 0; names.size() < static_cast<std::size_t>(count); ++i)
    names.push_back(local_node_name(options.state, i));
  return names;
}

void print_up(const LocalCluster& cluster, std::size_t nodes, const std::string& lead,
              const std::string& page) {
  fmt::print("{}: {}, {}\n", lead, cluster.url, pluralized(nodes, "node"));
  fmt::print("page:  {}\n       once, within 15 minutes; then regatta login --url\n", page);
  fmt::print(
      "next:  regatta submit examples/submitted_job.yaml\n"
      "       regatta jobs, regatta nodes, regatta logs JOB -f\n"
      "end:   regatta down\n");
}

Status check_programs() {
  REGATTA_TRY(programs, os::executable_folder());
  for (const char* name : {"/regatta-controller", "/regatta-node-agent", "/regatta-supervisor"})
    if (::access((programs + name).c_str(), X_OK) != 0)
      return Error{Code::kInvalidInput,
                   programs + name + ": the program is missing; install it beside regatta"};
  return {};
}

// Those that do not run; whether there were any.
Result<bool> start_agents(const UpOptions& options, const std::vector<std::string>& names,
                          const std::string& ca, PlatformClient& client, LocalCluster& cluster) {
  std::string token;
  bool has_started = false;
  for (const std::string& name : names) {
    if (cluster.is_running(name)) continue;
    has_started = true;
    if (token.empty() && !has_certificate(options.state, name)) {
      REGATTA_TRY(made, make_join_token(client, ca, static_cast<int>(names.size()), "up"));
      token = made;
    }
    REGATTA_TRY_DO(start_agent(options, name, token, cluster));
  }
  return has_started;
}

// An option that is not given again stays as it was, unless the cluster `is_new`.
void take_device_options(const UpOptions& options, bool is_new, LocalCluster& cluster) {
  if (is_new || options.devices >= 0) cluster.devices = options.devices;
  if (is_new || !options.device_memory.empty()) cluster.device_memory = options.device_memory;
  if (is_new || !options.gpu_daemon.empty()) cluster.gpu_daemon = options.gpu_daemon;
}

Status bring_up(const UpOptions& options) {
  REGATTA_TRY_DO(check_programs());
  REGATTA_TRY(lock, hold_state_folder(options.state));
  REGATTA_TRY(cluster, load_local_cluster(options.state));
  REGATTA_TRY(names, wanted_nodes(options, cluster));
  take_device_options(options, cluster.processes.empty(), cluster);
  bool is_new = !cluster.is_running(kControllerName);
  if (is_new) REGATTA_TRY_DO(start_controller_again(options.state, cluster));
  REGATTA_TRY(context, saved_context(options, cluster));
  REGATTA_TRY(client, PlatformClient::open(context));
  REGATTA_TRY(has_started, start_agents(options, names, context.ca, client, cluster));
  is_new = is_new || has_started;
  REGATTA_TRY_DO(wait_for_nodes(options.state, names, client, cluster));
  REGATTA_TRY(page, make_login_url(client, cluster.url));
  if (options.json)
    fmt::print("{}\n", nlohmann::json{{"server", cluster.url},
                                      {"nodes", names},
                                      {"state", options.state},
                                      {"started", is_new},
                                      {"page", page}}
                           .dump());
  else
    print_up(cluster, names.size(), is_new ? "the platform runs" : "the platform runs already",
             page);
  return {};
}

// Asks the controller to end all jobs, and waits for it; how many there were.
int cancel_jobs(const std::string& state, const LocalCluster& cluster) {
  const auto context = own_context(state, cluster);
  auto client = context ? PlatformClient::open(*context) : Result<PlatformClient>(context.error());
  if (!client) return 0;
  std::set<std::string> cancelled;
  const Seconds end = os::monotonic_now() + kJobsLimit;
  while (os::monotonic_now() < end) {
    bool has_jobs = false;
    for (const char* phase : {"pending", "starting", "running", "stopping"}) {
      const auto page = client->call({.target = fmt::format("/v1/jobs?limit=500&phase={}", phase)});
      if (!page) return static_cast<int>(cancelled.size());
      for (const nlohmann::json& job : page->value("items", nlohmann::json::array())) {
        has_jobs = true;
        const std::string id = text_in(job, "id");
        if (!cancelled.insert(id).second) continue;
        static_cast<void>(
            client->call({.method = "POST", .target = "/v1/jobs/" + id + "/cancel"}).has_value());
      }
    }
    if (!has_jobs) break;
    os::sleep_for(kStartLook);
  }
  return static_cast<int>(cancelled.size());
}

Status bring_down(const UpOptions& options) {
  if (::access(options.state.c_str(), F_OK) != 0) {
    if (options.json)
      fmt::print("{}\n",
                 nlohmann::json{{"state", options.state}, {"jobs", 0}, {"agents", 0}}.dump());
    else
      fmt::print("nothing runs: there is no {}\n", options.state);
    return {};
  }
  REGATTA_TRY(lock, hold_state_folder(options.state));
  REGATTA_TRY(cluster, load_local_cluster(options.state));
  const int jobs = cluster.is_running(kControllerName) ? cancel_jobs(options.state, cluster) : 0;
  int agents = 0;
  int gone = 0;
  bool has_controller = false;
  // The agents first: what they report reaches the controller.
  std::stable_partition(cluster.processes.begin(), cluster.processes.end(),
                        [](const auto& each) { return each.name != kControllerName; });
  for (const LocalProcess& process : cluster.processes) {
    REGATTA_TRY(ran, end_local_process(process, kProcessGrace));
    if (!ran)
      ++gone;
    else if (process.name == kControllerName)
      has_controller = true;
    else
      ++agents;
  }
  REGATTA_TRY(replicas, end_replicas(options.state));
  for (const std::string& folder : cluster.cgroups)
    REGATTA_TRY_DO(os::remove_cgroup(folder));
  cluster.cgroups.clear();
  cluster.processes.clear();
  REGATTA_TRY_DO(save_local_cluster(options.state, cluster));
  if (options.json) {
    fmt::print("{}\n", nlohmann::json{{"state", options.state},
                                      {"jobs", jobs},
                                      {"agents", agents},
                                      {"controller", has_controller},
                                      {"replicas", replicas},
                                      {"ended_before", gone}}
                           .dump());
    return {};
  }
  fmt::print("ended: {}, {}{}{}{}\n", pluralized(jobs, "job"), pluralized(agents, "agent"),
             has_controller ? ", the controller" : "",
             replicas > 0 ? ", " + pluralized(replicas, "replica") + " without an agent" : "",
             gone > 0
                 ? fmt::format("; {} had ended before", pluralized(gone, "process", "processes"))
                 : "");
  fmt::print("{} keeps the jobs' history and output for the next regatta up\n", options.state);
  return {};
}

Status join_here(UpOptions options) {
  if (!options.token.starts_with("rg1.") || std::ranges::count(options.token, '.') != 3)
    return Error{
        Code::kInvalidInput,
        "join: TOKEN is no join token, rg1.HASH.ID.SECRET; ask the operator, who makes one "
        "with regatta token --join"};
  REGATTA_TRY_DO(check_programs());
  char host[256] = {};
  if (options.name.empty() && ::gethostname(host, sizeof host - 1) == 0) options.name = host;
  if (options.name == kControllerName || options.name.find('/') != std::string::npos)
    return Error{Code::kInvalidInput,
                 fmt::format("join: '{}' is no name of a node; choose one with --name",
                             printable(options.name, 60))};
  REGATTA_TRY(lock, hold_state_folder(options.state));
  REGATTA_TRY(cluster, load_local_cluster(options.state));
  if (cluster.is_running(options.name))
    return Error{Code::kConflict,
                 fmt::format("join: node {} runs already; end it with regatta down", options.name)};
  if (!cluster.processes.empty() && cluster.url != options.server)
    return Error{Code::kConflict, fmt::format("join: {} belongs to {}; give --state another folder",
                                              options.state, cluster.url)};
  cluster.url = options.server;
  take_device_options(options, true, cluster);
  REGATTA_TRY_DO(start_agent(options, options.name, options.token, cluster));
  const Status joined = look_until("the agent has no certificate yet", [&]() -> Result<bool> {
    REGATTA_TRY_DO(check_local_process(options.state, options.name, cluster));
    return has_certificate(options.state, options.name);
  });
  if (!joined) return joined.error();
  if (options.json) {
    fmt::print(
        "{}\n",
        nlohmann::json{{"node", options.name}, {"server", options.server}, {"state", options.state}}
            .dump());
    return {};
  }
  fmt::print("node {} has joined {}\nend it: regatta down --state {}\n", options.name,
             options.server, options.state);
  return {};
}

int finish_up(const Status& status) {
  return status ? 0 : report_error(status.error());
}

// An absolute path, as processes in the background need it.
UpOptions with_absolute_state(UpOptions options) {
  std::error_code error;
  const auto path = std::filesystem::absolute(options.state, error).lexically_normal();
  if (!error) options.state = path.string();
  while (options.state.size() > 1 && options.state.ends_with('/'))
    options.state.pop_back();
  return options;
}

void add_state_option(CLI::App& command, UpOptions& options) {
  command
      .add_option("--state", options.state,
                  "Folder of its state (~/.local/state/regatta, or in $XDG_STATE_HOME)")
      ->type_name("DIR")
      ->check(not_empty());
}

void add_json_option(CLI::App& command, UpOptions& options) {
  command.add_flag("--json", options.json, "Print a JSON object with what was done");
}

void add_devices_option(CLI::App& command, UpOptions& options) {
  command
      .add_option("--devices", options.devices,
                  "So many emulated devices of each node; those that are found when left out")
      ->type_name("N")
      ->check(whole_number(0, 16));
  command
      .add_option("--device-memory", options.device_memory,
                  "Memory of each emulated device, for jobs that ask for a part of it")
      ->type_name("SIZE")
      ->check(CLI::Validator(
          [](std::string& text) -> std::string {
            const auto size = parse_bytes(text);
            return size ? "" : size.error().message;
          },
          ""));
  command
      .add_option("--gpu-daemon", options.gpu_daemon,
                  "Socket of regatta gpu daemon, which holds jobs to their parts of devices")
      ->type_name("SOCKET");
}

}  // namespace

void add_up_commands(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<UpOptions>();
  CLI::App* up = add_command(
      app, "up", "Start the platform on this machine, in the background", "regatta up --nodes 2",
      [=, &exit_status] { exit_status = finish_up(bring_up(with_absolute_state(*options))); });
  up->add_option("--nodes", options->nodes, "So many agents (1)")
      ->type_name("N")
      ->check(whole_number(1, kNodesMax));
  add_json_option(*up, *options);
  add_devices_option(*up, *options);
  add_state_option(*up, *options);
  up->add_option("--context", options->context_file,
                 "File to write for the other commands (~/.config/regatta/context.json)")
      ->type_name("FILE")
      ->check(not_empty());
  CLI::App* down = add_command(
      app, "down", "End the platform that `up` or `join` has started here, and its jobs",
      "regatta down",
      [=, &exit_status] { exit_status = finish_up(bring_down(with_absolute_state(*options))); });
  add_json_option(*down, *options);
  add_state_option(*down, *options);
  CLI::App* join = add_command(
      app, "join", "Let this server join a platform, in the background",
      "regatta join rg1.HASH.ID.SECRET --server https://head:7780",
      [=, &exit_status] { exit_status = finish_up(join_here(with_absolute_state(*options))); });
  join->add_option("TOKEN", options->token, "From regatta token --join")
      ->required()
      ->check(not_empty());
  join->add_option("--server", options->server,
                   "URL of the controller, https://HOST:PORT; several with commas between them")
      ->required()
      ->type_name("URL")
      ->check(not_empty());
  join->add_option("--name", options->name, "Of this node (the host's name)")
      ->type_name("NAME")
      ->check(not_empty());
  add_json_option(*join, *options);
  add_devices_option(*join, *options);
  add_state_option(*join, *options);
}

}  // namespace regatta::cli
