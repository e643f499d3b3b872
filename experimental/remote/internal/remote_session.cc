#include "experimental/remote/internal/remote_session.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include <pthread.h>
#include <unistd.h>

#include "experimental/remote/internal/rdma_packet_port.h"
#include "experimental/remote/internal/socket.h"
#include "experimental/remote/internal/table.h"
#include "regatta/base/core/mutex.h"
#include "regatta/base/os/process.h"

namespace regatta::remote {

namespace {

constexpr std::size_t kGathered = 32 << 10;   // bytes; more are sent at once
constexpr useconds_t kGatheringMicros = 100;  // the longest time that a message waits for others

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

// Closes a thread's connection when the thread ends.
struct ThreadEnd {
  std::shared_ptr<SessionConnection> connection;
  ~ThreadEnd() {
    if (!connection) return;
    RemoteSession& session = RemoteSession::instance();
    if (session.is_forked_) return;  // threads that do not exist here may hold the locks
    {
      const MutexLock lock(connection->mutex);
      static_cast<void>(session.flush(*connection));
      connection->is_open = false;
    }
    // This may take a second, without holding up others. A child of fork() finds the connection
    // meanwhile.
    connection->channel->close();
    const MutexLock lock(session.order_);
    std::erase(session.connections_, connection);
  }
};
static thread_local ThreadEnd of_thread;

RemoteSession& RemoteSession::instance() {
  static auto* const session = new RemoteSession;
  return *session;
}

RemoteSession::RemoteSession() {
  const std::string blocking = variable("CUDA_LAUNCH_BLOCKING");
  is_blocking_ = !blocking.empty() && blocking != "0";
  static RemoteSession* self = nullptr;
  self = this;
  ::pthread_atfork(
      []() REGATTA_NO_THREAD_SAFETY_ANALYSIS {
        self->joining_.lock();
        self->order_.lock();
      },
      []() REGATTA_NO_THREAD_SAFETY_ANALYSIS {
        self->order_.unlock();
        self->joining_.unlock();
      },
      []() REGATTA_NO_THREAD_SAFETY_ANALYSIS {
        // The connections are the parent's; the driver does not work after fork() either.
        self->is_forked_ = true;
        self->anchor_.reset();
        for (const auto& connection : self->connections_)
          connection->channel->leave();
        leave_rdma();
        self->order_.unlock();
        self->joining_.unlock();
      });
}

void RemoteSession::lose(const char* why) {
  if (is_lost_.exchange(true)) return;
  std::fprintf(stderr,
               "regatta: the GPU server is lost (%s); calls of the driver fail from now on\n", why);
}

// Under joining_. Requests a host process of the server.
bool RemoteSession::open() {
  join_.server = variable("REGATTA_GPU_SERVER");
  join_.ticket = variable("REGATTA_GPU_TICKET");
  join_.rdma_address = variable("REGATTA_GPU_RDMA_ADDRESS");
  if (join_.server.empty() || join_.ticket.empty()) {
    std::fputs("regatta: no GPU server is named; start the program with regatta gpu pool run\n",
               stderr);
    return false;
  }
  const auto transport = parse_transport(variable("REGATTA_GPU_TRANSPORT"));
  if (!transport) {
    std::fprintf(stderr, "regatta: REGATTA_GPU_TRANSPORT: %s\n", transport.error().message.c_str());
    return false;
  }
  join_.transport = *transport;
  join_.is_plain = variable("REGATTA_GPU_PLAIN") == "1";
  auto anchor = connect_to_server(join_);
  if (!anchor) {
    std::fprintf(stderr, "regatta: %s\n", anchor.error().message.c_str());
    return false;
  }
  const std::string ask = R"({"request":"open","ticket":")" + join_.ticket + R"(","table":")" +
                          std::to_string(table_mark()) + R"("})";
  static_cast<void>(send_text(**anchor, ask));
  auto key = receive_text(**anchor);
  if (!key) {
    std::fprintf(stderr, "regatta: %s: %s\n", join_.server.c_str(), key.error().message.c_str());
    return false;
  }
  join_.key = *key;
  anchor_ = (*anchor)->release();
  is_open_ = true;
  return true;
}

// Takes seconds when the server or its device is slow: order_ is free, so threads that have joined
// continue.
std::shared_ptr<SessionConnection> RemoteSession::connect() {
  const MutexLock joining(joining_);
  if (is_lost_ || failed_ != CUDA_SUCCESS) return nullptr;
  if (!is_open_ && !open()) {
    failed_ = CUDA_ERROR_NO_DEVICE;
    return nullptr;
  }
  auto joined = connect_to_host(join_, next_id_);
  if (!joined) {
    lose(joined.error().message.c_str());
    return nullptr;
  }
  if (!std::exchange(has_reported_transport_, true) && variable("REGATTA_GPU_VERBOSE") == "1")
    std::fprintf(stderr, "regatta: %s: %s\n", join_.server.c_str(), joined->how.c_str());
  // A transport that failed once is not tried again.
  if (!joined->is_rdma) join_.transport = TransportChoice::kTcp;
  auto connection = std::make_shared<SessionConnection>(std::move(joined->channel), joined->number);
  const MutexLock lock(order_);
  connections_.push_back(connection);
  return connection;
}

