#include "regatta/runtime/agent/internal/agent_service.h"

#include <chrono>
#include <memory>
#include <utility>

#include <fmt/core.h>
#include <grpcpp/grpcpp.h>

#include "regatta/base/os/clock.h"
#include "regatta/runtime/agent/agent.grpc.pb.h"
#include "regatta/runtime/agent/internal/worker_set.h"

namespace regatta::agent {
namespace {

class AgentService final : public proto::Agent::Service {
 public:
  explicit AgentService(std::string token) : token_(std::move(token)) {}

  grpc::Status Attach(  // NOLINT(readability-identifier-naming): the generated base names it
      grpc::ServerContext* /*context*/,
      grpc::ServerReaderWriter<proto::AgentEvent, proto::SessionRequest>* stream) override {
    if (busy_.exchange(true)) {
      return {grpc::StatusCode::ALREADY_EXISTS,
              "the agent serves another session; wait for its end"};
    }
    grpc::Status status = serve_session(*stream);
    busy_ = false;
    return status;
  }

  bool session_ended() const { return session_ended_; }

 private:
  using Stream = grpc::ServerReaderWriter<proto::AgentEvent, proto::SessionRequest>;

  grpc::Status serve_session(Stream& stream) {
    proto::SessionRequest request;
    if (!stream.Read(&request)) return grpc::Status::OK;
    if (!request.has_hello() || request.hello().token() != token_) {
      return {grpc::StatusCode::UNAUTHENTICATED,
              "the agent's token is another one; set REGATTA_AGENT_TOKEN to it"};
    }
    {
      // A failed Write needs no answer here: the Read below ends as well.
      WorkerSet workers([&stream](const proto::AgentEvent& event) { stream.Write(event); });
      while (stream.Read(&request)) {
        workers.submit(std::move(request));
        request = {};
      }
    }
    session_ended_ = true;
    return grpc::Status::OK;
  }

  const std::string token_;
  std::atomic<bool> busy_ = false;
  std::atomic<bool> session_ended_ = false;
};

}  // namespace

Status serve(const ServeOptions& options, const std::atomic<bool>& stop) {
  AgentService service(options.token);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(options.listen, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  builder.SetMaxReceiveMessageSize(-1);
  builder.SetMaxSendMessageSize(-1);
  // A session whose server has vanished ends after the sum of these times.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 2000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 4000);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (!server || port == 0) {
    return Error{Code::kUnavailable,
                 fmt::format("cannot listen on {}; is another agent there", options.listen)};
  }
  while (!stop && !(options.exit_with_session && service.session_ended())) {
    os::sleep_for(Seconds{0.05});
  }
  server->Shutdown(std::chrono::system_clock::now());
  return {};
}

}  // namespace regatta::agent
