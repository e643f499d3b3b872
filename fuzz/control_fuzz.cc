// fuzz/control_fuzz.cc: any bytes as the messages between ranks beside the data (progress
// replies, statements of an agreement, aborts, queue pairs), and as a tuning file.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/network/rdma/wire.h"
#include "regatta/runtime/comm/internal/engine/membership_consensus.h"
#include "regatta/runtime/comm/internal/transport/abort_message.h"
#include "regatta/runtime/comm/internal/watch/progress_reply.h"
#include "regatta/runtime/comm/tuner.h"

namespace {

using namespace regatta::comm;  // NOLINT(google-build-using-namespace): a program of its own

constexpr int kRanks = 5;

void check_progress_reply(const std::string& text) {
  const auto reply = decode_progress_reply(text);
  if (!reply) return;
  if (reply->busiest)
    REGATTA_CHECK(std::isfinite(reply->busiest->rate.value) && reply->busiest->busy <= 1);
  REGATTA_CHECK(decode_progress_reply(encode_progress_reply(*reply)).has_value());
}

void check_statement(const std::string& text) {
  const auto statement = decode_statement(text, kRanks);
  if (!statement) return;
  REGATTA_CHECK(statement->lost.size() == kRanks);
  const auto again = decode_statement(encode_statement(*statement), kRanks);
  REGATTA_CHECK(again && again->payload == statement->payload && again->lost == statement->lost);
}

void check_card(std::span<const std::byte> bytes) {
  const auto card = regatta::rdma::decode_card(bytes);
  if (!card) return;
  REGATTA_CHECK(card->numbers.size() <= regatta::rdma::kQueuePairsMax);
  REGATTA_CHECK(std::ranges::equal(regatta::rdma::encode_card(*card), bytes));
}

void check_tuning(const std::string& text) {
  const auto choices = parse_tuning(text);
  if (!choices) return;
  for (const TuningChoice& choice : *choices)
    REGATTA_CHECK(choice.tried.empty() || choice.chosen < choice.tried.size());
  REGATTA_CHECK(parse_tuning(format_tuning(*choices)).has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto bytes = std::as_bytes(std::span(text));
  check_progress_reply(text);
  check_statement(text);
  check_card(bytes);
  check_tuning(text);
  (void)decode_abort(text);
  // With a right beginning, so that the fields behind it are reached.
  const std::string reply = encode_progress_reply({});
  check_progress_reply((reply.substr(0, 1) + text + reply).substr(0, reply.size()));
  const std::vector<std::byte> card =
      regatta::rdma::encode_card({.mtu = 1024, .slots = 8, .numbers = {1}});
  std::vector<std::byte> marked(card.begin(), card.begin() + 4);
  marked.insert(marked.end(), bytes.begin(), bytes.end());
  check_card(marked);
  return 0;
}
