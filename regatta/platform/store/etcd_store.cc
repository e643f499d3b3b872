#include "regatta/platform/store/etcd_store.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/base/os/clock.h"
#include "regatta/platform/store/internal/change_check.h"
#include "regatta/platform/store/internal/etcd/client.h"
#include "regatta/platform/store/internal/etcd/keys.h"
#include "regatta/platform/store/internal/etcd/leadership.h"
#include "regatta/platform/store/internal/shipped_log.h"

namespace regatta::store {
namespace {

// etcd takes at most 1.5 MiB a request and 128 operations a transaction.
constexpr std::size_t kPartMost = 1 << 20;
constexpr int kOperationsMost = 120;
constexpr std::size_t kBytesMost = 1 << 20;
constexpr int kPageSize = 500;
// Commits that wait to be brought into the records; then each new one brings some of them.
constexpr std::size_t kCommitsMost = 1000;
constexpr Seconds kCompactEvery{60.0};
constexpr std::string_view kPartsMark = "parts ";

// The last change of each key. Copies of a transaction that come late then change nothing, and a
// key occurs once in a transaction, as etcd demands.
std::vector<Change> last_changes(std::span<const Change> changes) {
  std::vector<Change> last;
  std::set<std::string_view> later;
  for (auto change = changes.rbegin(); change != changes.rend(); ++change)
    if (later.insert(change->key).second) last.push_back(*change);
  return last;
}

class EtcdStore final : public Store {
 public:
  EtcdStore(const EtcdStoreOptions& options, std::shared_ptr<EtcdClient> client,
            std::unique_ptr<EtcdLeadership> leadership)
      : keys_(options.prefix),
        client_(std::move(client)),
        leadership_(std::move(leadership)),
        compact_time_(os::monotonic_now()) {}

  // Reads what earlier leaders left, and removes parts of commits that never came to be.
  Status begin() {
    REGATTA_TRY(now, read_revision());
    if (last_ == 0) {
      etcdserverpb::TxnRequest request;
      leadership_->fence(request);
      add_put(request, keys_.revision(), "0");
      REGATTA_TRY_DO(transact(request));
    }
    REGATTA_TRY_DO(read_commits(now));
    etcdserverpb::TxnRequest request = next_request();
    REGATTA_TRY(parts, read_all(keys_.parts(), now, true));
    std::set<std::string> published;
    for (const auto& [revision, commit] : commits_)
      published.insert(keys_.parts_of(revision));
    std::set<std::string> left;
    for (const auto& [key, value] : parts)
      left.insert(key.substr(0, key.rfind('/') + 1));
    for (const std::string& prefix : left)
      if (!published.contains(prefix) && request.success_size() < kOperationsMost)
        add_removal_of_all(request, prefix);
    return transact(request);
  }

  Result<Revision> load(const std::function<Status(const Record&)>& visit) override {
    REGATTA_TRY_DO(failure_);
    REGATTA_TRY(now, read_revision());
    REGATTA_TRY_DO(read_commits(now));
    // The commits are newer than the records.
    std::map<std::string, Change> newest;
    for (const auto& [revision, commit] : commits_)
      for (const Change& change : commit)
        newest[change.key] = change;
    auto next = newest.begin();
    const auto visit_newest = [&](const std::string* before) -> Status {
      for (; next != newest.end() && (before == nullptr || next->first < *before); ++next)
        if (next->second.value)
          REGATTA_TRY_DO(visit({next->first, next->second.revision, *next->second.value}));
      return {};
    };
    const Status status = read_pages(keys_.records(), now, false, [&](const auto& pair) -> Status {
      REGATTA_TRY(changes, decode(pair.key(), pair.value()));
      const Change& change = changes.front();
      REGATTA_TRY_DO(visit_newest(&change.key));
      if (next != newest.end() && next->first == change.key) return {};
      return visit({change.key, change.revision, *change.value});
    });
    REGATTA_TRY_DO(status);
    REGATTA_TRY_DO(visit_newest(nullptr));
    return last_;
  }

  Status commit(std::span<const Change> changes) override {
    REGATTA_TRY_DO(failure_);
    if (changes.empty()) return {};
    check_changes(changes, last_);
    const Revision revision = changes.back().revision;
    std::string bytes = encode_commit(last_, changes);
    if (bytes.size() > kPartMost) {
      REGATTA_TRY(mark, write_parts(revision, bytes));
      bytes = mark;
    }
    etcdserverpb::TxnRequest request = next_request();
    add_put(request, keys_.commit(revision), std::move(bytes));
    add_put(request, keys_.revision(), std::to_string(revision));
    REGATTA_TRY_DO(transact(request, std::to_string(revision)));
    last_ = revision;
    commits_.emplace(revision, last_changes(changes));
    if (commits_.size() > kCommitsMost) return bring_into_records(2);
    return {};
  }

