// tests/standin/wire.h: what a process and the stand-in device say to each other: packets of one
// size over a SOCK_SEQPACKET socket between processes of one build on one machine.
#pragma once

#include <cstdint>

#include "tests/standin/device.h"

namespace regatta::standin {

enum class PacketType : std::uint32_t {
  // From the process. Those marked * are answered by a kReply with the same `request`.
  kHandshake,     // * bytes of the device, width = processors, ticket = which device
  kFile,          // a file comes along: the bytes of the process's memory
  kReserve,       // * bytes; status
  kRelease,       // bytes
  kMemory,        // * bytes = free now, sequence = the most that ever were in use
  kShow,          // * sequence = offset, bytes, of the file; ticket of it
  kGiveUp,        // * ticket, width = 1: the bytes stay the owner's; status 1: others use it
  kOpenShare,     // * ticket; status, sequence = offset, bytes, and the file along with it
  kCloseShare,    // ticket
  kOpenSession,   // ticket, engine: of a codec
  kCloseSession,  // ticket
  kEngineLog,     // * one kEngineLine for each copy and picture, then the reply
  kSessions,      // * one kSessionLine for each, then the reply
  kOpenContext,   // * context; status
  kCloseContext,  // context
  kOpenStream,    // stream, context, stream_kind, time = priority
  kCloseStream,   // stream
  kSubmit,        // stream, op, engine, width, time, bytes, ticket, after_*
  kAnswer,        // ticket
  kWaitStream,    // * stream, sequence: answered when it is done
  kWaitContext,   // * context: answered when it is idle
  kQueryStream,   // * stream, sequence; status 1: done
  kQueryMark,     // * ticket; status 1 and time
  kForgetMark,    // ticket
  kUsage,         // * one kUsageLine for each client, then the reply
  kLog,           // * one kLogLine for each interval, then the reply
  kControl,       // * width = pid, sequence = a Control, time = how long it may take; status 0: no
                  //   such process; sequence = a CUresult, bytes = what was asked for
  kControlDone,   // ticket, sequence, bytes: to a kControlCall
  kSuspend,       // * what the process holds is free for others
  kResume,        // * it holds it again; status 0: there is no room
  kSamples,       // * time = since; kSampleLines, then the reply: time = end of the last period,
                  //   end_time = a period, bytes = free now
  // From the device.
  kReply,
  kCall,         // ticket: do it and answer
  kControlCall,  // ticket, sequence, time: another process wants it
  kUsageLine,    // width = pid, bytes, time = busy, sequence = kernels, context = how many
  kLogLine,      // width = pid, context, time = start, end_time
  kEngineLine,   // width = pid, engine, bytes, time = start, end_time
  kSessionLine,  // width = pid, ticket, engine
  // width = pid, time = end of a period; nanoseconds of kernels, copies, encoding and decoding are
  // bytes, sequence, ticket and after_sequence
  kSampleLine,
};

struct Packet {
  PacketType message = PacketType::kHandshake;
  std::uint32_t status = 0;
  std::uint64_t request = 0;
  std::uint64_t context = 0;
  std::uint64_t stream = 0;
  std::uint64_t sequence = 0;
  std::uint64_t bytes = 0;
  std::int64_t time_ns = 0;
  std::int64_t end_time_ns = 0;
  std::uint64_t ticket = 0;
  std::uint64_t after_stream = 0;  // 0: after nothing
  std::uint64_t after_sequence = 0;
  std::uint32_t width = 0;
  OpKind op = OpKind::kMark;
  Engine engine = Engine::kWithin;
  StreamKind stream_kind = StreamKind::kBlocking;
  std::uint8_t unused = 0;
};
static_assert(sizeof(Packet) == 96);

}  // namespace regatta::standin
