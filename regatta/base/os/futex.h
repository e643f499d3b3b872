// os/futex.h: waits for a change of a 32-bit word, also one that processes share.
#pragma once

#include <cstdint>

namespace regatta::os {

// Returns when the word is not `value`, when somebody wakes us, when the time is over, or for no
// reason: look at the word again. Source: Linux manual page futex(2).
void futex_wait(const void* word, std::uint32_t value, std::uint64_t limit_ns);

void futex_wake_one(const void* word);
void futex_wake_all(const void* word);

}  // namespace regatta::os
