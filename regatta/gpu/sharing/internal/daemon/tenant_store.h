// sharing/internal/daemon/tenant_store.h: the ledger of all tenants and clients: admits them,
// leases memory to them, calls spare memory back and takes back all that a dead client had. Every
// change survives a SIGKILL of the daemon at any instruction (state.h). No sockets and no clock;
// one thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/gpu/sharing/internal/daemon/process_id.h"
#include "regatta/gpu/sharing/internal/daemon/shared_page.h"
#include "regatta/gpu/sharing/internal/ledger/page_layout.h"
#include "regatta/gpu/sharing/internal/policy/share.h"
#include "regatta/gpu/sharing/state.h"

namespace regatta::sharing {

// A tenant can take at most these, so that others are not shut out.
constexpr int kClientsPerTenantMax = kClientsMax / 4;

struct TenantLimits {
  std::string name;
  std::array<Bytes, kDevicesMax> memory{};
  unsigned compute_ppm = REGATTA_WHOLE_PPM;
  unsigned weight = 1;
  bool is_high_priority = false;
  bool is_open_on_fault = false;  // its processes go on while no daemon can be asked
  // Its memory goes to the host while others work; chosen once, when the tenant is made.
  bool is_overcommitted = false;
  unsigned lease_s = 0;  // of such a tenant: so long it has the device alone while it works
};

class TenantStore {
 public:
  // `capacity` is what each device has, 0 where that is not known. Tenants are told `socket`,
  // and whether their launches go on while no daemon answers.
  static Result<TenantStore> open(MappedState state, std::string socket,
                                  std::vector<Bytes> capacity, bool opens_when_lost = true);

  // What tenants may have of the host for memory that leaves the devices; 0, as at first: nothing.
  void set_host_memory(Bytes bytes) { host_memory_ = bytes; }
  Bytes host_memory() const { return host_memory_; }

  const StateFile& state() const { return *state_; }
  const std::string& folder() const { return state_.folder(); }
  int device_count() const { return static_cast<int>(capacity_.size()); }
  const std::vector<Bytes>& capacity() const { return capacity_; }
  // The same of one device.
  std::uint64_t whole(int device) const {
    return static_cast<std::uint64_t>(capacity_[static_cast<std::size_t>(device)].value);
  }
  std::string tenant_name(int tenant) const { return state_->tenants[tenant].name; }

  // kInvalidInput when the limits are wrong or do not fit beside those of the others; kConflict
  // when there is one of this name, kExhausted when there are too many.
  Result<int> add_tenant(const TenantLimits& limits);
  Status set_limits(int tenant, const TenantLimits& limits);
  TenantLimits limits(int tenant) const;
  std::optional<int> find_tenant(std::string_view name) const;
  std::optional<int> find_tenant_of(const unsigned char (&token)[16]) const;
  void remove_tenant(int tenant);
  bool has_clients(int tenant) const;
  // What the tenant asks of a part of time, as one without work.
  regatta_share_request share_request(int tenant) const;
  regatta_share_policy policy() const;
  const std::vector<int>& clients_of(int tenant) const { return clients_of_[tenant]; }
  // The descriptor of the tenant's page that its processes inherit.
  int tenant_page(int tenant) const { return tenant_pages_[tenant].fd(); }

  // Devices, a bit for each, that take no new tenant and give no more memory; what is spare there
  // is called back. Lasts until it is undone, whatever happens to the daemon and the machine.
  Status set_drained(std::uint32_t devices);
  std::uint32_t drained() const { return drained_; }
  bool is_drained(int device) const { return (drained_ >> device & 1U) != 0; }
  static Error drained_error(int device);
  // The tenants that may have, or have, memory of the device.
  std::vector<int> tenants_on(int device) const;

  Status set_policy(regatta_share_policy policy);
  // Of the device's time, under the policy; a tenant is present when it has a process.
  unsigned part_ppm(int tenant) const;

  std::optional<int> find_client(ProcessId process) const;
  Result<int> add_client(int tenant, ProcessId process);
  void remove_client(int client);  // takes back all it had
  // Makes the client's lease counters and returns their page; the descriptor is for the client.
  Result<os::UniqueFd> create_client_page(int client);
  // The page of a client that an earlier daemon made: finishes what that one left half done.
  Status adopt_client_page(int client, os::UniqueFd page);
  bool has_client_page(int client) const { return client_page(client) != nullptr; }

  // Puts at least `least` more into the client's lease counter, calling back what others of its
  // tenant have spare; false when that would exceed the quota.
  bool lease(int client, int device, std::uint64_t least);

