#include "regatta/app/cli/internal/gpu_containers.h"

#include <array>
#include <cerrno>
#include <memory>
#include <string>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/gpu_limits.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/gpu/sharing/control.h"
#include "regatta/gpu/sharing/messages.h"
#include "regatta/gpu/sharing/oci_hook.h"

namespace regatta::cli {
namespace {

using nlohmann::json;

struct ContainerOptions {
  std::string socket = sharing::kDefaultSocket;
  LimitOptions limits;
  std::string name;
  std::string cgroup;
  bool leave = false;
};

// The answer is not read: the daemon has done what it was asked, and a hook that fails ends the
// container.
int send_request(const ContainerOptions& options, const json& request) {
  const auto answer = sharing::send_control_request(options.socket, request.dump());
  return answer ? 0 : report_error(answer.error());
}

int run_enroll(const ContainerOptions& options) {
  json request{{"request", "enroll"}, {"name", options.name}, {"cgroup", options.cgroup}};
  if (const Status added = add_limits(request, options.limits); !added)
    return report_error(added.error());
  return send_request(options, request);
}

int run_leave(const ContainerOptions& options) {
  return send_request(options, {{"request", "leave"}, {"name", options.name}});
}

Result<std::string> read_standard_input() {
  constexpr std::size_t kMost = 4U << 20;
  std::string text;
  std::array<char, 4096> part{};
  while (text.size() <= kMost) {
    const ssize_t size = ::read(STDIN_FILENO, part.data(), part.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return os::errno_error("standard input");
    if (size == 0) return text;
    text.append(part.data(), static_cast<std::size_t>(size));
  }
  return Error{Code::kInvalidInput, "standard input: is longer than the state of a container"};
}

Result<json> hook_request(const ContainerOptions& options) {
  REGATTA_TRY(most, limits_of(options.limits));
  REGATTA_TRY(text, read_standard_input());
  REGATTA_TRY(container, sharing::parse_container_state(text));
  if (options.leave) return json{{"request", "leave"}, {"container", container.id}};
  auto request = sharing::enroll_request(container, most);
  // A created tenant needs it; a joined one has its own.
  if (request && request->contains("memory") && !options.limits.on_fault.empty())
    (*request)["on_fault"] = options.limits.on_fault;
  return request;
}

int run_hook(const ContainerOptions& options) {
  const auto request = hook_request(options);
  return request ? send_request(options, *request) : report_error(request.error());
}

CLI::App* add(CLI::App& parent, const std::string& name, const std::string& help,
              const std::string& footer, const std::shared_ptr<ContainerOptions>& options) {
  CLI::App* command = parent.add_subcommand(name, help);
  command->footer(footer);
  add_socket_option(*command, options->socket);
  return command;
}

}  // namespace

void add_gpu_containers(CLI::App& gpu, int& exit_status) {
  const auto options = std::make_shared<ContainerOptions>();
  CLI::App* enroll =
      add(gpu, "enroll", "Add a cgroup and its children to a tenant",
          "Example:\n"
          "  regatta gpu enroll a --cgroup /system.slice/a.service --memory 4GiB --compute 30\n"
          "  regatta gpu enroll a --cgroup memory:/docker/1f00    of cgroup v1",
          options);
  add_tenant(*enroll, options->name);
  enroll
      ->add_option("--cgroup", options->cgroup,
                   "As in /proc/PID/cgroup: /PATH of cgroup v2, HIERARCHY:/PATH of v1")
      ->type_name("PATH")
      ->required()
      ->check(not_empty());
  add_limit_options(*enroll, options->limits);
  add_fault_option(*enroll, options->limits);
  enroll->callback([=, &exit_status] { exit_status = run_enroll(*options); });

  CLI::App* leave =
      add(gpu, "leave", "Remove all cgroups from a tenant; it ends with its processes",
          "Example:\n  regatta gpu leave a", options);
  add_tenant(*leave, options->name);
  leave->callback([=, &exit_status] { exit_status = run_leave(*options); });

  CLI::App* hook = add(
      gpu, "oci-hook", "Hook of container runtimes: make a container a tenant, by its annotations",
      "Reads the container's state from standard input, and from the bundle's config.json the\n"
      "annotations regatta.gpu.memory, .compute, .weight, .priority and .name (a tenant that\n"
      "is there, or that is to be made). What the options say holds where the annotations say\n"
      "nothing, and is the most that they may say.\n"
      "Example (config.json):\n"
      "  \"annotations\": {\"regatta.gpu.memory\": \"4GiB\", \"regatta.gpu.compute\": \"30\"},\n"
      "  \"hooks\": {\n"
      "    \"createRuntime\": [{\"path\": \"/usr/bin/regatta\", \"args\": [\"regatta\", \"gpu\", "
      "\"oci-hook\"]}],\n"
      "    \"poststop\": [{\"path\": \"/usr/bin/regatta\", \"args\": [\"regatta\", \"gpu\", "
      "\"oci-hook\", \"--leave\"]}]}",
      options);
  add_limit_options(*hook, options->limits);
  add_fault_option(*hook, options->limits);
  hook->add_flag("--leave", options->leave, "For poststop: the container has ended");
  hook->callback([=, &exit_status] { exit_status = run_hook(*options); });
  add_gpu_cdi(gpu, exit_status);
}

}  // namespace regatta::cli
