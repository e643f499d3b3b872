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
    Seconds heard{0};  // when it was sent something last
    bool is_leaving = false;
  };
  // Which text a watcher gets; those that are level share one.
  struct NewsKey {
    store::Revision sent = 0;
    bool is_lines = false;
    std::set<std::string> kinds;
    auto operator<=>(const NewsKey&) const = default;
  };
  struct NewsText {
    std::string text;
    store::Revision last = 0;  // with it the watcher is level
  };
  using News = std::map<NewsKey, NewsText>;

  void flush();
  // Sends to the next watchers, and to `left` of them in all, with turns of the loop between.
  void flush_some(const std::shared_ptr<News>& news, std::size_t left, Seconds start);
  void flush_after(Seconds delay);
  void flush_early();
  // False: the watcher is too far behind.
  bool send_news(Watcher& watcher, News& news, Seconds now);
  using Place = std::list<Watcher>::iterator;
  // Later, as the stream may not be destroyed in its own handler.
  void remove(Place place);
  // Empty: nothing that it watches has changed; nothing at all: it fell too far behind.
  std::optional<std::string> news_of(const Watcher& watcher) const;
  std::string event_of(const Watcher& watcher, store::Revision revision,
                       const std::string& key) const;

  http::EventLoop& loop_;
  controller::ControllerRuntime& runtime_;
  ChangeHistory history_;
  std::list<Watcher> watchers_;
  bool is_flush_due_ = false;
  bool is_early_flush_due_ = false;
  Seconds last_news_{0};
  int flush_number_ = 0;  // of the timer that counts
  std::shared_ptr<int> life_ = std::make_shared<int>(0);
};

}  // namespace regatta::api
