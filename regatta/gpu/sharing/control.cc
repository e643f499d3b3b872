#include "regatta/gpu/sharing/control.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <iterator>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "regatta/base/core/text.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/gpu/sharing/internal/daemon/metrics.h"
#include "regatta/gpu/sharing/messages.h"

namespace regatta::sharing {
namespace {

using nlohmann::json;

// A whole number from 0 to `most`.
Result<std::uint64_t> whole(const json& value, const char* key, std::uint64_t most) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > most)
    return bad_request(fmt::format("has a '{}' that is no number from 0 to {}", key, most));
  return value.get<std::uint64_t>();
}

// `limits` with what the request says.
Result<TenantLimits> with_request(TenantLimits limits, const json& request) {
  if (const auto gpu = request.find("memory"); gpu != request.end()) {
    if (!gpu->is_object()) return bad_request("has a 'memory' that is no object of GPUs");
    for (const auto& [name, bytes] : gpu->items()) {
      const bool is_number = !name.empty() && name.size() <= 2 &&
                             std::all_of(name.begin(), name.end(),
                                         [](unsigned char c) { return std::isdigit(c) != 0; });
      if (!is_number || std::stoi(name) >= kDevicesMax) {
        return Error{Code::kInvalidInput,
                     fmt::format("GPU {}: there is none of this number", printable(name, 20))};
      }
      REGATTA_TRY(size, whole(bytes, "memory", REGATTA_MEMORY_MAX));
      limits.memory[std::stoi(name)] = {static_cast<long long>(size)};
    }
  }
  if (const auto compute = request.find("compute_ppm"); compute != request.end()) {
    REGATTA_TRY(part, whole(*compute, "compute_ppm", REGATTA_WHOLE_PPM));
    limits.compute_ppm = static_cast<unsigned>(part);
  }
  if (const auto weight = request.find("weight"); weight != request.end()) {
    REGATTA_TRY(value, whole(*weight, "weight", 10'000));
    limits.weight = static_cast<unsigned>(value);
  }
  if (const auto priority = request.find("priority"); priority != request.end()) {
    if (*priority != "high" && *priority != "normal")
      return bad_request("has a 'priority' that is neither high nor normal");
    limits.is_high_priority = *priority == "high";
  }
  if (const auto fault = request.find("on_fault"); fault != request.end()) {
    if (*fault != "open" && *fault != "closed")
      return bad_request("has an 'on_fault' that is neither open nor closed");
    limits.is_open_on_fault = *fault == "open";
  }
  if (const auto overcommit = request.find("overcommit"); overcommit != request.end()) {
    if (!overcommit->is_boolean())
      return bad_request("has an 'overcommit' that is neither true nor false");
    limits.is_overcommitted = overcommit->get<bool>();
  }
  if (const auto lease = request.find("lease_s"); lease != request.end()) {
    REGATTA_TRY(seconds, whole(*lease, "lease_s", kLeaseMost));
    limits.lease_s = static_cast<unsigned>(seconds);
  }
  return limits;
}

std::string or_none(std::uint64_t number, const std::string& text) {
  return number == 0 ? "none" : text;
}

// Whoever joins a tenant has its limits: one that asks for others would be held to what it did not
// ask for.
Status check_same(const TenantLimits& has, const TenantLimits& asked) {
  struct Limit {
    std::string words;  // as the command line has them
    std::string there;
    bool is_same;
    bool can_change = true;
  };
  const auto percent = [](unsigned ppm) { return fmt::format("{:.6g}", ppm / 1e4); };
  const auto priority = [](bool is_high) { return is_high ? "high" : "normal"; };
  const auto fault = [](bool is_open) { return is_open ? "open" : "closed"; };
  const auto lease = [](unsigned seconds) { return fmt::format("{}s", seconds); };
  const Limit limits[] = {
      {"--compute " + percent(asked.compute_ppm),
       or_none(has.compute_ppm, percent(has.compute_ppm) + " %"),
       has.compute_ppm == asked.compute_ppm},
      {fmt::format("--weight {}", asked.weight), std::to_string(has.weight),
       has.weight == asked.weight},
      {fmt::format("--priority {}", priority(asked.is_high_priority)),
       priority(has.is_high_priority), has.is_high_priority == asked.is_high_priority},
      {fmt::format("--on-fault {}", fault(asked.is_open_on_fault)), fault(has.is_open_on_fault),
       has.is_open_on_fault == asked.is_open_on_fault},
      {"--overcommit", has.is_overcommitted ? "it" : "none",
       has.is_overcommitted == asked.is_overcommitted, false},
      {"--lease " + lease(asked.lease_s), or_none(has.lease_s, lease(has.lease_s)),
       has.lease_s == asked.lease_s, false}};
  for (const Limit& limit : limits) {
    if (limit.is_same) continue;
    return Error{Code::kInvalidInput,
                 fmt::format("{}: tenant {} is there and has {}; leave it out to join, or {}",
                             limit.words, has.name, limit.there,
                             limit.can_change ? fmt::format("change it with regatta gpu set {} {}",
                                                            has.name, limit.words)
                                              : "start a tenant of another name with it")};
  }
  return {};
}

// A new tenant whose first process is the one that asks, or one more process of a tenant.
Result<ControlReply> join_tenant(TenantStore& tenant_store, const json& request, ProcessId asker) {
  REGATTA_TRY(tenant, tenant_of_request(tenant_store, request));
  const auto client = tenant_store.add_client(tenant.number, asker);
  if (!client && tenant.is_new) tenant_store.remove_tenant(tenant.number);
  if (!client) return client.error();
  return ControlReply{json{{"tenant", tenant_store.tenants().name(tenant.number)}}.dump(),
                      tenant.number};
}

Result<ControlReply> change_tenant(DaemonParts& parts, const json& request) {
  TenantStore& tenant_store = parts.tenant_store;
  REGATTA_TRY(tenant, find_tenant_by_name(tenant_store, request.value("name", "")));
  REGATTA_TRY(limits, with_request(tenant_store.tenants().limits(tenant), request));
  REGATTA_TRY_DO(tenant_store.set_limits(tenant, limits));
  return ControlReply{tenant_json(parts, tenant).dump()};
}

Result<ControlReply> show_or_set_policy(TenantStore& tenant_store, const json& request) {
  if (request.contains("policy")) {
    REGATTA_TRY(policy, parse_policy(request.value("policy", "")));
    REGATTA_TRY_DO(tenant_store.set_policy(policy));
  }
  return ControlReply{json{{"policy", kPolicyNames[tenant_store.state().policy]}}.dump()};
}

Result<ControlReply> answer_parsed(DaemonParts& parts, const json& request, ProcessId asker) {
  const std::string what = request.value("ask", "");
  TenantStore& tenant_store = parts.tenant_store;
  if (what == "join") return join_tenant(tenant_store, request, asker);
  if (what == "set") return change_tenant(parts, request);
  if (what == "policy") return show_or_set_policy(tenant_store, request);
  if (what == "ps") return ControlReply{daemon_state_json(parts).dump()};
  if (what == "metrics") return ControlReply{metrics_text(parts)};
  return answer_control_command(tenant_store, parts.tenant_cgroups, request, asker);
}

}  // namespace

Error bad_request(const std::string& what) {
  return {Code::kInvalidInput, "the request " + what + "; see docs/formats/gpu_daemon.md"};
}

Result<int> find_tenant_by_name(const TenantStore& tenant_store, const std::string& name) {
  if (const auto tenant = tenant_store.tenants().find(name)) return *tenant;
  std::vector<std::string> known;
  for (int tenant = 0; tenant < kTenantsMax; ++tenant) {
    if (tenant_store.tenants().is_live(tenant))
      known.push_back(tenant_store.tenants().name(tenant));
  }
  return Error{Code::kInvalidInput,
               fmt::format("tenant {}: there is none of this name; there is {}",
                           printable(name, 60), known.empty() ? "none at all" : join(known, ", "))};
}

Result<RequestedTenant> tenant_of_request(TenantStore& tenant_store, const json& request) {
  const std::string name = request.value("name", "");
  if (!request.contains("memory")) {
    const auto tenant = find_tenant_by_name(tenant_store, name);
    if (!tenant) {
      return Error{tenant.error().code,
                   tenant.error().message + "; give --memory to start one of this name"};
    }
    const TenantLimits has = tenant_store.tenants().limits(*tenant);
    REGATTA_TRY(asked, with_request(has, request));
    REGATTA_TRY_DO(check_same(has, asked));
    return RequestedTenant{*tenant, false};
  }
  if (tenant_store.tenants().find(name)) {
    return Error{Code::kInvalidInput,
                 fmt::format("tenant {0}: is there already; leave --memory out to join it, or "
                             "change its limits with regatta gpu set {0}",
                             name)};
  }
  REGATTA_TRY(limits, with_request({.name = name, .compute_ppm = 0}, request));
  const bool has_memory = std::any_of(limits.memory.begin(), limits.memory.end(),
                                      [](Bytes memory) { return memory.value != 0; });
  if (!has_memory) {
    return Error{Code::kInvalidInput,
                 fmt::format("tenant {}: would have no memory of any GPU; give --memory 2MiB or "
                             "more",
                             printable(name, 60))};
  }
  REGATTA_TRY(tenant, tenant_store.add_tenant(limits));
  return RequestedTenant{tenant, true};
}

Result<regatta_share_policy> parse_policy(const std::string& name) {
  const auto found = std::find(std::begin(kPolicyNames), std::end(kPolicyNames), name);
  if (found != std::end(kPolicyNames))
    return static_cast<regatta_share_policy>(found - std::begin(kPolicyNames));
  return Error{
      Code::kInvalidInput,
      fmt::format("policy '{}': give fixed, equal, weight or burst-weight", printable(name, 40))};
}

Status check_operator(const TenantStore& tenant_store, const TenantCgroups& tenant_cgroups,
                      pid_t asker, unsigned user) {
  const auto refuse = [&](const std::string& why) {
    return Error{Code::kUnsupported,
                 fmt::format("process {}: {}; ask the operator of this machine", asker, why)};
  };
  if (user != 0 && user != ::geteuid())
    return refuse("only root and the user of the daemon may ask this");
  if (!is_in_own_pid_namespace(asker)) return refuse("is in a container");
  for (pid_t pid = asker; pid > 1;) {
    const auto process = read_process(pid);
    if (!process) return process.error();
    if (const auto client = tenant_store.clients().find(process->id)) {
      const int tenant = tenant_store.clients().tenant_of(*client);
      return refuse("belongs to tenant " + tenant_store.tenants().name(tenant));
    }
    if (const auto tenant = tenant_cgroups.tenant_of(pid))
      return refuse("belongs to tenant " + *tenant);
    pid = process->parent;
  }
  return {};
}

Result<ControlReply> answer_control_request(DaemonParts& parts, std::string_view request,
                                            ProcessId asker) {
  try {
    const json parsed = json::parse(request);
    if (!parsed.is_object()) return bad_request("is no JSON object");
    return answer_parsed(parts, parsed, asker);
  } catch (const json::exception&) {
    return bad_request("is no JSON, or has a word where another is due");
  }
}

Result<std::string> send_control_request(const std::string& socket, const std::string& request,
                                         os::UniqueFd* page) {
  constexpr Seconds kTimeout{10.0};
  REGATTA_TRY(fd, connect_to_daemon(socket, kTimeout));
  REGATTA_TRY_DO(send_message(fd.get(), request));
  REGATTA_TRY(message, receive_message(fd.get(), sizeof(ClientReply)));
  ClientReply reply;
  if (message.bytes.size() != sizeof reply)
    return Error{Code::kUnavailable, socket + ": the daemon went away; see its messages"};
  std::memcpy(&reply, message.bytes.data(), sizeof reply);
  if (reply.status != ReplyStatus::kGranted) return to_error(reply);
  struct stat status {};
  if (!message.fds[0] || ::fstat(message.fds[0].get(), &status) != 0)
    return Error{Code::kUnavailable, socket + ": the daemon sent no text; is it of this version"};
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  if (::pread(message.fds[0].get(), text.data(), text.size(), 0) != status.st_size)
    return os::errno_error("cannot read what the daemon sent");
  if (page != nullptr) *page = std::move(message.fds[1]);
  return text;
}

}  // namespace regatta::sharing
