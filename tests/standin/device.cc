#include "tests/standin/device.h"

#include <algorithm>
#include <utility>

namespace regatta::standin {

void Device::add_client(ClientId client, std::uint32_t pid) {
  clients_[client].pid = pid;
}

void Device::remove_client(ClientId client) {
  const auto owned = [&](const auto& entry) { return entry.first.client == client; };
  for (EngineState& engine : engines_) {
    const bool head = !engine.queue.empty() && engine.queue.front().client == client;
    std::erase_if(engine.queue, [&](Key stream) { return stream.client == client; });
    if (head) begin_copy(engine);
  }
  for (EngineInterval& interval : engine_log_)  // what it will not do any more
    if (interval.client == client) interval.end = std::min(interval.end, clock_);
  std::erase_if(contexts_, owned);
  std::erase_if(streams_, owned);
  std::erase_if(answers_, owned);
  std::erase_if(marks_, owned);
  std::erase_if(unsettled_, [&](Key stream) { return stream.client == client; });
  if (active_ && active_->client == client) active_.reset();
  used_bytes_ -= clients_[client].bytes;
  clients_.erase(client);
}

bool Device::reserve(ClientId client, std::uint64_t bytes) {
  if (bytes > free_bytes()) return false;
  used_bytes_ += bytes;
  most_used_bytes_ = std::max(most_used_bytes_, used_bytes_);
  clients_[client].bytes += bytes;
  return true;
}

bool Device::release(ClientId client, std::uint64_t bytes) {
  if (bytes > clients_[client].bytes) return false;
  used_bytes_ -= bytes;
  clients_[client].bytes -= bytes;
  return true;
}

void Device::move(ClientId from, ClientId to, std::uint64_t bytes) {
  clients_.at(from).bytes -= bytes;
  clients_.at(to).bytes += bytes;
}

void Device::suspend(ClientId client) {
  Usage& usage = clients_.at(client);
  if (usage.suspended) return;
  usage.suspended = usage.bytes;
  used_bytes_ -= usage.bytes;
  usage.bytes = 0;
}

bool Device::resume(ClientId client) {
  Usage& usage = clients_.at(client);
  if (!usage.suspended) return true;
  if (!reserve(client, *usage.suspended)) return false;
  usage.suspended.reset();
  return true;
}

void Device::open_context(Key context) {
  contexts_[context];
}

void Device::close_context(Key context) {
  std::vector<Key> gone;
  for (const auto& [key, stream] : streams_)
    if (stream.context == context) gone.push_back(key);
  const auto is_gone = [&](Key key) { return std::ranges::find(gone, key) != gone.end(); };
  for (EngineState& engine : engines_) {
    const bool head = !engine.queue.empty() && is_gone(engine.queue.front());
    std::erase_if(engine.queue, is_gone);
    if (head) begin_copy(engine);
  }
  std::erase_if(answers_, [&](const auto& entry) { return is_gone(entry.second); });
  for (const Key key : gone) {
    unsettled_.erase(key);
    streams_.erase(key);
  }
  contexts_.erase(context);
  if (active_ == context) active_.reset();
}

void Device::open_stream(Key stream, std::uint64_t context, StreamKind kind, int priority) {
  streams_[stream] = {
      .context = {stream.client, context}, .kind = kind, .priority = priority, .queue = {}};
}

void Device::close_stream(Key stream) {
  const auto at = streams_.find(stream);
  if (at == streams_.end()) return;
  at->second.closing = true;
  if (at->second.queue.empty()) streams_.erase(at);
}

bool Device::submit(Key key, Op op) {
  const auto at = streams_.find(key);
  if (at == streams_.end() || !contexts_.contains(at->second.context)) return false;
  Stream& stream = at->second;
  // The legacy default stream waits for every blocking stream of its context, and they for it.
  if (stream.kind != StreamKind::kNonBlocking)
    for (const auto& [other_key, other] : streams_)
      if (other.context == stream.context && other_key != key && !other.queue.empty() &&
          other.kind != StreamKind::kNonBlocking &&
          (stream.kind == StreamKind::kLegacy || other.kind == StreamKind::kLegacy))
        op.after.push_back({other_key.id, other.submitted});
  stream.queue.push_back(std::move(op));
  ++stream.submitted;
  if (stream.queue.size() == 1) unsettled_.insert(key);
  return true;
}

void Device::answer(ClientId client, std::uint64_t ticket) {
  const auto at = answers_.find({client, ticket});
  if (at == answers_.end()) return;
  const Key key = at->second;
  answers_.erase(at);
  complete(key, streams_.at(key));
}

void Device::complete(Key key, Stream& stream) {
  const Op& op = stream.queue.front();
  if (op.kind == OpKind::kMark && op.ticket != 0) marks_[{key.client, op.ticket}] = clock_;
  stream.queue.pop_front();
  ++stream.done;
  if (!stream.queue.empty())
    unsettled_.insert(key);
  else if (stream.closing)
    streams_.erase(key);
}

bool Device::may_start(Key key, const Op& op) const {
  return std::ranges::all_of(op.after, [&](Dependency after) {
    return is_done({key.client, after.stream}, after.sequence);
  });
}

// Starts the stream's next operation; true when it has ended at once.
bool Device::start(Key key, Stream& stream, std::vector<Notice>& notices) {
  const Op& op = stream.queue.front();
  switch (op.kind) {
    case OpKind::kKernel: {
      std::deque<Key>& ready = contexts_.at(stream.context).ready;
      const auto after = std::ranges::upper_bound(
          ready, stream.priority, {}, [&](Key other) { return streams_.at(other).priority; });
      ready.insert(after, key);
      return false;
    }
    case OpKind::kCopy: {
      EngineState& engine = engines_[static_cast<int>(op.engine)];
      engine.queue.push_back(key);
      if (engine.queue.size() == 1) begin_copy(engine);
      return false;
    }
    case OpKind::kCall:
      notify(key, op.ticket, notices);
      return false;
    case OpKind::kMark:
      complete(key, stream);
      return true;
  }
  return false;
}

void Device::settle(std::vector<Notice>& notices) {
  for (bool again = true; again;) {
    again = false;
    const std::vector<Key> keys(unsettled_.begin(), unsettled_.end());
    for (const Key key : keys) {
      Stream& stream = streams_.at(key);
      if (!may_start(key, stream.queue.front())) continue;
      unsettled_.erase(key);
      again |= start(key, stream, notices);
    }
  }
}

void Device::notify(Key stream, std::uint64_t ticket, std::vector<Notice>& notices) {
  answers_[{stream.client, ticket}] = stream;
  notices.push_back({stream.client, ticket});
}

void Device::begin_copy(EngineState& engine) {
  if (engine.queue.empty()) return;
  const Op& op = streams_.at(engine.queue.front()).queue.front();
  const double rate =
      op.engine == Engine::kWithin ? settings_.device_copy_rate : settings_.host_copy_rate;
  const Time copy(static_cast<Time::rep>(static_cast<double>(op.bytes) / rate * 1e9));
  engine.end = clock_ + (op.duration > Time{} ? op.duration : copy);
  const ClientId client = engine.queue.front().client;
  engine_log_.push_back({client, clients_.at(client).pid, op.engine, clock_, engine.end, op.bytes});
}

// The context whose turn comes after the active one's, if any other has something to run.
std::optional<Key> Device::next_context() const {
  const auto pick = [&](auto begin, auto end) -> std::optional<Key> {
    for (auto at = begin; at != end; ++at)
      if (at->second.has_work() && at->first != active_) return at->first;
    return std::nullopt;
  };
  const auto middle = active_ ? contexts_.upper_bound(*active_) : contexts_.begin();
  const auto after = pick(middle, contexts_.end());
  return after ? after : pick(contexts_.begin(), middle);
}

void Device::choose_context() {
  const bool idle = !active_ || !contexts_.at(*active_).has_work();
  if (!idle && clock_ < slice_end_) return;
  if (const auto next = next_context()) active_ = next;
  slice_end_ = clock_ + settings_.time_slice;
}

// Kernels of one context share its turn as far as the processors go.
void Device::start_kernels() {
  if (!active_) return;
  Context& context = contexts_.at(*active_);
  unsigned used = 0;
  for (const Kernel& kernel : context.running)
    used += kernel.width;
  while (!context.ready.empty()) {
    const Op& op = streams_.at(context.ready.front()).queue.front();
    const unsigned width = std::clamp(op.width, 1U, settings_.processors);
    if (used + width > settings_.processors) break;
    context.running.push_back({context.ready.front(), op.duration, width});
    context.ready.pop_front();
    used += width;
  }
}

std::optional<Time> Device::next_event() const {
  std::optional<Time> next;
  const auto consider = [&](Time time) { next = next ? std::min(*next, time) : time; };
  for (const EngineState& engine : engines_)
    if (!engine.queue.empty()) consider(engine.end);
  if (active_) {
    const Context& context = contexts_.at(*active_);
    for (const Kernel& kernel : context.running)
      consider(clock_ + kernel.left);
    if (!context.running.empty() && next_context()) consider(std::max(slice_end_, clock_));
  }
  return next;
}

void Device::run_until(Time until) {
  if (until <= clock_) return;
  if (active_ && !contexts_.at(*active_).running.empty()) {
    for (Kernel& kernel : contexts_.at(*active_).running)
      kernel.left -= until - clock_;
    Usage& usage = clients_.at(active_->client);
    usage.busy += until - clock_;
    const Interval now{usage.pid, active_->id, clock_, until};
    if (!log_.empty() && log_.back().end == now.start && log_.back().pid == now.pid &&
        log_.back().context == now.context)
      log_.back().end = until;
    else
      log_.push_back(now);
  }
  clock_ = until;
}

void Device::end_due(std::vector<Notice>& notices) {
  for (EngineState& engine : engines_) {
    if (engine.queue.empty() || engine.end > clock_) continue;
    const Key key = engine.queue.front();
    engine.queue.pop_front();
    notify(key, streams_.at(key).queue.front().ticket, notices);
    begin_copy(engine);
  }
  if (!active_) return;
  std::vector<Kernel>& running = contexts_.at(*active_).running;
  const auto ended = std::stable_partition(
      running.begin(), running.end(), [](const Kernel& kernel) { return kernel.left > Time{}; });
  const std::vector<Kernel> gone(ended, running.end());
  running.erase(ended, running.end());
  for (const Kernel& kernel : gone) {
    ++clients_.at(kernel.stream.client).kernels;
    complete(kernel.stream, streams_.at(kernel.stream));
  }
}

void Device::advance(Time now, std::vector<Notice>& notices) {
  while (true) {
    settle(notices);
    choose_context();
    start_kernels();
    const auto next = next_event();
    run_until(next ? std::min(*next, now) : now);
    if (!next || *next > now) return;
    end_due(notices);
  }
}

bool Device::is_done(Key stream, std::uint64_t sequence) const {
  const auto at = streams_.find(stream);
  return at == streams_.end() || at->second.done >= sequence;
}

bool Device::is_idle(Key context) const {
  return std::ranges::all_of(streams_, [&](const auto& entry) {
    return entry.second.context != context || entry.second.queue.empty();
  });
}

bool Device::has_work(ClientId client) const {
  return std::ranges::any_of(streams_, [&](const auto& entry) {
    return entry.first.client == client && !entry.second.queue.empty();
  });
}

std::map<ClientId, Usage> Device::usage() const {
  std::map<ClientId, Usage> usage = clients_;
  // One that is suspended is not on the device.
  for (const auto& [key, context] : contexts_)
    if (!usage[key.client].suspended) ++usage[key.client].contexts;
  return usage;
}

std::map<std::uint32_t, Activity> Device::activity(Time begin, Time end) const {
  std::map<std::uint32_t, Activity> processes;
  const auto part = [&](const auto& interval) {
    return std::min(end, interval.end) - std::max(begin, interval.start);
  };
  const auto first = std::ranges::upper_bound(log_, begin, {}, &Interval::end);
  for (auto at = first; at != log_.end() && at->start < end; ++at)
    processes[at->pid].kernels += part(*at);
  for (const EngineInterval& interval : engine_log_) {
    if (part(interval) <= Time{}) continue;
    Activity& activity = processes[interval.pid];
    (interval.engine == Engine::kEncode   ? activity.encoding
     : interval.engine == Engine::kDecode ? activity.decoding
                                          : activity.copies) += part(interval);
  }
  return processes;
}

std::vector<Sample> Device::samples(Time since) const {
  constexpr int kKept = 64;
  const Time period = settings_.sample_period;
  const Time last = clock_ / period * period;
  std::vector<Sample> samples;
  for (Time end = std::max(last - (kKept - 1) * period, period); end <= last; end += period)
    if (end > since) samples.push_back({end, activity(end - period, end)});
  return samples;
}

std::optional<Time> Device::mark_time(Key event) const {
  const auto at = marks_.find(event);
  return at == marks_.end() ? std::nullopt : std::optional(at->second);
}

}  // namespace regatta::standin
