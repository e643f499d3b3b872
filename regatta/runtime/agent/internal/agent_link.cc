#include "regatta/runtime/agent/internal/agent_link.h"

#include <chrono>
#include <thread>
#include <utility>

#include <fmt/core.h>
#include <grpcpp/grpcpp.h>

#include "regatta/base/core/mutex.h"
#include "regatta/base/core/units.h"
#include "regatta/runtime/agent/agent.grpc.pb.h"

namespace regatta::agent {
namespace {

std::shared_ptr<grpc::Channel> make_channel(const std::string& target) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);  // agents are never behind one
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 200);
  return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

struct AgentLink::Impl {
  std::unique_ptr<proto::Agent::Stub> stub;
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReaderWriter<proto::SessionRequest, proto::AgentEvent>> stream;
  Sink sink;
  Mutex write_mutex;
  // No Write may run beside or after Finish.
  bool has_ended REGATTA_GUARDED_BY(write_mutex) = false;
  std::thread reader;

  void read() {
    proto::AgentEvent event;
    while (stream->Read(&event)) {
      sink(&event, {});
    }
    {
      const MutexLock lock(write_mutex);
      has_ended = true;
    }
    const grpc::Status status = stream->Finish();
    sink(nullptr, status.ok() ? "the agent ended the session" : status.error_message());
  }
};

AgentLink::AgentLink(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<AgentLink>> AgentLink::connect(const std::string& target,
                                                      const std::string& token, Seconds timeout,
                                                      Sink sink) {
  const auto channel = make_channel(target);
  const auto deadline = std::chrono::system_clock::now() +
                        std::chrono::milliseconds(static_cast<long long>(timeout.value * 1e3));
  if (!channel->WaitForConnected(deadline)) {
    return Error{Code::kUnavailable,
                 fmt::format("no agent answers at {} within {}; start regatta-agent there", target,
                             format_seconds(timeout))};
  }
  auto impl = std::make_unique<Impl>();
  impl->stub = proto::Agent::NewStub(channel);
  impl->stream = impl->stub->Attach(&impl->context);
  impl->sink = std::move(sink);
  proto::SessionRequest hello;
  hello.mutable_hello()->set_token(token);
  impl->stream->Write(hello);  // a failure shows in the reader
  impl->reader = std::thread([raw = impl.get()] { raw->read(); });
  return std::unique_ptr<AgentLink>(new AgentLink(std::move(impl)));
}

AgentLink::~AgentLink() {
  impl_->context.TryCancel();
  impl_->reader.join();
}

bool AgentLink::send(const proto::SessionRequest& request) {
  const MutexLock lock(impl_->write_mutex);
  return !impl_->has_ended && impl_->stream->Write(request);
}

}  // namespace regatta::agent
