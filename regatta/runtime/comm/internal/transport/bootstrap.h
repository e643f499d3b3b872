// comm/internal/transport/bootstrap.h: the ranks find each other: every pair gets its Channel.
// Each rank listens on TCP and on an abstract unix socket, gives its endpoint to the exchange, and
// then calls every lower rank: over the unix socket when both name the same server (the caller
// hands over a memory file), else over TCP. Over TCP the called one then calls back: each side
// dials the connections that it sends over, from ports that a Survey chose. A caller shows
// protocol, version, job token and rank; a stranger is refused with a log line. Shared memory that
// cannot be opened falls back to TCP. A rank whose process ended is found out by a hang-up or by
// its closed door; who gives up tells the others why. Two ranks of different servers whose
// endpoints both say that they have RDMA make one TCP connection alone: both know so from the
// endpoints, and the caller says it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/runtime/comm/communicator.h"
#include "regatta/runtime/comm/hello.h"
#include "regatta/runtime/comm/internal/transport/channel.h"
#include "regatta/runtime/comm/internal/transport/door.h"
#include "regatta/runtime/comm/internal/transport/verbs.h"

namespace regatta::comm {

struct Meeting {
  std::vector<Channel> channels;      // by rank
  std::vector<std::string> names;     // by rank: "rank 3 (s1/1) at s1"
  std::vector<Endpoint> endpoints;    // by rank
  Shelf shelf;                        // the own one; closed where it could not be had
  int ways = 1;                       // over equal-cost links, to the rank with the most
  std::shared_ptr<VerbsDevice> rdma;  // null where no channel uses it
};

// "rank 3 (s1/1)" when the options name it, else "rank 3".
std::string name_of(int rank, const Options& options);

// Where the others come in, open before they know where it is.
struct Entrance {
  Shelf shelf;
  Door door;
  std::shared_ptr<VerbsDevice> rdma;  // null where it is not used
  std::string endpoint;               // where it is, for the others
};
// `host`: the name of the rank, for log lines. A rank that will be alone needs no shelf.
Result<Entrance> open_entrance(const std::string& host, bool has_shelf, const Options& options);

struct MeetingPlan {
  int rank = 0;
  std::vector<std::string> endpoints;  // by rank
  std::uint64_t meeting = 0;           // callers that give another number are refused
  Seconds survey_time{2.0};            // for the ways to all ranks together
  // Asked now and then: the meeting will come to nothing. Null: never.
  std::function<bool()> is_off;
};

// How long a meeting takes at most.
Seconds meeting_patience(const Options& options);

// Fails with kTimeout within peer_timeout + 10 s, naming the missing ranks; with kUnavailable some
// 1 s after a rank's process ended, naming it, and when the meeting is off.
Result<Meeting> meet(Entrance entrance, const MeetingPlan& plan, const Options& options);
// The same, after the exchange told the endpoints.
Result<Meeting> meet(int rank, int world_size, const Exchange& exchange, const Options& options);

}  // namespace regatta::comm
