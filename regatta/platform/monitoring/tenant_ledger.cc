#include "regatta/platform/monitoring/tenant_ledger.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/json.h"
#include "regatta/base/core/yaml_map.h"

namespace regatta::monitoring {
namespace {

constexpr double kSecondsPerHour = 3600;
constexpr double kLeastPart = 1e-6;  // of a device
constexpr std::string_view kTenants = "observed/tenant/";

// The two names of a key are apart by a byte that no name has.
std::string key_of(const TenantName& name) {
  return fmt::format("{}{}\x1f{}", kTenants, name.first, name.second);
}

std::string record_of(const TenantName& name, const TenantSums& sums, std::int64_t unix_ms) {
  std::string text = R"({"queue":)";
  append_json_quoted(name.first, text);
  text += R"(,"user":)";
  append_json_quoted(name.second, text);
  text += fmt::format(
      R"(,"device_s":{},"measured_s":{},"used_s":{},"waiting_s":{},"money":{},"starts":{},)"
      R"("evictions":{},"until_ms":{}}})",
      sums.device_s, sums.measured_s, sums.used_s, sums.waiting_s, sums.money, sums.starts,
      sums.evictions, unix_ms);
  return text;
}

}  // namespace

Status TenantLedger::load(const control::ClusterTables& tables, Seconds now, std::int64_t unix_ms,
                          Seconds lease) {
  std::map<TenantName, std::int64_t> until_ms;
  for (auto record = tables.observed.lower_bound(std::string(kTenants));
       record != tables.observed.end() && record->first.starts_with(kTenants); ++record) {
    REGATTA_TRY(read, JsonReader::parse(record->second.value, "store: tenant"));
    const TenantName name(read.at("queue").as<std::string>(), read.at("user").as<std::string>());
    TenantAccount& account = tenants_[name];
    account.sums = {.device_s = read.at("device_s").as<double>(),
                    .measured_s = read.at("measured_s").as<double>(),
                    .used_s = read.at("used_s").as<double>(),
                    .waiting_s = read.at("waiting_s").as<double>(),
                    .money = read.at("money").as<double>(),
                    .starts = read.at("starts").as<std::int64_t>(),
                    .evictions = read.at("evictions").as<std::int64_t>()};
    account.counted = now;
    until_ms[name] = read.at("until_ms").as<std::int64_t>();
    REGATTA_TRY_DO(read.status());
  }
  is_loading_ = true;
  for (const auto& [id, job] : tables.jobs) {
    see(tables, id, now);
    const auto share = jobs_.find(id);
    if (share == jobs_.end() || share->second.devices == 0) continue;
    const std::int64_t since = std::max(until_ms[{job.queue, job.user}], job.attempt->started_ms);
    const double away_s = std::clamp(static_cast<double>(unix_ms - since) / 1000, 0.0, lease.value);
    TenantAccount& tenant = *share->second.tenant;
    tenant.sums.device_s += away_s * share->second.devices;
    tenant.sums.money += away_s * share->second.money_per_s;
    tenant.is_changed = true;
  }
  is_loading_ = false;
  return {};
}

void TenantLedger::count(TenantAccount& tenant, Seconds now) const {
  const double elapsed = std::max(0.0, (now - tenant.counted).value);
  tenant.counted = now;
  if (tenant.devices == 0 && tenant.pending == 0) return;
  tenant.sums.device_s += elapsed * tenant.devices;
  tenant.sums.waiting_s += elapsed * tenant.pending;
  tenant.sums.money += elapsed * tenant.money_per_s;
  tenant.is_changed = true;
}

void TenantLedger::count(JobShare& share, Seconds now) const {
  if (share.account != nullptr)
    share.account->device_s += std::max(0.0, (now - share.counted).value) * share.devices;
  share.counted = now;
}

void TenantLedger::set_share(const control::ClusterTables& tables, const control::ManagedJob& job,
                             JobShare& share) const {
  share.is_pending = job.phase == control::JobPhase::kPending && !job.is_held;
  share.devices = 0;
  share.money_per_s = 0;
  if (job.attempt == nullptr) return;
  for (const control::Replica& replica : job.attempt->replicas) {
    if (replica.phase == control::ReplicaPhase::kWaiting || replica.is_gone()) continue;
    const double devices = std::popcount(replica.devices) * replica.slice.device_milli / 1000.0;
    share.devices += devices;
    const auto price = prices_.find(at(tables.nodes, replica.node).facts.device_type);
    if (price != prices_.end()) share.money_per_s += devices * price->second / kSecondsPerHour;
  }
}

void TenantLedger::see(const control::ClusterTables& tables, control::JobId id, Seconds now) {
  const control::ManagedJob* job = tables.find_job(id);
  if (job == nullptr) return;
  const bool is_over = control::is_over(job->phase);
  auto found = jobs_.find(id);
  if (found == jobs_.end()) {
    if (is_over) return;
    found = jobs_.try_emplace(id).first;
    found->second.tenant = &tenants_[{job->queue, job->user}];
    if (found->second.tenant->counted == Seconds{}) found->second.tenant->counted = now;
    found->second.counted = now;
    if (is_loading_) {  // what it did before is in the stored sums
      found->second.attempts = job->attempts;
      found->second.evictions = job->evictions;
    }
  }
  JobShare& share = found->second;
  TenantAccount& tenant = *share.tenant;
  count(tenant, now);
  count(share, now);
  tenant.devices -= share.devices;
  tenant.pending -= share.is_pending ? 1 : 0;
  tenant.money_per_s -= share.money_per_s;
  set_share(tables, *job, share);
  tenant.devices += share.devices;
  if (std::abs(tenant.devices) < kLeastPart) tenant.devices = 0;  // sums of parts are not exact
  tenant.pending += share.is_pending ? 1 : 0;
  tenant.money_per_s = tenant.devices == 0 ? 0 : tenant.money_per_s + share.money_per_s;
  if (share.devices > 0 && share.account == nullptr) share.account = std::make_unique<JobAccount>();
  if (job->attempts > share.attempts || job->evictions > share.evictions) {
    tenant.sums.starts += job->attempts - share.attempts;
    tenant.sums.evictions += job->evictions - share.evictions;
    tenant.is_changed = true;
  }
  share.attempts = job->attempts;
  share.evictions = job->evictions;
  if (!is_over) return;
  if (share.account != nullptr) {
    ended_[id] = *share.account;
    ended_order_.push_back(id);
    if (ended_order_.size() > kEndedJobsKept) {
      ended_.erase(ended_order_.front());
      ended_order_.pop_front();
    }
  }
  jobs_.erase(found);
}

void TenantLedger::add_use(control::JobId id, const JobAccount& use) {
  const auto share = jobs_.find(id);
  if (share == jobs_.end() || share->second.account == nullptr) return;
  JobAccount& account = *share->second.account;
  account.measured_s += use.measured_s;
  account.used_s += use.used_s;
  account.memory_s += use.memory_s;
  share->second.tenant->sums.measured_s += use.measured_s;
  share->second.tenant->sums.used_s += use.used_s;
}

void TenantLedger::advance(Seconds now) {
  for (auto& [name, tenant] : tenants_)
    count(tenant, now);
  for (auto& [id, share] : jobs_)
    if (share.devices > 0) count(share, now);
}

const JobAccount* TenantLedger::job(control::JobId id) const {
  const auto share = jobs_.find(id);
  if (share != jobs_.end()) return share->second.account.get();
  const auto ended = ended_.find(id);
  return ended == ended_.end() ? nullptr : &ended->second;
}

std::vector<std::pair<std::string, std::string>> TenantLedger::take_records(std::int64_t unix_ms) {
  std::vector<std::pair<std::string, std::string>> records;
  for (auto& [name, tenant] : tenants_) {
    if (!std::exchange(tenant.is_changed, false)) continue;
    records.emplace_back(key_of(name), record_of(name, tenant.sums, unix_ms));
  }
  return records;
}

}  // namespace regatta::monitoring
