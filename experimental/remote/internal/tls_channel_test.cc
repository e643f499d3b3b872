#include "experimental/remote/internal/tls_channel.h"

#include <string>
#include <thread>
#include <utility>

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "experimental/remote/internal/socket.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/socket.h"

namespace regatta::remote {
namespace {

constexpr Seconds kPatience{5};
using Channel = Result<std::unique_ptr<StreamChannel>>;

// Two ends of a TCP connection.
std::pair<os::UniqueFd, os::UniqueFd> connection() {
  auto listener = listen_tcp("127.0.0.1:0").value();
  auto near = connect_tcp("127.0.0.1:" + os::local_endpoint(listener.get()).port).value();
  return {std::move(near), os::UniqueFd(::accept(listener.get(), nullptr, nullptr))};
}

FindKey finder(const SharedSecret& secret) {
  return [secret](std::string_view identity) {
    return identity == secret.identity ? std::optional(secret.key) : std::nullopt;
  };
}

// Both ends, by what each of them knows.
std::pair<Channel, Channel> handshake(const SharedSecret& near, const SharedSecret& far) {
  auto [near_fd, far_fd] = connection();
  Channel accepted = Error{Code::kUnavailable, ""};
  std::thread server([&, fd = far_fd.release()] {
    accepted = accept_tls(os::UniqueFd(fd), finder(far), kPatience);
  });
  Channel connected = connect_tls(std::move(near_fd), near, kPatience);
  server.join();
  return {std::move(connected), std::move(accepted)};
}

TEST(TlsChannel, CarriesBytesBothWaysAtOnce) {
  const SharedSecret secret = secret_of_token("sixteen letters and more");
  auto [near, far] = handshake(secret, secret);
  ASSERT_TRUE(near && far);
  constexpr std::size_t kBytes = 20 << 20;
  const auto send_much = [](StreamChannel& channel, char letter) {
    return channel.send(std::string(kBytes - 5, letter), std::string(5, letter));
  };
  const auto receive_much = [](StreamChannel& channel, char letter) {
    std::string part(1 << 20, '\0');
    std::size_t count = 0;
    while (count < kBytes) {
      const std::size_t came = channel.receive(part.data(), part.size());
      if (came == 0 || part.find_first_not_of(letter) < came) break;
      count += came;
    }
    return count;
  };
  std::thread threads[3] = {std::thread([&] { EXPECT_TRUE(send_much(**near, 'a')); }),
                            std::thread([&] { EXPECT_TRUE(send_much(**far, 'b')); }),
                            std::thread([&] { EXPECT_EQ(receive_much(**near, 'b'), kBytes); })};
  EXPECT_EQ(receive_much(**far, 'a'), kBytes);
  for (std::thread& thread : threads)
    thread.join();
  (*near)->close();
  char end = 0;
  EXPECT_EQ((*far)->receive(&end, 1), 0U);
}

TEST(TlsChannel, RefusesAnotherSecret) {
  const SharedSecret right = secret_of_token("sixteen letters and more");
  for (const SharedSecret& wrong : {secret_of_token("sixteen letters and MORE"),
                                    secret_of_ticket("sixteen letters and more"), SharedSecret{}}) {
    const auto [near, far] = handshake(wrong, right);
    EXPECT_FALSE(near);
    EXPECT_FALSE(far);
  }
}

TEST(TlsChannel, GivesTheConnectionOnAtTheNextByte) {
  const SharedSecret first = secret_of_ticket("ticket");
  const SharedSecret second = secret_of_program("key");
  auto [near, far] = handshake(first, first);
  ASSERT_TRUE(near && far);
  std::thread server([channel = std::move(*far), &second] {
    EXPECT_EQ(receive_text(*channel).value_or(""), "join");
    EXPECT_TRUE(send_text(*channel, "passed on"));
    auto again = accept_tls(channel->release(), finder(second), kPatience);
    ASSERT_TRUE(again);
    EXPECT_TRUE(send_text(**again, "joined"));
  });
  EXPECT_TRUE(send_text(**near, "join"));
  EXPECT_EQ(receive_text(**near).value_or(""), "passed on");
  auto again = connect_tls((*near)->release(), second, kPatience);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(receive_text(**again).value_or(""), "joined");
  server.join();
}

// The other end refuses and closes the connection while this one still sends.
TEST(TlsChannel, ReceivesARefusalThoughItCannotSend) {
  const SharedSecret secret = secret_of_token("sixteen letters and more");
  auto [near, far] = handshake(secret, secret);
  ASSERT_TRUE(near && far);
  EXPECT_TRUE(send_refusal(**far, Error{Code::kConflict, "there is no room"}));
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ASSERT_EQ(::setsockopt((*far)->fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
  (*far)->close();
  EXPECT_FALSE((*near)->send("a request", {}) && (*near)->send("a request", {}));
  const auto answer = receive_text(**near);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message, "there is no room");
}

// A byte now and then does not begin the time anew.
TEST(TlsChannel, GivesUpOnASlowPeer) {
  auto [near, far] = connection();
  std::atomic<bool> stop = false;
  std::thread drip([&, fd = near.get()] {
    // The head of a record of handshakes, and then its body.
    const std::string record = std::string("\x16\x03\x01\x02\x00", 5) + std::string(200, '\1');
    for (std::size_t i = 0; i < record.size() && !stop; ++i) {
      static_cast<void>(send_all(fd, record.data() + i, 1));
      os::sleep_for(Seconds{0.02});
    }
  });
  const Seconds begin = os::monotonic_now();
  EXPECT_FALSE(accept_tls(std::move(far), finder(secret_of_token("any")), Seconds{0.5}));
  EXPECT_LT(os::monotonic_now().value - begin.value, 1.5);
  stop = true;
  drip.join();
}

// The bytes that pass the network hold nothing of what is sent.
TEST(TlsChannel, ShowsNothingOnTheWire) {
  const SharedSecret secret = secret_of_token("sixteen letters and more");
  auto [near, tapped_near] = connection();
  auto [tapped_far, far] = connection();
  std::string seen;
  const auto pass = [&seen](int from, int to) {
    char part[4096];
    const ssize_t size = ::recv(from, part, sizeof part, MSG_DONTWAIT);
    if (size <= 0) return size == 0;
    seen.append(part, static_cast<std::size_t>(size));
    return !send_all(to, part, static_cast<std::size_t>(size));
  };
  std::thread tap([&, near_end = tapped_near.get(), far_end = tapped_far.get()] {
    while (!pass(near_end, far_end) && !pass(far_end, near_end))
      os::sleep_for(Seconds{0.0005});
  });
  std::thread server([&, fd = far.release()] {
    auto channel = accept_tls(os::UniqueFd(fd), finder(secret), kPatience);
    ASSERT_TRUE(channel);
    EXPECT_EQ(receive_text(**channel).value_or(""), "the data of the program");
  });
  auto channel = connect_tls(std::move(near), secret, kPatience);
  ASSERT_TRUE(channel);
  EXPECT_TRUE(send_text(**channel, "the data of the program"));
  server.join();
  (*channel)->close();
  tap.join();
  EXPECT_GT(seen.size(), 100U);
  EXPECT_EQ(seen.find("the data"), std::string::npos);
  EXPECT_EQ(seen.find("sixteen"), std::string::npos);
}

}  // namespace
}  // namespace regatta::remote
