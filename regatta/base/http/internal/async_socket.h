// http/internal/async_socket.h: one connection of a loop, with or without TLS: gives what comes,
// sends what is queued, and holds no buffer while nothing happens.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/ip/tcp.hpp>

#include "regatta/base/core/units.h"
#include "regatta/base/http/event_loop.h"
#include "regatta/base/tls/tls_stream.h"

namespace regatta::http {

// Owned by the calls that wait on its socket and by those who hold exchanges of it. Used in the
// loop's thread alone.
class AsyncSocket : public std::enable_shared_from_this<AsyncSocket> {
 public:
  AsyncSocket(EventLoop& loop, boost::asio::ip::tcp::socket socket);
  AsyncSocket(const AsyncSocket&) = delete;
  AsyncSocket& operator=(const AsyncSocket&) = delete;
  virtual ~AsyncSocket() = default;

  // Queues bytes; they leave together when the present work is done.
  void write(std::string_view bytes);
  // The queue, for those who append to it; send_soon() afterwards.
  std::string& output() { return output_; }
  void send_soon();
  std::size_t queued_bytes() const { return output_.size() - sent_; }

  // Input waits in the system's buffers while reading is paused.
  void pause_reading() { is_reading_ = false; }
  void resume_reading();
  // Sends what is queued, then ends; drops what still comes for a while, so that the peer can read
  // the last response.
  void close_after_sending();
  // Ends now. Calls on_closed() if it was open.
  void close();
  bool is_closed() const { return is_closed_; }
  bool is_closing() const { return is_closing_; }

  // Runs `work` in the loop's thread, later; the socket lives until then.
  template <typename Work>
  void post(Work work) {
    loop_.post([self = shared_from_this(), work = std::move(work)] { work(); });
  }
  // Bounds of time, for calls now and then. Closes a socket that had bytes to send for longer than
  // `send_limit` (0: none) without progress, and one whose peer does not end after our end.
  void check_progress(Seconds now, Seconds send_limit);

 protected:
  // Begins with the handshake of `stream`, where there is one; then on_open().
  void start(std::optional<tls::TlsStream> stream);
  boost::asio::ip::tcp::socket& socket() { return socket_; }
  EventLoop& loop() { return loop_; }
  const tls::TlsStream* stream() const { return stream_ ? &*stream_ : nullptr; }
  bool is_open() const { return is_open_; }
  // Why it was closed, where the peer or the system did it.
  const std::string& problem() const { return problem_; }
  bool is_untrusted() const { return is_untrusted_; }

 private:
  virtual void on_open() {}
  virtual void on_input(std::string_view bytes) = 0;
  // All that was queued has been sent.
  virtual void on_sent() {}
  // The peer sends no more.
  virtual void on_end() { close(); }
  virtual void on_closed() = 0;

  void wait_for_input();
  void wait_for_output();
  void on_readable();
  void take_handshake();
  void read_some();
  void drop_input();
  tls::StreamTransfer read_once(char* into, std::size_t count);
  tls::StreamTransfer write_once(std::string_view bytes);
  void send_now();
  void end_output();
  void fail(std::string problem);

  EventLoop& loop_;
  boost::asio::ip::tcp::socket socket_;
  std::optional<tls::TlsStream> stream_;
  std::string output_;
  std::size_t sent_ = 0;   // bytes of output_
  double progress_s_ = 0;  // when bytes were last sent, or began to wait
  std::string problem_;
  bool is_open_ = false;  // the handshake is over
  bool is_untrusted_ = false;
  bool is_reading_ = true;
  bool is_waiting_input_ = false;
  bool is_waiting_output_ = false;
  bool is_read_blocked_ = false;  // reading needs a writable socket
  bool is_drained_ = false;       // the last read found less than a record
  bool is_in_turn_ = false;       // on_readable() sends at its end
  bool is_send_posted_ = false;
  bool is_closing_ = false;  // ends after what is queued
  bool is_ended_ = false;    // our end was sent; input is dropped
  bool is_closed_ = false;
};

}  // namespace regatta::http
