#include "experimental/remote/internal/packet_channel.h"

#include <chrono>
#include <random>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "experimental/remote/internal/fake_packet_port.h"

namespace regatta::remote {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// A thread that sleeps through an event is late by this, so a test does not pass because of a short
// poll interval.
constexpr milliseconds kLongNap{30'000};

std::string text_of(std::size_t bytes, unsigned seed) {
  std::mt19937 random(seed);
  std::string text(bytes, '\0');
  for (char& letter : text)
    letter = static_cast<char>(random());
  return text;
}

bool read_all(ByteChannel& channel, std::string& text) {
  return BufferedReader(channel).read(text.data(), text.size());
}

class PacketChannelTest : public testing::Test {
 protected:
  void SetUp() override {
    int tcp[2] = {-1, -1};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, tcp), 0);
    for (int side = 0; side < 2; ++side) {
      tcp_[side] = tcp[side];
      ends_[side] = std::make_unique<PacketChannel>(std::make_unique<FakePacketPort>(wire_, side),
                                                    os::UniqueFd(tcp[side]), kLongNap);
    }
  }
  void TearDown() override { EXPECT_EQ(wire_->overruns, 0); }

  // As from the wire, whatever the other end does.
  void inject(int side, const Completion& completion) {
    const std::lock_guard lock(wire_->mutex);
    wire_->complete(wire_->ends[side], completion);
  }

  // As the kernel does for a process that is killed; its packets stop as well.
  void end_process(int side) {
    {
      const std::lock_guard lock(wire_->mutex);
      wire_->ends[side].is_stopped = true;
    }
    ::shutdown(tcp_[side], SHUT_RDWR);
  }

  int tcp_[2] = {-1, -1};
  std::shared_ptr<FakePacketLink> wire_ = std::make_shared<FakePacketLink>();
  std::unique_ptr<PacketChannel> ends_[2];
};

