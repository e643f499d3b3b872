// collective/internal/bundle.h: pieces of memory that travel as one message, and steps that end
// as one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "regatta/model/collective/schedule.h"

namespace regatta::collective {

// `Byte` is std::byte or const std::byte. Pieces that lie one after the other become one.
template <typename Byte>
class Pieces {
 public:
  struct Piece {
    Byte* at;
    std::size_t bytes;
  };

  void add(Byte* at, std::size_t bytes) {
    total_ += bytes;
    if (!all_.empty() && all_.back().at + all_.back().bytes == at)
      all_.back().bytes += bytes;
    else
      all_.push_back({at, bytes});
  }
  const std::vector<Piece>& all() const { return all_; }
  std::size_t bytes() const { return total_; }

 private:
  std::vector<Piece> all_;
  std::size_t total_ = 0;
};
using SourcePieces = Pieces<const std::byte>;
using TargetPieces = Pieces<std::byte>;

// A step that does nothing and ends after all of `steps`.
inline StepIndex join(CollectiveSchedule& schedule, const std::vector<StepIndex>& steps) {
  const StepIndex index = schedule.add({.kind = StepKind::kCopy});
  for (const StepIndex earlier : steps)
    schedule.wait_for(index, earlier);
  return index;
}

struct MessageAddress {
  int peer;
  std::uint32_t tag;
};

// Sends the pieces after `after`, several through a copy. Gives the send.
inline StepIndex send_bundle(CollectiveSchedule& schedule, const MessageAddress& to,
                             const SourcePieces& pieces, const std::vector<StepIndex>& after) {
  Step send{.kind = StepKind::kSend, .peer = to.peer, .tag = to.tag, .bytes = pieces.bytes()};
  std::vector<StepIndex> ready = after;
  if (pieces.all().size() == 1) {
    send.src = pieces.all().front().at;
  } else if (pieces.bytes() > 0) {
    std::byte* next = schedule.scratch(pieces.bytes());
    send.src = next;
    ready.clear();
    for (const auto& piece : pieces.all()) {
      ready.push_back(schedule.add(
          {.kind = StepKind::kCopy, .dst = next, .src = piece.at, .bytes = piece.bytes}));
      for (const StepIndex earlier : after)
        schedule.wait_for(ready.back(), earlier);
      next += piece.bytes;
    }
  }
  const StepIndex sent = schedule.add(send);
  for (const StepIndex earlier : ready)
    schedule.wait_for(sent, earlier);
  return sent;
}

// Receives the pieces after `after`, several through a copy. Gives the steps that end it.
inline std::vector<StepIndex> receive_bundle(CollectiveSchedule& schedule,
                                             const MessageAddress& from, const TargetPieces& pieces,
                                             const std::vector<StepIndex>& after) {
  const bool is_whole = pieces.all().size() == 1;
  std::byte* next = is_whole ? pieces.all().front().at : schedule.scratch(pieces.bytes());
  const StepIndex received = schedule.add({.kind = StepKind::kReceive,
                                           .peer = from.peer,
                                           .tag = from.tag,
                                           .dst = next,
                                           .bytes = pieces.bytes()});
  for (const StepIndex earlier : after)
    schedule.wait_for(received, earlier);
  if (is_whole) return {received};
  std::vector<StepIndex> copies;
  for (const auto& piece : pieces.all()) {
    copies.push_back(schedule.add(
        {.kind = StepKind::kCopy, .dst = piece.at, .src = next, .bytes = piece.bytes}, {received}));
    next += piece.bytes;
  }
  return copies;
}

}  // namespace regatta::collective
