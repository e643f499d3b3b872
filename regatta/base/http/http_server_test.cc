#include "regatta/base/http/http_server.h"

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/base/http/test_server.h"

namespace regatta::http {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// Answers method, path and body as text.
void echo(std::unique_ptr<Exchange> exchange) {
  const Request& request = exchange->request();
  const std::string body = request.method + " " + request.path + " " + request.body;
  exchange->respond({.content_type = "text/plain", .body = body});
}

std::string answer_to(const TestServer& server, std::string_view bytes) {
  RawConnection connection(server.port());
  connection.send(bytes);
  return connection.read_to_end();
}

std::string get(const std::string& path, const std::string& headers = "Connection: close\r\n") {
  return "GET " + path + " HTTP/1.1\r\nHost: x\r\n" + headers + "\r\n";
}

TEST(HttpServer, AnswersWithLengthTypeAndDate) {
  TestServer server({}, {}, echo);
  const std::string answer = answer_to(server, get("/a"));
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Length: 7\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Type: text/plain\r\n"));
  EXPECT_THAT(answer, HasSubstr("GMT\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\nGET /a "));
}

TEST(HttpServer, KeepsAConnectionForFurtherRequests) {
  TestServer server({}, {}, echo);
  RawConnection connection(server.port());
  connection.send(get("/a", ""));
  EXPECT_THAT(connection.read_until("GET /a "), HasSubstr("200 OK"));
  connection.send(get("/b", ""));
  EXPECT_THAT(connection.read_until("GET /b "), HasSubstr("200 OK"));
  EXPECT_EQ(server.connection_count(), 1U);
}

TEST(HttpServer, AnswersPipelinedRequestsInTheirOrderThoughTheFirstTakesLonger) {
  EventLoop* loop = nullptr;
  TestServer server({}, {}, [&loop](std::unique_ptr<Exchange> exchange) {
    if (exchange->request().path != "/slow") return echo(std::move(exchange));
    loop->after(Seconds{0.05}, [held = std::make_shared<std::unique_ptr<Exchange>>(
                                    std::move(exchange))] { echo(std::move(*held)); });
  });
  loop = &server.loop();
  const std::string answer = answer_to(server, get("/slow", "") + get("/b", "") + get("/c"));
  const std::size_t slow = answer.find("GET /slow");
  const std::size_t second = answer.find("GET /b");
  const std::size_t third = answer.find("GET /c");
  ASSERT_NE(third, std::string::npos) << answer;
  EXPECT_LT(slow, second);
  EXPECT_LT(second, third);
}

TEST(HttpServer, AnswersManyPipelinedRequestsOfOneSegment) {
  TestServer server({}, {}, echo);
  std::string requests;
  for (int i = 0; i < 100; ++i)
    requests += get("/" + std::to_string(i), "");
  const std::string answer = answer_to(server, requests + get("/last"));
  EXPECT_THAT(answer, HasSubstr("GET /99 "));
  EXPECT_THAT(answer, EndsWith("GET /last "));
}

TEST(HttpServer, AnswersHeadWithTheHeadersOfGetAndNoBody) {
  TestServer server({}, {}, echo);
  const std::string answer =
      answer_to(server, "HEAD /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("Content-Length: 8\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
}

TEST(HttpServer, ReadsABodyOfKnownLengthAndOneInChunks) {
  TestServer server({}, {}, echo);
  EXPECT_THAT(answer_to(server,
                        "POST /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                        "Content-Length: 5\r\n\r\nhello"),
              EndsWith("POST /a hello"));
  EXPECT_THAT(answer_to(server,
                        "POST /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                        "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"),
              EndsWith("POST /a hello"));
}

TEST(HttpServer, TellsAClientThatWaitsToGoOnWithItsBody) {
  TestServer server({}, {}, echo);
  RawConnection connection(server.port());
  connection.send(
      "POST /a HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
      "Content-Length: 2\r\n\r\n");
  EXPECT_THAT(connection.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 100 Continue"));
  connection.send("ok");
  EXPECT_THAT(connection.read_until("POST /a ok"), HasSubstr("200 OK"));
}

TEST(HttpServer, RefusesABodyThatIsTooLargeBeforeItIsSent) {
  TestServer server({.body_bytes_max = 10}, {}, echo);
  EXPECT_THAT(answer_to(server, "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n\r\n"),
              StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(answer_to(server,
                        "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                        "b\r\nhello world\r\n0\r\n\r\n"),
              StartsWith("HTTP/1.1 413 "));
}

TEST(HttpServer, BoundsTheBodiesOfAllConnectionsTogether) {
  TestServer server({.body_bytes_max = 1000, .bodies_bytes_max = 1500}, {}, echo);
  const std::string head = "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n";
  RawConnection first(server.port());
  first.send(head + std::string(900, 'x'));
  // Waits until the server has it.
  ASSERT_THAT(answer_to(server, get("/b")), HasSubstr("200 OK"));
  EXPECT_THAT(answer_to(server, head + std::string(900, 'y')), StartsWith("HTTP/1.1 503 "));
  first.send(std::string(100, 'x'));
  EXPECT_THAT(first.read_until("xx"), HasSubstr("200 OK"));
  RawConnection last(server.port());
  last.send(head + std::string(1000, 'z'));
  EXPECT_THAT(last.read_until("zz"), HasSubstr("200 OK"));
}

TEST(HttpServer, EndsTheConnectionOfAnHttp10Client) {
  TestServer server({}, {}, echo);
  const std::string answer = answer_to(server, "GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("Connection: close"));
  EXPECT_THAT(answer, EndsWith("GET /a "));
}

TEST(HttpServer, RefusesAHeaderThatIsTooLarge) {
  TestServer server({.header_bytes_max = 1000}, {}, echo);
  EXPECT_THAT(answer_to(server, get("/a", "X: " + std::string(2000, 'x') + "\r\n")),
              StartsWith("HTTP/1.1 431 "));
}

TEST(HttpServer, RefusesWhatIsNotWellFormed) {
  TestServer server({}, {}, echo);
  const std::vector<std::string> wrong = {
      "hello\r\n\r\n",
      "GET a HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET /a/../b HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET / HTTP/1.1\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
      "GET / HTTP/1.1\r\nHost : x\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
  };
  for (const std::string& bytes : wrong) {
    const std::string answer = answer_to(server, bytes);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 400 ")) << bytes;
    EXPECT_THAT(answer, HasSubstr("Connection: close")) << bytes;
  }
}

TEST(HttpServer, EndsARequestThatComesTooSlowlyAndAConnectionThatIsIdle) {
  TestServer server({.request_limit{0.05}, .idle_limit{0.05}}, {}, echo);
  EXPECT_THAT(answer_to(server, "GET / HTT"), StartsWith("HTTP/1.1 408 "));
  RawConnection idle(server.port());
  EXPECT_THAT(idle.read_to_end(), IsEmpty());
  EXPECT_TRUE(idle.is_over());
}

TEST(HttpServer, TellsOneConnectionTooManyToComeLater) {
  TestServer server({.connections_max = 1}, {}, echo);
  RawConnection first(server.port());
  first.send(get("/a", ""));
  first.read_until("GET /a ");
  const std::string answer = answer_to(server, get("/b"));
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(answer, HasSubstr("Retry-After: 1"));
}

TEST(HttpServer, AnswersForAHandlerThatDoesNot) {
  TestServer server({}, {}, [](const std::unique_ptr<Exchange>&) {});
  EXPECT_THAT(answer_to(server, get("/a")), StartsWith("HTTP/1.1 500 "));
}

TEST(HttpServer, WritesNoHeaderThatAValueBrings) {
  TestServer server({}, {}, [](std::unique_ptr<Exchange> exchange) {
    exchange->respond({.headers = {{"X-Name", "a\r\nSet-Cookie: b"}}, .body = "{}"});
  });
  EXPECT_THAT(answer_to(server, get("/a")), Not(HasSubstr("\nSet-Cookie")));
}

TEST(HttpServer, AnswersAClientThatHasEndedItsDirection) {
  TestServer server({}, {}, echo);
  RawConnection connection(server.port());
  connection.send(get("/a", ""));
  connection.end();
  EXPECT_THAT(connection.read_to_end(), EndsWith("GET /a "));
}

TEST(HttpServer, KnowsClientsByTheUrisOfTheirCertificates) {
  TestServer server({}, test_server_identity(), [](std::unique_ptr<Exchange> exchange) {
    const auto& uris = exchange->request().peer_uris;
    exchange->respond({.body = uris.empty() ? "nobody" : uris.front()});
  });
  EXPECT_EQ(server.client().send("GET", "/").value().body, "nobody");
  const tls::Identity node = test_identity("regatta://cluster/node/n1");
  ClientOptions options = server.client_options();
  options.certificate_chain = node.certificate;
  options.private_key = node.private_key;
  HttpClient client = HttpClient::create(options).value();
  EXPECT_EQ(client.send("GET", "/").value().body, "regatta://cluster/node/n1");
  EXPECT_EQ(client.send("GET", "/").value().body, "regatta://cluster/node/n1");
}

TEST(HttpServer, UsesANewIdentityForNewConnectionsAndKeepsTheOldOnes) {
  TestServer server({}, test_server_identity(), echo);
  HttpClient kept = server.client();
  ASSERT_TRUE(kept.send("GET", "/a"));
  const tls::Identity other = tls::create_authority("other", unix_now(), Seconds{86400}).value();
  const tls::Identity identity =
      tls::issue(other, {.common_name = "server", .hosts = {"127.0.0.1"}}, unix_now(),
                 Seconds{86400})
          .value();
  ASSERT_TRUE(server.run([&] {
    return server.server().set_identity({identity.certificate, identity.private_key, ""});
  }));
  EXPECT_FALSE(server.run([&] { return server.server().set_identity({"x", "y", ""}); }));
  EXPECT_TRUE(kept.send("GET", "/a"));
  EXPECT_EQ(server.client().send("GET", "/a").error().code, Code::kInvalidInput);
  ClientOptions options = server.client_options();
  options.ca = other.certificate;
  EXPECT_TRUE(HttpClient::create(options).value().send("GET", "/a"));
}

TEST(HttpServer, ListensOnceAtAPortAndWithoutTlsOnLoopbackAlone) {
  EventLoop loop;
  const auto first = HttpServer::listen(loop, {}, {}, echo);
  ASSERT_TRUE(first);
  EXPECT_EQ(HttpServer::listen(loop, {.port = (*first)->port()}, {}, echo).error().code,
            Code::kConflict);
  EXPECT_EQ(HttpServer::listen(loop, {.address = "0.0.0.0"}, {}, echo).error().code,
            Code::kInvalidInput);
}

TEST(HttpServer, EndsIdleConnectionsAndAcceptsNoneAfterItsListenerIsClosed) {
  TestServer server({}, {}, echo);
  RawConnection idle(server.port());
  idle.send(get("/a", ""));
  idle.read_until("GET /a ");
  server.run([&] { server.server().close_listener(); });
  EXPECT_THAT(idle.read_to_end(), IsEmpty());
  EXPECT_TRUE(idle.is_over());
  EXPECT_FALSE(os::connect_tcp({"127.0.0.1", std::to_string(server.port())}, Seconds{1}));
}

// A stream that the test keeps and sends to.
struct KeptStream {
  std::unique_ptr<ResponseStream> stream;
  std::atomic<bool> is_closed = false;

  HttpServer::Handler handler() {
    return [this](std::unique_ptr<Exchange> exchange) {
      if (exchange->request().path != "/events") return echo(std::move(exchange));
      stream = exchange->stream({.content_type = "text/event-stream"});
      stream->on_closed([this] { is_closed = true; });
      stream->send("data: 1\n\n");
    };
  }
};

bool becomes_true(const std::atomic<bool>& value) {
  for (int i = 0; i < 500 && !value; ++i)
    os::sleep_for(Seconds{0.01});
  return value;
}

TEST(ResponseStream, SendsPiecesAsTheyComeAndEndsTheBody) {
  KeptStream kept;
  TestServer server({}, {}, kept.handler());
  RawConnection connection(server.port());
  connection.send(get("/events", ""));
  EXPECT_THAT(connection.read_until("\n\n\r\n"), HasSubstr("9\r\ndata: 1\n\n\r\n"));
  server.run([&] { return kept.stream->send("data: 2\n\n"); });
  EXPECT_THAT(connection.read_until("\n\n\r\n"), HasSubstr("data: 2"));
  server.run([&] { kept.stream.reset(); });
  EXPECT_EQ(connection.read_to_end(), "0\r\n\r\n");
  EXPECT_TRUE(connection.is_over());
}

TEST(ResponseStream, TellsItsOwnerThatTheClientIsGone) {
  KeptStream kept;
  TestServer server({}, test_server_identity(), kept.handler());
  {
    HttpClient client = server.client();
    std::string got;
    const auto response = client.stream("GET", "/events", {}, [&got](std::string_view piece) {
      got += piece;
      return false;
    });
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_EQ(response->content_type, "text/event-stream");
    EXPECT_EQ(got, "data: 1\n\n");
  }
  EXPECT_TRUE(becomes_true(kept.is_closed));
  server.run([&] { EXPECT_FALSE(kept.stream->send("data: 2\n\n")); });
  server.run([&] { kept.stream.reset(); });
}

TEST(ResponseStream, DropsAClientThatDoesNotReadWhileOthersAreServed) {
  KeptStream kept;
  TestServer server({.queued_bytes_max = 100'000}, {}, kept.handler());
  RawConnection silent(server.port());
  silent.send(get("/events", ""));
  silent.read_until("data: 1");
  bool is_sent = true;
  for (int i = 0; i < 1000 && is_sent; ++i) {
    is_sent = server.run([&] { return kept.stream->send(std::string(50'000, 'x')); });
    if (i % 20 == 0) {
      ASSERT_TRUE(server.client().send("GET", "/a"));
    }
  }
  EXPECT_FALSE(is_sent);
  EXPECT_TRUE(becomes_true(kept.is_closed));
  server.run([&] { kept.stream.reset(); });
}

TEST(ResponseStream, DropsAClientThatTakesNothingWithinTheLimit) {
  KeptStream kept;
  TestServer server({.queued_bytes_max = 100 << 20, .send_limit{0.1}}, {}, kept.handler());
  RawConnection silent(server.port());
  silent.send(get("/events", ""));
  silent.read_until("data: 1");
  server.run([&] { return kept.stream->send(std::string(50 << 20, 'x')); });
  EXPECT_TRUE(becomes_true(kept.is_closed));
  server.run([&] { kept.stream.reset(); });
}

}  // namespace
}  // namespace regatta::http
