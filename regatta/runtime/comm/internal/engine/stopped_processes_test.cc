#include "regatta/runtime/comm/internal/engine/stopped_processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace regatta::comm {
namespace {

using testing::ElementsAre;

TEST(StoppedProcesses, FindAStoppedRankOfTheServerUntilItContinues) {
  const pid_t child = fork();
  if (child == 0)
    for (;;)
      pause();
  StoppedProcesses processes({0, getpid(), child});
  processes.refresh(Seconds{1});
  EXPECT_EQ(processes.first(), -1);
  kill(child, SIGSTOP);
  waitpid(child, nullptr, WUNTRACED);
  processes.refresh(Seconds{1.01});
  EXPECT_EQ(processes.first(), -1) << "states are read ten times a second";
  processes.refresh(Seconds{2});
  EXPECT_EQ(processes.first(), 2);
  EXPECT_THAT(processes.by_rank(), ElementsAre(false, false, true));
  kill(child, SIGCONT);
  waitpid(child, nullptr, WCONTINUED);
  processes.refresh(Seconds{3});
  EXPECT_EQ(processes.first(), -1);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace regatta::comm
