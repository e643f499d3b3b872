#include "regatta/app/cli/internal/gpu_command.h"

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/gpu_containers.h"
#include "regatta/app/cli/internal/gpu_drain.h"
#include "regatta/app/cli/internal/gpu_hook_folder.h"
#include "regatta/app/cli/internal/gpu_hook_report.h"
#include "regatta/app/cli/internal/gpu_limits.h"
#include "regatta/app/cli/internal/gpu_pool_command.h"
#include "regatta/app/cli/internal/gpu_top.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/query_daemon.h"
#include "regatta/app/cli/internal/stop_signal.h"
#include "regatta/app/report/gpu_report.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/gpu/sharing/control.h"
#include "regatta/gpu/sharing/daemon.h"

namespace regatta::cli {
namespace {

using nlohmann::json;

struct GpuOptions {
  std::string state = sharing::kDefaultState;
  std::string socket = sharing::kDefaultSocket;
  std::string policy;
  std::vector<std::string> gpus;
  std::string link;
  double encoder_mpixels = 0;
  double decoder_mpixels = 0;
  int encoder_sessions = 0;
  int decoder_sessions = 0;
  std::string host_memory;
  bool no_checkpoint = false;
  bool overcommit = false;
  std::string lease;
  std::string name;
  LimitOptions limits;
  bool allows_privileges = false;
  std::vector<std::string> program;
  bool json = false;
};
using SharedGpuOptions = std::shared_ptr<GpuOptions>;

const std::vector<std::string> kPolicies = {"fixed", "equal", "weight", "burst-weight"};

// Adds the rates of the engines beside the processors, where the operator gives them.
Status add_engines(sharing::DaemonOptions& daemon, const GpuOptions& options) {
  if (!options.link.empty()) {
    const auto link = parse_bytes_per_second(options.link);
    if (!link) return Error{Code::kInvalidInput, "--link: " + link.error().message};
    if (!(link->value >= 1e6 && link->value <= 1e15)) {
      return Error{Code::kInvalidInput, "--link: " + printable(options.link, 60) +
                                            " is not between 1MB/s and 1000TB/s; give what a GPU's "
                                            "copies reach, like 25GB/s"};
    }
    daemon.engine_rates[REGATTA_COPY_TO_DEVICE] = daemon.engine_rates[REGATTA_COPY_FROM_DEVICE] =
        static_cast<std::uint64_t>(link->value);
    daemon.residency.link = *link;
  }
  daemon.engine_rates[REGATTA_ENCODE] = static_cast<std::uint64_t>(options.encoder_mpixels * 1e6);
  daemon.engine_rates[REGATTA_DECODE] = static_cast<std::uint64_t>(options.decoder_mpixels * 1e6);
  daemon.engine_sessions[REGATTA_ENCODE] = static_cast<unsigned>(options.encoder_sessions);
  daemon.engine_sessions[REGATTA_DECODE] = static_cast<unsigned>(options.decoder_sessions);
  return {};
}

Result<Bytes> parse_memory(const std::string& option, const std::string& text) {
  const auto memory = parse_bytes(text);
  if (!memory) return Error{memory.error().code, option + ": " + memory.error().message};
  if (memory->value > 0) return *memory;
  return Error{Code::kInvalidInput,
               option + ": '" + text + "' is not more than nothing; write it like 80GiB"};
}

int run_daemon(const GpuOptions& options) {
  sharing::DaemonOptions daemon{.state = options.state, .socket = options.socket};
  if (!options.policy.empty()) {
    const auto policy = sharing::parse_policy(options.policy);
    if (!policy) return report_error(policy.error());
    daemon.policy = *policy;
  }
  if (options.no_checkpoint) daemon.residency.checkpoints.library.clear();
  if (!options.host_memory.empty()) {
    const auto memory = parse_memory("--host-memory", options.host_memory);
    if (!memory) return report_error(memory.error());
    daemon.host_memory = *memory;
  }
  if (!options.gpus.empty()) daemon.gpus.clear();
  for (const std::string& text : options.gpus) {
    const auto memory = parse_memory("--gpu", text);
    if (!memory) return report_error(memory.error());
    if (const Status enough = sharing::check_minimum_memory(*memory); !enough)
      return report_error({enough.error().code, "--gpu: " + enough.error().message});
    daemon.gpus.push_back(*memory);
  }
  if (const Status engines = add_engines(daemon, options); !engines)
    return report_error(engines.error());
  const Status status = sharing::serve(daemon, watch_stop_signals());
  return status ? 0 : report_error(status.error());
}

// Becomes the program, as a process of the tenant: all it starts inherits the descriptor.
int run_program(const GpuOptions& options) {
  if (const Status status = check_program(options.program); !status)
    return report_error(status.error());
  json request{{"request", "join"}, {"name", options.name}};
  if (const Status status = add_limits(request, options.limits); !status)
    return report_error(status.error());
  if (options.overcommit) request["overcommit"] = true;
  if (!options.lease.empty()) {
    const auto lease = parse_seconds(options.lease);
    if (!lease || lease->value < 1 || lease->value > sharing::kLeaseMost) {
      return report_error(
          {Code::kInvalidInput, fmt::format("--lease: '{}' is not a time from 1s to 194d; write it "
                                            "like 60s or 5min",
                                            printable(options.lease, 60))});
    }
    request["lease_s"] = static_cast<unsigned>(lease->value);
  }
  os::UniqueFd page;
  const auto answer = sharing::send_control_request(options.socket, request.dump(), &page);
  if (!answer) return report_error(answer.error());
  if (!page || ::fcntl(page.get(), F_SETFD, 0) != 0)
    return report_error({Code::kUnavailable, "the daemon gave no page; is it of this version"});
  if (const Status status = load_hook(options.socket); !status) return report_error(status.error());
  if (!options.allows_privileges) {
    if (const Status status = forbid_new_privileges(); !status) return report_error(status.error());
    if (const Status status = watch_hook_report(options.program.front()); !status)
      return report_error(status.error());
  }
  std::vector<char*> words;
  words.reserve(options.program.size() + 1);
  for (const std::string& word : options.program)
    words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execvp(words.front(), words.data());
  Error error = os::errno_error(options.program.front() + ": cannot be started");
  error.code = Code::kInvalidInput;
  return report_error(error);
}

// Sends the request to the daemon; prints its JSON, or what `show` makes of it.
int show_answer(const GpuOptions& options, const json& request,
                const std::function<Result<std::string>(const JsonReader&)>& show) {
  const auto answer = query_daemon(options.socket, request);
  if (!answer) return report_error(answer.error());
  const auto text = options.json ? answer->raw().dump(2) + "\n" : show(*answer);
  if (!text) return report_error(text.error());
  std::fputs(text->c_str(), stdout);
  return 0;
}

int run_ps(const GpuOptions& options) {
  return show_answer(options, {{"request", "ps"}}, report::gpu_tenants_table);
}

int run_set(const GpuOptions& options) {
  json request{{"request", "set"}, {"name", options.name}};
  if (const Status status = add_limits(request, options.limits); !status)
    return report_error(status.error());
  if (request.size() == 2) {
    return report_error({Code::kInvalidInput,
                         "gpu set: give --memory, --compute, --weight, --priority or --on-fault"});
  }
  return show_answer(options, request, report::gpu_tenant_text);
}

int run_policy(const GpuOptions& options) {
  json request{{"request", "policy"}};
  if (!options.policy.empty()) request["policy"] = options.policy;
  return show_answer(options, request, [](const JsonReader& answer) {
    return answer.finish(answer.at("policy").as<std::string>() + "\n");
  });
}

int run_metrics(const GpuOptions& options) {
  const auto answer = sharing::send_control_request(options.socket, R"({"request":"metrics"})");
  if (!answer) return report_error(answer.error());
  if (options.json) {
    fmt::print("{}\n", json{{"prometheus", *answer}}.dump(2));
  } else {
    std::fputs(answer->c_str(), stdout);
  }
  return 0;
}

void add_daemon(CLI::App& gpu, const SharedGpuOptions& options, int& exit_status) {
  CLI::App* daemon =
      add_command(gpu, "daemon", "Start the daemon that keeps the limits of all tenants",
                  "regatta gpu daemon --gpu 80GiB --gpu 80GiB --policy burst-weight",
                  [=, &exit_status] { exit_status = run_daemon(*options); });
  daemon->add_option("--state", options->state, "Folder of the daemon's state")
      ->type_name("DIR")
      ->capture_default_str()
      ->check(not_empty());
  add_socket_option(*daemon, options->socket);
  daemon
      ->add_option(
          "--policy", options->policy,
          "fixed, equal, weight or burst-weight; the last one when left out, at first fixed")
      ->type_name("WORD")
      ->check(one_of(kPolicies));
  daemon
      ->add_option("--gpu", options->gpus,
                   "Memory of a GPU, repeat for each; one GPU of unknown memory when left out")
      ->type_name("SIZE")
      ->allow_extra_args(false);
  daemon
      ->add_option("--host-memory", options->host_memory,
                   "Host memory for tenants with --overcommit; none when left out")
      ->type_name("SIZE")
      ->check(not_empty());
  daemon->add_flag("--no-checkpoint", options->no_checkpoint,
                   "Do not use the driver's checkpoint calls to swap processes out");
  daemon
      ->add_option("--link", options->link,
                   "What copies between host and a GPU reach, each way, to be divided as its time "
                   "is; left out, copies are not held back")
      ->type_name("RATE")
      ->check(not_empty());
  const auto add_rate = [&](const char* name, double& value, const char* help) {
    daemon->add_option(name, value, help)->type_name("MPIXELS")->check(number_up_to(1e6));
  };
  add_rate("--encoder", options->encoder_mpixels,
           "Millions of pixels a second that a GPU encodes, to be divided likewise");
  add_rate("--decoder", options->decoder_mpixels, "The same of decoding");
  const auto add_sessions = [&](const char* name, int& value, const char* help) {
    daemon->add_option(name, value, help)->type_name("N")->check(whole_number(1, 10'000));
  };
  add_sessions("--encoder-sessions", options->encoder_sessions,
               "Encoders open at a time on a GPU; a tenant has its part of them, at least one");
  add_sessions("--decoder-sessions", options->decoder_sessions, "The same of decoders");
}

}  // namespace

void add_gpu_command(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<GpuOptions>();
  CLI::App* gpu = app.add_subcommand("gpu", "Share this machine's GPUs between tenants");
  gpu->footer(
      "Example:\n"
      "  regatta gpu daemon --gpu 80GiB &\n"
      "  regatta gpu run --name a --memory 4GiB --compute 30 -- python3 serve.py\n"
      "  regatta gpu ps");
  gpu->require_subcommand(1);
  add_daemon(*gpu, options, exit_status);

  CLI::App* run =
      add_command(*gpu, "run", "Start a program in a tenant, new or existing",
                  "regatta gpu run --name a --memory 4GiB --compute 30 -- python3 serve.py",
                  [=, &exit_status] { exit_status = run_program(*options); });
  add_program(*run, options->program);
  run->add_option("--name", options->name, "The tenant")
      ->type_name("NAME")
      ->required()
      ->check(not_empty("write a name of one letter or more"));
  add_limit_options(*run, options->limits);
  add_fault_option(*run, options->limits);
  run->add_flag("--overcommit", options->overcommit,
                "Its memory may go to the host while others work; the daemon needs --host-memory");
  run->add_option("--lease", options->lease,
                  "With --overcommit: so long it has the GPU alone when it comes to work, like 60s")
      ->type_name("TIME")
      ->check(not_empty());
  run->add_flag("--allow-new-privileges", options->allows_privileges,
                "Let set-user-ID programs and file capabilities take effect; such programs load "
                "nothing from the environment, so they are not limited");
  add_socket_option(*run, options->socket);

  CLI::App* ps =
      add_command(*gpu, "ps", "Show tenants, their limits, use and processes",
                  "regatta gpu ps --json", [=, &exit_status] { exit_status = run_ps(*options); });
  CLI::App* set = add_command(*gpu, "set", "Change a tenant's limits while it runs",
                              "regatta gpu set a --memory 8GiB --compute 50",
                              [=, &exit_status] { exit_status = run_set(*options); });
  add_tenant(*set, options->name);
  add_limit_options(*set, options->limits);
  add_fault_option(*set, options->limits);
  CLI::App* policy = add_command(
      *gpu, "policy", "Show or change the policy that divides the device's time",
      "regatta gpu policy burst-weight", [=, &exit_status] { exit_status = run_policy(*options); });
  policy->add_option("POLICY", options->policy, "fixed, equal, weight or burst-weight")
      ->check(one_of(kPolicies));
  CLI::App* metrics = add_command(*gpu, "metrics", "Print metrics of each tenant for Prometheus",
                                  "regatta gpu metrics",
                                  [=, &exit_status] { exit_status = run_metrics(*options); });
  for (CLI::App* command : {ps, set, policy, metrics}) {
    add_socket_option(*command, options->socket);
    command->add_flag("--json", options->json, "Print JSON");
  }
  add_gpu_top(*gpu, exit_status);
  add_gpu_drain(*gpu, exit_status);
  add_gpu_containers(*gpu, exit_status);
  add_gpu_pool_commands(*gpu, exit_status);
}

}  // namespace regatta::cli
