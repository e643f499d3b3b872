// comm/open_operations.h: what the views of several ranks say together. Pure: the views may come
// from running processes or from flight files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "regatta/runtime/comm/internal/watch/verdict.h"
#include "regatta/runtime/comm/snapshot.h"

namespace regatta::comm {

// What it means that a rank of the world has no view.
enum class MissingView : std::uint8_t {
  kElsewhere,  // it may run on another machine: nothing is said about it
  kLeftNoFile  // every rank whose process lives to see the failure leaves one
};

// The oldest collective of one communicator that some ranks are in and others have not ended.
struct OpenOperation {
  std::uint64_t world = 0;
  std::uint64_t group = 0;
  std::uint64_t sequence = 0;
  std::uint64_t call = 0;  // of the first rank that is in it
  std::uint64_t bytes = 0;
  Seconds progressed;  // the last progress that a rank made in it
  Verdict verdict;
};

// One for each communicator with such an operation. An operation that goes its way is open as well:
// what tells it from one that stands still is `progressed`.
std::vector<OpenOperation> find_open_operations(const std::vector<RankView>& views,
                                                MissingView missing);

// What it says of ranks of that view's world that left no flight file.
std::string describe_missing_files(const std::vector<int>& ranks, const RankView& view);

}  // namespace regatta::comm
