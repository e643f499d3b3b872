#include "regatta/platform/api/change_history.h"

#include <gmock/gmock.h>

namespace regatta::api {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

TEST(ChangeHistory, GivesEachKeyOnceWithItsLatestRevision) {
  ChangeHistory history(10, 4);
  history.add(std::vector<store::Change>{{"job/1", 5, "a"}, {"job/2", 6, "b"}, {"job/1", 7, "c"}});
  EXPECT_THAT(*history.since(4), ElementsAre(Pair(6, "job/2"), Pair(7, "job/1")));
  EXPECT_THAT(*history.since(6), ElementsAre(Pair(7, "job/1")));
  EXPECT_THAT(*history.since(7), IsEmpty());
  EXPECT_EQ(history.last(), 7);
}

TEST(ChangeHistory, SaysWhenChangesAreGone) {
  ChangeHistory history(2, 0);
  history.add(std::vector<store::Change>{{"a", 1, ""}, {"b", 2, ""}, {"c", 3, ""}});
  EXPECT_FALSE(history.since(0));
  EXPECT_TRUE(history.since(1));
  EXPECT_FALSE(ChangeHistory(2, 9).since(8));
}

}  // namespace
}  // namespace regatta::api
