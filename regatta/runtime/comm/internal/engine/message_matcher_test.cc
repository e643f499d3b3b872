// A packet that breaks the protocol is an error before any byte is written.
#include "regatta/runtime/comm/internal/engine/message_matcher.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta::comm {
namespace {

using testing::HasSubstr;

// Keeps what it is given.
class DeafLink final : public PeerLink {
 public:
  std::vector<int> fds() const override { return {}; }
  void post_control(const PacketHeader&, std::string_view) override {}
  void post_message(OutMessage&) override {}
  bool progress() override { return false; }
  void on_event(int, std::uint32_t) override {}
  void abandon() override {}
  bool is_flushed() override { return true; }
  void shut_down() override {}
};

// A rank that waits for a message of four floats, and adds another one to its own, from rank 1.
class MessageMatcherTest : public testing::Test {
 protected:
  static constexpr std::uint32_t kReceived = 0;
  static constexpr std::uint32_t kReduced = 1;

  MessageMatcherTest() : names_{"rank 0", "rank 1"}, matcher_(links_, names_) {
    links_.resize(2);
    links_[1] = std::make_unique<DeafLink>();
    operation_.group = std::make_shared<CommunicatorState>();
    operation_.group->id = 1;
    operation_.group->members = {0, 1};
    operation_.handle = std::make_shared<Handle::State>();
    operation_.schedule.reduction = {DataType::kF32, ReduceOp::kSum, 1};
    for (const StepKind kind : {StepKind::kReceive, StepKind::kReceiveReduce})
      operation_.schedule.add({.kind = kind,
                               .peer = 1,
                               .tag = kind == StepKind::kReceive ? kReceived : kReduced,
                               .dst = reinterpret_cast<std::byte*>(values_[0].data()),
                               .src = reinterpret_cast<std::byte*>(values_[1].data()),
                               .bytes = 16});
    operation_.prepare();
  }

  void post_receives() {
    for (MessageTransfer& transfer : operation_.transfers)
      matcher_.post_receive(transfer);
  }
  // The place that a fragment would be written to.
  std::byte* begin(const PacketHeader& header) { return matcher_.place(1, header, {}); }
  void end(const PacketHeader& header, const std::byte* payload) {
    matcher_.arrived(1, header, payload, {});
  }
  PacketHeader fragment(std::uint32_t tag, std::uint64_t offset, std::uint32_t bytes,
                        std::uint64_t message = 16) const {
    return {.key = {1, 0, tag},
            .message_bytes = message,
            .offset = offset,
            .payload_bytes = bytes,
            .call = operation_.transfers.front().out.call};
  }
  std::string error() const { return matcher_.error() ? matcher_.error()->message : ""; }

  std::vector<std::string> names_;
  std::vector<std::unique_ptr<PeerLink>> links_;
  MessageMatcher matcher_;
  Operation operation_;
  std::vector<std::vector<float>> values_{{1, 2, 3, 4}, {1, 2, 3, 4}};
  std::vector<std::byte> payload_ = std::vector<std::byte>(16);
};

TEST_F(MessageMatcherTest, PlacesTheFragmentsOfAMessage) {
  post_receives();
  auto* const memory = reinterpret_cast<std::byte*>(values_[0].data());
  for (const std::uint64_t offset : {8U, 0U}) {
    EXPECT_EQ(begin(fragment(kReceived, offset, 8)), memory + offset);
    end(fragment(kReceived, offset, 8), memory + offset);
  }
  EXPECT_EQ(error(), "");
  EXPECT_EQ(matcher_.consume_ended().size(), 1U);
}

// The first one is on its way when the second would end the message, and with it the memory.
TEST_F(MessageMatcherTest, RefusesAFragmentThatComesTwice) {
  post_receives();
  EXPECT_NE(begin(fragment(kReceived, 0, 8)), nullptr);
  EXPECT_NE(begin(fragment(kReceived, 0, 8)), nullptr);
  EXPECT_EQ(begin(fragment(kReceived, 8, 8)), nullptr);
  EXPECT_THAT(error(), HasSubstr("rank 1 sent part of a message twice"));
  end(fragment(kReceived, 8, 8), payload_.data());
  EXPECT_TRUE(matcher_.consume_ended().empty());
}

TEST_F(MessageMatcherTest, RefusesOneThatCutsAnElement) {
  post_receives();
  EXPECT_EQ(begin(fragment(kReduced, 2, 8)), nullptr);
  end(fragment(kReduced, 2, 8), payload_.data());
  EXPECT_THAT(error(), HasSubstr("rank 1 sent a fragment that cuts an element"));
}

TEST_F(MessageMatcherTest, RefusesMoreThanTheCredit) {
  std::uint32_t tag = 2;
  while (error().empty() && tag < 1000) {
    const PacketHeader early = fragment(tag++, 0, 60000, 60000);
    const std::byte* const place = begin(early);
    if (place != nullptr) end(early, place);
  }
  EXPECT_THAT(error(), HasSubstr("rank 1 sent more than its credit"));
  EXPECT_EQ(tag - 2, kCreditBytes / 60064 + 1);
}

TEST_F(MessageMatcherTest, RefusesALargeMessageThatNobodyAskedFor) {
  EXPECT_EQ(begin(fragment(9, 0, 1000, kEagerBytes + 1)), nullptr);
  EXPECT_THAT(error(), HasSubstr("rank 1 sent a large message that was not granted"));
}

TEST_F(MessageMatcherTest, NamesBothRanksOfSizesThatDoNotMeet) {
  post_receives();
  EXPECT_EQ(begin(fragment(kReceived, 0, 8, 32)), nullptr);
  EXPECT_THAT(error(), HasSubstr("rank 1 has a message of 32 bytes where rank 0 has 16"));
}

}  // namespace
}  // namespace regatta::comm
