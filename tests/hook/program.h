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
int look_up_in_dependency(const char* plugin);

// program_memory.cc. Both stop at lines "step NAME" until they are given a line.
int take_memory_in_every_way();
int take_all(std::size_t bytes);  // in pieces of so many, until there is no more

// program_runtime.cc; the first one stops at lines, too.
int use_as_the_runtime();
int take_in_a_context_that_is_too_large();
int load_a_module_that_is_too_large();

// program_share.cc; stops at lines, too.
int open_memory_of_another();

// program_fault.cc: takes a little in every way and says what came of it; stops at a line.
int take_with_faults();
int take_beside_a_daemon();
int wait_beside_a_daemon_that_hangs();
int take_while_debts_are_paid();
int take_beside_a_slow_call();
int make_a_context_beside_one_who_waits();

// program_storm.cc.
// Stops at lines, too. `by_steps`: at an instruction that is drawn, else at any time.
int storm(int workers, int deaths, bool by_steps);
int fork_and_go_on();
int become_another(char** argv);

// program_gate.cc. Each prints a line at its end.
int capture_beside_launches();
int launch_in_many_contexts();
int launch_on_two_devices();
int fork_while_launching();
int flood();  // says so, and launches until its input ends

// program_cost.cc: prints what calls cost.
int print_cost();
int print_start_cost(int processes, bool at_once);

// program_copy.cc.
int copy_there_and_back(std::size_t bytes);
// One copy after the other; says after each second how much it copied so far.
int copy_for(int seconds, std::size_t bytes, bool is_to_device);

// program_codec.cc: pictures, one after the other, as copy_for(); and sessions until none is left.
int code_for(int seconds, bool is_encoder);
int open_sessions();

}  // namespace regatta::hook_test
