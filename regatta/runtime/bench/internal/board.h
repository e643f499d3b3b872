// bench/internal/board.h: the memory that the ranks of one run and their launcher share: what to
// do, how the ranks find each other, and what came out. It is handed to a rank as its standard
// input.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/runtime/bench/own_ranks.h"

namespace regatta::bench {

inline constexpr std::size_t kTextMax = 1024;

struct Board {
  struct Cell {
    int batches = 0;
    double batches_s[kBatchesMax];
    long long wrong = 0;
    double error = 0;
    comm::compress::Kind kind = comm::compress::Kind::kNone;
  };
  struct Seat {
    char server[kTextMax];
    char address[kTextMax];
    double link_rate_Bps;
    char endpoint[kTextMax];
    char error[kTextMax];
  };

  // What is timed: private buffers, those of Communicator::allocate(), private ones compressed.
  enum Way : std::size_t { kPrivate, kShared, kCompressed, kWays };

  // Written by the launcher.
  Op op;
  int ranks;
  int batches;
  comm::Setting forced;
  comm::Measure measure;
  char tuning[kTuningMax];
  comm::compress::Kind compression;
  bool has_shared;  // kShared is timed too
  std::size_t size_count;
  std::size_t sizes[kSizesMax];
  // By rank: the first three written by the launcher, the others by the rank.
  Seat seats[kRanksMax];
  std::atomic<int> given;  // endpoints
  // Where all endpoints are given, written by the launcher: by rank and peer.
  bool plans_ports;
  std::atomic<bool> is_planned;
  int ways;
  int connections;  // that are planned of each pair
  std::uint16_t ports[kRanksMax][kRanksMax][kPortsMax];
  Cell cells[kWays][kSizesMax];  // by Way and size; written by rank 0
  // What rank 0 chose for private buffers: the text of a tuning file, empty where it is longer.
  char choices[kTuningMax];
};

// Copies what fits; the rest of the place is zero already.
template <std::size_t size>
void put_text(char (&place)[size], const std::string& text) {
  std::memcpy(place, text.data(), std::min(text.size(), size - 1));
}

inline constexpr Seconds kMeetingLimit{30};  // until all ranks have given their endpoints

// The endpoints of all ranks.
inline std::vector<std::string> endpoints_of(const Board& board) {
  std::vector<std::string> texts;
  for (int i = 0; i < board.ranks; ++i)
    texts.emplace_back(board.seats[i].endpoint);
  return texts;
}

// The work of one rank on a board of a launcher; its error stands on the board too.
Status be_rank(Board& board, int rank);

}  // namespace regatta::bench