TEST_F(PacketChannelTest, CarriesBytesOfAnyLengthInOrderAndBothWays) {
  std::thread echo([&] {
    BufferedReader inbox(*ends_[1]);
    std::uint32_t size = 0;
    std::string text;
    while (inbox.read(&size, sizeof size)) {
      text.resize(size);
      if (!inbox.read(text.data(), size) || !ends_[1]->send(text, {})) return;
    }
  });
  BufferedReader inbox(*ends_[0]);
  for (const std::size_t bytes : {1UL, 7UL, kPacketBytes - 4, kPacketBytes - 3, kPacketBytes,
                                  3 * kPacketBytes + 5, 30 * kPacketBytes, 200'000UL}) {
    const std::string text = text_of(bytes, static_cast<unsigned>(bytes));
    const auto size = static_cast<std::uint32_t>(bytes);
    ASSERT_TRUE(ends_[0]->send({reinterpret_cast<const char*>(&size), sizeof size}, text));
    std::string back(bytes, '\0');
    ASSERT_TRUE(inbox.read(back.data(), bytes));
    EXPECT_TRUE(back == text) << bytes;
  }
  ends_[0]->close();
  echo.join();
}

TEST_F(PacketChannelTest, SendsNoMoreThanTheOtherEndHasRoomForAndGoesOnWhenItReads) {
  const std::string text = text_of(100 * kPacketBytes + 17, 1);
  bool is_sent = false;
  std::thread sender([&] { is_sent = ends_[0]->send(text, {}); });
  std::this_thread::sleep_for(milliseconds(30));
  {
    const std::lock_guard lock(wire_->mutex);
    EXPECT_LT(wire_->ends[1].completions.size(), kPortReceives);
  }
  std::string came(text.size(), '\0');
  EXPECT_TRUE(read_all(*ends_[1], came));
  sender.join();
  EXPECT_TRUE(is_sent);
  EXPECT_TRUE(came == text);
}

// One thread waits for an answer while another says something: neither may sleep through what
// the other took from the port.
TEST_F(PacketChannelTest, WakesWhoeverSomethingCameFor) {
  constexpr int kRounds = 3000;
  std::thread far([&] {
    std::string question(100, '\0');
    BufferedReader inbox(*ends_[1]);
    for (int i = 0; i < kRounds; ++i) {
      if (!inbox.read(question.data(), question.size())) return;
      if (i % 3 == 0) ends_[1]->send("answer", {});
    }
  });
  std::thread asker([&] {
    std::string answer(6, '\0');
    BufferedReader inbox(*ends_[0]);
    for (int i = 0; i < kRounds; i += 3)
      ASSERT_TRUE(inbox.read(answer.data(), answer.size()));
  });
  const auto start = steady_clock::now();
  const std::string question(100, 'q');
  for (int i = 0; i < kRounds; ++i)
    ASSERT_TRUE(ends_[0]->send(question, {}));
  asker.join();
  far.join();
  EXPECT_LT(steady_clock::now() - start, kLongNap / 2);
}

// One of two waiting threads sleeps in the port and has to wake the other.
TEST_F(PacketChannelTest, WakesWhoWaitsForRoomWhileAReaderSleepsInThePort) {
  std::string answer(6, '\0');
  std::thread reader([&] { EXPECT_TRUE(read_all(*ends_[0], answer)); });
  std::this_thread::sleep_for(milliseconds(30));
  const std::string text = text_of(2 * kPortReceives * kPacketBytes, 3);
  std::thread sender([&] { EXPECT_TRUE(ends_[0]->send(text, {})); });
  std::this_thread::sleep_for(milliseconds(30));
  const auto start = steady_clock::now();
  std::string came(text.size(), '\0');
  EXPECT_TRUE(read_all(*ends_[1], came));
  sender.join();
  EXPECT_LT(steady_clock::now() - start, kLongNap / 2);
  EXPECT_TRUE(ends_[1]->send("answer", {}));
  reader.join();
  EXPECT_TRUE(came == text);
}

TEST_F(PacketChannelTest, WakesAReaderWhileWhoWaitsForRoomSleepsInThePort) {
  const std::string text = text_of(2 * kPortReceives * kPacketBytes, 4);
  std::thread sender([&] { EXPECT_TRUE(ends_[0]->send(text, {})); });
  std::this_thread::sleep_for(milliseconds(30));
  std::string answer(6, '\0');
  std::thread reader([&] { EXPECT_TRUE(read_all(*ends_[0], answer)); });
  std::this_thread::sleep_for(milliseconds(30));
  const auto start = steady_clock::now();
  EXPECT_TRUE(ends_[1]->send("answer", {}));
  reader.join();
  EXPECT_LT(steady_clock::now() - start, kLongNap / 2);
  EXPECT_EQ(answer, "answer");
  std::string came(text.size(), '\0');
  EXPECT_TRUE(read_all(*ends_[1], came));
  sender.join();
}

TEST_F(PacketChannelTest, GivesWhatCameBeforeItSaysThatTheOtherEndClosed) {
  ASSERT_TRUE(ends_[0]->send("the last words", {}));
  ends_[0]->close();
  std::string came(14, '\0');
  EXPECT_TRUE(read_all(*ends_[1], came));
  EXPECT_EQ(came, "the last words");
  char more = 0;
  EXPECT_EQ(ends_[1]->receive(&more, 1), 0U);
  EXPECT_FALSE(ends_[0]->send("x", {}));
}

TEST_F(PacketChannelTest, IsLostSoonWhenTheOtherProcessIsGone) {
  char byte = 0;
  const auto start = steady_clock::now();
  std::thread reader([&] { EXPECT_EQ(ends_[1]->receive(&byte, 1), 0U); });
  std::this_thread::sleep_for(milliseconds(20));
  end_process(0);
  reader.join();
  EXPECT_LT(steady_clock::now() - start, milliseconds(2000));
  EXPECT_FALSE(ends_[1]->send("x", {}));
}

TEST_F(PacketChannelTest, EndsASenderThatWaitsForRoomAtAnEndThatIsGone) {
  bool is_sent = true;
  const std::string text = text_of(2 * kPortReceives * kPacketBytes, 2);
  std::thread sender([&] { is_sent = ends_[0]->send(text, {}); });
  std::this_thread::sleep_for(milliseconds(20));
  end_process(1);
  sender.join();
  EXPECT_FALSE(is_sent);
}

TEST_F(PacketChannelTest, EndsWithAnEndThatBreaksTheRules) {
  const std::uint32_t slot = 0;
  const Completion broken[] = {
      {.is_good = false, .is_send = false, .slot = slot},
      {.is_good = true, .is_send = false, .slot = slot, .bytes = kPacketBytes + 1},
      {.is_good = true, .is_send = false, .slot = slot, .bytes = 1, .returned = 1}};
  for (const Completion& one : broken) {
    wire_ = std::make_shared<FakePacketLink>();
    SetUp();
    inject(0, one);
    char byte = 0;
    EXPECT_EQ(ends_[0]->receive(&byte, 1), 0U) << one.bytes;
    EXPECT_FALSE(ends_[0]->send("x", {}));
  }
}

TEST_F(PacketChannelTest, GreetsWherePacketsGoBothWays) {
  bool is_answered = false;
  std::thread far([&] { is_answered = ends_[1]->handshake(false, milliseconds(5000)); });
  EXPECT_TRUE(ends_[0]->handshake(true, milliseconds(5000)));
  far.join();
  EXPECT_TRUE(is_answered);
}

TEST_F(PacketChannelTest, GivesUpAGreetingThatNobodyAnswers) {
  wire_->loses = true;
  EXPECT_FALSE(ends_[0]->handshake(true, milliseconds(50)));
  EXPECT_FALSE(ends_[1]->handshake(false, milliseconds(50)));
}

TEST_F(PacketChannelTest, TakesNoOtherWordForAGreeting) {
  ASSERT_TRUE(ends_[0]->send("not that", {}));
  EXPECT_FALSE(ends_[1]->handshake(false, milliseconds(5000)));
}

}  // namespace
}  // namespace regatta::remote
