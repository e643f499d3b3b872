// coll/test_status.h: for tests: what an operation must end with.
#pragma once

#include <gtest/gtest.h>

#include "regatta/core/result.h"

namespace regatta::coll {

// Fails the running test with what went wrong.
inline void expect_ok(const Status& status) {
  EXPECT_TRUE(status) << (status ? "" : status.error().message);
}

}  // namespace regatta::coll
