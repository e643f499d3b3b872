// cli/internal/heal_supervisor.h: the process that watches the one that heals: it starts it again
// as soon as it is killed, and keeps for it the socket of reports and the faults that it held.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"

namespace regatta::cli {

// The process that heals has it of the other one. The descriptors are open in both.
struct Supervised {
  int listener = -1;  // the socket of reports
  int state = -1;     // heal::SharedText
  int restarts = 0;   // of the process that heals
  int signal = 0;     // that killed the last one
  Seconds began;      // os::monotonic_now() of the first start
};

// As the value of a hidden flag of `regatta heal`, and back: "5:6:1:9:123.5".
std::string to_string(const Supervised& supervised);
Result<Supervised> parse_supervised(const std::string& text);

// Listens at `socket` and runs this program with what `arguments` returns, until it ends by itself
// or a stop signal ends both; returns its exit status. When this process is killed the other one is
// killed too, and leaves all as a killed healer does.
Result<int> supervise_healer(
    const std::string& socket,
    const std::function<std::vector<std::string>(const Supervised&)>& arguments);

}  // namespace regatta::cli
