#include <cerrno>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "regatta/base/os/unique_fd.h"

namespace regatta::os {
namespace {

rlimit current() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return limit;
}

class Descriptors : public testing::Test {
 protected:
  void TearDown() override { setrlimit(RLIMIT_NOFILE, &before_); }
  const rlimit before_ = current();
};

TEST_F(Descriptors, RaiseTheSoftLimitNoFurtherThanNeeded) {
  if (before_.rlim_max < 400) GTEST_SKIP() << "the hard limit is too low";
  rlimit low = before_;
  low.rlim_cur = 100;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  ASSERT_TRUE(raise_descriptor_limit(20));
  EXPECT_EQ(current().rlim_cur, 100U);
  ASSERT_TRUE(raise_descriptor_limit(300));
  EXPECT_GE(current().rlim_cur, 300U);
  EXPECT_LT(current().rlim_cur, 400U);
}

// The status of a child that closes them from `first` on: 0, or the first line that does not hold.
int status_of_child_that_closes_from(int first, int low, int high) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (!close_descriptors_from(first)) ::_exit(1);
    if (::fcntl(low, F_GETFD) < 0) ::_exit(2);
    ::_exit(::fcntl(high, F_GETFD) < 0 && errno == EBADF ? 0 : 3);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(Descriptors, CloseFromOneOnAndNoneBelowIt) {
  const UniqueFd low(::open("/dev/null", O_RDONLY));
  const UniqueFd high(::fcntl(low.get(), F_DUPFD, low.get() + 20));
  ASSERT_TRUE(low && high);
  EXPECT_EQ(status_of_child_that_closes_from(low.get() + 1, low.get(), high.get()), 0);
  EXPECT_EQ(status_of_child_that_closes_from(high.get(), low.get(), high.get()), 0);
  EXPECT_EQ(status_of_child_that_closes_from(high.get() + 1, low.get(), high.get()), 3)
      << "it is below";
}

TEST_F(Descriptors, CannotBeClosedBelowNone) {
  const auto status = close_descriptors_from(-1);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kInvalidInput);
  EXPECT_GE(::fcntl(STDERR_FILENO, F_GETFD), 0) << "nothing was closed";
}

TEST_F(Descriptors, NameTheHardLimitThatIsTooLow) {
  const auto status = raise_descriptor_limit(before_.rlim_max);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kExhausted);
  EXPECT_THAT(status.error().message,
              testing::HasSubstr(" allowed; raise the hard limit (ulimit -Hn)"));
}

}  // namespace
}  // namespace regatta::os
