// regatta-supervisor: runs the ranks of one replica for regatta-node-agent, which it outlives. Exit
// status: see internal/supervisor.h; 2 for wrong arguments.

#include <cstdio>

#include "regatta/platform/node_agent/internal/supervisor.h"

int main(int count, char** arguments) {
  if (count != 3) {
    std::fputs(
        "usage: regatta-supervisor RUN_FOLDER LEASE_FILE\n"
        "Runs the ranks of one replica; regatta-node-agent starts it.\n",
        stderr);
    return 2;
  }
  return regatta::node_agent::supervise(arguments[1], arguments[2]);
}
