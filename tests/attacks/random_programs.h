// tests/attacks/random_programs.h: programs drawn at random that take memory in every way
// (random_program.cc): one on a device of its own, or many of several tenants at once
// (random_machine.h), with the device's count as the oracle.
#pragma once

#include <cstdint>
#include <string>

#include "tests/attacks/random_machine.h"

namespace regatta::attacks {

// Runs the program of this seed; what went wrong, "" for nothing: the quota was exceeded after a
// call had returned, or the books and the device differ when all is quiet.
std::string run_random_program(std::uint64_t seed, RandomTotals& totals);

// Runs the round of this seed, in a process of its own; what went wrong, with what the daemon and
// the hook said last. `tenants`: 0: two to four.
std::string run_random_round(std::uint64_t seed, int tenants, RandomTotals& totals);

}  // namespace regatta::attacks
