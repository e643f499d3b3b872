// comm/internal/transport/farewell.h: why a rank gives up: the text of an abort packet, which World
// sends, and which ranks that give up while they connect leave on their channels before they close
// them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/runtime/comm/internal/transport/channel.h"

namespace regatta::comm {

// At most kTextBytesMax bytes.
std::string encode_abort(const Error& error);
Error decode_abort(std::string_view text);

// On a channel that no link has used here. Without waiting: what has no room is not said.
void say_farewell(Channel& channel, const Error& error);
// On a channel that the peer closed: the reason that it gave, be it by say_farewell() or by its
// World; nothing when it gave none. The channel is of no use after that.
std::optional<Error> read_farewell(Channel& channel);

// What tells by a hang-up that the peer has ended: of an open channel the control connection or the
// bell, else -1.
int hang_up_fd(const Channel& channel);

}  // namespace regatta::comm
