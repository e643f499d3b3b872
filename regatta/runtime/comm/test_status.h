// comm/test_status.h: for tests: what an operation must end with.
#pragma once

#include <gtest/gtest.h>

#include "regatta/base/core/result.h"

namespace regatta::comm {

// Fails the running test with what went wrong.
inline void expect_ok(const Status& status) {
  EXPECT_TRUE(status) << (status ? "" : status.error().message);
}

}  // namespace regatta::comm