std::shared_ptr<SessionConnection> RemoteSession::own_connection() {
  if (!of_thread.connection) of_thread.connection = connect();
  return of_thread.connection;
}

bool RemoteSession::flush(SessionConnection& connection) {
  if (connection.out.empty()) return true;
  const bool is_sent = connection.channel->send(
      {reinterpret_cast<const char*>(connection.out.data()), connection.out.size()}, {});
  connection.out.clear();
  if (!is_sent) lose("it closed the connection");
  return is_sent;
}

void RemoteSession::fence(SessionConnection& connection) {
  const std::shared_ptr<SessionConnection> other = std::exchange(last_, of_thread.connection);
  if (!other || other.get() == &connection || other->last_sent <= other->last_done) return;
  {
    const MutexLock lock(other->mutex);
    if (other->is_open) static_cast<void>(flush(*other));
  }
  const MutexLock lock(connection.mutex);
  MessageWriter writer(connection.out);
  writer.put(Frame{sizeof(Fence), static_cast<std::uint16_t>(ControlMessage::kFence), 0});
  writer.put(Fence{other->id, other->last_sent});
  connection.last_sent = ++connection.issued;
}

// Under order_.
void RemoteSession::start_flusher() {
  if (has_flusher_) return;
  has_flusher_ = true;
  os::signal_masked_thread([this] { run_flusher(); }).detach();
}

void RemoteSession::run_flusher() {
  for (;;) {
    has_unsent_.wait(false);
    ::usleep(kGatheringMicros);
    has_unsent_ = false;
    std::vector<std::shared_ptr<SessionConnection>> all;
    {
      const MutexLock lock(order_);
      all = connections_;
    }
    for (const auto& connection : all) {
      const MutexLock lock(connection->mutex);
      if (connection->is_open) static_cast<void>(flush(*connection));
    }
  }
}

RemoteSession::Message::Message(std::uint16_t number, bool wants_answer)
    : session_(RemoteSession::instance()), wants_answer_(wants_answer || session_.is_blocking_) {
  if (session_.is_lost_) status_ = kServerLost;
  if (session_.failed_ != CUDA_SUCCESS) status_ = session_.failed_;
  if (session_.is_forked_) status_ = CUDA_ERROR_NOT_INITIALIZED;
  if (status_ != CUDA_SUCCESS) return;
  connection_ = session_.own_connection();
  if (!connection_) {
    status_ = session_.is_lost_ ? kServerLost : session_.failed_.load();
    return;
  }
  order_.emplace(session_.order_);
  session_.fence(*connection_);
  index_ = ++connection_->issued;
  if (!wants_answer_) connection_->last_sent = index_;
  writing_.emplace(connection_->mutex);
  start_ = connection_->out.size();
  writer().put(Frame{0, number, wants_answer_});
}

RemoteSession::Message::~Message() = default;

void RemoteSession::Message::finish_frame(std::size_t more) {
  const std::size_t bytes = connection_->out.size() - start_ - sizeof(Frame) + more;
  const auto stated = static_cast<std::uint32_t>(bytes);
  std::memcpy(connection_->out.data() + start_, &stated, sizeof stated);
}

CUresult RemoteSession::Message::lose() {
  session_.lose("it closed the connection");
  return kServerLost;
}

CUresult RemoteSession::Message::send() {
  finish_frame(0);
  const bool is_much = connection_->out.size() >= kGathered;
  if (is_much && !session_.flush(*connection_)) return kServerLost;
  if (!is_much && !session_.has_unsent_.load(std::memory_order_relaxed)) {
    session_.start_flusher();
    session_.has_unsent_ = true;
    session_.has_unsent_.notify_one();
  }
  writing_.reset();
  order_.reset();
  return CUDA_SUCCESS;
}

CUresult RemoteSession::Message::exchange(std::span<const std::byte>& answer) {
  finish_frame(0);
  order_.reset();
  const bool is_sent = session_.flush(*connection_);
  writing_.reset();
  CallReplyHeader head;
  if (!is_sent || !receive_head(head)) return lose();
  connection_->answer.resize(head.bytes);
  if (!receive(connection_->answer.data(), head.bytes)) return lose();
  note_answer();
  answer = connection_->answer;
  return head.status;
}

CUresult RemoteSession::Message::send_with(const void* bytes, std::size_t count) {
  finish_frame(count);
  order_.reset();
  const auto text = [](const void* from, std::size_t size) {
    return std::string_view(static_cast<const char*>(from), size);
  };
  const bool is_sent = connection_->channel->send(
      text(connection_->out.data(), connection_->out.size()), text(bytes, count));
  connection_->out.clear();
  writing_.reset();
  return is_sent ? CUDA_SUCCESS : lose();
}

bool RemoteSession::Message::receive_head(CallReplyHeader& head) {
  return receive(&head, sizeof head) && head.bytes <= kLongestMessage;
}

bool RemoteSession::Message::receive(void* into, std::size_t count) {
  return connection_->inbox.read(into, count);
}

void RemoteSession::Message::note_answer() {
  const MutexLock lock(session_.order_);
  connection_->last_done = index_;
}

}  // namespace regatta::remote
