// tests/standin/device.h: the model of a GPU that several processes share: how many bytes each
// holds and whose kernels run when. Time is an argument: the same calls give the same log.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace regatta::standin {

using Time = std::chrono::nanoseconds;
using ClientId = std::uint32_t;

struct Settings {
  std::uint64_t memory_bytes = 8ULL << 30;
  std::uint64_t context_bytes = 0;  // what a context takes for itself
  unsigned processors = 132;
  double host_copy_rate = 25e9;    // bytes a second, in each direction
  double device_copy_rate = 1e12;  // bytes a second, copies and sets within the device
  Time time_slice = std::chrono::milliseconds(1);
  // Observers outside see the last whole period; documented for GPUs: 1/6 s to 1 s.
  Time sample_period = std::chrono::milliseconds(500);
};

// A context or a stream of one client, which chooses the number.
struct Key {
  ClientId client = 0;
  std::uint64_t id = 0;
  auto operator<=>(const Key&) const = default;
};

enum class OpKind : std::uint8_t {
  kKernel,
  kCopy,  // an engine's time, then the client moves the bytes
  kCall,  // the client does something: a host function
  kMark,  // nothing: notes the time for an event, or waits for another stream
};
enum class Engine : std::uint8_t { kToDevice, kToHost, kWithin, kEncode, kDecode };
constexpr int kEngines = 5;

// How a stream goes with the default stream of its context.
enum class StreamKind : std::uint8_t { kBlocking, kNonBlocking, kLegacy };

// Done when this many operations of the stream are.
struct Dependency {
  std::uint64_t stream = 0;
  std::uint64_t sequence = 0;
};

struct Op {
  OpKind kind = OpKind::kMark;
  Engine engine = Engine::kWithin;
  unsigned width = 1;        // processors that a kernel can fill
  Time duration{};           // of a kernel that runs alone, of a picture's encoding or decoding
  std::uint64_t bytes = 0;   // of a copy
  std::uint64_t ticket = 0;  // of a copy or call, for the client; of a mark: the event, 0 for none
  std::vector<Dependency> after;
};

// The client is to do what it keeps under this ticket, then to answer.
struct Notice {
  ClientId client = 0;
  std::uint64_t ticket = 0;
};

// The device worked for one context.
struct Interval {
  std::uint32_t pid = 0;
  std::uint64_t context = 0;
  Time start{};
  Time end{};
};

// An engine worked for one client.
struct EngineInterval {
  ClientId client = 0;
  std::uint32_t pid = 0;
  Engine engine = Engine::kWithin;
  Time start{};
  Time end{};
  std::uint64_t bytes = 0;  // of a copy
};

struct Usage {
  std::uint32_t pid = 0;
  std::uint64_t bytes = 0;
  Time busy{};
  std::uint64_t kernels = 0;  // that have ended
  std::uint64_t contexts = 0;
  std::optional<std::uint64_t> suspended{};  // what it held
};

// Work of a process in a span of time.
struct Activity {
  Time kernels{};
  Time copies{};
  Time encoding{};
  Time decoding{};
};
// The work of each process that worked in the period that ended then.
struct Sample {
  Time end{};
  std::map<std::uint32_t, Activity> processes;
};

class Device {
 public:
  explicit Device(const Settings& settings) : settings_(settings) {}

  void add_client(ClientId client, std::uint32_t pid);
  void remove_client(ClientId client);  // with all it has

  // False, and nothing is taken, when the device has no room for it.
  bool reserve(ClientId client, std::uint64_t bytes);
  // False when the client does not hold as much.
  bool release(ClientId client, std::uint64_t bytes);
  // Bytes that stay taken and are another client's from now on.
  void move(ClientId from, ClientId to, std::uint64_t bytes);
  // The client's memory becomes free for others until it takes it again: false where there is no
  // room for it then.
  void suspend(ClientId client);
  bool resume(ClientId client);
  std::uint64_t free_bytes() const { return settings_.memory_bytes - used_bytes_; }
  std::uint64_t most_used_bytes() const { return most_used_bytes_; }  // that ever were

  void open_context(Key context);
  void close_context(Key context);  // what its streams still had to do is dropped
  // A lower `priority` comes first among the kernels of a context that wait for processors.
  void open_stream(Key stream, std::uint64_t context, StreamKind kind, int priority = 0);
  void close_stream(Key stream);  // once it has done what it was given
  // False when there is no such stream.
  bool submit(Key stream, Op op);
  void answer(ClientId client, std::uint64_t ticket);
  void forget_mark(Key event) { marks_.erase(event); }

  // Lets the device work until `now`; what clients have to do is added to `notices`.
  void advance(Time now, std::vector<Notice>& notices);
  // When something ends if nothing is submitted before; none: nothing is under way. After
  // advance().
  std::optional<Time> next_event() const;

  bool is_done(Key stream, std::uint64_t sequence) const;
  bool is_idle(Key context) const;       // every stream of it
  bool has_work(ClientId client) const;  // anything submitted and not done
  bool awaits_answers() const { return !answers_.empty(); }
  std::optional<Time> mark_time(Key event) const;
  std::map<ClientId, Usage> usage() const;
  std::map<std::uint32_t, Activity> activity(Time begin, Time end) const;
  // The whole periods that ended after `since`, the newest last; at most the last 64.
  std::vector<Sample> samples(Time since) const;
  const std::vector<Interval>& log() const { return log_; }
  // Work of each engine, one copy or picture after the other.
  const std::vector<EngineInterval>& engine_log() const { return engine_log_; }
  const Settings& settings() const { return settings_; }

 private:
  struct Stream {
    Key context;
    StreamKind kind = StreamKind::kBlocking;
    int priority = 0;
    std::deque<Op> queue;
    std::uint64_t submitted = 0;
    std::uint64_t done = 0;
    bool closing = false;
  };
  struct Kernel {
    Key stream;
    Time left{};
    unsigned width = 1;
  };
  struct Context {
    std::vector<Kernel> running;  // it goes on when the context has its turn
    std::deque<Key> ready;        // streams whose next kernel may start
    bool has_work() const { return !running.empty() || !ready.empty(); }
  };
  struct EngineState {
    std::deque<Key> queue;
    Time end{};
  };

  void settle(std::vector<Notice>& notices);
  bool start(Key key, Stream& stream, std::vector<Notice>& notices);
  bool may_start(Key key, const Op& op) const;
  void complete(Key key, Stream& stream);
  void begin_copy(EngineState& engine);
  void choose_context();
  std::optional<Key> next_context() const;
  void start_kernels();
  void run_until(Time until);
  void end_due(std::vector<Notice>& notices);
  void notify(Key stream, std::uint64_t ticket, std::vector<Notice>& notices);

  Settings settings_;
  Time clock_{};
  std::uint64_t used_bytes_ = 0;
  std::uint64_t most_used_bytes_ = 0;
  std::map<ClientId, Usage> clients_;
  std::map<Key, Context> contexts_;
  std::map<Key, Stream> streams_;
  std::set<Key> unsettled_;  // streams with an operation that has not been looked at or waits
  EngineState engines_[kEngines];
  std::map<Key, Key> answers_;  // ticket of a client -> the stream that waits for the answer
  std::map<Key, Time> marks_;
  std::optional<Key> active_;
  Time slice_end_{};
  std::vector<Interval> log_;
  std::vector<EngineInterval> engine_log_;
};

}  // namespace regatta::standin