  // Of a tenant whose memory may leave the device, all below; tenant_store_overcommit.cc. What a
  // client has that can be moved counts against the quota as leases do, wherever it is. False when
  // that would be exceeded, or what is left of the device could not hold it.
  bool set_swappable(int client, int device, std::uint64_t bytes);
  std::uint64_t swappable(int client, int device) const {
    return swappable_[static_cast<std::size_t>(client)][static_cast<std::size_t>(device)];
  }
  std::uint64_t tenant_swappable(int tenant, int device) const;
  bool is_overcommitted(int tenant) const {
    return (state_->tenants[tenant].flags & kOvercommit) != 0;
  }
  // What a client has leased there, which stays unless its process leaves as a whole.
  std::uint64_t unswappable_bytes(int client, int device) const;
  // Tenants whose processes can leave a device as a whole: what stays there otherwise comes and
  // goes, too.
  void set_checkpointable(int tenant, int device, bool leaves) {
    is_checkpointable_[tenant][device] = leaves;
  }
  bool is_checkpointable(int tenant, int device) const {
    return is_checkpointable_[tenant][device];
  }
  // What has to be on the device for the tenant to work, and can leave it.
  std::uint64_t demand_of(int tenant, int device) const;
  // What is left of a device for memory that can leave it.
  std::uint64_t capacity_for_swappable(int device) const;
  // Whether `least` bytes more that the tenant wants beside its swappable ones leave each tenant
  // the room to come in.
  bool fits_unswappable(int tenant, int device, std::uint64_t least) const;
  // Whether they have it when this one's processes cannot leave any more.
  bool may_pin(int tenant);
  // Calls back what such tenants have leased and do not use.
  void recall_spare(int device);
  // Where the process is as a whole; null for one without lease counters.
  regatta_process* process(int client) const {
    return has_client_page(client) ? &client_page(client)->process : nullptr;
  }
  // What the daemon and the client say of its memory there; null likewise.
  regatta_residency_state* residency(int client, int device) const {
    return has_client_page(client) ? &client_page(client)->residency[device] : nullptr;
  }

  // What the tenant's page says of its turns on the device; null for a tenant that is not there.
  regatta_turn* turn(int tenant, int device) const {
    auto* page = tenant_pages_[tenant].as<regatta_tenant_page>();
    return page == nullptr ? nullptr : &page->turns[device];
  }
  // What its processes may give to the engines of the device; null likewise.
  unsigned long long* rates(int tenant, int device) const {
    auto* page = tenant_pages_[tenant].as<regatta_tenant_page>();
    return page == nullptr ? nullptr : page->rates[device];
  }
  // What the client says that it gave to them; null for one without lease counters.
  regatta_engine_usage* engine_usage(int client, int device) const {
    return has_client_page(client) ? client_page(client)->engine_usage[device] : nullptr;
  }
  // What the client says that it does there; null for one without lease counters.
  const regatta_work* work(int client, int device) const {
    return has_client_page(client) ? &client_page(client)->works[device] : nullptr;
  }

  // What a tenant or a client has on a device, and what of that is spare.
  struct Holding {
    std::uint64_t leased = 0;
    std::uint64_t spare = 0;
  };
  Holding holding(int client, int device) const;
  Holding tenant_holding(int tenant, int device) const;

 private:
  TenantStore(MappedState state, std::string socket, std::vector<Bytes> capacity);
  Status check_limits(const TenantLimits& limits, std::optional<int> self) const;
  Status check_drained(const TenantLimits& limits, std::optional<int> self) const;
  Status check_overcommit(const TenantLimits& limits, std::optional<int> self) const;
  std::uint64_t room_on(int device, const TenantLimits& limits, std::optional<int> self) const;
  std::uint64_t unswappable_rest(int tenant, int device) const;
  void adopt_swappable(int client);
  void drop_swappable(int client);
  std::uint64_t lease_size(int client, int device, std::uint64_t least);
  Status load_drained();
  Result<SharedPage> make_tenant_page(int tenant) const;
  void publish(int tenant);
  void publish_parts();
  regatta_client_page* client_page(int client) const {
    return client_pages_[client].as<regatta_client_page>();
  }
  regatta_account& account(int tenant, int device) { return accounts_[tenant][device]; }
  // Changes a lease and its lease counter together by what `difference` makes of the spare bytes.
  template <typename F>
  std::int64_t change(int client, int device, F&& difference);
  void settle(int client, int device);
  void recall(int tenant, int device, int except, std::uint64_t wanted);

  MappedState state_;
  std::string socket_;
  std::vector<Bytes> capacity_;
  bool opens_when_lost_ = true;
  std::vector<std::array<regatta_account, kDevicesMax>> accounts_;
  std::vector<std::vector<int>> clients_of_;  // of each tenant
  std::vector<SharedPage> tenant_pages_;
  std::vector<SharedPage> client_pages_;
  std::unordered_map<pid_t, int> client_of_;
  std::vector<std::array<std::uint64_t, kDevicesMax>> swappable_;  // of each client
  std::vector<std::array<bool, kDevicesMax>> is_checkpointable_;   // of each tenant
  Bytes host_memory_;
  std::uint32_t drained_ = 0;
  int next_free_ = 0;  // where to look for a free record first
};

}  // namespace regatta::sharing
