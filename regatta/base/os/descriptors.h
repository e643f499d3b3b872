// os/descriptors.h: the file descriptors of this process: how many it may open, and an end of all.
#pragma once

#include <cstddef>

#include "regatta/base/core/result.h"

namespace regatta::os {

// Sees that `count` more descriptors can be opened: raises the soft limit as far as needed.
// kExhausted when the hard limit is lower.
Status raise_descriptor_limit(std::size_t count);

// Closes all from `first` on, whoever opened them: for a child of fork().
Status close_descriptors_from(int first);

}  // namespace regatta::os
