// tests/store/program_run.h: runs of regatta-test-store and what it acknowledged.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/process.h"

namespace regatta::store {

struct ProgramRun {
  std::int64_t loaded = -1;   // transactions that it found; -1: it was ended before
  std::int64_t durable = -1;  // the last that it acknowledged, or those that it found
  os::ExitState end;
  std::string errors;  // what it wrote to standard error
};

struct ProgramOptions {
  std::string program = REGATTA_TEST_STORE;
  std::vector<std::string> arguments;   // after the name
  std::string fault;                    // of the fault shim; "": none
  std::optional<Seconds> killed_after;  // of the start
};

// Starts it, kills it where that is asked for, and waits for its end.
Result<ProgramRun> run_store_program(const ProgramOptions& options);

// The number of transactions in the store in `folder`, as this process reads it.
Result<std::int64_t> transactions_in(const std::string& folder, std::size_t longest = 300);

}  // namespace regatta::store
