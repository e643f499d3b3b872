// heal/healer_state.h: what a healer that is killed leaves to the process that goes on with its
// work, and the beats by which others see that it works, in memory that both share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/heal/healer.h"

namespace regatta::heal {

// The held faults, the relapses and the hops that routes lack, as one line. Another process of this
// machine that has the same graph understands it.
std::string state_text(const HealerState& state);
// kInvalidInput unless it is such a line, of a fabric like this one. "": nothing is held.
Result<HealerState> parse_state(const topo::Graph& graph, std::string_view text);

// A text in a file without a name. A process that is killed while it writes leaves the text before.
class SharedText {
 public:
  static Result<SharedText> create();
  // One that another process made, by its descriptor.
  explicit SharedText(os::UniqueFd fd) : fd_(std::move(fd)) {}

  int fd() const { return fd_.get(); }
  // "" before the first write().
  Result<std::string> read() const;
  Status write(std::string_view text);

 private:
  os::UniqueFd fd_;
};

// Writes a state into a SharedText where it is not as before: else it costs a comparison.
class StateWriter {
 public:
  // `text` must outlive this.
  explicit StateWriter(SharedText& text) : text_(text) {}

  // When it fails, the text may be of an earlier state; the next call tries again.
  Status update(HealerState state);

 private:
  SharedText& text_;
  std::optional<HealerState> written_;
};

// A count of the rounds of a process, which others read while it works.
class Heartbeat {
 public:
  static Result<Heartbeat> create();
  // One that another process made, by its descriptor. Its own beats begin with 1.
  explicit Heartbeat(os::UniqueFd fd) : fd_(std::move(fd)) {}

  int fd() const { return fd_.get(); }
  Status beat();
  // 0 before the first beat since reset().
  std::uint64_t beats() const;
  Status reset();

 private:
  Status write();

  os::UniqueFd fd_;
  std::uint64_t own_ = 0;
};

}  // namespace regatta::heal
