// tests/hook/program.h: a program that uses the driver and knows nothing of the hook.
#pragma once

#include <string>

#include "tests/standin/api.h"

namespace regatta::hook_test {

void* driver_handle();                  // libcuda.so.1, opened as programs do
void* driver_symbol(const char* name);  // null when it has none
// CU(cuMemAlloc_v2)(&address, bytes)
#ifdef REGATTA_LINKED
#define CU(name) (&::name)
#else
#define CU(name) (reinterpret_cast<decltype(&::name)>(regatta::hook_test::driver_symbol(#name)))
#endif

// program_lookup.cc. Each prints what it found, which is compared between runs.
int print_lookups(unsigned seed);
int look_up_from_threads();

}  // namespace regatta::hook_test
