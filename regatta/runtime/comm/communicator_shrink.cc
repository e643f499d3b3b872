// Communicators that lose ranks and get new ones.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "regatta/base/core/stats.h"
#include "regatta/runtime/comm/internal/communicator_impl.h"
#include "regatta/runtime/comm/internal/engine/membership.h"
#include "regatta/runtime/comm/internal/group_scope.h"
#include "regatta/runtime/comm/internal/transport/bootstrap.h"

namespace regatta::comm {
namespace {

// Attempts that fail although no rank was lost.
constexpr int kVainAttemptsMax = 3;
// Connections without a discovered path by then leave from any port: survivors wait.
constexpr Seconds kPathDiscoveryTime{0.2};

// The same on all ranks that have the same endpoints. No other process knows the endpoints, which
// hold random names.
std::uint64_t rendezvous_id_of(const std::vector<std::string>& endpoints) {
  std::uint64_t hash = kFnv1aBasis;
  for (const std::string& endpoint : endpoints)
    hash = fnv1a(endpoint, hash);
  return hash;
}

// The plan of a rank of the old world among the remaining ones.
RendezvousPlan plan_rendezvous(const MembershipConsensus::Outcome& outcome, int old_rank) {
  RendezvousPlan plan;
  for (std::size_t rank = 0; rank < outcome.lost.size(); ++rank) {
    if (outcome.lost[rank]) continue;
    if (static_cast<int>(rank) == old_rank) plan.rank = static_cast<int>(plan.endpoints.size());
    plan.endpoints.push_back(outcome.payloads[rank]);
  }
  plan.rendezvous_id = rendezvous_id_of(plan.endpoints);
  plan.path_discovery_time = kPathDiscoveryTime;
  return plan;
}

// The ranks that remained after the first outcome and were lost by the second one, numbered among
// those that remained.
std::vector<int> lost_since(const MembershipConsensus::Outcome& first,
                            const MembershipConsensus::Outcome& second) {
  std::vector<int> ranks;
  int new_rank = 0;
  for (std::size_t rank = 0; rank < first.lost.size(); ++rank) {
    if (first.lost[rank]) continue;
    if (second.lost[rank]) ranks.push_back(new_rank);
    ++new_rank;
  }
  return ranks;
}

CommunicatorOptions options_of_rest(CommunicatorOptions options, const std::vector<bool>& lost) {
  std::vector<std::string> names;
  for (std::size_t rank = 0; rank < options.rank_names.size(); ++rank)
    if (rank >= lost.size() || !lost[rank]) names.push_back(std::move(options.rank_names[rank]));
  options.rank_names = std::move(names);
  return options;
}

}  // namespace

Status Communicator::Impl::require_world(const std::string& call) const {
  if (world != nullptr && group->id == kWorldGroup) return {};
  return Error{Code::kInvalidInput, call +
                                        ": this communicator comes from split(): call it on the "
                                        "one that was split, then split the new one"};
}

Result<std::unique_ptr<Communicator::Impl>> Communicator::Impl::try_shrink() {
  Membership& membership = world->membership();
  const Seconds timeout = rendezvous_timeout(*options);
  const std::string host = name_of(world->rank(), *options);
  REGATTA_TRY(listen_endpoint, open_listen_endpoint(host, world->size() > 1, *options));
  REGATTA_TRY(outcome, membership.agree(true, listen_endpoint.endpoint, timeout));
  const auto is_cancelled = [&] { return membership.is_outdated(); };
  const CommunicatorOptions rest = options_of_rest(*options, outcome.lost);
  RendezvousPlan plan = plan_rendezvous(outcome, world->rank());
  plan.is_cancelled = is_cancelled;
  const CommunicatorOptions fitted = fit_connections(rest, static_cast<int>(plan.endpoints.size()));
  auto made = run_rendezvous(std::move(listen_endpoint), plan, fitted)
                  .and_then([&](RendezvousResult rendezvous) {
                    return create(plan.rank, std::move(rendezvous), fitted, &world_config->network);
                  });
  if (made) (*made)->options = std::make_shared<const CommunicatorOptions>(rest);
  // Another rank may have been lost meanwhile: either all ranks accept the new world or none does.
  const bool is_good = made.has_value() && !is_cancelled();
  REGATTA_TRY(verdict, membership.agree(is_good, "", timeout + options->peer_timeout));
  if (verdict.all_consent && verdict.lost == outcome.lost) return made;
  if (verdict.lost != outcome.lost) {
    // A rank that is only slow may believe in the new world: it must not continue in it alone.
    if (made) (*made)->world->membership().exclude(lost_since(outcome, verdict));
    return std::unique_ptr<Impl>();
  }
  if (!made) return made.error();
  return Error{Code::kUnavailable, "shrink: another rank could not connect to all remaining ranks"};
}

Result<Communicator> Communicator::shrink() {
  REGATTA_TRY_DO(GroupScope::refuse("shrink"));
  REGATTA_TRY_DO(impl_->require_world("shrink"));
  if (impl_->is_shrunk)
    return Error{Code::kConflict, "shrink: this communicator was shrunk: use the new one"};
  impl_->world->stop();
  for (int vain = 0;;) {
    auto made = impl_->try_shrink();
    if (made && *made != nullptr) {
      impl_->is_shrunk = true;
      return Communicator(std::move(*made));
    }
    if (made) continue;
    if (++vain == kVainAttemptsMax) {
      impl_->world->membership().leave();
      return made.error();
    }
  }
}

Result<Communicator> Communicator::grow(int world_size, const Exchange& exchange) {
  REGATTA_TRY_DO(GroupScope::refuse("grow"));
  REGATTA_TRY_DO(impl_->require_world("grow"));
  if (world_size < this->world_size())
    return Error{Code::kInvalidInput, "grow: a world of " + std::to_string(world_size) +
                                          " ranks is smaller than the " +
                                          std::to_string(this->world_size()) + " ranks there are"};
  auto grown = connect(rank(), world_size, exchange, *impl_->options);
  // Either all members accept it or none does.
  std::int32_t is_good = grown ? 1 : 0;
  REGATTA_TRY_DO(all_reduce(&is_good, &is_good, 1, DataType::kI32, ReduceOp::kMin).wait());
  if (!grown || is_good == 1) return grown;
  return Error{Code::kUnavailable, "grow: another member could not connect to all ranks"};
}

}  // namespace regatta::comm
