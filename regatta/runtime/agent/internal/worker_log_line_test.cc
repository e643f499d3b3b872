#include "regatta/runtime/agent/internal/worker_log_line.h"

#include <gtest/gtest.h>

namespace regatta::agent {
namespace {

TEST(WorkerLogLine, DropsTheTimeStampAndKeepsTheLevelOfALogLine) {
  const WorkerLogLine line = parse_worker_log_line("12:34:56.789 warning coll: rank 3 is stopped");
  EXPECT_EQ(line.level, os::LogLevel::kWarning);
  EXPECT_EQ(line.text, "coll: rank 3 is stopped");
}

TEST(WorkerLogLine, LeavesOtherLinesAsTheyAre) {
  for (const char* text : {"", "Traceback:", "12:34:56.789", "12:34:56.789 notice x", "info: x"}) {
    const WorkerLogLine line = parse_worker_log_line(text);
    EXPECT_EQ(line.level, os::LogLevel::kInfo);
    EXPECT_EQ(line.text, text);
  }
}

}  // namespace
}  // namespace regatta::agent
