// comm/test_ranks.h: for tests: a world whose ranks must all come up.
#pragma once

#include <functional>
#include <optional>

#include <gtest/gtest.h>

#include "regatta/runtime/comm/test_world.h"

namespace regatta::comm {

// Fails the running test for every rank that could not connect, whose body never ran.
inline void run_all(TestLayout layout, int world_size,
                    const std::function<void(Communicator&)>& body,
                    const std::function<void(int, CommunicatorOptions&)>& adjust = {}) {
  for (const std::optional<Error>& error : run_ranks(layout, world_size, body, adjust))
    EXPECT_FALSE(error) << (error ? error->message : "");
}

}  // namespace regatta::comm
