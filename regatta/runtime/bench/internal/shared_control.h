// bench/internal/shared_control.h: the memory that the ranks of one run and their launcher share:
// the task, the endpoints of the ranks, and the results. A rank gets it as its standard input.
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
#include "regatta/runtime/bench/regatta_ranks.h"

namespace regatta::bench {

inline constexpr std::size_t kTextMax = 1024;

struct SharedControl {
  struct Cell {
    int batches = 0;
    double batches_s[kBatchesMax];
    long long wrong = 0;
    double error = 0;
    comm::compress::CompressionKind kind = comm::compress::CompressionKind::kNone;
  };
  struct RankSlot {
    char server[kTextMax];
    char address[kTextMax];
    double link_rate_Bps;
    char endpoint[kTextMax];
    char error[kTextMax];
  };

  // The timed variants: private buffers, those of Communicator::allocate(), private ones
  // compressed.
  enum Variant : std::size_t { kPrivate, kShared, kCompressed, kVariants };

  // Written by the launcher.
  CollectiveOp op;
  int ranks;
  int batches;
  comm::Setting forced;
  comm::Measure measure;
  char tuning[kTuningMax];
  comm::compress::CompressionKind compression;
  bool has_shared;  // kShared is timed too
  std::size_t size_count;
  std::size_t sizes[kSizesMax];
  // By rank: the first three written by the launcher, the others by the rank.
  RankSlot slots[kRanksMax];
  std::atomic<int> given;  // endpoints
  // By rank and peer; the launcher writes them when all endpoints are given.
  bool plans_ports;
  std::atomic<bool> is_planned;
  int paths;
  int connections;  // of each pair in the plan
  std::uint16_t ports[kRanksMax][kRanksMax][kPortsMax];
  Cell cells[kVariants][kSizesMax];  // by Variant and size; written by rank 0
  // Rank 0's choices for private buffers: the text of a tuning file, empty where it is longer.
  char choices[kTuningMax];
};

// Copies as much as fits; the rest of the place is zero already.
template <std::size_t size>
void put_text(char (&place)[size], const std::string& text) {
  std::memcpy(place, text.data(), std::min(text.size(), size - 1));
}

inline constexpr Seconds kRendezvousLimit{30};  // until all ranks have given their endpoints

// The endpoints of all ranks.
inline std::vector<std::string> endpoints_of(const SharedControl& control) {
  std::vector<std::string> texts;
  for (int i = 0; i < control.ranks; ++i)
    texts.emplace_back(control.slots[i].endpoint);
  return texts;
}

// The work of one rank on the shared control of a launcher; its error stands in the shared control
// too.
Status run_rank(SharedControl& control, int rank);

}  // namespace regatta::bench
