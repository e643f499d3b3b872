#include "bench/platform_proofs/platform_programs.h"

#include <csignal>
#include <filesystem>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/process.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/base/tls/certificate.h"

namespace regatta::platform_proofs {
namespace {

constexpr Seconds kStartLimit{30};

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

}  // namespace

std::int64_t steady_ns() {
  return static_cast<std::int64_t>(os::monotonic_ns());
}

PlatformPrograms::~PlatformPrograms() {
  agents_.push_back(controller_);
  for (const pid_t pid : agents_) {
    if (pid <= 0) continue;
    static_cast<void>(os::send_signal(pid, SIGKILL));
    static_cast<void>(os::wait_for(pid));
  }
}

Status PlatformPrograms::start(const std::vector<std::string>& command, const std::string& log,
                               const std::string& join_token, pid_t& pid) {
  const os::UniqueFd output(
      ::open((folder_ + "/" + log).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  os::SpawnOptions options;
  options.stdout_fd = output.get();
  options.stderr_fd = output.get();
  if (!join_token.empty()) options.environment = {"REGATTA_JOIN_TOKEN=" + join_token};
  REGATTA_TRY(started, os::spawn(command, options));
  pid = started;
  return {};
}

Status PlatformPrograms::start_controller() {
  REGATTA_TRY(programs, os::executable_folder());
  const std::string ready = folder_ + "/ready";
  std::filesystem::create_directories(folder_);
  std::filesystem::remove(ready);
  REGATTA_TRY_DO(start({programs + "/regatta-controller", "--state", folder_ + "/controller",
                        "--port", port_, "--ready-file", ready},
                       "controller.log", "", controller_));
  const Seconds end = os::monotonic_now() + kStartLimit;
  while (!std::filesystem::exists(ready)) {
    REGATTA_TRY(ended, os::try_wait(controller_));
    if (ended || os::monotonic_now() > end)
      return Error{Code::kTimeout, folder_ +
                                       "/controller.log: the controller does not serve; "
                                       "read its reason there"};
    os::sleep_for(Seconds{0.002});
  }
  REGATTA_TRY(text, os::read_file(ready));
  url_ = first_line(text);
  port_ = url_.substr(url_.rfind(':') + 1);
  return {};
}

Result<std::int64_t> PlatformPrograms::kill_controller() {
  REGATTA_TRY_DO(os::send_signal(controller_, SIGKILL));
  REGATTA_TRY_DO(os::wait_for(controller_));
  controller_ = -1;
  return steady_ns();
}

Status PlatformPrograms::start_agents(int count, int devices) {
  REGATTA_TRY(client, http::HttpClient::create(client_options()));
  REGATTA_TRY(answer, client.send("POST", "/v1/tokens", admin_headers(),
                                  fmt::format(R"({{"name":"proof","use":"join","uses":{},)"
                                              R"("lifetime":"1h"}})",
                                              count)));
  const auto token = nlohmann::json::parse(answer.body, nullptr, false);
  if (answer.status >= 300 || !token.contains("secret") || !token.contains("token"))
    return Error{Code::kUnavailable, "POST /v1/tokens: " + answer.body};
  REGATTA_TRY(hash, tls::certificate_hash(client_options().ca));
  const std::string join_token =
      fmt::format("rg1.{}.{}.{}", hash, token["token"]["id"].get<std::string>(),
                  token["secret"].get<std::string>());
  REGATTA_TRY(programs, os::executable_folder());
  for (int i = 0; i < count; ++i) {
    const std::string name = fmt::format("node-{}", i);
    REGATTA_TRY_DO(start({programs + "/regatta-node-agent", "--controller", url_, "--name", name,
                          "--state", folder_ + "/" + name, "--address", "127.0.0.1", "--devices",
                          std::to_string(devices), "--device-type", "emulated"},
                         name + ".log", join_token, agents_.emplace_back()));
  }
  const Seconds end = os::monotonic_now() + kStartLimit;
  while (os::monotonic_now() < end) {
    REGATTA_TRY(nodes, client.send("GET", "/v1/nodes", admin_headers()));
    const auto list = nlohmann::json::parse(nodes.body, nullptr, false);
    if (list.contains("items") && list["items"].size() == static_cast<std::size_t>(count))
      return {};
    os::sleep_for(Seconds{0.02});
  }
  return Error{Code::kTimeout, folder_ + ": the agents do not join; read their logs there"};
}

http::ClientOptions PlatformPrograms::client_options() const {
  http::ClientOptions options;
  options.url = url_;
  options.ca = os::read_file(folder_ + "/controller/ca.pem").value_or("");
  return options;
}

http::Headers PlatformPrograms::admin_headers() const {
  const std::string token =
      first_line(os::read_file(folder_ + "/controller/admin.token").value_or(""));
  return {{"Authorization", "Bearer " + token}};
}

}  // namespace regatta::platform_proofs
