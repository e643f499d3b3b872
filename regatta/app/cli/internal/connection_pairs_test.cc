#include "regatta/app/cli/internal/connection_pairs.h"

#include <gtest/gtest.h>

namespace regatta::cli {
namespace {

struct End {
  Seconds first;
};

const probe::Connection kHere{.local = {.address = {10, 0, 0, 1}, .port = 20001},
                              .remote = {.address = {10, 0, 0, 2}, .port = 80}};

TEST(ConnectionPairs, OfPortsThatAreUsedAgainAreThoseOfOneTime) {
  const End first{{1.0}}, second{{5.0}}, first_there{{1.4}}, second_there{{5.2}};
  ConnectionPairs<End> ends;
  ends.add(kHere, first);
  ends.add(kHere, second);
  ends.add(reversed(kHere), first_there);
  ends.add(reversed(kHere), second_there);
  EXPECT_EQ(ends.paired_end(kHere, first), &first_there);
  EXPECT_EQ(ends.paired_end(kHere, second), &second_there);
  EXPECT_EQ(ends.paired_end(reversed(kHere), first_there), &first);
  EXPECT_EQ(ends.paired_end(reversed(kHere), second_there), &second);
}

TEST(ConnectionPairs, BelongToNobodyElseWhereTheOtherWasNotSeen) {
  const End first{{1.0}}, second{{5.0}}, second_there{{5.2}};
  ConnectionPairs<End> ends;
  ends.add(kHere, first);
  EXPECT_EQ(ends.paired_end(kHere, first), nullptr);
  ends.add(kHere, second);
  ends.add(reversed(kHere), second_there);
  EXPECT_EQ(ends.paired_end(kHere, first), nullptr);
  EXPECT_EQ(ends.paired_end(kHere, second), &second_there);
}

}  // namespace
}  // namespace regatta::cli
