#include "regatta/gpu/sharing/internal/daemon/client_requests.h"

namespace regatta::sharing {
namespace {

using Admission = ResidencyManager::Admission;

ReplyStatus granted(bool is_granted) {
  return is_granted ? ReplyStatus::kGranted : ReplyStatus::kRefused;
}

ReplyStatus status_of(Admission admission) {
  if (admission == Admission::kNow) return ReplyStatus::kGranted;
  return admission == Admission::kLater ? ReplyStatus::kRetryLater : ReplyStatus::kRefused;
}

ReplyStatus lease(DaemonParts& parts, int client, int device, std::uint64_t bytes) {
  const auto admission = parts.residency_manager.admit(parts.tenant_store, client, device, bytes);
  if (admission != Admission::kNow) return status_of(admission);
  return granted(parts.tenant_store.leases().lease(client, device, bytes));
}

// The client's page shows what it may have on the device before the reply is sent.
ReplyStatus set_swappable(DaemonParts& parts, int client, int device, std::uint64_t bytes) {
  parts.residency_manager.update_checkpointable(parts.tenant_store, device);
  if (!parts.tenant_store.swappable().set(client, device, bytes)) return ReplyStatus::kRefused;
  parts.residency_manager.mark_changed();
  parts.residency_manager.step(parts.tenant_store, parts.turn_manager);
  return ReplyStatus::kGranted;
}

ReplyStatus open_session(DaemonParts& parts, int client, int device, std::uint64_t engine) {
  if (engine != REGATTA_ENCODE && engine != REGATTA_DECODE) return ReplyStatus::kRefused;
  return granted(parts.engines.open_session(parts.tenant_store, client, device,
                                            static_cast<regatta_engine>(engine)));
}

}  // namespace

ClientReply answer_client_request(DaemonParts& parts, int client, const ClientRequest& request) {
  if (request.type == RequestType::kPin)
    return {.status = status_of(parts.residency_manager.pin(parts.tenant_store, client))};
  const TenantStore& store = parts.tenant_store;
  if (request.device >= static_cast<unsigned>(store.device_count()))
    return {.status = ReplyStatus::kRefused};
  // No device has as much, and sums with it would wrap around in what others wait for.
  const bool is_memory = request.type != RequestType::kOpenSession;
  if (is_memory && request.least > REGATTA_MEMORY_MAX) return {.status = ReplyStatus::kRefused};
  const int device = static_cast<int>(request.device);
  const bool is_swappable = request.type == RequestType::kLeaseSwappable;
  const bool is_more = !is_swappable || request.least > store.swappable().bytes(client, device);
  if (is_more && store.drained().contains(device)) return failed(DrainedDevices::error(device));
  if (is_swappable) return {.status = set_swappable(parts, client, device, request.least)};
  if (request.type == RequestType::kOpenSession)
    return {.status = open_session(parts, client, device, request.least)};
  return {.status = lease(parts, client, device, request.least)};
}

}  // namespace regatta::sharing
