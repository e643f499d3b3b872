// tests/attacks/random_programs.h: programs drawn at random that take memory in every way
// (random_program.cc), each on a device of its own, with the device's count as the oracle.
#pragma once

#include <cstdint>
#include <string>

namespace regatta::attacks {

// Runs the program of this seed; what went wrong, "" for nothing: the quota was exceeded after a
// call had returned, or the books and the device differ when all is quiet.
std::string run_random_program(std::uint64_t seed);

}  // namespace regatta::attacks
