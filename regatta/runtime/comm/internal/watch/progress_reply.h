// comm/internal/watch/progress_reply.h: what a rank tells another one that asks how far an
// operation is: the payload of kReply. Little-endian, 64 bytes: version u8, standing u8, flags u8,
// zero u8, stopped rank i32, call u64, bytes u64, other call u64, other bytes u64, busiest link: to
// i32, zero u32, rate f64, busy share f64.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "regatta/runtime/comm/internal/watch/link_utilization.h"
#include "regatta/runtime/comm/internal/watch/verdict.h"

namespace regatta::comm {

struct ProgressReply {
  MemberReport report;                     // `rank` does not travel: the link tells it
  int stopped_rank = -1;                   // of the world: one of its server whose process is held
  std::optional<LinkUtilization> busiest;  // `from` does not travel
};

std::string encode_progress_reply(const ProgressReply& answer);
// Nothing when it is no answer.
std::optional<ProgressReply> decode_progress_reply(std::string_view text);

}  // namespace regatta::comm
