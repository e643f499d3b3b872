// cli/internal/heal_supervisor.h: the process that watches the one that heals: it starts it again
// as soon as it is killed or hangs, and keeps for it the socket of reports and the faults that it
// held.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/network/heal/healer_state.h"

namespace regatta::cli {

// The watching process passes this to the one that heals. The descriptors are open in both.
struct Supervised {
  int listener = -1;   // the socket of reports
  int state = -1;      // heal::SharedText
  int heartbeat = -1;  // heal::Heartbeat
  int restarts = 0;    // of the process that heals
  int signal = 0;      // that killed the last one
  Seconds hung;        // for how long that one had hung; 0: it did not hang
  Seconds began;       // os::monotonic_now() of the first start
};

// As the value of a hidden flag of `regatta heal`, and back: "5:6:7:1:9:0.000000:123.500000".
std::string to_string(const Supervised& supervised);
Result<Supervised> parse_supervised(const std::string& text);

// The same, ready to use in the process that heals.
struct Supervision {
  Supervised shared;
  heal::SharedText state;
  heal::Heartbeat heartbeat;
  pid_t parent = -1;
};
// Nothing for "": a process that nobody watches.
Result<std::optional<Supervision>> find_supervision(const std::string& flag);

// Listens at `socket` and runs this program with what `arguments` returns, until it ends by itself
// or a stop signal ends both; returns its exit status. `hand_back` is called where it was killed
// and is not started again, so that it has left what it would have removed. When this process is
// killed the other one is killed too, and leaves all as a killed healer does.
Result<int> supervise_healer(
    const std::string& socket,
    const std::function<std::vector<std::string>(const Supervised&)>& arguments,
    const std::function<Status()>& hand_back);

}  // namespace regatta::cli
