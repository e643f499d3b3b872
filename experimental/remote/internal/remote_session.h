// experimental/remote/internal/remote_session.h: the client's side of a server: each thread of the
// program sends its calls to its own thread of the host process. The server sees one order of all
// threads: before a call is sent, calls that other threads sent without waiting are flushed, and a
// fence delays the call until they have run.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "experimental/remote/internal/bytes.h"
#include "experimental/remote/internal/channel.h"
#include "experimental/remote/internal/frames.h"
#include "experimental/remote/internal/rendezvous.h"
#include "regatta/base/core/mutex.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::remote {

// One thread's.
struct SessionConnection {
  SessionConnection(std::unique_ptr<ByteChannel> own, std::uint64_t own_id)
      : id(own_id), channel(std::move(own)), inbox(*channel) {}
  const std::uint64_t id;
  const std::unique_ptr<ByteChannel>
      channel;           // any thread sends under mutex, its own thread receives
  BufferedReader inbox;  // of its thread
  Buffer answer;         // of its thread

  std::uint64_t issued = 0;     // messages; guarded by the session's order_
  std::uint64_t last_sent = 0;  // the last without an answer; likewise
  std::uint64_t last_done = 0;  // the last that was answered; likewise

  Mutex mutex;          // taken after the order_ of the session
  bool is_open = true;  // guarded by mutex
  Buffer out;           // guarded by mutex
};

class RemoteSession {
 public:
  // The process's only one, opened by its first call. Never freed.
  static RemoteSession& instance();

  // A message of this thread. Between begin() and finish() or send() it is written to writer().
  class Message {
   public:
    Message(std::uint16_t number, bool wants_answer);
    Message(const Message&) = delete;
    Message& operator=(const Message&) = delete;
    ~Message();

    CUresult status() const { return status_; }  // not CUDA_SUCCESS: no message can be sent
    MessageWriter writer() { return MessageWriter(connection_->out); }
    // Ends the message, which is sent soon.
    CUresult send();
    // Sends, waits and returns the status; `answer` is valid until this thread's next call.
    CUresult exchange(std::span<const std::byte>& answer);
    // Sends these bytes after the written ones, without copying them.
    CUresult send_with(const void* bytes, std::size_t count);
    // Receives the answer's head; receive() returns its bytes. For answers in pieces.
    bool receive_head(CallReplyHeader& head);
    bool receive(void* into, std::size_t count);
    void note_answer();
    CUresult lose();

   private:
    void finish_frame(std::size_t more);

    RemoteSession& session_;
    std::shared_ptr<SessionConnection> connection_;
    std::optional<MutexLock> order_;
    std::optional<MutexLock> writing_;
    std::size_t start_ = 0;
    std::uint64_t index_ = 0;
    bool wants_answer_;
    CUresult status_ = CUDA_SUCCESS;
  };

  bool is_blocking() const { return is_blocking_; }
  void lose(const char* why);

 private:
  RemoteSession();
  std::shared_ptr<SessionConnection> own_connection();
  std::shared_ptr<SessionConnection> connect();
  bool open();
  bool flush(SessionConnection& connection);  // its mutex is held
  void fence(SessionConnection& connection);  // order_ is held
  void start_flusher();
  void run_flusher();
  friend struct ThreadEnd;

  bool is_blocking_ = false;  // constant
  std::atomic<bool> is_lost_ = false;
  std::atomic<bool> is_forked_ = false;
  std::atomic<CUresult> failed_ = CUDA_SUCCESS;  // of the start

  Mutex joining_;                        // taken before order_
  std::uint64_t next_id_ = 1;            // guarded by joining_
  os::UniqueFd anchor_;                  // guarded by joining_
  ConnectOptions join_;                  // guarded by joining_
  bool is_open_ = false;                 // guarded by joining_
  bool has_reported_transport_ = false;  // guarded by joining_

  Mutex order_;                              // orders the messages of all threads
  std::shared_ptr<SessionConnection> last_;  // guarded by order_
  std::vector<std::shared_ptr<SessionConnection>> connections_;  // guarded by order_
  bool has_flusher_ = false;                                     // guarded by order_
  std::atomic<bool> has_unsent_ = false;
};

}  // namespace regatta::remote
