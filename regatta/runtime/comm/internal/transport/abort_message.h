// comm/internal/transport/abort_message.h: the reason why a rank gives up: the text of an abort
// packet. World sends it, and a rank that gives up during the rendezvous writes it to its channels
// before it closes them.
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

// On a channel that no link of this rank has used. It never waits: without room nothing is sent.
void send_abort_message(PeerChannel& channel, const Error& error);
// On a channel that the peer closed: its reason, from send_abort_message() or from its World;
// nothing when it sent none. The channel cannot be used after that.
std::optional<Error> read_abort_message(PeerChannel& channel);

// The descriptor whose close shows that the peer has ended: the control connection or the wake-up
// socket of an open channel, else -1.
int close_event_fd(const PeerChannel& channel);

}  // namespace regatta::comm
