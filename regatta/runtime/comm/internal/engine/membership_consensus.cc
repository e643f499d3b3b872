#include "regatta/runtime/comm/internal/engine/membership_consensus.h"

#include <cstring>
#include <utility>

#include "regatta/base/core/result.h"

namespace regatta::comm {
namespace {

constexpr std::size_t kHeadBytes = sizeof(std::uint32_t) + 1;
constexpr unsigned kDecisionBit = 1;
constexpr unsigned kConsentBit = 2;

}  // namespace

// Layout: round u32, flags u8, one bit a rank, payload.
std::string encode_statement(const MembershipStatement& statement) {
  std::string bytes(kHeadBytes + (statement.lost.size() + 7) / 8, '\0');
  std::memcpy(bytes.data(), &statement.round, sizeof statement.round);
  bytes[kHeadBytes - 1] = static_cast<char>((statement.is_decision ? kDecisionBit : 0U) |
                                            (statement.consents ? kConsentBit : 0U));
  for (std::size_t rank = 0; rank < statement.lost.size(); ++rank)
    if (statement.lost[rank]) {
      char& byte = bytes[kHeadBytes + rank / 8];
      byte = static_cast<char>(static_cast<unsigned char>(byte) | 1U << rank % 8);
    }
  return bytes + statement.payload;
}

Result<MembershipStatement> decode_statement(std::string_view bytes, int world_size) {
  const auto ranks = as_index(world_size);
  const std::size_t payload_at = kHeadBytes + (ranks + 7) / 8;
  if (bytes.size() < payload_at) return Error{Code::kInvalidInput, "a statement that is too short"};
  const auto byte_at = [&](std::size_t at) { return static_cast<unsigned char>(bytes[at]); };
  MembershipStatement statement;
  std::memcpy(&statement.round, bytes.data(), sizeof statement.round);
  statement.is_decision = (byte_at(kHeadBytes - 1) & kDecisionBit) != 0;
  statement.consents = (byte_at(kHeadBytes - 1) & kConsentBit) != 0;
  for (std::size_t rank = 0; rank < ranks; ++rank)
    statement.lost.push_back((byte_at(kHeadBytes + rank / 8) >> rank % 8 & 1U) != 0);
  statement.payload = bytes.substr(payload_at);
  return statement;
}

MembershipConsensus::MembershipConsensus(int rank, int world_size)
    : rank_(rank), lost_(as_index(world_size)), stated_(lost_.size()), early_(lost_.size()) {}

void MembershipConsensus::begin(bool consents, std::string payload) {
  REGATTA_CHECK(!has_begun_ || outcome_);
  if (has_begun_) ++round_;
  has_begun_ = true;
  consents_ = consents;
  payload_ = std::move(payload);
  decision_.reset();
  outcome_.reset();
  if (excluded_by_) return;
  restate();
  stated_.assign(stated_.size(), std::nullopt);
  for (std::size_t from = 0; from < early_.size(); ++from)
    for (MembershipStatement& statement : std::exchange(early_[from], {}))
      receive(static_cast<int>(from), std::move(statement));
  settle();
}

void MembershipConsensus::restate() {
  to_send_.push_back({.round = round_,
                      .is_decision = false,
                      .consents = consents_,
                      .lost = lost_,
                      .payload = payload_});
}

void MembershipConsensus::mark_lost(int rank) {
  if (is_lost(rank) || excluded_by_) return;
  if (rank == rank_) return leave(rank);
  lost_[as_index(rank)] = true;
  if (is_in_round()) restate();
  settle();
}

// Tells the others not to wait for this rank, in this round or in the next.
void MembershipConsensus::leave(int excluded_by) {
  excluded_by_ = excluded_by;
  lost_[as_index(rank_)] = true;
  state_refusal();
}

void MembershipConsensus::announce_lost() {
  if (!excluded_by_ && !is_in_round()) state_refusal();
}

// For the round under way, or the one that would be next.
void MembershipConsensus::state_refusal() {
  const std::uint32_t round = is_in_round() || !has_begun_ ? round_ : round_ + 1;
  to_send_.push_back(
      {.round = round, .is_decision = false, .consents = false, .lost = lost_, .payload = ""});
}

void MembershipConsensus::receive(int from, MembershipStatement statement) {
  if (is_lost(from) || excluded_by_ || from == rank_) return;
  if (at(statement.lost, rank_)) return leave(from);
  bool has_grown = false;
  for (std::size_t rank = 0; rank < lost_.size(); ++rank) {
    has_grown |= statement.lost[rank] && !lost_[rank];
    if (statement.lost[rank]) lost_[rank] = true;
  }
  const bool is_early = statement.round > round_ || !has_begun_;
  if (is_early) at(early_, from).push_back(std::move(statement));
  if (is_early || statement.round < round_) {
    if (has_grown && is_in_round()) restate();
    return settle();
  }
  if (statement.is_decision) {
    if (!decision_) decide(std::move(statement.lost), statement.consents);
  } else {
    stated_[as_index(from)] = std::move(statement);
    if (has_grown && is_in_round()) restate();
  }
  settle();
}

// Decides when all ranks that are left state the same.
void MembershipConsensus::settle() {
  if (!has_begun_ || excluded_by_) return;
  if (!decision_) {
    bool all_consent = consents_;
    for (int rank = 0; rank < static_cast<int>(lost_.size()); ++rank) {
      if (rank == rank_ || is_lost(rank)) continue;
      const auto& statement = at(stated_, rank);
      if (!statement || statement->lost != lost_) return;
      all_consent &= statement->consents;
    }
    decide(lost_, all_consent);
  }
  complete();
}

void MembershipConsensus::decide(std::vector<bool> lost, bool all_consent) {
  decision_ = {.round = round_,
               .is_decision = true,
               .consents = all_consent,
               .lost = std::move(lost),
               .payload = ""};
  to_send_.push_back(*decision_);
}

// An adopted decision may come before the payloads of other ranks in it: the outcome waits for
// them.
void MembershipConsensus::complete() {
  if (outcome_) return;
  std::vector<std::string> payloads(lost_.size());
  for (std::size_t rank = 0; rank < lost_.size(); ++rank) {
    if (decision_->lost[rank]) continue;
    if (static_cast<int>(rank) == rank_)
      payloads[rank] = payload_;
    else if (stated_[rank])
      payloads[rank] = stated_[rank]->payload;
    else if (!lost_[rank])
      return;
  }
  outcome_ = {
      .lost = decision_->lost, .all_consent = decision_->consents, .payloads = std::move(payloads)};
}

std::vector<MembershipStatement> MembershipConsensus::consume_statements() {
  return std::exchange(to_send_, {});
}

bool MembershipConsensus::is_outdated() const {
  if (excluded_by_) return true;
  if (!outcome_) return false;
  if (outcome_->lost != lost_) return true;
  for (const auto& statements : early_)
    for (const MembershipStatement& statement : statements)
      if (!statement.consents) return true;
  return false;
}

std::vector<int> MembershipConsensus::silent() const {
  std::vector<int> ranks;
  for (int rank = 0; rank < static_cast<int>(lost_.size()); ++rank)
    if (rank != rank_ && !is_lost(rank) && !at(stated_, rank)) ranks.push_back(rank);
  return ranks;
}

}  // namespace regatta::comm
