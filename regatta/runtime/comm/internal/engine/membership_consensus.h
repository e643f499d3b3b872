// comm/internal/engine/membership_consensus.h: ranks that may die at any moment agree on the ranks
// that are left. Flooding consensus: in a round every rank states to all others which ranks it
// considers lost, and states it again whenever that set grows. A rank decides when all ranks that
// it does not consider lost have stated the same set, and states its decision, which the others
// adopt and pass on. The outcome is that of MPIX_Comm_agree of ULFM: the lost ranks, and whether
// all others consent.
//   steps   2 + (deaths noticed meanwhile), at most one more each
//   wire    (n - 1) (2 + deaths) statements of n / 8 + 48 bytes and a payload from each rank
// A rank ignores statements from ranks that it considers lost, and a rank that learns that it is
// considered lost is excluded: so a rank that was only slow takes no part in another decision of
// the same round. In a network that is cut in two, each half decides for itself. Sources: Guerraoui
// and Rodrigues, Introduction to Reliable Distributed Programming, 2006, 5.1; Herault et al.,
// Practical scalable consensus for pseudo-synchronous distributed systems, SC'15.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"

namespace regatta::comm {

// The statement of a rank to all others.
struct MembershipStatement {
  std::uint32_t round = 0;
  bool is_decision = false;
  bool consents = false;   // of a decision: all do
  std::vector<bool> lost;  // by rank
  std::string payload;     // of the rank that states it; "" in a decision
};

std::string encode_statement(const MembershipStatement& statement);
// kInvalidInput: it is no statement of a world of `world_size` ranks.
Result<MembershipStatement> decode_statement(std::string_view bytes, int world_size);

// The part of one rank. Events go in, the statements for the other ranks come out. Rounds are
// numbered from 0. Pure.
class MembershipConsensus {
 public:
  MembershipConsensus(int rank, int world_size);

  // Enters the first round, or the one after a round that has an outcome. The others get `payload`.
  void begin(bool consents, std::string payload);
  // That rank is dead or out of reach; if it is this rank, it takes no part any more.
  void mark_lost(int rank);
  // States the lost ranks outside of a round too: those that live learn that they are excluded.
  void announce_lost();
  // The statements of one rank must arrive in the order in which it made them.
  void receive(int from, MembershipStatement statement);
  // The statements for all other ranks, the lost ones too (they may live), in this order.
  std::vector<MembershipStatement> consume_statements();
  bool has_statements() const { return !to_send_.empty(); }

  struct Outcome {
    std::vector<bool> lost;  // by rank
    bool all_consent = false;
    std::vector<std::string> payloads;  // by rank; "" of the lost
  };
  // The outcome of the last round; nothing while it goes on.
  const std::optional<Outcome>& outcome() const { return outcome_; }
  // The rank that considers this one lost: there will be no outcome.
  std::optional<int> excluded_by() const { return excluded_by_; }
  // The outcome is void: a rank in it was lost since, or objects in the next round.
  bool is_outdated() const;
  // By rank: this rank considers it lost.
  const std::vector<bool>& lost() const { return lost_; }
  // The other ranks that have not entered the round yet.
  std::vector<int> silent() const;

 private:
  bool is_lost(int rank) const { return at(lost_, rank); }
  bool is_in_round() const { return has_begun_ && !decision_; }
  void leave(int excluded_by);
  void restate();
  void state_refusal();
  void settle();
  void decide(std::vector<bool> lost, bool all_consent);
  void complete();

  const int rank_;
  std::vector<bool> lost_;
  std::optional<int> excluded_by_;
  std::uint32_t round_ = 0;  // the last one, or the first before begin()
  bool has_begun_ = false;
  bool consents_ = false;
  std::string payload_;
  std::optional<MembershipStatement> decision_;
  std::optional<Outcome> outcome_;
  std::vector<std::optional<MembershipStatement>> stated_;  // by rank: its last of this round
  std::vector<std::vector<MembershipStatement>> early_;     // by rank: its own of later rounds
  std::vector<MembershipStatement> to_send_;
};

}  // namespace regatta::comm
