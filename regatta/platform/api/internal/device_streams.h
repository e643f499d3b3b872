// api/internal/device_streams.h: streams of what devices do: GET /v1/watch?kinds=device.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "regatta/base/core/units.h"
#include "regatta/base/http/event_loop.h"
#include "regatta/base/http/http_server.h"
#include "regatta/platform/controller/cluster_monitor.h"

namespace regatta::api {

class DeviceStreams {
 public:
  DeviceStreams(http::EventLoop& loop, controller::ClusterMonitor& monitor)
      : loop_(loop), monitor_(monitor) {}
  DeviceStreams(const DeviceStreams&) = delete;
  DeviceStreams& operator=(const DeviceStreams&) = delete;

  // `devices` of the query: the cursor from which on.
  void open(const std::shared_ptr<http::Exchange>& exchange);
  std::size_t count() const { return readers_.size(); }

 private:
  struct Reader {
    std::unique_ptr<http::ResponseStream> stream;
    std::string cursor;
    bool is_lines = false;
    Seconds due;  // of the next event, so that it gets no more than its share of bytes
    Seconds sent;
  };
  // Events that several readers get, by the cursor from which on.
  struct Event {
    std::string json;
    std::string cursor;
  };
  void flush();
  void send(Reader& reader, Seconds now, std::map<std::string, Event>& events);

  http::EventLoop& loop_;
  controller::ClusterMonitor& monitor_;
  std::list<Reader> readers_;
  bool is_flush_due_ = false;
  std::shared_ptr<int> life_ = std::make_shared<int>(0);
};

}  // namespace regatta::api
