#include "regatta/base/os/log.h"

#include <cstdlib>

#include <gtest/gtest.h>
#include <unistd.h>

namespace regatta::os {
namespace {

// In a process of its own: the variable is read once, at the first line.
[[noreturn]] void log_one_line_of_each_level(const char* wanted) {
  ::setenv("REGATTA_LOG", wanted, 1);
  log(LogLevel::kDebug, "of debug");
  log_info("of info");
  log_error("of error");
  ::_exit(0);
}

TEST(Log, WritesTheLevelAndTheMessage) {
  EXPECT_EXIT(log_one_line_of_each_level("error"), testing::ExitedWithCode(0), "error of error");
}

TEST(Log, AWordThatIsNoLevelDoesNotHideErrors) {
  EXPECT_EXIT(log_one_line_of_each_level("verbose"), testing::ExitedWithCode(0),
              "info of info\n.*error of error");
}

TEST(Log, OffHidesEverything) {
  EXPECT_EXIT(log_one_line_of_each_level("off"), testing::ExitedWithCode(0), "^$");
}

}  // namespace
}  // namespace regatta::os
