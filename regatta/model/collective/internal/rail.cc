#include "regatta/model/collective/internal/rail.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "regatta/model/collective/internal/bundle.h"

namespace regatta::collective {
namespace {

// Tags of what a pair exchanges: what is for the one that gets it, and what that one passes on.
constexpr std::uint32_t kDirect = 0;
constexpr std::uint32_t kGathered = 1;  // and the number of the batch

class RailBuilder {
 public:
  RailBuilder(CollectiveSchedule& schedule, const GroupPosition& self, const Buffers& buffers,
              const RailLayout& servers)
      : schedule_(schedule), self_(self), buffers_(buffers), servers_(servers) {
    for (std::size_t s = 0; s < servers.size(); ++s)
      for (std::size_t l = 0; l < servers[s].size(); ++l)
        if (servers[s][l] == self.rank) {
          server_ = s;
          local_ = l;
        }
    if (buffers.in != buffers.out) return;
    const std::size_t all = part() * static_cast<std::size_t>(self.world_size);
    std::byte* const copy = schedule.scratch(all);
    aside_.push_back(schedule.add({.dst = copy, .src = buffers.in, .bytes = all}));
    buffers_.in = copy;
  }

  void exchange_inside() {
    for (std::size_t d = 1; d < locals(); ++d) {
      const int to = own_server()[(local_ + d) % locals()];
      const int from = own_server()[(local_ + locals() - d) % locals()];
      SourcePieces given;
      given.add(in_part(to), part());
      send_bundle(schedule_, {to, kDirect}, given, aside_);
      TargetPieces taken;
      taken.add(out_part(from), part());
      receive_bundle(schedule_, {from, kDirect}, taken, aside_);
    }
    add_copy(out_part(self_.rank), in_part(self_.rank));
  }

  // Posted first: what comes over the network waits for nothing here.
  void receive_between() {
    for (std::size_t d = 1; d < servers_.size(); ++d) {
      const std::vector<int>& senders = servers_[(server_ + servers_.size() - d) % servers_.size()];
      TargetPieces parts;
      for (const int sender : senders)
        parts.add(out_part(sender), part());
      receive_bundle(schedule_, {senders[local_ % senders.size()], kDirect}, parts, aside_);
    }
  }

  // Sends to the servers [first, last) behind this one.
  void send_between(std::size_t first, std::size_t last, std::uint32_t batch) {
    std::vector<std::byte*> gathered;  // by owned rank of those servers: the parts of all locals
    for (std::size_t d = first; d < last; ++d)
      for (std::size_t i = 0; i < owned(d, local_).size(); ++i)
        gathered.push_back(schedule_.scratch(part() * locals()));
    std::vector<StepIndex> ready;
    for (std::size_t step = 1; step < locals(); ++step) {
      give(first, last, (local_ + step) % locals(), batch);
      const std::size_t from = (local_ + locals() - step) % locals();
      TargetPieces places;
      for (std::byte* parts : gathered)
        places.add(parts + part() * from, part());
      if (gathered.empty()) continue;
      const auto ended =
          receive_bundle(schedule_, {own_server()[from], kGathered + batch}, places, {});
      ready.insert(ready.end(), ended.begin(), ended.end());
    }
    if (gathered.empty()) return;
    const StepIndex all = join(schedule_, ready);
    std::size_t next = 0;
    for (std::size_t d = first; d < last; ++d)
      for (const int to : owned(d, local_)) {
        std::byte* const parts = gathered[next++];
        std::vector<StepIndex> after = {all, add_copy(parts + part() * local_, in_part(to))};
        // One after the other, each to another server: no rank receives from two at once.
        if (sent_before_) after.push_back(*sent_before_);
        SourcePieces message;
        message.add(parts, part() * locals());
        sent_before_ = send_bundle(schedule_, {to, kDirect}, message, after);
      }
  }

 private:
  std::size_t part() const { return buffers_.bytes(); }
  const std::vector<int>& own_server() const { return servers_[server_]; }
  std::size_t locals() const { return own_server().size(); }
  const std::byte* in_part(int rank) const {
    return buffers_.in + part() * static_cast<std::size_t>(rank);
  }
  std::byte* out_part(int rank) const {
    return buffers_.out + part() * static_cast<std::size_t>(rank);
  }

  // The ranks of the server `distance` behind this one that local rank `local` serves.
  std::vector<int> owned(std::size_t distance, std::size_t local) const {
    const std::vector<int>& ranks = servers_[(server_ + distance) % servers_.size()];
    std::vector<int> all;
    for (std::size_t rail = local; rail < ranks.size(); rail += locals())
      all.push_back(ranks[rail]);
    return all;
  }

  // The own parts for what local rank `local` serves.
  void give(std::size_t first, std::size_t last, std::size_t local, std::uint32_t batch) {
    SourcePieces parts;
    for (std::size_t d = first; d < last; ++d)
      for (const int to : owned(d, local))
        parts.add(in_part(to), part());
    if (parts.bytes() > 0)
      send_bundle(schedule_, {own_server()[local], kGathered + batch}, parts, aside_);
  }

  StepIndex add_copy(std::byte* to, const std::byte* from) {
    const StepIndex copy = schedule_.add({.dst = to, .src = from, .bytes = part()});
    for (const StepIndex earlier : aside_)
      schedule_.wait_for(copy, earlier);
    return copy;
  }

  CollectiveSchedule& schedule_;
  GroupPosition self_;
  Buffers buffers_;
  const RailLayout& servers_;
  std::size_t server_ = 0;
  std::size_t local_ = 0;
  std::vector<StepIndex> aside_;  // the input's copy, where it lies under the output
  std::optional<StepIndex> sent_before_;
};

}  // namespace

void rail_all_to_all(CollectiveSchedule& schedule, const GroupPosition& self,
                     const Buffers& buffers, const RailLayout& servers,
                     const RailOptions& options) {
  if (buffers.count == 0) return;
  RailBuilder builder(schedule, self, buffers, servers);
  const std::size_t others = servers.size() - 1;
  const std::size_t in_batch =
      std::clamp<std::size_t>(options.local_message_bytes / buffers.bytes(), 1, others + 1);
  builder.receive_between();
  std::uint32_t batch = 0;
  for (std::size_t first = 1; first <= others; first += in_batch, ++batch)
    builder.send_between(first, std::min(first + in_batch, others + 1), batch);
  builder.exchange_inside();
}

}  // namespace regatta::collective
