// comm/internal/watch/progress_reply.h: the payload of a kReply packet: how far an operation is on
// the rank that replies. Little-endian, 64 bytes: version u8, state u8, flags u8, zero u8, stopped
// rank i32, call u64, bytes u64, other call u64, other bytes u64, busiest link: to i32, zero u32,
// rate f64, busy share f64.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "regatta/runtime/comm/internal/watch/link_utilization.h"
#include "regatta/runtime/comm/internal/watch/verdict.h"

namespace regatta::comm {

struct ProgressReply {
  MemberReport report;    // `rank` is not sent: the link identifies it
  int stopped_rank = -1;  // of the world: a rank of its server whose process is stopped
  std::optional<LinkUtilization> busiest;  // `from` is not sent
};

std::string encode_progress_reply(const ProgressReply& reply);
// Nothing when it is no reply of this version.
std::optional<ProgressReply> decode_progress_reply(std::string_view text);

}  // namespace regatta::comm
