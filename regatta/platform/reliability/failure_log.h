// reliability/failure_log.h: when each unit of a machine was in service and failed, from
// two public traces.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"

namespace regatta::reliability {

struct LoggedStay {
  Seconds start;
  Seconds end;
  int place = 0;         // class of the place: the cage of a cabinet on Titan
  std::string location;  // "" where the trace does not say
};

struct LoggedFailure {
  Seconds start;
  Seconds end;           // of the repair; `start`: not known; infinity: still open
  std::string location;  // as of a stay
};

struct LoggedUnit {
  std::string name;
  std::string batch;                    // "" where there is none
  std::vector<LoggedStay> stays;        // by start
  std::vector<LoggedFailure> failures;  // by start

  // The stay at `time` outside a failure; null where there is none.
  const LoggedStay* in_service(Seconds time) const;
};

struct FailureLog {
  Seconds begin;  // of what was seen
  Seconds end;
  std::vector<LoggedUnit> units;

  int failures() const;
};

// Rows of a table of failures, and servers; a table of more is refused.
inline constexpr int kLoggedRowsMax = 1'000'000;

// GPUs of Titan in the columns SN, location, insert, remove and event: a stay from insert to
// remove, with a failure at its end where there is an event (DBE, OTB); without insert the failure
// alone. Failures of a GPU within a day are one. Batch: the first four digits of the serial number.
// Source: Ostrouchov et al., "GPU lifetimes on Titan supercomputer", SC 2020.
Result<FailureLog> read_gpu_lives(std::string_view text, const std::string& file);

// Servers in the columns node, start_d and end_d (days; empty: open), of which `servers` are there:
// those without a row never failed; 1 to kLoggedRowsMax.
// Source: InfiniteHBD, SIGCOMM 2025.
Result<FailureLog> read_server_faults(std::string_view text, const std::string& file, int servers);

}  // namespace regatta::reliability
