// comm/internal/transport/abort_message.h: why a rank gives up: the text of an abort packet, which
// World sends, and which ranks that give up while they connect leave on their channels before they
// close them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/runtime/comm/internal/transport/peer_channel.h"

namespace regatta::comm {

// At most kTextBytesMax bytes.
std::string encode_abort(const Error& error);
Error decode_abort(std::string_view text);

// On a channel that no link has used here. Without waiting: what has no room is not said.
void send_abort_message(PeerChannel& channel, const Error& error);
// On a channel that the peer closed: the reason that it gave, be it by send_abort_message() or by
// its World; nothing when it gave none. The channel is of no use after that.
std::optional<Error> read_abort_message(PeerChannel& channel);

// What tells by a hang-up that the peer has ended: of an open channel the control connection or the
// wake-up socket, else -1.
int close_event_fd(const PeerChannel& channel);

}  // namespace regatta::comm
