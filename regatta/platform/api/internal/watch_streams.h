// api/internal/watch_streams.h: open streams of events: each watcher gets the objects that changed,
// merged, a few times a second.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>

#include "regatta/base/http/event_loop.h"
#include "regatta/base/http/http_server.h"
#include "regatta/platform/api/change_history.h"
#include "regatta/platform/controller/controller_runtime.h"

namespace regatta::api {

class WatchStreams {
 public:
  WatchStreams(http::EventLoop& loop, controller::ControllerRuntime& runtime);
  ~WatchStreams();
  WatchStreams(const WatchStreams&) = delete;
  WatchStreams& operator=(const WatchStreams&) = delete;

  // GET /v1/watch: `kinds` (job,node,queues), `from` or Last-Event-ID: the revision from which on;
  // without it from now. Events of text/event-stream, or lines of JSON where Accept asks for them.
  void open(const std::shared_ptr<http::Exchange>& exchange);
  std::size_t count() const { return watchers_.size(); }

 private:
  struct Watcher {
    std::unique_ptr<http::ResponseStream> stream;
    std::set<std::string> kinds;  // empty: all
    bool is_lines = false;
    store::Revision sent = 0;
    int idle_flushes = 0;
    bool is_leaving = false;
  };
  // The texts of one flush: most watchers get the same text.
  struct Rendered {
    std::map<std::string, std::string> objects;  // JSON by key
    // By the revision from which on, and the form; nothing: that is too old.
    std::map<std::tuple<store::Revision, std::set<std::string>, bool>, std::optional<std::string>>
        texts;
  };
  using Place = std::list<Watcher>::iterator;
  void flush();
  // Later, as the stream may not be destroyed in its own handler.
  void remove(Place place);
  // False: the watcher is too far behind.
  bool send_news(Watcher& watcher, Rendered& rendered);
  const std::optional<std::string>& news_text(const Watcher& watcher, Rendered& rendered) const;
  std::string event_of(const Watcher& watcher, store::Revision revision, const std::string& key,
                       Rendered& rendered) const;

  http::EventLoop& loop_;
  controller::ControllerRuntime& runtime_;
  ChangeHistory history_;
  std::list<Watcher> watchers_;
  bool is_flush_due_ = false;
  std::shared_ptr<int> life_ = std::make_shared<int>(0);
};

}  // namespace regatta::api
