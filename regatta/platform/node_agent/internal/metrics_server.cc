#include "regatta/platform/node_agent/internal/metrics_server.h"

#include <thread>
#include <utility>

#include "regatta/base/core/mutex.h"
#include "regatta/base/http/event_loop.h"
#include "regatta/base/os/process.h"
#include "regatta/platform/monitoring/metrics_text.h"

namespace regatta::node_agent {
namespace {

constexpr std::size_t kScrapersMax = 16;

// Takes the same time wherever the texts differ.
bool is_same_secret(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i)
    difference |= static_cast<unsigned>(a[i] ^ b[i]);
  return difference == 0;
}

}  // namespace

struct MetricsServer::Impl {
  void handle(http::Exchange& exchange) {
    http::Response response;
    response.content_type = "text/plain";
    if (!is_same_secret(exchange.request().header("Authorization"), authorization)) {
      response.status = 401;
      response.headers.emplace_back("WWW-Authenticate", "Bearer");
    } else if (exchange.request().path != "/metrics" || exchange.request().method != "GET") {
      response.status = 404;
    } else {
      response.content_type = monitoring::kMetricsContentType;
      const MutexLock lock(mutex);
      response.body = text;
    }
    exchange.respond(std::move(response));
  }

  // Constant once the thread runs.
  std::string authorization;
  http::EventLoop loop;
  std::unique_ptr<http::HttpServer> server;
  std::thread thread;
  Mutex mutex;
  std::string text REGATTA_GUARDED_BY(mutex);
};

Result<std::unique_ptr<MetricsServer>> MetricsServer::create(MetricsServerOptions options) {
  auto impl = std::make_unique<Impl>();
  impl->authorization = "Bearer " + options.token;
  http::ServerOptions server;
  server.address = options.address;
  server.port = options.port;
  server.connections_max = kScrapersMax;
  server.body_bytes_max = 0;
  Impl* const self = impl.get();
  REGATTA_TRY(listening, http::HttpServer::listen(impl->loop, server, options.identity,
                                                  [self](std::unique_ptr<http::Exchange> exchange) {
                                                    self->handle(*exchange);
                                                  }));
  impl->server = std::move(listening);
  impl->thread = os::signal_masked_thread([self] { self->loop.run(); });
  return std::unique_ptr<MetricsServer>(new MetricsServer(std::move(impl)));
}

MetricsServer::MetricsServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

MetricsServer::~MetricsServer() {
  impl_->loop.stop();
  impl_->thread.join();
  impl_->server.reset();
}

std::uint16_t MetricsServer::port() const {
  return impl_->server->port();
}

void MetricsServer::publish(std::string text) {
  const MutexLock lock(impl_->mutex);
  impl_->text = std::move(text);
}

void MetricsServer::set_identity(http::ServerIdentity identity) {
  impl_->loop.post([impl = impl_.get(), identity = std::move(identity)] {
    static_cast<void>(impl->server->set_identity(identity));
  });
}

}  // namespace regatta::node_agent
