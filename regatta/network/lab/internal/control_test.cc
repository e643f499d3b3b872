#include "regatta/network/lab/internal/control.h"

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/socket.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::lab {
namespace {

// A holder that serves from a thread of its own until the test ends.
class ControlSocket : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(folder_);
    lab_.name = "sample";
    lab_.folder = folder_->path();
  }

  void serve(RequestHandler handler) {
    auto server = listen_for_requests(lab_.folder);
    ASSERT_TRUE(server) << server.error().message;
    thread_ = std::jthread([server = std::move(*server),
                            handler = std::move(handler)](const std::stop_token& stop) mutable {
      while (!stop.stop_requested())
        serve_requests(server, Seconds{0.01}, handler);
    });
  }

  Result<os::TempFolder> folder_ = os::TempFolder::create("control");
  LabInfo lab_;
  std::jthread thread_;
};

std::vector<LinkState> many_links(int count) {
  std::vector<LinkState> states;
  for (int i = 0; i < count; ++i) {
    states.push_back({.name = "leaf" + std::to_string(i) + "-spine0",
                      .a = "leaf" + std::to_string(i) + " port0",
                      .b = "spine0 port" + std::to_string(i),
                      .up = i % 2 == 0,
                      .rate = {12.5e6},
                      .drop_share = 0.25,
                      .sent_by_a = {1LL << 60},
                      .sent_by_b = {i}});
  }
  return states;
}

TEST_F(ControlSocket, CarriesAllLinksOfALargeLab) {
  const std::vector<LinkState> states = many_links(3210);
  serve([&](const JsonReader& message) -> Result<nlohmann::json> {
    return links_to_json(states, message.at("first").as<std::size_t>());
  });
  const auto links = link_states(lab_);
  ASSERT_TRUE(links) << links.error().message;
  ASSERT_EQ(links->size(), states.size());
  EXPECT_EQ(links->back().name, states.back().name);
  EXPECT_EQ(links->back().sent_by_a.value, 1LL << 60);
  EXPECT_EQ((*links)[501].up, states[501].up);
}

TEST_F(ControlSocket, GivesTheErrorOfTheHolder) {
  serve([](const JsonReader&) -> Result<nlohmann::json> {
    return Error{Code::kNotFound, "link x: not in this lab"};
  });
  const auto answer = request(lab_, {{"op", "down"}});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::kNotFound);
  EXPECT_EQ(answer.error().message, "link x: not in this lab");
}

TEST_F(ControlSocket, NamesWhatIsWrongInAnAnswer) {
  serve([](const JsonReader&) -> Result<nlohmann::json> {
    return nlohmann::json{{"links", {{{"name", 7}}}}, {"count", 1}};
  });
  const auto links = link_states(lab_);
  ASSERT_FALSE(links);
  EXPECT_EQ(links.error().code, Code::kUnavailable);
  EXPECT_EQ(links.error().message,
            "lab sample: answer of its holder: links[0].name: expected a string, found 7");
}

TEST_F(ControlSocket, LetsNoSilentClientDelayAnother) {
  serve([](const JsonReader&) -> Result<nlohmann::json> { return nlohmann::json::object(); });
  const auto silent = os::connect_unix(lab_.folder + "/control.sock");
  ASSERT_TRUE(silent);
  const Seconds start = os::monotonic_now();
  EXPECT_TRUE(request(lab_, {{"op", "converge"}}));
  EXPECT_LT((os::monotonic_now() - start).value, 1);
}

TEST_F(ControlSocket, ClosesSilentClientsThatKeepOthersOut) {
  serve([](const JsonReader&) -> Result<nlohmann::json> { return nlohmann::json::object(); });
  std::vector<os::UniqueFd> silent;
  for (int i = 0; i < 64; ++i) {
    auto fd = os::connect_unix(lab_.folder + "/control.sock");
    ASSERT_TRUE(fd) << fd.error().message;
    silent.push_back(std::move(*fd));
  }
  const Seconds start = os::monotonic_now();
  auto answer = request(lab_, {{"op", "converge"}});
  EXPECT_FALSE(answer);
  while (!answer && os::monotonic_now() - start < Seconds{10}) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    answer = request(lab_, {{"op", "converge"}});
  }
  EXPECT_TRUE(answer) << answer.error().message;
}

}  // namespace
}  // namespace regatta::lab
