// tests/attacks/random_steps.h: the steps that random programs are drawn from, by kind.
#pragma once

#include <span>

namespace regatta::attacks {

class RandomProgram;

struct RandomStep {
  const char* name;
  void (*make)(RandomProgram& program);
};

std::span<const RandomStep> memory_steps();   // allocations of all kinds, returned and checked
std::span<const RandomStep> code_steps();     // modules, libraries, graphs, contexts
std::span<const RandomStep> process_steps();  // threads, processes, descriptors, sizes that wrap
std::span<const RandomStep> share_steps();    // memory that processes show to each other

}  // namespace regatta::attacks