  Status maintain() override {
    REGATTA_TRY_DO(failure_);
    // The fence is asked also when there is nothing to do.
    if (commits_.empty()) REGATTA_TRY_DO(transact(next_request()));
    REGATTA_TRY_DO(bring_into_records(20));
    if (os::monotonic_now() - compact_time_ < kCompactEvery) return {};
    compact_time_ = os::monotonic_now();
    const std::int64_t before = std::exchange(compact_revision_, etcd_revision_);
    return before == 0 ? Status() : checked(client_->compact(before));
  }

  Status backup_status() const override { return {}; }
  Seconds leads_until() const override { return leadership_->leads_until(); }

 private:
  // A full quota passes, and all else is final.
  Status checked(const Status& status) {
    if (!status && status.error().code != Code::kExhausted) failure_ = status;
    return status;
  }

  // A transaction of this leader that follows its last commit, and nothing else: a copy of it that
  // comes late changes nothing.
  etcdserverpb::TxnRequest next_request() const {
    etcdserverpb::TxnRequest request;
    leadership_->fence(request);
    etcdserverpb::Compare& compare = *request.add_compare();
    compare.set_target(etcdserverpb::Compare::VALUE);
    compare.set_key(keys_.revision());
    compare.set_value(std::to_string(last_));
    return request;
  }

  // `revision`: the value of the revision's key after it, which is there already when the answer to
  // a first try was lost; "": the present one.
  Status transact(etcdserverpb::TxnRequest request, const std::string& revision = {}) {
    add_read_on_failure(request, keys_.leader());
    add_read_on_failure(request, keys_.revision());
    const Result<etcdserverpb::TxnResponse> response = client_->transact(request);
    if (!response) return checked(response.error());
    etcd_revision_ = response->header().revision();
    if (response->succeeded()) return {};
    const auto value = [&](int index) {
      const auto& pairs = response->responses(index).response_range().kvs();
      return pairs.empty() ? std::string() : pairs[0].value();
    };
    // Nobody else writes this number in the time of this leader, or the fence would have failed
    // then and now.
    if (!revision.empty() && value(1) == revision) return check_fence();
    return checked(EtcdLeadership::lost_to(value(0)));
  }

  // Whether this leader still leads.
  Status check_fence() {
    etcdserverpb::TxnRequest request;
    leadership_->fence(request);
    add_read_on_failure(request, keys_.leader());
    const Result<etcdserverpb::TxnResponse> response = client_->transact(request);
    if (!response) return checked(response.error());
    if (response->succeeded()) return {};
    const auto& pairs = response->responses(0).response_range().kvs();
    return checked(EtcdLeadership::lost_to(pairs.empty() ? "" : pairs[0].value()));
  }

  // Parts of a commit count for nothing before the commit's own key names them.
  Result<std::string> write_parts(Revision revision, const std::string& bytes) {
    std::size_t count = 0;
    for (std::size_t at = 0; at < bytes.size(); at += kPartMost) {
      etcdserverpb::TxnRequest request = next_request();
      add_put(request, keys_.part(revision, count++), bytes.substr(at, kPartMost));
      REGATTA_TRY_DO(transact(request));
    }
    return fmt::format("{}{}", kPartsMark, count);
  }

  // At most so many transactions, oldest commit first. A commit's key goes last: until then it
  // stands for its records.
  Status bring_into_records(int transactions) {
    for (; transactions > 0 && !commits_.empty(); --transactions) {
      const auto& [revision, changes] = *commits_.begin();
      etcdserverpb::TxnRequest request = next_request();
      // A copy that comes after the commit's end would undo later ones.
      etcdserverpb::Compare& compare = *request.add_compare();
      compare.set_target(etcdserverpb::Compare::VERSION);
      compare.set_key(keys_.commit(revision));
      compare.set_version(1);
      done_ = add_records(request, changes, done_);
      const bool is_last = done_ == changes.size();
      if (is_last) {
        add_removal(request, keys_.commit(revision));
        add_removal_of_all(request, keys_.parts_of(revision));
      }
      REGATTA_TRY_DO(transact(request, std::to_string(last_)));
      if (!is_last) continue;
      commits_.erase(commits_.begin());
      done_ = 0;
    }
    return {};
  }

  // Adds changes from index `next` on, as many as one transaction takes; gives the next index.
  std::size_t add_records(etcdserverpb::TxnRequest& request, const std::vector<Change>& changes,
                          std::size_t next) const {
    std::size_t bytes = 0;
    for (; next < changes.size() && request.success_size() < kOperationsMost; ++next) {
      const Change& change = changes[next];
      const std::size_t size = change.key.size() + (change.value ? change.value->size() : 0);
      if (bytes > 0 && bytes + size > kBytesMost) break;
      bytes += size;
      if (change.value)
        add_put(request, keys_.record(change.key),
                encode_commit(change.revision - 1, std::span(&change, 1)));
      else
        add_removal(request, keys_.record(change.key));
    }
    return next;
  }

