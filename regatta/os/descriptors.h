// os/descriptors.h: how many file descriptors this process may open.
#pragma once

#include <cstddef>

#include "regatta/core/result.h"

namespace regatta::os {

// Sees that `count` more descriptors can be opened: raises the soft limit as far as needed.
// kExhausted when the hard limit is lower.
Status allow_descriptors(std::size_t count);

}  // namespace regatta::os
