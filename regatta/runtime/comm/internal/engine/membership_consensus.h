// comm/internal/engine/membership_consensus.h: ranks that may die at any moment agree on who is
// left. Flooding consensus: in a round every rank states to all others whom it holds for lost, and
// states it again whenever that set grows; a rank decides when all whom it does not hold for lost
// stated the same set as it, and tells its decision, which the others take over and tell on. What
// is agreed on is what MPIX_Comm_agree of ULFM gives: the lost ranks, and whether all others
// consent.
//   steps   2 + (deaths noticed meanwhile), at most one more each
//   wire    (n - 1) (2 + deaths) statements of n / 8 + 48 bytes and a word from each rank
// Whom a rank holds for lost it hears no more, and who hears that it is held for lost is excluded:
// so a rank that was only slow cannot take part in another decision of the same round. Ranks that
// hold each other for lost in two halves (a network cut in two) decide each for its half.
// Sources: Guerraoui and Rodrigues, Introduction to Reliable Distributed Programming, 2006, 5.1;
// Herault et al., Practical scalable consensus for pseudo-synchronous distributed systems, SC'15.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"

namespace regatta::comm {

// What a rank says to all others.
struct MembershipStatement {
  std::uint32_t round = 0;
  bool is_decision = false;
  bool consents = false;   // of a decision: all do
  std::vector<bool> lost;  // by rank
  std::string payload;     // the speaker's own; "" in a decision
};

std::string encode_statement(const MembershipStatement& statement);
// kInvalidInput when it is none of a world of `world_size` ranks.
Result<MembershipStatement> decode_statement(std::string_view bytes, int world_size);

// One rank's part: told what happens, says what to tell the others. Rounds are numbered from 0.
class MembershipConsensus {
 public:
  MembershipConsensus(int rank, int world_size);

  // Enters the first round, or the one after a round that has an outcome. `payload`: for the
  // others.
  void begin(bool consents, std::string payload);
  // That rank is dead or out of reach. The own rank: this one takes no part any more.
  void mark_lost(int rank);
  // States whom this rank holds for lost outside of a round too: they may live, and learn it.
  void announce_lost();
  // What a rank states arrives in the order in which it states it.
  void receive(int from, MembershipStatement statement);
  // For all other ranks, the lost ones too (they may live), in this order.
  std::vector<MembershipStatement> take_statements();
  bool has_statements() const { return !to_state_.empty(); }

  struct Outcome {
    std::vector<bool> lost;  // by rank
    bool all_consent = false;
    std::vector<std::string> payloads;  // by rank; "" of the lost
  };
  // Of the round that was begun last; nothing while it goes on.
  const std::optional<Outcome>& outcome() const { return outcome_; }
  // The rank that told this one that it is held for lost: there will be no outcome.
  std::optional<int> excluded_by() const { return excluded_by_; }
  // The outcome is out of date: somebody in it was lost since, or objects in the next round.
  bool is_outdated() const;
  // Ranks held for lost here, and of the others those that have not entered the round yet.
  const std::vector<bool>& lost() const { return lost_; }
  std::vector<int> silent() const;

 private:
  bool is_lost(int rank) const { return lost_[static_cast<std::size_t>(rank)]; }
  bool is_in_round() const { return has_begun_ && !decision_; }
  void leave(int excluded_by);
  void state_again();
  void state_refusal();
  void settle();
  void decide(std::vector<bool> lost, bool all_consent);
  void complete();

  const int rank_;
  std::vector<bool> lost_;
  std::optional<int> excluded_by_;
  std::uint32_t round_ = 0;  // the one begun last, or the one to begin first
  bool has_begun_ = false;
  bool consents_ = false;
  std::string payload_;
  std::optional<MembershipStatement> decision_;
  std::optional<Outcome> outcome_;
  // By rank: what it stated last in this round, and in later ones.
  std::vector<std::optional<MembershipStatement>> heard_;
  std::vector<std::vector<MembershipStatement>> early_;
  std::vector<MembershipStatement> to_state_;
};

}  // namespace regatta::comm