  // Reads the last revision of the store; gives etcd's, at which all else is to be read.
  Result<std::int64_t> read_revision() {
    etcdserverpb::RangeRequest request;
    request.set_key(keys_.revision());
    REGATTA_TRY(response, client_->read(request));
    last_ = 0;
    if (!response.kvs().empty()) {
      const auto number = parse_number<Revision>(response.kvs(0).value());
      if (!number || *number < 0) return damaged(keys_.revision());
      last_ = *number;
    }
    return response.header().revision();
  }

  Status read_commits(std::int64_t now) {
    commits_.clear();
    done_ = 0;
    REGATTA_TRY(pairs, read_all(keys_.commits(), now, false));
    for (const auto& [key, value] : pairs) {
      std::string bytes = value;
      if (value.starts_with(kPartsMark)) {
        const auto revision = parse_number<Revision>(key.substr(keys_.commits().size()));
        if (!revision) return damaged(key);
        bytes.clear();
        REGATTA_TRY(parts, read_all(keys_.parts_of(*revision), now, false));
        if (std::to_string(parts.size()) != value.substr(kPartsMark.size())) return damaged(key);
        for (const auto& [name, part] : parts)
          bytes += part;
      }
      REGATTA_TRY(changes, decode(key, bytes));
      const Revision last = changes.back().revision;
      commits_.emplace(last, last_changes(changes));
    }
    return {};
  }

  // All keys that begin with `prefix`, in their order, as they were at etcd's revision `now`.
  Status read_pages(const std::string& prefix, std::int64_t now, bool is_keys_only,
                    const std::function<Status(const etcdserverpb::KeyValue&)>& visit) {
    etcdserverpb::RangeRequest request;
    request.set_key(prefix);
    request.set_range_end(end_of_prefix(prefix));
    request.set_limit(kPageSize);
    request.set_revision(now);
    request.set_keys_only(is_keys_only);
    for (;;) {
      REGATTA_TRY(response, client_->read(request));
      for (const etcdserverpb::KeyValue& pair : response.kvs())
        REGATTA_TRY_DO(visit(pair));
      if (!response.more() || response.kvs().empty()) return {};
      // The first key behind the last one.
      request.set_key(response.kvs(response.kvs_size() - 1).key() + '\0');
    }
  }

  Result<std::map<std::string, std::string>> read_all(const std::string& prefix, std::int64_t now,
                                                      bool is_keys_only) {
    std::map<std::string, std::string> pairs;
    REGATTA_TRY_DO(read_pages(prefix, now, is_keys_only, [&](const auto& pair) -> Status {
      pairs.emplace(pair.key(), pair.value());
      return {};
    }));
    return pairs;
  }

  static Error damaged(const std::string& key) {
    return {Code::kInvalidInput, "etcd: the value of '" + printable(key, 120) +
                                     "' is damaged; restore etcd from a snapshot"};
  }

  static Result<std::vector<Change>> decode(const std::string& key, std::string_view bytes) {
    ShippedLogReader reader(bytes, key);
    const auto commit = reader.next();
    if (!commit || !*commit || reader.position() != bytes.size()) return damaged(key);
    return (*commit)->changes;
  }

  const EtcdKeys keys_;
  const std::shared_ptr<EtcdClient> client_;
  const std::unique_ptr<EtcdLeadership> leadership_;
  Revision last_ = 0;
  std::int64_t etcd_revision_ = 0;     // of the last answer
  std::int64_t compact_revision_ = 0;  // etcd's, at the last compaction
  Seconds compact_time_;
  // Not in the records yet, and how many changes of the first one are.
  std::map<Revision, std::vector<Change>> commits_;
  std::size_t done_ = 0;
  Status failure_;
};

}  // namespace

Result<std::unique_ptr<Store>> open_etcd_store(const EtcdStoreOptions& options) {
  auto client = std::make_shared<EtcdClient>(options.endpoints, options.tls, options.request_limit);
  REGATTA_TRY(leadership, EtcdLeadership::win(client, options));
  auto store = std::make_unique<EtcdStore>(options, client, std::move(leadership));
  REGATTA_TRY_DO(store->begin());
  return std::unique_ptr<Store>(std::move(store));
}

Result<std::string> find_etcd_leader(const EtcdStoreOptions& options) {
  EtcdClient client(options.endpoints, options.tls, options.request_limit);
  etcdserverpb::RangeRequest request;
  request.set_key(EtcdKeys(options.prefix).leader());
  REGATTA_TRY(response, client.read(request));
  return response.kvs().empty() ? std::string() : response.kvs(0).value();
}

}  // namespace regatta::store
