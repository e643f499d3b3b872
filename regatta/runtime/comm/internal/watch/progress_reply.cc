#include "regatta/runtime/comm/internal/watch/progress_reply.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace regatta::comm {
namespace {

constexpr std::size_t kReplyBytes = 64;
constexpr std::uint8_t kReplyVersion = 1;
constexpr std::uint8_t kKnowsCall = 1;
constexpr std::uint8_t kIsElsewhere = 2;
constexpr std::uint8_t kHasLink = 4;

template <typename T>
void put(std::string& text, std::size_t at, T value) {
  std::memcpy(text.data() + at, &value, sizeof value);
}
template <typename T>
T get(std::string_view text, std::size_t at) {
  T value;
  std::memcpy(&value, text.data() + at, sizeof value);
  return value;
}

}  // namespace

std::string encode_progress_reply(const ProgressReply& reply) {
  const MemberReport& report = reply.report;
  std::string text(kReplyBytes, '\0');
  put(text, 0, kReplyVersion);
  put(text, 1, report.state);
  put(text, 2,
      static_cast<std::uint8_t>((report.knows_call ? kKnowsCall : 0) |
                                (report.is_elsewhere ? kIsElsewhere : 0) |
                                (reply.busiest ? kHasLink : 0)));
  put(text, 4, static_cast<std::int32_t>(reply.stopped_rank));
  put(text, 8, report.call);
  put(text, 16, report.bytes);
  put(text, 24, report.other_call);
  put(text, 32, report.other_bytes);
  if (reply.busiest) {
    put(text, 40, static_cast<std::int32_t>(reply.busiest->to));
    put(text, 48, reply.busiest->rate.value);
    put(text, 56, reply.busiest->busy);
  }
  return text;
}

std::optional<ProgressReply> decode_progress_reply(std::string_view text) {
  if (text.size() != kReplyBytes || get<std::uint8_t>(text, 0) != kReplyVersion)
    return std::nullopt;
  const auto state = get<std::uint8_t>(text, 1);
  if (state > static_cast<std::uint8_t>(MemberState::kCompleted)) return std::nullopt;
  const auto flags = get<std::uint8_t>(text, 2);
  std::optional<LinkUtilization> busiest;
  if ((flags & kHasLink) != 0) {
    busiest = LinkUtilization{.to = get<std::int32_t>(text, 40),
                              .rate = {get<double>(text, 48)},
                              .busy = get<double>(text, 56)};
    const bool is_possible = std::isfinite(busiest->rate.value) && busiest->rate.value >= 0 &&
                             busiest->busy >= 0 && busiest->busy <= 1;
    if (!is_possible) return std::nullopt;
  }
  return ProgressReply{.report = {.state = static_cast<MemberState>(state),
                                  .knows_call = (flags & kKnowsCall) != 0,
                                  .call = get<std::uint64_t>(text, 8),
                                  .bytes = get<std::uint64_t>(text, 16),
                                  .is_elsewhere = (flags & kIsElsewhere) != 0,
                                  .other_call = get<std::uint64_t>(text, 24),
                                  .other_bytes = get<std::uint64_t>(text, 32)},
                       .stopped_rank = get<std::int32_t>(text, 4),
                       .busiest = busiest};
}

}  // namespace regatta::comm
